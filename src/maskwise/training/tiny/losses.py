"""The losses of the detector with its RoI head, and of the grounder: named terms, to be summed.

The weights of the detector's terms make them of similar size at the beginning of training, so that none hides the
others: 1.1 to 3.1 in the first steps of configs/tiny.toml, and .4 for the material. The weight of category and color
was .5 in those steps; 4 % of the objects that were found had a wrong one.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from maskwise.models.tiny.spec import ATTRIBUTE_SIZES
from maskwise.training.tiny.grounding_batch import GroundingBatch
from maskwise.training.tiny.targets import DetectorBatch, sample_masks

BOX_WEIGHT = 2.0
"""Of the box loss, which is at most 1 per cell."""

ROI_BOX_WEIGHT = 2.0
"""Of the loss of the corrected boxes, which is 1 - IoU as well."""

CELL_WEIGHT = 0.3
"""Of each of the two classes of a cell; they only help the backbone, inference does not use them."""

PART_MASK_WEIGHT = 0.7
"""Of the part that each pixel of an object belongs to."""

CATEGORY_WEIGHT = 0.8
COLOR_WEIGHT = 0.8

MATERIAL_WEIGHT = 0.2
"""Less than category and color: 2 % of the world's questions mention a material, 38 % a color."""

ENTROPY_WEIGHT = 2.0
"""Of the cross entropy in the mask loss, beside 1 for Dice."""

OCCLUDED_WEIGHT = 3.0
"""Weight of occluded pixels in the amodal mask loss: they are few, and the most important ones."""

PART_TARGET_WEIGHT = 0.5
"""Weight of parts in the grounder's loss: an object has several parts and is one target."""

CENTER_VALUE = 0.99
"""The heatmap is 1 at the center of an object and lower in all other cells."""

MIN_PROBABILITY = 1e-4
"""Probabilities are kept this far from 0 and 1, so that their logarithms stay finite."""

AREA_EPSILON = 1e-6
"""Keeps the IoU of two empty boxes finite."""


def detector_loss(network: nn.Module, batch: DetectorBatch) -> dict[str, Tensor]:
    """The terms of the detector and its RoI head, each a scalar. network: a TwoStageDetector."""
    maps, boxes, rois, masks = network(batch.images, batch.rois, batch.roi_masks)
    cell_sizes = list(ATTRIBUTE_SIZES[:2])
    cell_categories, cell_colors = maps.cell_logits.split(cell_sizes, 1)
    true_categories, true_colors = batch.cell_labels.unbind(1)
    category_loss = _class_loss(cell_categories, true_categories)
    color_loss = _class_loss(cell_colors, true_colors)
    categories, colors, materials = batch.roi_labels.unbind(1)
    roi_category_loss = _class_loss(rois.category, categories)
    roi_color_loss = _class_loss(rois.color, colors)
    roi_material_loss = _class_loss(rois.material, materials)
    own_masks = batch.roi_masks[:, :2]
    first_targets = sample_masks(own_masks, boxes, rois.masks.shape[2])
    targets = sample_masks(own_masks, rois.boxes.detach(), masks.shape[2])
    first_losses = _masks_losses(rois.masks, first_targets)
    return {
        "heatmap": heatmap_loss(maps.heatmap, batch.heatmap),
        "box": box_loss(maps.box, batch.box, batch.box_weight),
        "cells": CELL_WEIGHT * category_loss + CELL_WEIGHT * color_loss,
        "roi_box": ROI_BOX_WEIGHT * roi_box_loss(rois.boxes, batch.roi_boxes),
        "first_masks": torch.stack(list(first_losses.values())).sum(),
        **_masks_losses(masks, targets),
        "category": CATEGORY_WEIGHT * roi_category_loss,
        "color": COLOR_WEIGHT * roi_color_loss,
        "material": MATERIAL_WEIGHT * roi_material_loss,
    }


def _masks_losses(logits: Tensor, targets: Tensor) -> dict[str, Tensor]:
    """Of masks [k, 2 + MAX_PARTS, m, m]. targets: [k, 2, m, m], visible and part number."""
    visible, part_numbers = targets.unbind(1)
    amodal = (part_numbers > 0).float()
    occluded = amodal * (1 - visible.float())
    uniform_weight = torch.ones_like(occluded)
    amodal_weight = 1 + (OCCLUDED_WEIGHT - 1) * occluded
    return {
        "visible": mask_loss(logits[:, 0], visible.float(), uniform_weight),
        "amodal": mask_loss(logits[:, 1], amodal, amodal_weight),
        "parts": part_loss(logits[:, 2:], part_numbers, amodal),
    }


