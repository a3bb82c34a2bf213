"""YOLOX-nano: boxes of the 80 COCO categories (Ge et al. 2021). Small objects are found in enlarged tiles."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from maskwise.arrays import BoolArray, Float32Array, Int64Array
from maskwise.models.onnx_session import open_session
from maskwise.models.photo.vocabulary import COCO_CATEGORIES

INPUT_SIZE = 416
STRIDES = (8, 16, 32)
PADDING = 114

MIN_SCORE = 0.08
"""Lowest score of a category in a box. One box may have several categories."""

MAX_IOU = 0.55
"""Of two boxes of one category with a larger IoU the better one is kept."""

MAX_BOXES = 80
TILE_SHARE = 0.6
"""Side of a tile relative to the image. Tiles overlap, so that a small object lies completely in one of them."""

TILE_BORDER = 0.01
"""A box this near to the inner border of a tile, relative to the tile, may be truncated and is dropped."""


class Detections(NamedTuple):
    """boxes: float32 [n, 4] left, top, right, bottom in pixels of the image; scores: float32 [n]; categories: int64
    [n], positions in COCO_CATEGORIES. Best first.
    """

    boxes: Float32Array
    scores: Float32Array
    categories: Int64Array

    def take(self, rows: Int64Array | BoolArray) -> "Detections":
        """Some of them."""
        return Detections(self.boxes[rows], self.scores[rows], self.categories[rows])

    def names(self) -> list[str]:
        """The names of the categories."""
        return [COCO_CATEGORIES[category] for category in self.categories.tolist()]


class YoloxDetector:
    """The detector of an ONNX file."""

    def __init__(self, path: Path, *, threads: int | None = None) -> None:
        self.session = open_session(path, threads=threads)
        self.grid, self.strides = _grid()

    def detect(self, image: Image.Image) -> Detections:
        """The objects of an image, found in all of it and in its four tiles."""
        whole = (0, 0, *image.size)
        found = [
            self._detect_in(image, tile, whole)
            for tile in [whole, *_tiles(*image.size)]
        ]
        merged = Detections(
            np.concatenate([one.boxes for one in found]),
            np.concatenate([one.scores for one in found]),
            np.concatenate([one.categories for one in found]),
        )
        return merged.take(suppress(merged, MAX_IOU)[:MAX_BOXES])

    def _detect_in(
        self,
        image: Image.Image,
        tile: tuple[int, int, int, int],
        whole: tuple[int, int, int, int],
    ) -> Detections:
        left, top, right, bottom = tile
        scale = min(INPUT_SIZE / (right - left), INPUT_SIZE / (bottom - top))
        size = (
            max(1, round((right - left) * scale)),
            max(1, round((bottom - top) * scale)),
        )
        pixels = np.asarray(image.resize(size, Image.Resampling.BILINEAR, box=tile))[
            :, :, ::-1
        ]
        padded = np.full((1, 3, INPUT_SIZE, INPUT_SIZE), PADDING, np.float32)
        padded[0, :, : size[1], : size[0]] = pixels.transpose(2, 0, 1)
        output = self.session.run(None, {self.session.get_inputs()[0].name: padded})[0][
            0
        ]
        found = self._decode(output)
        boxes = found.boxes / scale + np.array([left, top, left, top], np.float32)
        boxes = boxes.clip(np.float32(0), np.array(whole[2:] * 2, np.float32))
        return found._replace(boxes=boxes).take(_is_complete(boxes, tile, whole))

    def _decode(self, output: Float32Array) -> Detections:
        """output: [cells, 85]: center and size relative to the cell, objectness, category scores."""
        scores = output[:, 4:5] * output[:, 5:]
        rows, categories = np.nonzero(scores >= MIN_SCORE)
        center = (output[rows, :2] + self.grid[rows]) * self.strides[rows]
        half = np.exp(output[rows, 2:4]) * self.strides[rows] / 2
        boxes = np.concatenate([center - half, center + half], 1)
        return Detections(boxes, scores[rows, categories], categories.astype(np.int64))


def suppress(detections: Detections, max_iou: float) -> Int64Array:
    """Non-maximum suppression per category: the positions to keep, best first."""
    boxes, scores, categories = detections
    kept: list[int] = []
    for row in np.argsort(-scores, kind="stable").tolist():
        same = [other for other in kept if categories[other] == categories[row]]
        if not same or box_ious(boxes[row], boxes[same]).max() <= max_iou:
            kept.append(row)
    return np.array(kept, np.int64)


def box_ious(box: Float32Array, boxes: Float32Array) -> Float32Array:
    """float32 [n]: IoU of one box [4] with boxes [n, 4]."""
    low = np.maximum(box[:2], boxes[:, :2])
    high = np.minimum(box[2:], boxes[:, 2:])
    overlap = (high - low).clip(0).prod(1)
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(1) + (box[2:] - box[:2]).prod()
    ious: Float32Array = overlap / np.maximum(areas - overlap, 1e-6)
    return ious


def _grid() -> tuple[Float32Array, Float32Array]:
    """float32 [cells, 2] and [cells, 1]: column and row of every cell, and its stride."""
    cells = []
    strides = []
    for stride in STRIDES:
        side = INPUT_SIZE // stride
        rows, columns = np.indices((side, side))
        cells.append(np.stack([columns, rows], -1).reshape(-1, 2))
        strides.append(np.full((side * side, 1), stride))
    return np.concatenate(cells).astype(np.float32), np.concatenate(strides).astype(
        np.float32
    )


def _tiles(width: int, height: int) -> Iterator[tuple[int, int, int, int]]:
    """The four tiles at the corners of an image."""
    wide = round(width * TILE_SHARE)
    high = round(height * TILE_SHARE)
    for top in (0, height - high):
        for left in (0, width - wide):
            yield left, top, left + wide, top + high


def _is_complete(
    boxes: Float32Array,
    tile: tuple[int, int, int, int],
    whole: tuple[int, int, int, int],
) -> BoolArray:
    """bool [n]: whether each box keeps a distance from the borders of a tile that lie inside the image."""
    complete = np.ones(len(boxes), np.bool_)
    for side in range(4):
        if tile[side] == whole[side]:
            continue
        margin = TILE_BORDER * (tile[side % 2 + 2] - tile[side % 2])
        distance = (
            boxes[:, side] - tile[side] if side < 2 else tile[side] - boxes[:, side]
        )
        complete &= distance > margin
    return complete
