"""The losses of the detector with its RoI head, and of the grounder: named terms, to be summed."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maskwise.models.tiny.spec import ATTRIBUTE_SIZES
from maskwise.training.tiny.grounding_batch import GroundingBatch
from maskwise.training.tiny.targets import DetectorBatch

OCCLUDED_WEIGHT = 3.0
"""Weight of occluded pixels in the amodal mask loss: they are few, and the most important ones."""

PART_WEIGHT = 0.5
"""Weight of parts in the grounder's loss."""


def detector_loss(network: nn.Module, batch: DetectorBatch) -> dict[str, Tensor]:
    """network: a TwoStageDetector."""
    maps, rois = network(batch.images, batch.rois)
    cell_category, cell_color = maps.cell_logits.split(list(ATTRIBUTE_SIZES[:2]), 1)
    visible, amodal, part = (batch.roi_masks[:, i] for i in range(3))
    occluded = (amodal > visible).float()
    parts = F.cross_entropy(
        rois.masks[:, 2:], (part.long() - 1).clamp(min=0), reduction="none"
    )
    return {
        "heatmap": heatmap_loss(maps.heatmap, batch.heatmap),
        "box": box_loss(maps.box, batch.box, batch.box_weight),
        "cells": 0.3 * _class_loss(cell_category, batch.cell_labels[:, 0])
        + 0.3 * _class_loss(cell_color, batch.cell_labels[:, 1]),
        "visible": mask_loss(
            rois.masks[:, 0], visible.float(), torch.ones_like(occluded)
        ),
        "amodal": mask_loss(
            rois.masks[:, 1], amodal.float(), 1 + (OCCLUDED_WEIGHT - 1) * occluded
        ),
        "parts": 0.7 * (parts * amodal).sum() / amodal.sum().clamp(min=1),
        "category": 0.5 * _class_loss(rois.category, batch.roi_labels[:, 0]),
        "color": 0.5 * _class_loss(rois.color, batch.roi_labels[:, 1]),
        "material": 0.2 * _class_loss(rois.material, batch.roi_labels[:, 2]),
    }


def grounding_loss(network: nn.Module, batch: GroundingBatch) -> dict[str, Tensor]:
    """Binary cross entropy of the targets. network: a Grounder."""
    logits = network(batch.tokens, batch.unary, batch.pairwise, batch.padding_mask)
    each = F.binary_cross_entropy_with_logits(logits, batch.targets, reduction="none")
    each = each * (1 - batch.padding_mask)[:, :, None]
    return {
        "objects": each[:, :, 0].sum(1).mean(),
        "parts": PART_WEIGHT * each[:, :, 1:].sum((1, 2)).mean(),
    }


def heatmap_loss(logits: Tensor, target: Tensor) -> Tensor:
    """The focal loss of CornerNet (Law and Deng 2018, eq. 1), as in CenterNet, per object."""
    probability = logits.sigmoid().clamp(1e-4, 1 - 1e-4)
    center = (target > 0.99).float()
    positive = -center * (1 - probability) ** 2 * probability.log()
    negative = (
        -(1 - center) * (1 - target) ** 4 * probability**2 * (1 - probability).log()
    )
    return (positive + negative).sum() / center.sum().clamp(min=1)


def box_loss(box: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """1 - IoU of boxes given by distances from the same cell, weighted."""
    area = (box[:, 0] + box[:, 2]) * (box[:, 1] + box[:, 3])
    target_area = (target[:, 0] + target[:, 2]) * (target[:, 1] + target[:, 3])
    smaller = torch.minimum(box, target)
    intersection = (smaller[:, 0] + smaller[:, 2]) * (smaller[:, 1] + smaller[:, 3])
    iou = intersection / (area + target_area - intersection + 1e-6)
    return 2 * ((1 - iou) * weight[:, 0]).sum() / weight.sum().clamp(min=1)


def mask_loss(logits: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Cross entropy and Dice, both weighted by pixel."""
    entropy = F.binary_cross_entropy_with_logits(logits, target, weight=weight)
    probability = logits.sigmoid() * weight
    overlap = (probability * target).sum((1, 2))
    total = probability.sum((1, 2)) + (target * weight).sum((1, 2))
    dice = 1 - (2 * overlap + 1) / (total + 1)
    return 2 * entropy + dice.mean()


def _class_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Mean cross entropy over known labels (not -1); 0 if none is known."""
    total = F.cross_entropy(logits, target, ignore_index=-1, reduction="sum")
    return total / (target >= 0).sum().clamp(min=1)
