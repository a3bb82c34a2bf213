"""From network outputs to objects: heatmap peaks, boxes, masks pasted into the image, NMS (non-maximum suppression).

NMS happens twice: `decode_boxes` keeps only local maxima of the heatmap, and `drop_duplicates` drops detections by the
overlap of their visible masks.
"""

import numpy as np
from numpy.typing import NDArray

from maskwise.arrays import BoolArray, Float32Array, Int64Array
from maskwise.models.tiny.detections import DetectedObjects, flatten
from maskwise.models.tiny.networks import RoIPredictions
from maskwise.models.tiny.spec import (
    AMODAL_THRESHOLD,
    BOX_MARGIN,
    MAX_OBJECTS,
    MIN_HEATMAP_SCORE,
    NMS_THRESHOLD,
    STRIDE,
    part_count,
)

BACKGROUND_LOGIT = -20.0
"""Of pixels outside a box: a probability of 2e-9."""

MIN_BOX_SIDE = 1e-3
"""Pixels in place of the side of an empty box, to divide by."""


def decode_boxes(
    heatmap: Float32Array, distances: Float32Array, side: int
) -> Float32Array:
    """Boxes [k, 4] of left, top, right, bottom in pixels, highest score first, at most MAX_OBJECTS.

    heatmap: [c, c] in 0..1. distances: [4, c, c] in pixels. A cell is an object if it is the maximum of its 3 x 3
    neighbourhood and at least MIN_HEATMAP_SCORE.
    """
    cells = heatmap.shape[0]
    padded = np.pad(heatmap, 1)
    neighbours = []
    for down in range(3):
        for across in range(3):
            neighbours.append(padded[down : down + cells, across : across + cells])
    is_peak = heatmap >= np.max(neighbours, axis=0)
    rows, columns = np.nonzero(is_peak & (heatmap >= MIN_HEATMAP_SCORE))
    scores = heatmap[rows, columns]
    best = np.argsort(-scores, kind="stable")[:MAX_OBJECTS]
    rows = rows[best]
    columns = columns[best]
    center_x = columns * STRIDE + STRIDE / 2
    center_y = rows * STRIDE + STRIDE / 2
    left, top, right, bottom = distances[:, rows, columns]
    sides = [center_x - left, center_y - top, center_x + right, center_y + bottom]
    return np.stack(sides, 1).clip(0, side).astype(np.float32)


def expand_boxes(boxes: Float32Array) -> Float32Array:
    """Boxes with the margin that the RoI head expects."""
    width = boxes[:, 2] - boxes[:, 0]
    height = boxes[:, 3] - boxes[:, 1]
    outwards = np.stack([-width, -height, width, height], 1)
    expanded = boxes + BOX_MARGIN * outwards
    return expanded.astype(np.float32)


def drop_duplicates(
    rois: RoIPredictions, boxes: Float32Array, side: int
) -> tuple[RoIPredictions, Float32Array]:
    """NMS by the first visible masks: the predictions and boxes [k, 4] that are left, highest score first as before.

    boxes: in pixels of an image of side x side, those the RoI head saw.
    """
    visible = np.full((len(boxes), side, side), BACKGROUND_LOGIT, np.float32)
    for row, box in enumerate(boxes):
        window = _box_window(box, side)
        visible[row][window] = _resample(rois.masks[row, :1], box, window)[0]
    kept = mask_nms(visible > 0)
    return RoIPredictions(*(array[kept] for array in rois)), boxes[kept]