def grounding_loss(network: nn.Module, batch: GroundingBatch) -> dict[str, Tensor]:
    """Binary cross entropy of the targets, summed over an image and averaged over questions. network: a Grounder."""
    logits = network(batch.tokens, batch.unary, batch.pairwise, batch.padding_mask)
    entropy = F.binary_cross_entropy_with_logits(
        logits, batch.targets, reduction="none"
    )
    is_object = 1 - batch.padding_mask
    entropy = entropy * is_object[:, :, None]
    # Column 0 is the whole object, the others are its parts.
    objects = entropy[:, :, 0].sum(1)
    parts = entropy[:, :, 1:].sum((1, 2))
    return {
        "objects": objects.mean(),
        "parts": PART_TARGET_WEIGHT * parts.mean(),
    }


def heatmap_loss(logits: Tensor, target: Tensor) -> Tensor:
    """The focal loss of CornerNet (Law and Deng 2018, eq. 1), as in CenterNet, per object.

    logits, target: [b, 1, h, w]; target is in 0..1, 1 at centers. Exponents as in the paper: alpha 2, beta 4.
    """
    probability = logits.sigmoid().clamp(MIN_PROBABILITY, 1 - MIN_PROBABILITY)
    center = (target > CENTER_VALUE).float()
    # Cells that are already right are punished less: the factors of the focal loss.
    positive_focus = (1 - probability) ** 2
    positive = -center * positive_focus * probability.log()
    elsewhere = 1 - center
    # Cells near a center are punished less: their boxes overlap the object.
    near_weight = (1 - target) ** 4
    negative_focus = probability**2
    logarithm = (1 - probability).log()
    negative = -elsewhere * near_weight * negative_focus * logarithm
    objects = center.sum().clamp(min=1)
    return (positive + negative).sum() / objects


def box_loss(box: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """1 - IoU of boxes given by distances from the same cell, averaged with weights.

    box, target: [b, 4, h, w], distances to the left, top, right and bottom; weight: [b, 1, h, w].
    """
    # Both boxes contain the cell, so the smaller distance on each side bounds the intersection.
    intersection = _box_area(torch.minimum(box, target))
    union = _box_area(box) + _box_area(target) - intersection
    iou = intersection / (union + AREA_EPSILON)
    total_weight = weight.sum().clamp(min=1)
    cell_losses = (1 - iou) * weight[:, 0]
    return BOX_WEIGHT * cell_losses.sum() / total_weight


def roi_box_loss(boxes: Tensor, target: Tensor) -> Tensor:
    """1 - IoU of boxes [k, 4] of left, top, right, bottom as fractions of the image, averaged."""
    low = torch.maximum(boxes[:, :2], target[:, :2])
    high = torch.minimum(boxes[:, 2:], target[:, 2:])
    intersection = (high - low).clamp(min=0).prod(1)
    areas = [(each[:, 2:] - each[:, :2]).prod(1) for each in (boxes, target)]
    union = areas[0] + areas[1] - intersection
    return (1 - intersection / (union + AREA_EPSILON)).mean()


def _box_area(distances: Tensor) -> Tensor:
    """[b, h, w] of distances [b, 4, h, w] to the left, top, right and bottom."""
    left, top, right, bottom = distances.unbind(1)
    return (left + right) * (top + bottom)


def mask_loss(logits: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Cross entropy and Dice, both weighted by pixel. All [k, h, w]; target is 0 or 1."""
    entropy = F.binary_cross_entropy_with_logits(logits, target, weight=weight)
    probability = logits.sigmoid() * weight
    overlap = (probability * target).sum((1, 2))
    target_area = (target * weight).sum((1, 2))
    total = probability.sum((1, 2)) + target_area
    # One pixel is added to both, so that an empty mask has a Dice of 1 with an empty prediction.
    dice = 1 - (2 * overlap + 1) / (total + 1)
    return ENTROPY_WEIGHT * entropy + dice.mean()


def part_loss(logits: Tensor, numbers: Tensor, amodal: Tensor) -> Tensor:
    """Cross entropy of the part at each pixel inside the amodal mask; 0 if no mask has a pixel.

    logits: [k, MAX_PARTS, h, w]. numbers: [k, h, w], from 1, 0 outside. amodal: [k, h, w], 0 or 1.
    """
    # Outside the mask any class will do: those pixels get weight 0.
    classes = (numbers.long() - 1).clamp(min=0)
    entropy = F.cross_entropy(logits, classes, reduction="none")
    pixels = amodal.sum().clamp(min=1)
    return PART_MASK_WEIGHT * (entropy * amodal).sum() / pixels


def _class_loss(logits: Tensor, target: Tensor) -> Tensor:
    """Mean cross entropy over known labels (not -1); 0 if none is known."""
    total = F.cross_entropy(logits, target, ignore_index=-1, reduction="sum")
    known = (target >= 0).sum().clamp(min=1)
    return total / known
