"""Detector batches: images with the targets of the heatmap, the boxes and the RoI head."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from maskwise.arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int64Array,
    UInt8Array,
)
from maskwise.models.tiny.scene_example import SceneExample
from maskwise.models.tiny.spec import BOX_MARGIN, STRIDE
from maskwise.training.tiny.augment import augment

ROIS_PER_IMAGE = 4
"""Objects per image that the RoI head is trained on, chosen at random. A fixed number: CPU kernels are compiled
again for every new shape.
"""

OCCLUSION_SAMPLING = 8.0
"""How much more often, in augmented batches, an RoI is drawn for a fully occluded object than for a visible one. Half
of the objects that are missed are 40 to 70 % hidden.
"""

CHANNEL_GAIN = (0.92, 1.08)
"""Lowest and highest random factor of each color channel: small, because the color is one of the labels."""

IMAGE_GAIN = (0.9, 1.1)
"""Lowest and highest random factor of an image's brightness."""

MIN_VISIBLE_PIXELS = 3
"""An object that shows less is no target of the heatmap: at stride 4 it may not even have a cell."""

HEATMAP_WIDTH = 0.2
"""Standard deviation of the heatmap around a center, as a share of the side of a square of the visible area."""

MIN_HEATMAP_WIDTH = 0.7
"""Its least value, in cells: the four nearest cells of a small object still get exp(-1), so that a prediction one cell
beside its center costs less than one elsewhere.
"""

BOX_CELL_WEIGHT = 0.05
"""Weight of the box loss in visible cells far from a center, beside up to 1 at the center: all cells of an object learn
its box, but those that inference reads, the maxima of the heatmap, count most.
"""

MIN_DISTANCE = 0.2
"""In pixels, of a box's side from a cell: the network predicts exponentials and cannot reach 0 or less, which happens
where rounding puts a cell's center outside the box.
"""

BOX_ERROR = 0.05
"""Standard deviation of the random errors of an RoI's sides, as a share of the box."""

MAX_BOX_ERROR = 0.15
"""Largest such error: three standard deviations."""

DETECTED_BOXES = 0.7
"""Fraction of the RoIs that are the box that the detector predicts for the object, as at inference; the others are the
true box with random errors, which does not need a trained detector.
"""

MISSED_OTHERS = 0.1
"""Fraction of the objects that the mask head is not shown among the others: at inference some are not detected."""


class RoISources(NamedTuple):
    """Where the RoIs of n objects of each image come from. boxes: [b, n, 4] left, top, right, bottom as fractions of
    the image, true boxes with random errors. cells: int64 [b, n, 2], row and column of the center of each object on the
    heatmap. detected: bool [b, n], True where the RoI is the box that the detector predicts in this cell instead.
    """

    boxes: Tensor
    cells: Tensor
    detected: Tensor


class DetectorBatch(NamedTuple):
    """images: float32 [b, 3, s, s] in 0..1. heatmap: [b, 1, c, c] in 0..1. box: [b, 4, c, c] in pixels, valid where
    box_weight [b, 1, c, c] is positive. cell_labels: int64 [b, 2, c, c], category and color, -1 where unknown. rois:
    the RoIs of n objects per image. Then one row per RoI, k = b * n: roi_masks uint8 [k, 3, s, s] (visible, part number
    in the amodal mask, visible of others), roi_boxes [k, 4], the true boxes with their margin, as fractions of the
    image, roi_labels int64 [k, 3], -1 where unknown.
    """

    images: Tensor
    heatmap: Tensor
    box: Tensor
    box_weight: Tensor
    cell_labels: Tensor
    rois: RoISources
    roi_masks: Tensor
    roi_boxes: Tensor
    roi_labels: Tensor


class _FullMask(NamedTuple):
    """An object in the image: visible bool [s, s], parts uint8 [s, s], box left, top, right, bottom."""

    visible: BoolArray
    parts: UInt8Array
    box: tuple[int, int, int, int]


