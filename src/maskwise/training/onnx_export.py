"""Trained networks as ONNX files, which run without torch; weights are stored in half precision or as they are."""

import warnings
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from torch import Tensor, nn

from maskwise.errors import DownloadError
from maskwise.training.half_precision import halve_weights

OPSET = 17
"""The operators of ONNX 1.12 (2022): older than every onnxruntime that maskwise accepts."""

MAX_DIFFERENCE = 1e-3
"""Between the outputs of torch and onnxruntime, relative to the largest value."""


def write_checked_onnx(
    network: nn.Module,
    path: Path,
    *,
    inputs: dict[str, Tensor],
    outputs: tuple[str, ...],
    dynamic_axes: dict[str, dict[int, str]],
) -> None:
    """Write a network of a downloaded checkpoint as an ONNX file in single precision, and run it once beside torch.

    DownloadError if the two differ. For the arguments see `write_onnx`.
    """
    with torch.no_grad():
        write_onnx(
            network,
            path,
            inputs=inputs,
            outputs=outputs,
            dynamic_axes=dynamic_axes,
            half=False,
        )
        expected = network(*inputs.values())
    if isinstance(expected, Tensor):
        expected = (expected,)
    session = onnxruntime.InferenceSession(
        str(path), providers=["CPUExecutionProvider"]
    )
    arrays = {name: tensor.numpy() for name, tensor in inputs.items()}
    for name, tensor, actual in zip(outputs, expected, session.run(None, arrays)):
        wanted = tensor.numpy()
        difference = np.abs(actual - wanted).max() / max(1e-6, np.abs(wanted).max())
        if not difference <= MAX_DIFFERENCE:
            raise DownloadError(
                f"the exported {name} differs from torch's by {difference:.1e} of its range, expected at most "
                f"{MAX_DIFFERENCE:.0e}. Report it with the versions of torch and onnxruntime"
            )


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
