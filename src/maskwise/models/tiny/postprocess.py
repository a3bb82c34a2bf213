"""From network outputs to objects: heatmap peaks, boxes, masks pasted into the image, NMS (non-maximum suppression).

NMS happens twice: `decode_boxes` keeps only local maxima of the heatmap, and `mask_nms` drops duplicate detections by
the overlap of their visible masks.
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


def decode_boxes(
    heatmap: Float32Array, distances: Float32Array, side: int
) -> Float32Array:
    """Boxes [k, 4] of left, top, right, bottom in pixels, highest score first, at most MAX_OBJECTS.

    heatmap: [c, c] in 0..1. distances: [4, c, c] in pixels. A cell is an object if it is the maximum of its 3 x 3
    neighbourhood and at least MIN_HEATMAP_SCORE.
    """
    cells = heatmap.shape[0]
    padded = np.pad(heatmap, 1)
    neighbourhood_max = np.max(
        [padded[i : i + cells, j : j + cells] for i in range(3) for j in range(3)],
        axis=0,
    )
    rows, columns = np.nonzero(
        (heatmap >= neighbourhood_max) & (heatmap >= MIN_HEATMAP_SCORE)
    )
    order = np.argsort(-heatmap[rows, columns], kind="stable")[:MAX_OBJECTS]
    rows = rows[order]
    columns = columns[order]
    x = columns * STRIDE + STRIDE / 2
    y = rows * STRIDE + STRIDE / 2
    left, top, right, bottom = distances[:, rows, columns]
    boxes = np.stack([x - left, y - top, x + right, y + bottom], 1).clip(0, side)
    return boxes.astype(np.float32)


def expand_boxes(boxes: Float32Array) -> Float32Array:
    """Boxes with the margin that the RoI head expects."""
    width = boxes[:, 2] - boxes[:, 0]
    height = boxes[:, 3] - boxes[:, 1]
    return (boxes + BOX_MARGIN * np.stack([-width, -height, width, height], 1)).astype(
        np.float32
    )


def assemble_objects(
    rois: RoIPredictions, boxes: Float32Array, side: int
) -> DetectedObjects:
    """Objects in an image of side x side pixels; boxes [k, 4] are those the RoI head saw, highest score first.

    A pixel is visible in one object only. Duplicates are dropped by NMS, and so are objects without a visible pixel.
    """
    windows = [_box_window(box, side) for box in boxes]
    pasted = [
        _resample(masks, box, window)
        for masks, box, window in zip(rois.masks, boxes, windows)
    ]
    logits = np.full((len(boxes), 2, side, side), BACKGROUND_LOGIT, np.float32)
    for plane, window, inside in zip(logits, windows, pasted):
        plane[:, window[0], window[1]] = inside[:2]
    keep = mask_nms(logits[:, 0] > 0)
    logits = logits[keep]
    highest = logits[:, 0].max(0, keepdims=True, initial=BACKGROUND_LOGIT)
    visible = (logits[:, 0] > 0) & (logits[:, 0] >= highest)
    nonempty = visible.any((1, 2))
    keep = keep[nonempty]
    visible = visible[nonempty]
    amodal = visible | (logits[nonempty, 1] > AMODAL_THRESHOLD)
    part = np.zeros(amodal.shape, np.uint8)
    for row, i in enumerate(keep):
        parts = part_count(int(rois.category[i].argmax()))
        numbers = pasted[i][2 : 2 + parts].argmax(0) + 1
        part[row][windows[i]] = numbers * amodal[row][windows[i]]
    attributes = [
        softmax(logits[keep]) for logits in (rois.category, rois.color, rois.material)
    ]
    return DetectedObjects(visible, amodal, part, np.concatenate(attributes, 1))


def mask_nms(masks: BoolArray) -> Int64Array:
    """Indices of the masks [k, s, s] to keep, given highest score first.

    A mask is dropped if it shares more than NMS_THRESHOLD of the smaller area with a mask that was kept.
    """
    flat = flatten(masks)
    intersection = flat @ flat.T
    area = flat.sum(1)
    keep: list[int] = []
    for i in range(len(masks)):
        if all(
            intersection[i, j] <= NMS_THRESHOLD * min(area[i], area[j]) for j in keep
        ):
            keep.append(i)
    return np.array(keep, np.int64)


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
    cells = masks.shape[1]
    rows, columns = (
        np.arange(part.start, part.stop, dtype=np.float32) for part in window
    )
    along_x = _bilinear_weights(
        (columns + 0.5 - left) / max(right - left, 1e-3) * cells - 0.5, cells
    )
    along_y = _bilinear_weights(
        (rows + 0.5 - top) / max(bottom - top, 1e-3) * cells - 0.5, cells
    )
    return (along_y @ masks @ along_x.T).astype(np.float32)


def _bilinear_weights(at: NDArray[np.floating], cells: int) -> Float32Array:
    """Interpolation weights float32 [n, cells] for n positions."""
    at = at.clip(0, cells - 1)
    low = np.minimum(at.astype(int), cells - 2)
    weights = np.zeros((len(at), cells), np.float32)
    rows = np.arange(len(at))
    weights[rows, low] = 1 - (at - low)
    weights[rows, low + 1] = at - low
    return weights
