"""CLIP's ONNX files from the authors' checkpoint.

    export_file("clip_image.onnx", checkpoint, path)

The authors' file is a TorchScript archive. `torch.jit.load` restores its modules, which runs their TorchScript but no
Python; only the weights are taken, and the networks in it are not called.

Every ONNX file is run once beside the torch network it comes from, and is kept only if both agree.
"""

import os
from pathlib import Path

import torch
from torch import Tensor, nn

from maskwise.errors import DownloadError
from maskwise.store.atomic import PARTIAL
from maskwise.training.clip.network import (
    VIT_B_32,
    ClipShape,
    ImageEncoder,
    TextEncoder,
)
from maskwise.training.onnx_export import write_checked_onnx

IMAGE_FILE = "clip_image.onnx"
TEXT_FILE = "clip_text.onnx"

IMAGE_PREFIX = "visual."

SETTINGS = frozenset({"input_resolution", "context_length", "vocab_size"})
"""Entries of the authors' checkpoint that are no weights."""

Weights = dict[str, Tensor]


def export_file(
    name: str, checkpoint: Path, path: Path, *, shape: ClipShape = VIT_B_32
) -> None:
    """Write IMAGE_FILE or TEXT_FILE; DownloadError if the checkpoint is not CLIP's or the file differs.

    shape: of the checkpoint's networks.
    """
    weights = read_checkpoint(checkpoint)
    partial = path.with_name(f".{path.name}{PARTIAL}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        if name == IMAGE_FILE:
            _export_image_encoder(weights, partial, shape)
        else:
            _export_text_encoder(weights, partial, shape)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def read_checkpoint(path: Path) -> Weights:
    """The weights of a TorchScript archive by name, in single precision."""
    try:
        archive = torch.jit.load(path, map_location="cpu")  # type: ignore[no-untyped-call]
        tensors = archive.state_dict()
    except (RuntimeError, ValueError, EOFError, OSError) as error:
        raise DownloadError(
            f"{path} is no TorchScript archive of CLIP: {error}"
        ) from None
    return {name: tensor.float() for name, tensor in tensors.items()}


def _export_image_encoder(weights: Weights, path: Path, shape: ClipShape) -> None:
    own = {}
    for name, tensor in weights.items():
        if name.startswith(IMAGE_PREFIX):
            own[name.removeprefix(IMAGE_PREFIX)] = tensor
    network = _load(ImageEncoder(shape), own)
    write_checked_onnx(
        network,
        path,
        inputs={"pixels": torch.randn(2, 3, shape.image_size, shape.image_size)},
        outputs=("vectors",),
        dynamic_axes={"pixels": {0: "images"}, "vectors": {0: "images"}},
    )


def _export_text_encoder(weights: Weights, path: Path, shape: ClipShape) -> None:
    own = {
        name: tensor
        for name, tensor in weights.items()
        if not name.startswith(IMAGE_PREFIX) and name not in SETTINGS
    }
    network = _load(TextEncoder(shape), own)
    # Two texts of different lengths: the largest token ends each.
    tokens = torch.tensor([[1, 2, 3, shape.vocabulary_size - 1], [4, 5, 6, 0]])
    tokens[1, 2] = shape.vocabulary_size - 1
    write_checked_onnx(
        network,
        path,
        inputs={"tokens": tokens},
        outputs=("vectors",),
        dynamic_axes={
            "tokens": {0: "texts", 1: "length"},
            "vectors": {0: "texts"},
        },
    )


def _load(network: nn.Module, weights: Weights) -> nn.Module:
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise DownloadError(
            f"this is no checkpoint of CLIP ViT-B/32: {error}"
        ) from None
    return network