def make_detector_batch(
    examples: list[SceneExample],
    random: np.random.Generator,
    *,
    augmented: bool = False,
) -> DetectorBatch:
    """A training batch: flipped at random, with small random changes of colors and boxes.

    The heatmap has all objects; the RoIs are ROIS_PER_IMAGE objects of each image. augmented: with copy-paste and
    permuted channels (see `augment`), and with RoIs drawn more often for occluded objects.
    """
    if augmented:
        augmented_examples = []
        for example in examples:
            other = examples[random.integers(len(examples))]
            augmented_examples.append(augment(example, other, random))
        examples = augmented_examples
    images = []
    heatmaps = []
    boxes = []
    box_weights = []
    cell_labels = []
    roi_boxes = []
    roi_cells = []
    detected = []
    roi_masks = []
    true_boxes = []
    roi_labels = []
    for example in examples:
        flipped = bool(random.integers(2))
        image = example.image[:, ::-1] if flipped else example.image
        gain = random.uniform(*CHANNEL_GAIN, 3) * random.uniform(*IMAGE_GAIN)
        pixels = np.clip(image * gain.astype(np.float32) / 255, 0, 1)
        images.append(pixels.transpose(2, 0, 1))
        masks = _full_masks(example, flipped)
        heatmap, box, box_weight, labels = _cell_targets(example, masks)
        heatmaps.append(heatmap)
        boxes.append(box)
        box_weights.append(box_weight)
        cell_labels.append(labels)
        if augmented:
            order = _occluded_first(masks, random)
        else:
            order = random.permutation(len(masks))
        # An image with fewer objects repeats them.
        chosen = np.resize(order, ROIS_PER_IMAGE)
        side = example.instances.shape[0]
        for index in chosen:
            true_box = _box_with_margin(masks[index].box) / side
            true_boxes.append(true_box)
            roi_boxes.append(_move_randomly(true_box, random))
            rows, columns = np.nonzero(masks[index].visible)
            # An object without a visible pixel has no center.
            is_detected = len(rows) > 0 and random.random() < DETECTED_BOXES
            detected.append(is_detected)
            roi_cells.append(_center_cell(rows, columns) if is_detected else (0, 0))
            roi_masks.append(_roi_masks(masks, int(index), random))
        roi_labels.append(example.labels[chosen])
    per_image = (len(examples), ROIS_PER_IMAGE)
    boxes_of_rois = torch.from_numpy(np.stack(roi_boxes).astype(np.float32))
    return DetectorBatch(
        images=torch.from_numpy(np.stack(images).astype(np.float32)),
        heatmap=torch.from_numpy(np.stack(heatmaps)),
        box=torch.from_numpy(np.stack(boxes)),
        box_weight=torch.from_numpy(np.stack(box_weights)),
        cell_labels=torch.from_numpy(np.stack(cell_labels)),
        rois=RoISources(
            boxes=boxes_of_rois.reshape(*per_image, 4),
            cells=torch.tensor(roi_cells).reshape(*per_image, 2),
            detected=torch.tensor(detected).reshape(per_image),
        ),
        roi_masks=torch.from_numpy(np.stack(roi_masks)),
        roi_boxes=torch.from_numpy(np.stack(true_boxes).astype(np.float32)),
        roi_labels=torch.from_numpy(np.concatenate(roi_labels)),
    )


def _full_masks(example: SceneExample, flipped: bool) -> list[_FullMask]:
    side = example.instances.shape[0]
    masks = []
    for index, ((left, top, right, bottom), part_map) in enumerate(
        zip(example.boxes.tolist(), example.part_maps)
    ):
        parts = np.zeros((side, side), np.uint8)
        parts[top:bottom, left:right] = part_map
        visible = example.instances == index
        if flipped:
            box = (side - right, top, side - left, bottom)
            masks.append(_FullMask(visible[:, ::-1], parts[:, ::-1], box))
        else:
            masks.append(_FullMask(visible, parts, (left, top, right, bottom)))
    return masks


def _occluded_first(masks: list[_FullMask], random: np.random.Generator) -> Int64Array:
    """All objects in random order, the more occluded ones likely first."""
    fractions = np.array([_occluded_fraction(mask) for mask in masks])
    odds = 1 + OCCLUSION_SAMPLING * fractions
    count = len(masks)
    return random.choice(count, count, replace=False, p=odds / odds.sum())


def _occluded_fraction(mask: _FullMask) -> float:
    amodal = mask.parts > 0
    if not amodal.any():
        return 0.0
    return 1 - float(mask.visible[amodal].mean())


