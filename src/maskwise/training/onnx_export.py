"""Trained networks as ONNX files, which run without torch; weights are stored in half precision or as they are."""

import warnings
from pathlib import Path

import onnx
import torch
from torch import Tensor, nn

from maskwise.training.half_precision import halve_weights

OPSET = 17
"""The operators of ONNX 1.12 (2022): older than every onnxruntime that maskwise accepts."""


def write_onnx(
    network: nn.Module,
    path: Path,
    *,
    inputs: dict[str, Tensor],
    outputs: tuple[str, ...],
    dynamic_axes: dict[str, dict[int, str]],
    half: bool = True,
) -> Path:
    """Write a network as an ONNX file; it is set to evaluation mode. half: weights are stored in half precision.

    inputs: examples by name, in the order of the network's arguments. outputs: names. dynamic_axes: axes of both whose
    size may differ from that of the examples, by name and number.

    The tracing exporter is used: its files are small and keep the names given here. Its warnings, about its
    deprecation and about sizes that are constant on purpose, are suppressed. Constants are not folded, because folded
    initializers lose their names; onnxruntime folds them when it opens the file.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network.eval(),
            tuple(inputs.values()),
            str(path),
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_axes=dynamic_axes,
            opset_version=OPSET,
            do_constant_folding=False,
            dynamo=False,
        )
    if not half:
        return path
    model = onnx.load(path)
    halve_weights(model)
    onnx.save(model, path)
    return path
