"""From what the eye's network says to objects: peaks, boxes, masks in the frame, each pixel seen given to one object.

Pure numpy, so that the bundled model needs nothing but onnxruntime and this.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskwise.models.descriptions import Objects, flatten

Floats = NDArray[np.float32]

STRIDE = 4
"""Pixels of the frame to a cell of the maps."""

MARGIN = 0.06
"""How much wider than its box an object is looked at, on each side, as a share of the box."""

MOST_OBJECTS, LEAST_HEAT = 14, 0.25
HIDDEN = 1.0
"""The logit from which a pixel not seen is hidden: training weighs hidden pixels thrice, which makes them likelier."""

TWIN = 0.5
"""Two finds whose visible masks overlap more than this are one object."""


class Seen(NamedTuple):
    """The first step, for one image: heat (c, c) in 0..1 and box (4, c, c) in pixels."""

    heat: Floats
    box: Floats


class Looked(NamedTuple):
    """The second step: masks (k, 2 + parts, m, m) logits; category, colour, material (k, n) logits."""

    masks: Floats
    category: Floats
    colour: Floats
    material: Floats


def find_boxes(seen: Seen, side: int) -> Floats:
    """Boxes (k, 4) of left, top, right, bottom in pixels, hottest first."""
    heat = seen.heat
    around = np.pad(heat, 1)
    cells = heat.shape[0]
    highest = np.max([around[i : i + cells, j : j + cells] for i in range(3) for j in range(3)], 0)
    rows, columns = np.nonzero((heat >= highest) & (heat >= LEAST_HEAT))
    order = np.argsort(-heat[rows, columns], kind="stable")[:MOST_OBJECTS]
    rows, columns = rows[order], columns[order]
    x, y = columns * STRIDE + STRIDE / 2, rows * STRIDE + STRIDE / 2
    left, up, right, down = seen.box[:, rows, columns]
    boxes = np.stack([x - left, y - up, x + right, y + down], 1).clip(0, side)
    return boxes.astype(np.float32)


def widen(boxes: Floats) -> Floats:
    """Boxes with the margin a second look wants."""
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    return (boxes + MARGIN * np.stack([-width, -height, width, height], 1)).astype(np.float32)


def draw_objects(looked: Looked, boxes: Floats, *, side: int, parts_of: Callable[[int], int]) -> Objects:
    """Masks in the frame and what each object is; boxes (k, 4) as they were looked into, hottest first.

    A pixel is seen as part of one object only. An object nothing of which is seen is dropped, and so is the cooler of
    two that are one.
    """
    windows = [_window(box, side) for box in boxes]
    drawn = [_stretch(masks, box, window) for masks, box, window in zip(looked.masks, boxes, windows)]
    planes = np.full((len(boxes), 2, side, side), -20.0, np.float32)
    for plane, window, logits in zip(planes, windows, drawn):
        plane[:, window[0], window[1]] = logits[:2]
    keep = _without_twins(planes[:, 0] > 0)
    planes = planes[keep]
    seen = (planes[:, 0] > 0) & (planes[:, 0] >= planes[:, 0].max(0, keepdims=True, initial=-20.0))
    some = seen.any((1, 2))
    keep, seen = keep[some], seen[some]
    amodal = seen | (planes[some, 1] > HIDDEN)
    part = np.zeros(amodal.shape, np.uint8)
    for row, i in enumerate(keep):
        known = parts_of(int(looked.category[i].argmax()))
        numbers = drawn[i][2 : 2 + known].argmax(0) + 1
        part[row][windows[i]] = numbers * amodal[row][windows[i]]
    kinds = [softmax(logits[keep]) for logits in (looked.category, looked.colour, looked.material)]
    return Objects(seen, amodal, part, np.concatenate(kinds, 1))


def match_masks(found: NDArray[np.bool_], truth: NDArray[np.bool_], least: float = 0.3) -> list[int]:
    """For every mask of (n, s, s) the one of (m, s, s) it is, best IoU first, each used once; -1 below `least`."""
    n, m = len(found), len(truth)
    a, b = flatten(found), flatten(truth)
    shared = a @ b.T
    iou = shared / np.maximum(a.sum(1)[:, None] + b.sum(1)[None] - shared, 1)
    matches = [-1] * n
    for flat in np.argsort(-iou, axis=None, kind="stable").tolist():
        i, j = divmod(flat, m)
        if iou[i, j] >= least and matches[i] < 0 and j not in matches:
            matches[i] = j
    return matches


def _window(box: Floats, side: int) -> tuple[slice, slice]:
    """Rows and columns of the frame that a box touches."""
    left, top = np.floor(box[:2]).astype(int).clip(0, side)
    right, bottom = np.ceil(box[2:]).astype(int).clip(0, side)
    return slice(top, max(top, bottom)), slice(left, max(left, right))


def _stretch(masks: Floats, box: Floats, window: tuple[slice, slice]) -> Floats:
    """Masks (k, m, m) that fill a box, sampled bilinearly at the pixels of a window: (k, rows, columns)."""
    left, top, right, bottom = box
    cells = masks.shape[1]
    rows, columns = (np.arange(part.start, part.stop, dtype=np.float32) for part in window)
    along_x = _weights((columns + 0.5 - left) / max(right - left, 1e-3) * cells - 0.5, cells)
    along_y = _weights((rows + 0.5 - top) / max(bottom - top, 1e-3) * cells - 0.5, cells)
    return (along_y @ masks @ along_x.T).astype(np.float32)


def _weights(at: NDArray[np.floating], cells: int) -> Floats:
    """Bilinear weights (n, cells)."""
    at = at.clip(0, cells - 1)
    low = np.minimum(at.astype(int), cells - 2)
    weights = np.zeros((len(at), cells), np.float32)
    rows = np.arange(len(at))
    weights[rows, low] = 1 - (at - low)
    weights[rows, low + 1] = at - low
    return weights


def _without_twins(masks: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Places of the masks that are not mostly one before them."""
    flat = flatten(masks)
    shared, area = flat @ flat.T, flat.sum(1)
    keep: list[int] = []
    for i in range(len(masks)):
        if all(shared[i, j] <= TWIN * min(area[i], area[j]) for j in keep):
            keep.append(i)
    return np.array(keep, np.int64)


def softmax(logits: Floats) -> Floats:
    """Shares (n, k) that add up to 1 in each row."""
    raised = np.exp(logits - logits.max(1, keepdims=True, initial=-np.inf))
    shares: Floats = raised / raised.sum(1, keepdims=True)
    return shares
