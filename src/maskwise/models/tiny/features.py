"""Unary and pairwise features of detected objects: the grounder's view of an image."""

from typing import NamedTuple

import numpy as np

from maskwise.arrays import BoolArray, Float32Array, Int64Array, UInt8Array
from maskwise.models.tiny.detections import DetectedObjects, flatten, occlusion_matrix
from maskwise.models.tiny.spec import MAX_PARTS, UNARY_MEASURES


class ObjectFeatures(NamedTuple):
    """unary: float32 [n, UNARY_FEATURES], attributes, position and size of each object. pairwise: float32 [n, n,
    PAIRWISE_FEATURES] of i and j: fraction of j that i occludes, fraction of i that j occludes, horizontal and vertical
    offset of the centers, overlap of the amodal masks, and whether i is in front.
    """

    unary: Float32Array
    pairwise: Float32Array


def object_features(objects: DetectedObjects) -> ObjectFeatures:
    """Lengths are fractions of the image side; areas are square roots of fractions of the image."""
    count = len(objects.visible)
    rows = [_measures(objects, index) for index in range(count)]
    measures = np.array(rows, np.float32).reshape(count, UNARY_MEASURES + 2 * MAX_PARTS)
    unary = np.concatenate([objects.attributes, measures], 1)
    amodal = flatten(objects.amodal)
    areas = np.maximum(amodal.sum(1), 1)
    overlap = amodal @ amodal.T / areas[None]
    occlusion = occlusion_matrix(objects)
    is_in_front = occlusion > occlusion.T
    x = measures[:, 0]
    y = measures[:, 1]
    offset_x = x[:, None] - x[None]
    offset_y = y[:, None] - y[None]
    pairs = [occlusion, occlusion.T, offset_x, offset_y, overlap, is_in_front]
    pairwise = np.stack(pairs, 2).astype(np.float32)
    return ObjectFeatures(unary, pairwise)


def _measures(objects: DetectedObjects, index: int) -> list[float]:
    """Center of the visible mask, center and box of the amodal mask, both areas, the occluded fraction; then the
    visible area of each part, then the occluded fraction of each part. All 0 for an empty amodal mask.
    """
    visible = objects.visible[index]
    amodal = objects.amodal[index]
    part = objects.part[index]
    area = int(amodal.sum())
    visible_area = int(visible.sum())
    if not area:
        return [0.0] * (UNARY_MEASURES + 2 * MAX_PARTS)
    side = visible.shape[0]
    pixels = side**2
    amodal_x, amodal_y = _center(amodal, area)
    visible_x = amodal_x
    visible_y = amodal_y
    if visible_area:
        visible_x, visible_y = _center(visible, visible_area)
    columns = np.flatnonzero(amodal.any(0))
    rows = np.flatnonzero(amodal.any(1))
    part_areas = _part_areas(part[amodal])
    visible_part_areas = _part_areas(part[visible & amodal])
    occluded_parts = 1 - visible_part_areas / np.maximum(part_areas, 1)
    return [
        visible_x,
        visible_y,
        amodal_x,
        amodal_y,
        columns[0] / side,
        rows[0] / side,
        (columns[-1] + 1) / side,
        (rows[-1] + 1) / side,
        (area / pixels) ** 0.5,
        (visible_area / pixels) ** 0.5,
        max(0.0, 1 - visible_area / area),
        *(visible_part_areas / pixels) ** 0.5,
        *occluded_parts * (part_areas > 0),
    ]


def _center(mask: BoolArray, area: int) -> tuple[float, float]:
    """Mean column and row of a mask, as fractions of its side."""
    side = mask.shape[0]
    centers = (np.arange(side) + 0.5) / side
    x = float(mask.sum(0) @ centers) / area
    y = float(mask.sum(1) @ centers) / area
    return x, y


def _part_areas(numbers: UInt8Array) -> Int64Array:
    """int64 [MAX_PARTS]: how often each part occurs among the numbers of pixels."""
    counts = np.bincount(numbers, minlength=MAX_PARTS + 1)
    return counts[1 : MAX_PARTS + 1]
