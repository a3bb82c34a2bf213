"""Weights in safetensors files: whole when they are there, and a message when they are not what is expected."""

import os
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from maskwise.errors import MaskwiseError


def write_tensors(tensors: dict[str, Tensor], path: Path, facts: dict[str, str] | None = None) -> None:
    """Beside its place, then moved there: a file that exists is whole."""
    being_written = path.with_suffix(".part")
    save_file({name: value.contiguous() for name, value in tensors.items()}, being_written, facts)
    os.replace(being_written, path)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a file."""
    try:
        return load_file(path)
    except SafetensorError as error:
        raise MaskwiseError(f"{path} is not a safetensors file: {error}; delete it to begin anew") from None


def load_weights(network: nn.Module, path: Path) -> None:
    """Put the weights of a file into a network."""
    load_state(network, read_tensors(path), path)


def load_state(network: nn.Module, state: dict[str, Tensor], path: Path) -> None:
    """Put weights that came from `path` into a network."""
    try:
        network.load_state_dict(state)
    except RuntimeError as error:
        raise MaskwiseError(f"{path} does not hold the weights expected: {error}") from None
