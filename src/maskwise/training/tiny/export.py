"""Export of trained networks to ONNX files, which run without torch.

Batch normalisation is folded into the convolutions, and weights are stored in half precision. Initializers keep the
names of the parameters, so that training can continue from the files (`load_onnx` in networks.py).
"""

import copy
from pathlib import Path

import torch
from torch import Tensor, nn

from maskwise.models.tiny.spec import (
    ATTRIBUTE_SIZES,
    COARSE_CHANNELS,
    FINE_CHANNELS,
    IMAGE_SIZE,
    MAX_PARTS,
    MAX_TRIGRAMS,
    PAIRWISE_FEATURES,
    ROI_MASK_SIZE,
    UNARY_FEATURES,
)
from maskwise.training.onnx_export import write_onnx
from maskwise.training.tiny.detector import Detector
from maskwise.training.tiny.grounder import Grounder
from maskwise.training.tiny.networks import TwoStageDetector, fuse_batch_norm
from maskwise.training.tiny.roi_head import RoIHead, RoIOutput


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


class _MaskHeadGraph(nn.Module):
    """The mask head for the objects of one image."""

    def __init__(self, detector: TwoStageDetector) -> None:
        super().__init__()
        self.mask_head = detector.mask_head
        self.refine = detector.refine

    def forward(
        self,
        image: Tensor,
        fine: Tensor,
        coarse: Tensor,
        boxes: Tensor,
        *rois: Tensor,
    ) -> Tensor:
        return self.refine(image, fine, coarse, boxes=boxes, rois=RoIOutput(*rois))


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


def export(detector: TwoStageDetector, grounder: Grounder, out: Path) -> list[Path]:
    """Write detector.onnx, roi_head.onnx, mask_head.onnx and grounder.onnx; the networks are not changed."""
    out.mkdir(parents=True, exist_ok=True)
    detector = copy.deepcopy(detector).cpu().eval()
    fuse_batch_norm(detector)
    grounder = copy.deepcopy(grounder).cpu().eval()
    return [
        _write_detector(detector.detector, out / "detector.onnx"),
        _write_roi_head(detector.roi_head, out / "roi_head.onnx"),
        _write_mask_head(detector, out / "mask_head.onnx"),
        _write_grounder(grounder, out / "grounder.onnx"),
    ]


def _write_detector(detector: Detector, path: Path) -> Path:
    return write_onnx(
        _DetectorGraph(detector),
        path,
        inputs={"image": torch.zeros(1, 3, IMAGE_SIZE, IMAGE_SIZE)},
        outputs=("fine_features", "coarse_features", "heatmap", "box_distances"),
        dynamic_axes={},
    )


def _write_roi_head(roi_head: RoIHead, path: Path) -> Path:
    outputs = (
        "mask_logits",
        "category_logits",
        "color_logits",
        "material_logits",
        "corrected_boxes",
    )
    return write_onnx(
        _RoIHeadGraph(roi_head),
        path,
        inputs=_example_maps_and_boxes(),
        outputs=outputs,
        dynamic_axes={name: {0: "objects"} for name in ("boxes", *outputs)},
    )


def _write_mask_head(detector: TwoStageDetector, path: Path) -> Path:
    image = torch.zeros(1, 3, IMAGE_SIZE, IMAGE_SIZE)
    example = _example_maps_and_boxes()
    boxes = example["boxes"]
    given = {
        "boxes": boxes,
        "first_mask_logits": torch.zeros(
            len(boxes), 2 + MAX_PARTS, ROI_MASK_SIZE, ROI_MASK_SIZE
        ),
        "category_logits": torch.zeros(len(boxes), ATTRIBUTE_SIZES[0]),
        "color_logits": torch.zeros(len(boxes), ATTRIBUTE_SIZES[1]),
        "material_logits": torch.zeros(len(boxes), ATTRIBUTE_SIZES[2]),
        "corrected_boxes": boxes.clone(),
    }
    return write_onnx(
        _MaskHeadGraph(detector),
        path,
        inputs={"image": image, **example, **given},
        outputs=("mask_logits",),
        dynamic_axes={name: {0: "objects"} for name in (*given, "mask_logits")},
    )


def _example_maps_and_boxes() -> dict[str, Tensor]:
    """Inputs of the two heads."""
    # Strides of the two feature maps.
    fine_side = IMAGE_SIZE // 2
    coarse_side = IMAGE_SIZE // 4
    return {
        "fine_features": torch.zeros(1, FINE_CHANNELS, fine_side, fine_side),
        "coarse_features": torch.zeros(1, COARSE_CHANNELS, coarse_side, coarse_side),
        # Two boxes: with one, the tracer would take the number of boxes for a constant.
        "boxes": torch.tensor([[0.1, 0.1, 0.5, 0.6], [0.2, 0.3, 0.9, 0.9]]),
    }


def _write_grounder(grounder: Grounder, path: Path) -> Path:
    return write_onnx(
        _GrounderGraph(grounder),
        path,
        # Sizes above 1, and different ones, so that the tracer takes none of them for a constant.
        inputs={
            "tokens": torch.ones(2, 5, 1 + MAX_TRIGRAMS, dtype=torch.long),
            "unary": torch.zeros(1, 3, UNARY_FEATURES),
            "pairwise": torch.zeros(1, 3, 3, PAIRWISE_FEATURES),
        },
        outputs=("logits",),
        dynamic_axes={
            "tokens": {0: "questions", 1: "tokens"},
            "unary": {1: "objects"},
            "pairwise": {1: "objects", 2: "objects"},
            "logits": {0: "questions", 1: "objects"},
        },
    )