def _cell_targets(
    example: SceneExample, masks: list[_FullMask]
) -> tuple[Float32Array, Float32Array, Float32Array, Int64Array]:
    """heatmap, box, box_weight and cell_labels of one image, as in DetectorBatch without the first axis.

    The center of an object is its visible pixel nearest to the mean of its visible pixels; the heatmap falls off around
    it as a Gaussian whose width grows with the visible area.
    """
    side = example.instances.shape[0]
    cells = side // STRIDE
    cell_numbers = np.arange(cells, dtype=np.float64)
    # Of cells, in pixels.
    centers = cell_numbers * STRIDE + STRIDE / 2
    heatmap = np.zeros((1, cells, cells), np.float32)
    box_weight = np.zeros((1, cells, cells), np.float32)
    box = np.zeros((4, cells, cells), np.float32)
    labels = np.full((2, cells, cells), -1, np.int64)
    for mask, label in zip(masks, example.labels):
        rows, columns = np.nonzero(mask.visible)
        if len(rows) < MIN_VISIBLE_PIXELS:
            continue
        y, x = _center_cell(rows, columns)
        visible_side = len(rows) ** 0.5 / STRIDE
        width = max(MIN_HEATMAP_WIDTH, HEATMAP_WIDTH * visible_side)
        squared_distance = (cell_numbers[:, None] - y) ** 2 + (cell_numbers - x) ** 2
        gaussian = np.exp(-squared_distance / (2 * width * width))
        # The pixel in the middle of each cell says whether the object is visible there; its center always is.
        visible = mask.visible[STRIDE // 2 :: STRIDE, STRIDE // 2 :: STRIDE].copy()
        visible[y, x] = True
        gaussian *= visible
        np.maximum(heatmap[0], gaussian, out=heatmap[0])
        left, top, right, bottom = mask.box
        sides = (
            centers[None] - left,
            centers[:, None] - top,
            right - centers[None],
            bottom - centers[:, None],
        )
        distances = np.stack(np.broadcast_arrays(*sides))
        box[:, visible] = distances[:, visible]
        box_weight[0][visible] = (gaussian + BOX_CELL_WEIGHT)[visible]
        labels[:, visible] = label[:2, None]
    return heatmap, np.maximum(box, MIN_DISTANCE), box_weight, labels


def _center_cell(rows: Int64Array, columns: Int64Array) -> tuple[int, int]:
    """Row and column of the cell with the visible pixel nearest to the mean of all visible pixels [n]."""
    row_offsets = rows - rows.mean()
    column_offsets = columns - columns.mean()
    nearest = int((row_offsets**2 + column_offsets**2).argmin())
    return int(rows[nearest]) // STRIDE, int(columns[nearest]) // STRIDE


def _box_with_margin(box: tuple[int, int, int, int]) -> Float64Array:
    left, top, right, bottom = box
    width = right - left
    height = bottom - top
    margin = BOX_MARGIN * np.array([-width, -height, width, height])
    return np.array(box) + margin


def _move_randomly(box: Float64Array, random: np.random.Generator) -> Float64Array:
    """A box [4] with a random error of each side."""
    width = box[2] - box[0]
    height = box[3] - box[1]
    errors = random.normal(0, BOX_ERROR, 4).clip(-MAX_BOX_ERROR, MAX_BOX_ERROR)
    moved: Float64Array = box + errors * [width, height, width, height]
    return moved


def _roi_masks(
    masks: list[_FullMask], index: int, random: np.random.Generator
) -> UInt8Array:
    """uint8 [3, s, s] of an object: visible, part number, and what is visible of the others, some of them left out."""
    own = masks[index]
    others = np.zeros(own.visible.shape, np.bool_)
    for number, mask in enumerate(masks):
        if number != index and random.random() >= MISSED_OTHERS:
            others |= mask.visible
    return np.stack([own.visible, own.parts, others]).astype(np.uint8)


def sample_masks(masks: Tensor, boxes: Tensor, cells: int) -> Tensor:
    """Masks [k, c, s, s] inside boxes [k, 4], fractions of the image: [k, c, cells, cells], the pixel in the middle of
    each cell, 0 outside the image.
    """
    side = masks.shape[2]
    steps = (torch.arange(cells, device=boxes.device) + 0.5) / cells
    low = boxes[:, :2, None] * side
    high = boxes[:, 2:, None] * side
    pixels = (low + (high - low) * steps).floor().long()
    inside = (pixels >= 0) & (pixels < side)
    x, y = pixels.clamp(0, side - 1).unbind(1)
    numbers = torch.arange(len(masks), device=boxes.device)[:, None, None]
    sampled = masks[numbers, :, y[:, :, None], x[:, None]].permute(0, 3, 1, 2)
    inside_x, inside_y = inside.unbind(1)
    return sampled * (inside_y[:, None, :, None] & inside_x[:, None, None])
