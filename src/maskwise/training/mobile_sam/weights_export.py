"""MobileSAM's ONNX files from the authors' checkpoint.

    export_file("mobile_sam_encoder.onnx", checkpoint, path)

The checkpoint is read as tensors only: no code in it is run. Every file is run once beside the torch network it comes
from, and is kept only if both agree.
"""

import os
import pickle
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from maskwise.errors import DownloadError
from maskwise.models.photo.sam import (
    FEATURE_CHANNELS,
    GRID_SIZE,
    INPUT_SIZE,
    LOGITS_SIZE,
)
from maskwise.store.atomic import PARTIAL
from maskwise.training.mobile_sam.mask_decoder import OnnxDecoder
from maskwise.training.mobile_sam.tiny_vit import TinyViT
from maskwise.training.onnx_export import write_checked_onnx

ENCODER_PREFIX = "image_encoder."

UNUSED = ("image_encoder.norm_head.", "image_encoder.head.")
"""Weights of the classifier that TinyViT was trained with."""

Weights = dict[str, Tensor]


def export_file(name: str, checkpoint: Path, path: Path) -> None:
    """Write the ONNX file of this name; DownloadError if the checkpoint is not MobileSAM's or the file differs."""
    weights = read_checkpoint(checkpoint)
    partial = path.with_name(f".{path.name}{PARTIAL}")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        EXPORTERS[name](weights, partial)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def read_checkpoint(path: Path) -> Weights:
    """The weights of a checkpoint by name."""
    try:
        weights = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, OSError) as error:
        raise DownloadError(f"{path} is no checkpoint of torch: {error}") from None
    if not isinstance(weights, dict):
        raise DownloadError(
            f"{path}: expected weights by name, found {type(weights).__name__}"
        )
    return weights


def export_encoder(weights: Weights, path: Path) -> None:
    """The image encoder."""
    network = TinyViT()
    own = {}
    for name, tensor in weights.items():
        if name.startswith(ENCODER_PREFIX) and not name.startswith(UNUSED):
            own[name.removeprefix(ENCODER_PREFIX)] = tensor
    _load(network, own)
    image = torch.rand(1, 3, INPUT_SIZE, INPUT_SIZE)
    write_checked_onnx(
        network, path, inputs={"input": image}, outputs=("output",), dynamic_axes={}
    )


def export_decoder(weights: Weights, path: Path) -> None:
    """The prompt encoder and the mask decoder."""
    network = OnnxDecoder()
    own = {
        name: tensor
        for name, tensor in weights.items()
        if not name.startswith(ENCODER_PREFIX)
    }
    _load(network, own)
    inputs = {
        "image_embeddings": torch.randn(1, FEATURE_CHANNELS, GRID_SIZE, GRID_SIZE),
        "point_coords": torch.rand(1, 5, 2) * INPUT_SIZE,
        "point_labels": torch.tensor([[1.0, 0.0, 1.0, 2.0, 3.0]]),
        "mask_input": torch.randn(1, 1, LOGITS_SIZE, LOGITS_SIZE),
        "has_mask_input": torch.tensor([1.0]),
        "orig_im_size": torch.tensor([150.0, 200.0]),
    }
    outputs = ("masks", "iou_predictions", "low_res_masks")
    axes = {"point_coords": {1: "num_points"}, "point_labels": {1: "num_points"}}
    write_checked_onnx(network, path, inputs=inputs, outputs=outputs, dynamic_axes=axes)


def _load(network: nn.Module, weights: Weights) -> None:
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise DownloadError(f"this is no checkpoint of MobileSAM: {error}") from None


EXPORTERS: dict[str, Callable[[Weights, Path], None]] = {
    "mobile_sam_encoder.onnx": export_encoder,
    "mobile_sam_decoder.onnx": export_decoder,
}
