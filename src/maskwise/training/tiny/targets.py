"""Detector batches: images with the targets of the heatmap, the boxes and the RoI head."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from maskwise.arrays import BoolArray, Float32Array, Int64Array, UInt8Array
from maskwise.models.tiny.spec import BOX_MARGIN, MASK_SIZE, STRIDE
from maskwise.training.tiny.augment import augment
from maskwise.training.tiny.scene_dataset import SceneExample

ROIS_PER_IMAGE = 4
"""Objects per image that the RoI head is trained on, chosen at random. A fixed number: CPU kernels are compiled
again for every new shape.
"""

OCCLUSION_SAMPLING = 4.0
"""How much more often, in augmented batches, an RoI is drawn for a fully occluded object than for a visible one."""


class DetectorBatch(NamedTuple):
    """images: float32 [b, 3, s, s] in 0..1. heatmap: [b, 1, c, c] in 0..1. box: [b, 4, c, c] in pixels, valid where
    box_weight [b, 1, c, c] is positive. cell_labels: int64 [b, 2, c, c], category and color, -1 where unknown. rois:
    per image [n, 4] as fractions of the image. Then one row per RoI: roi_masks uint8 [k, 3, MASK_SIZE, MASK_SIZE]
    (visible, amodal, part number) and roi_labels int64 [k, 3], -1 where unknown.
    """

    images: Tensor
    heatmap: Tensor
    box: Tensor
    box_weight: Tensor
    cell_labels: Tensor
    rois: list[Tensor]
    roi_masks: Tensor
    roi_labels: Tensor


class _CellTargets(NamedTuple):
    heatmap: Float32Array
    box: Float32Array
    box_weight: Float32Array
    cell_labels: Int64Array


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
        examples = [
            augment(one, examples[random.integers(len(examples))], random)
            for one in examples
        ]
    images = []
    cells = []
    rois = []
    roi_masks = []
    roi_labels = []
    for example in examples:
        flipped = bool(random.integers(2))
        image = example.image[:, ::-1] if flipped else example.image
        gain = random.uniform(0.92, 1.08, 3) * random.uniform(0.9, 1.1)
        images.append(
            np.clip(image * gain.astype(np.float32) / 255, 0, 1).transpose(2, 0, 1)
        )
        masks = _full_masks(example, flipped)
        cells.append(_cell_targets(example, masks))
        order = (
            _occluded_first(masks, random)
            if augmented
            else random.permutation(len(masks))
        )
        chosen = np.resize(order, ROIS_PER_IMAGE)
        targets = [_roi_target(masks[i], random) for i in chosen]
        rois.append(torch.from_numpy(np.stack([roi for roi, _ in targets])))
        roi_masks += [mask for _, mask in targets]
        roi_labels.append(example.labels[chosen])
    heatmap, box, box_weight, cell_labels = (
        torch.from_numpy(np.stack(column)) for column in zip(*cells)
    )
    return DetectorBatch(
        images=torch.from_numpy(np.stack(images).astype(np.float32)),
        heatmap=heatmap,
        box=box,
        box_weight=box_weight,
        cell_labels=cell_labels,
        rois=rois,
        roi_masks=torch.from_numpy(np.stack(roi_masks)),
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
    odds = np.array(
        [1 + OCCLUSION_SAMPLING * _occluded_fraction(mask) for mask in masks]
    )
    return random.choice(len(masks), len(masks), replace=False, p=odds / odds.sum())


def _occluded_fraction(mask: _FullMask) -> float:
    amodal = mask.parts > 0
    return 1 - float(mask.visible[amodal].mean()) if amodal.any() else 0.0


def _cell_targets(example: SceneExample, masks: list[_FullMask]) -> _CellTargets:
    """Targets of every cell. The center of an object is its visible pixel nearest to the mean of its visible pixels;
    the heatmap falls off around it as a Gaussian whose width grows with the visible area.
    """
    side = example.instances.shape[0]
    cells = side // STRIDE
    center = np.arange(cells, dtype=np.float32) * STRIDE + STRIDE / 2
    heatmap = np.zeros((1, cells, cells), np.float32)
    weight = np.zeros((1, cells, cells), np.float32)
    box = np.zeros((4, cells, cells), np.float32)
    labels = np.full((2, cells, cells), -1, np.int64)
    grid = np.arange(cells, dtype=np.float32)
    for mask, label in zip(masks, example.labels):
        rows, columns = np.nonzero(mask.visible)
        if len(rows) < 3:
            continue
        distance = (rows - rows.mean()) ** 2 + (columns - columns.mean()) ** 2
        nearest = int(distance.argmin())
        y = rows[nearest] // STRIDE
        x = columns[nearest] // STRIDE
        width = max(0.7, 0.1 * len(rows) ** 0.5 / STRIDE * 2)
        gaussian = np.exp(
            -((grid[:, None] - y) ** 2 + (grid[None] - x) ** 2) / (2 * width * width)
        )
        visible = mask.visible[STRIDE // 2 :: STRIDE, STRIDE // 2 :: STRIDE].copy()
        visible[y, x] = True
        gaussian *= visible
        np.maximum(heatmap[0], gaussian, out=heatmap[0])
        left, top, right, bottom = mask.box
        distances = np.stack(
            np.broadcast_arrays(
                center[None] - left,
                center[:, None] - top,
                right - center[None],
                bottom - center[:, None],
            )
        )
        box[:, visible] = distances[:, visible]
        weight[0][visible] = (gaussian + 0.05)[visible]
        labels[:, visible] = label[:2, None]
    return _CellTargets(heatmap, np.maximum(box, 0.2), weight, labels)


def _roi_target(
    mask: _FullMask, random: np.random.Generator
) -> tuple[Float32Array, UInt8Array]:
    """A box with random errors, as fractions of the image, and the masks inside it."""
    side = mask.parts.shape[0]
    left, top, right, bottom = mask.box
    width = right - left
    height = bottom - top
    error = random.normal(0, 0.05, 4).clip(-0.15, 0.15) * [width, height, width, height]
    margin = BOX_MARGIN * np.array([-width, -height, width, height])
    box = np.array([left, top, right, bottom]) + margin + error
    steps = (np.arange(MASK_SIZE) + 0.5) / MASK_SIZE
    x = np.floor(box[0] + (box[2] - box[0]) * steps).astype(int)
    y = np.floor(box[1] + (box[3] - box[1]) * steps).astype(int)
    inside = ((y >= 0) & (y < side))[:, None] & ((x >= 0) & (x < side))[None]
    at = np.ix_(y.clip(0, side - 1), x.clip(0, side - 1))
    parts = np.where(inside, mask.parts[at], 0)
    visible = mask.visible[at] & inside
    masks = np.stack([visible, parts > 0, parts]).astype(np.uint8)
    return (box / side).astype(np.float32), masks
