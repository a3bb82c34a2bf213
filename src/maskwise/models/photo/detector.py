"""YOLOX-nano: boxes of the 80 COCO categories (Ge et al. 2021). Small objects are found in enlarged tiles."""

from collections.abc import Sequence
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
"""Side of the network's input, pixels per cell of its three grids, and the gray around an image, as in training."""

MIN_SCORE = 0.08
"""Lowest score of a category in a box. One box may have several categories."""

MAX_IOU = 0.55
"""Of two boxes of one category with a larger IoU the better one is kept."""

MAX_BOXES = 80
"""Boxes of one image; the best ones are kept."""

TILE_SHARE = 0.6
TILES = 2
"""Side of a tile relative to the image, and tiles per side. They overlap, so that a small object lies completely in one
of them."""

SMALL_TILE_SHARE = 0.4
SMALL_TILES = 3
"""Side and number per side of the tiles in which small objects are looked for, where a chooser wants all that can be
found."""

TILE_BORDER = 0.01
"""A box this near to the inner border of a tile, relative to the tile, may be truncated and is dropped."""

MIN_UNION = 1e-6
"""Area in place of 0 where two boxes are empty."""

Tile = tuple[int, int, int, int]
"""Left, top, right, bottom in pixels of the image."""


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
        self.session = open_session(path, threads=threads, frugal=True)
        self.grid, self.strides = _grid()

    def detect(self, image: Image.Image) -> Detections:
        """The objects of an image, found in all of it and in its four tiles."""
        width, height = image.size
        whole = (0, 0, width, height)
        detections = [self._detect_in(image, whole, whole)]
        for tile in make_tiles(width, height, TILE_SHARE, TILES):
            detections.append(self._detect_in(image, tile, whole))
        return _merge(detections)

    def detect_small(self, image: Image.Image) -> Detections:
        """The objects found in nine smaller tiles; small ones among them are often missing in `detect`."""
        width, height = image.size
        whole = (0, 0, width, height)
        tiles = make_tiles(width, height, SMALL_TILE_SHARE, SMALL_TILES)
        return _merge([self._detect_in(image, tile, whole) for tile in tiles])

    def _detect_in(self, image: Image.Image, tile: Tile, whole: Tile) -> Detections:
        """The objects in a tile of the image; those that the tile may have cut are left out."""
        left, top, right, bottom = tile
        scale = min(INPUT_SIZE / (right - left), INPUT_SIZE / (bottom - top))
        network_input = _to_network_input(image, tile, scale)
        input_name = self.session.get_inputs()[0].name
        outputs = self.session.run(None, {input_name: network_input})
        detections = self._decode(outputs[0][0])
        offset = np.array([left, top, left, top], np.float32)
        image_corner = np.array(whole[2:] * 2, np.float32)
        boxes = detections.boxes / scale + offset
        boxes = boxes.clip(np.float32(0), image_corner)
        placed = detections._replace(boxes=boxes)
        return placed.take(_is_complete(boxes, tile, whole))

    def _decode(self, output: Float32Array) -> Detections:
        """Boxes in pixels of the network's input.

        output: [cells, 85]: center relative to the cell, logarithm of the size, both in strides; objectness; scores of
        the categories.
        """
        centers = output[:, :2]
        log_sizes = output[:, 2:4]
        objectness = output[:, 4:5]
        scores = objectness * output[:, 5:]
        cells, categories = np.nonzero(scores >= MIN_SCORE)
        strides = self.strides[cells]
        center = (centers[cells] + self.grid[cells]) * strides
        half = np.exp(log_sizes[cells]) * strides / 2
        boxes = np.concatenate([center - half, center + half], 1)
        return Detections(boxes, scores[cells, categories], categories.astype(np.int64))


