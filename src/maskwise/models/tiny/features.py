"""Unary and pairwise features of detected objects: the grounder's view of an image."""

from typing import NamedTuple

import numpy as np

from maskwise.arrays import Float32Array
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
    rows = [_measures(objects, i) for i in range(count)]
    measures = np.array(rows, np.float32).reshape(count, UNARY_MEASURES + 2 * MAX_PARTS)
    unary = np.concatenate([objects.attributes, measures], 1)
    amodal = flatten(objects.amodal)
    area = np.maximum(amodal.sum(1), 1)
    occlusion = occlusion_matrix(objects)
    overlap = amodal @ amodal.T / area[None]
    x = measures[:, 0]
    y = measures[:, 1]
    pairwise = np.stack(
        [
            occlusion,
            occlusion.T,
            x[:, None] - x[None],
            y[:, None] - y[None],
            overlap,
            (occlusion > occlusion.T).astype(np.float32),
        ],
        2,
    )
    return ObjectFeatures(unary, pairwise.astype(np.float32))


def _measures(objects: DetectedObjects, i: int) -> list[float]:
    """Center of the visible mask, center and box of the amodal mask, both areas, the occluded fraction; then the
    visible area of each part, then the occluded fraction of each part.
    """
    visible = objects.visible[i]
    amodal = objects.amodal[i]
    part = objects.part[i]
    side = visible.shape[0]
    columns = amodal.sum(0)
    rows = amodal.sum(1)
    area = int(columns.sum())
    visible_area = int(visible.sum())
    if not area:
        return [0.0] * (UNARY_MEASURES + 2 * MAX_PARTS)
    centers = (np.arange(side) + 0.5) / side
    amodal_x = float(columns @ centers) / area
    amodal_y = float(rows @ centers) / area
    x = float(visible.sum(0) @ centers) / visible_area if visible_area else amodal_x
    y = float(visible.sum(1) @ centers) / visible_area if visible_area else amodal_y
    across = np.flatnonzero(columns)
    down = np.flatnonzero(rows)
    part_area = np.bincount(part[amodal], minlength=MAX_PARTS + 1)[1 : MAX_PARTS + 1]
    visible_part = np.bincount(part[visible & amodal], minlength=MAX_PARTS + 1)[
        1 : MAX_PARTS + 1
    ]
    return [
        x,
        y,
        amodal_x,
        amodal_y,
        across[0] / side,
        down[0] / side,
        (across[-1] + 1) / side,
        (down[-1] + 1) / side,
        (area / side**2) ** 0.5,
        (visible_area / side**2) ** 0.5,
        max(0.0, 1 - visible_area / area),
        *(visible_part / side**2) ** 0.5,
        *(1 - visible_part / np.maximum(part_area, 1)) * (part_area > 0),
    ]