def assemble_objects(
    rois: RoIPredictions, masks: Float32Array, side: int
) -> DetectedObjects:
    """Objects in an image of side x side pixels. masks: of the mask head, inside `rois.boxes`.

    A pixel is visible in one object only. Objects without a visible pixel are dropped.
    """
    # Channels of a mask: visible, amodal, then one per part. The first two are pasted into the whole image.
    boxes = rois.boxes * np.float32(side)
    windows = [_box_window(box, side) for box in boxes]
    resampled = []
    logits = np.full((len(boxes), 2, side, side), BACKGROUND_LOGIT, np.float32)
    for row, (box, window) in enumerate(zip(boxes, windows)):
        inside = _resample(masks[row], box, window)
        resampled.append(inside)
        rows, columns = window
        logits[row, :, rows, columns] = inside[:2]
    # Where visible masks overlap, a pixel belongs to the object with the highest logit.
    highest = logits[:, 0].max(0, keepdims=True, initial=BACKGROUND_LOGIT)
    visible = (logits[:, 0] > 0) & (logits[:, 0] >= highest)
    kept = np.flatnonzero(visible.any((1, 2)))
    visible = visible[kept]
    amodal = visible | (logits[kept, 1] > AMODAL_THRESHOLD)
    part = np.zeros(amodal.shape, np.uint8)
    for row, number in enumerate(kept.tolist()):
        window = windows[number]
        parts = part_count(int(rois.category[number].argmax()))
        part_logits = resampled[number][2 : 2 + parts]
        part_numbers = part_logits.argmax(0) + 1
        part[row][window] = part_numbers * amodal[row][window]
    attributes = [
        softmax(attribute[kept])
        for attribute in (rois.category, rois.color, rois.material)
    ]
    return DetectedObjects(visible, amodal, part, np.concatenate(attributes, 1))


def mask_nms(masks: BoolArray) -> Int64Array:
    """Indices of the masks [k, s, s] to keep, given highest score first.

    A mask is dropped if it shares more than NMS_THRESHOLD of the smaller area with a mask that was kept.
    """
    flat = flatten(masks)
    intersections = flat @ flat.T
    areas = flat.sum(1)
    kept: list[int] = []
    for candidate in range(len(masks)):
        smaller_areas = np.minimum(areas[candidate], areas[kept])
        overlaps = intersections[candidate, kept]
        if (overlaps <= NMS_THRESHOLD * smaller_areas).all():
            kept.append(candidate)
    return np.array(kept, np.int64)


def softmax(logits: Float32Array) -> Float32Array:
    """Probabilities [n, k] that add up to 1 in each row."""
    exponents = np.exp(logits - logits.max(1, keepdims=True, initial=-np.inf))
    probabilities: Float32Array = exponents / exponents.sum(1, keepdims=True)
    return probabilities


def _box_window(box: Float32Array, side: int) -> tuple[slice, slice]:
    """Rows and columns of the image that a box touches."""
    left, top = np.floor(box[:2]).astype(int).clip(0, side)
    right, bottom = np.ceil(box[2:]).astype(int).clip(0, side)
    return slice(top, max(top, bottom)), slice(left, max(left, right))


def _resample(
    masks: Float32Array, box: Float32Array, window: tuple[slice, slice]
) -> Float32Array:
    """Masks [k, m, m] that fill a box, sampled bilinearly at the pixels of a window: [k, rows, columns]."""
    left, top, right, bottom = box
    rows, columns = window
    cells = masks.shape[1]
    along_x = _bilinear_weights(_cell_positions(columns, left, right, cells), cells)
    along_y = _bilinear_weights(_cell_positions(rows, top, bottom, cells), cells)
    return (along_y @ masks @ along_x.T).astype(np.float32)


def _cell_positions(
    pixels: slice, start: float, stop: float, cells: int
) -> NDArray[np.floating]:
    """Where the centers of pixels lie among cells that fill start to stop; the center of the first cell is 0."""
    centers = np.arange(pixels.start, pixels.stop, dtype=np.float32) + 0.5
    fractions = (centers - start) / max(stop - start, MIN_BOX_SIDE)
    positions: NDArray[np.floating] = fractions * cells - 0.5
    return positions


def _bilinear_weights(positions: NDArray[np.floating], cells: int) -> Float32Array:
    """float32 [n, cells]: interpolation weights for n positions; those outside take the nearest cell."""
    positions = positions.clip(0, cells - 1)
    before = np.minimum(positions.astype(int), cells - 2)
    fraction = positions - before
    rows = np.arange(len(positions))
    weights = np.zeros((len(positions), cells), np.float32)
    weights[rows, before] = 1 - fraction
    weights[rows, before + 1] = fraction
    return weights
