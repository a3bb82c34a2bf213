"""Export of trained networks to ONNX files, which run without torch.

Batch normalisation is folded into the convolutions, and weights are stored in half precision. Initializers keep the
names of the parameters, so that training can continue from the files (`load_onnx` in networks.py).
"""

import copy
import warnings
from pathlib import Path
from typing import NamedTuple

import onnx
import torch
from torch import Tensor, nn

from maskwise.models.tiny.spec import (
    COARSE_CHANNELS,
    FINE_CHANNELS,
    IMAGE_SIZE,
    MAX_TRIGRAMS,
    PAIRWISE_FEATURES,
    UNARY_FEATURES,
)
from maskwise.training.tiny.detector import Detector
from maskwise.training.tiny.grounder import Grounder
from maskwise.training.tiny.half_precision import halve_weights
from maskwise.training.tiny.networks import TwoStageDetector, fuse_batch_norm
from maskwise.training.tiny.roi_head import RoIHead, RoIOutput

OPSET = 17


class _DetectorGraph(nn.Module):
    """The detector without the outputs that only training uses; the heatmap in 0..1."""

    def __init__(self, detector: Detector) -> None:
        super().__init__()
        self.detector = detector

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        maps = self.detector(image)
        return maps.fine, maps.coarse, maps.heatmap.sigmoid(), maps.box


class _RoIHeadGraph(nn.Module):
    """The RoI head for the boxes of one image."""

    def __init__(self, roi_head: RoIHead) -> None:
        super().__init__()
        self.roi_head = roi_head

    def forward(self, fine: Tensor, coarse: Tensor, boxes: Tensor) -> RoIOutput:
        output: RoIOutput = self.roi_head(fine, coarse, [boxes])
        return output


class _GrounderGraph(nn.Module):
    """The grounder for several questions about one image: features are repeated, nothing is padding."""

    def __init__(self, grounder: Grounder) -> None:
        super().__init__()
        self.grounder = grounder

    def forward(self, tokens: Tensor, unary: Tensor, pairwise: Tensor) -> Tensor:
        count = tokens.shape[0]
        padding_mask = torch.zeros_like(unary[:, :, 0]).expand(count, -1)
        logits: Tensor = self.grounder(
            tokens,
            unary.expand(count, -1, -1),
            pairwise.expand(count, -1, -1, -1),
            padding_mask,
        )
        return logits


class OnnxGraph(NamedTuple):
    """A network, example inputs by name, the names of its outputs, and the dynamic axes of both."""

    network: nn.Module
    inputs: dict[str, Tensor]
    outputs: tuple[str, ...]
    dynamic_axes: dict[str, dict[int, str]]


def export(detector: TwoStageDetector, grounder: Grounder, out: Path) -> list[Path]:
    """Write detector.onnx, roi_head.onnx and grounder.onnx; the networks are not changed."""
    out.mkdir(parents=True, exist_ok=True)
    detector = copy.deepcopy(detector).cpu().eval()
    fuse_batch_norm(detector)
    graphs = {
        "detector": _detector_graph(detector.detector),
        "roi_head": _roi_head_graph(detector.roi_head),
        "grounder": _grounder_graph(copy.deepcopy(grounder).cpu().eval()),
    }
    return [write_onnx(graph, out / f"{name}.onnx") for name, graph in graphs.items()]


def _detector_graph(detector: Detector) -> OnnxGraph:
    outputs = ("fine_features", "coarse_features", "heatmap", "box_distances")
    return OnnxGraph(
        _DetectorGraph(detector),
        {"image": torch.zeros(1, 3, IMAGE_SIZE, IMAGE_SIZE)},
        outputs,
        {},
    )


def _roi_head_graph(roi_head: RoIHead) -> OnnxGraph:
    fine = IMAGE_SIZE // 2
    coarse = IMAGE_SIZE // 4
    inputs = {
        "fine_features": torch.zeros(1, FINE_CHANNELS, fine, fine),
        "coarse_features": torch.zeros(1, COARSE_CHANNELS, coarse, coarse),
        "boxes": torch.tensor([[0.1, 0.1, 0.5, 0.6], [0.2, 0.3, 0.9, 0.9]]),
    }
    outputs = ("mask_logits", "category_logits", "color_logits", "material_logits")
    return OnnxGraph(
        _RoIHeadGraph(roi_head),
        inputs,
        outputs,
        {name: {0: "objects"} for name in ("boxes", *outputs)},
    )


def _grounder_graph(grounder: Grounder) -> OnnxGraph:
    inputs = {
        "tokens": torch.ones(2, 5, 1 + MAX_TRIGRAMS, dtype=torch.long),
        "unary": torch.zeros(1, 3, UNARY_FEATURES),
        "pairwise": torch.zeros(1, 3, 3, PAIRWISE_FEATURES),
    }
    axes = {
        "tokens": {0: "questions", 1: "tokens"},
        "unary": {1: "objects"},
        "pairwise": {1: "objects", 2: "objects"},
        "logits": {0: "questions", 1: "objects"},
    }
    return OnnxGraph(_GrounderGraph(grounder), inputs, ("logits",), axes)


def write_onnx(graph: OnnxGraph, path: Path) -> Path:
    """Write a network as an ONNX file with half-precision weights.

    The tracing exporter is used: its files are small and keep the names given here. Its warnings, about its
    deprecation and about sizes that are constant on purpose, are suppressed. Constants are not folded, because folded
    initializers lose their names; onnxruntime folds them when it opens the file.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            graph.network.eval(),
            tuple(graph.inputs.values()),
            str(path),
            input_names=list(graph.inputs),
            output_names=list(graph.outputs),
            dynamic_axes=graph.dynamic_axes,
            opset_version=OPSET,
            do_constant_folding=False,
            dynamo=False,
        )
    model = onnx.load(path)
    halve_weights(model)
    onnx.save(model, path)
    return path