def _to_network_input(image: Image.Image, tile: Tile, scale: float) -> Float32Array:
    """float32 [1, 3, INPUT_SIZE, INPUT_SIZE] in 0..255: a tile, scaled, padded at the right and the bottom."""
    left, top, right, bottom = tile
    width = max(1, round((right - left) * scale))
    height = max(1, round((bottom - top) * scale))
    resized = image.resize((width, height), Image.Resampling.BILINEAR, box=tile)
    pixels = np.asarray(resized)
    bgr = pixels[:, :, ::-1]  # the network was trained on blue, green, red
    network_input = np.full((1, 3, INPUT_SIZE, INPUT_SIZE), PADDING, np.float32)
    network_input[0, :, :height, :width] = bgr.transpose(2, 0, 1)
    return network_input


def suppress(detections: Detections, max_iou: float) -> Int64Array:
    """Non-maximum suppression per category: the positions to keep, best first."""
    boxes, scores, categories = detections
    kept: list[int] = []
    for row in np.argsort(-scores, kind="stable").tolist():
        better = [other for other in kept if categories[other] == categories[row]]
        ious = box_ious(boxes[row], boxes[better])
        if ious.max(initial=0) <= max_iou:
            kept.append(row)
    return np.array(kept, np.int64)


def box_ious(box: Float32Array, boxes: Float32Array) -> Float32Array:
    """float32 [n]: IoU of one box [4] with boxes [n, 4]."""
    top_left = boxes[:, :2]
    bottom_right = boxes[:, 2:]
    shared_top_left = np.maximum(box[:2], top_left)
    shared_bottom_right = np.minimum(box[2:], bottom_right)
    shared_sides = (shared_bottom_right - shared_top_left).clip(0)
    intersections = shared_sides.prod(1)
    own_area = (box[2:] - box[:2]).prod()
    areas = (bottom_right - top_left).prod(1)
    unions = areas + own_area - intersections
    ious: Float32Array = intersections / np.maximum(unions, MIN_UNION)
    return ious


def _grid() -> tuple[Float32Array, Float32Array]:
    """float32 [cells, 2] and [cells, 1]: column and row of every cell, and its stride, finest grid first."""
    cells = []
    strides = []
    for stride in STRIDES:
        side = INPUT_SIZE // stride
        rows, columns = np.indices((side, side))
        cells.append(np.stack([columns, rows], -1).reshape(-1, 2))
        strides.append(np.full((side * side, 1), stride))
    all_cells: Float32Array = np.concatenate(cells).astype(np.float32)
    all_strides: Float32Array = np.concatenate(strides).astype(np.float32)
    return all_cells, all_strides


def _merge(detections: Sequence[Detections]) -> Detections:
    """The best of several detections, without copies."""
    merged = Detections(
        np.concatenate([part.boxes for part in detections]),
        np.concatenate([part.scores for part in detections]),
        np.concatenate([part.categories for part in detections]),
    )
    kept = suppress(merged, MAX_IOU)
    return merged.take(kept[:MAX_BOXES])


def make_tiles(width: int, height: int, share: float, count: int) -> list[Tile]:
    """Tiles of an image, row by row: `count` per side, evenly from border to border, each `share` of the image's side.
    count: at least 2.
    """
    tile_width = round(width * share)
    tile_height = round(height * share)
    tiles = []
    for row in range(count):
        top = round(row * (height - tile_height) / (count - 1))
        for column in range(count):
            left = round(column * (width - tile_width) / (count - 1))
            tiles.append((left, top, left + tile_width, top + tile_height))
    return tiles


def _is_complete(boxes: Float32Array, tile: Tile, whole: Tile) -> BoolArray:
    """bool [n]: whether each box keeps a distance from the borders of a tile that lie inside the image."""
    left, top, right, bottom = tile
    margins = (
        TILE_BORDER * (right - left),
        TILE_BORDER * (bottom - top),
        TILE_BORDER * (right - left),
        TILE_BORDER * (bottom - top),
    )
    distances = (
        boxes[:, 0] - left,
        boxes[:, 1] - top,
        right - boxes[:, 2],
        bottom - boxes[:, 3],
    )
    complete = np.ones(len(boxes), np.bool_)
    for side in range(4):
        is_inside_image = tile[side] != whole[side]
        if is_inside_image:
            complete &= distances[side] > margins[side]
    return complete
