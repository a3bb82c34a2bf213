"""Sample the objects of a scene and their positions: categories, colors, depth and occlusion.

Objects are placed from the back to the front. For every new object a few horizontal positions are tried on a coarse
grid, and the one that comes nearest to the wanted occlusion is used.
"""

import functools
from collections import Counter
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.world.catalogue import (
    CATEGORIES,
    HELD_OUT,
    PRESETS,
    SPLITS,
    SplitSettings,
)
from maskwise.world.facets import DirectionalLight, FacetBuilder, ObjectShape
from maskwise.world.paints import paints_for
from maskwise.world.random_streams import RandomStream
from maskwise.world.rasterizer import ObjectPlacement
from maskwise.world.shapes import SHAPES

GRID = 40
"""Cells of the coarse grid along each side of the image."""

LEAST_VISIBLE = 0.25
"""An object should keep at least this fraction visible, as far as the positions tried allow."""

POSITIONS = 12
"""Horizontal positions tried for every object."""


class PlacedObject(NamedTuple):
    """One object of a scene. `placement` is in fractions of the image: x right, y down, scale per unit of its shape."""

    category: str
    color: str
    material: str
    shape: ObjectShape
    placement: ObjectPlacement

    def in_pixels(self, size: int) -> ObjectPlacement:
        """Its placement in pixels."""
        return ObjectPlacement(*(value * size for value in self.placement))


class SceneLayout(NamedTuple):
    """The objects of a scene from the back to the front, and its setting, view and light."""

    setting: str
    horizon: float
    tilt: float
    light: DirectionalLight
    objects: tuple[PlacedObject, ...]


def sample_layout(split: str, preset: str, rng: RandomStream) -> SceneLayout:
    """Sample a setting and place objects in it."""
    rules = SPLITS[split]
    variant = PRESETS[preset]
    setting = "table" if rng.bernoulli(0.6) else "room"
    horizon = rng.uniform(0.3, 0.42)
    tilt = rng.uniform(0.36, 0.52) if setting == "table" else rng.uniform(0.26, 0.4)
    light = _light(rng)
    fewest, most = variant.objects or rules.objects
    count = fewest + rng.integer(most - fewest + 1)
    categories = _categories(setting, variant.categories)
    grid = _OcclusionGrid(rules, rng)
    low = horizon + 0.13
    high = 0.96
    for slot in range(count):
        depth = (slot + rng.uniform(0.15, 0.85)) / count
        kind = _sample_kind(categories, rules, grid.objects, rng)
        placed = _build_object(kind, tilt, light, rng)
        size = getattr(CATEGORIES[placed.category], setting) * variant.scale
        grid.add(
            _rescale(placed, size, low + (high - low) * depth, rng=rng, depth=depth)
        )
    return SceneLayout(setting, horizon, tilt, light, tuple(grid.objects))


def _light(rng: RandomStream) -> DirectionalLight:
    direction = np.array(
        [rng.sign() * rng.uniform(0.3, 0.75), rng.uniform(0.5, 0.8), 0.65]
    )
    return DirectionalLight(*(direction / np.linalg.norm(direction)).tolist())


def _sample_kind(
    categories: tuple[str, ...],
    rules: SplitSettings,
    before: list[PlacedObject],
    rng: RandomStream,
) -> tuple[str, str, str]:
    """Category, color and material.

    One object in four repeats a category, so that colors and positions matter; at most three objects share a category
    and at most two of them a color.
    """
    counts = Counter(placed.category for placed in before)
    names = [
        name
        for name in (counts if before and rng.bernoulli(0.25) else categories)
        if counts[name] < 3
    ]
    name = rng.choice(names or categories)
    twins = Counter(placed.color for placed in before if placed.category == name)
    held_out = rng.bernoulli(rules.held_out_colors)
    colors = [
        color
        for color in CATEGORIES[name].colors
        if (color in HELD_OUT[name]) == held_out
    ]
    color = rng.choice([color for color in colors if twins[color] < 2] or colors)
    return name, color, rng.choice(CATEGORIES[name].materials)


def _build_object(
    kind: tuple[str, str, str], tilt: float, light: DirectionalLight, rng: RandomStream
) -> PlacedObject:
    """An object at the origin with unit scale."""
    category, color, material = kind
    builder = FacetBuilder(tilt, light, paints_for(color, material, rng))
    SHAPES[category](builder, rng)
    return PlacedObject(
        category, color, material, builder.build(), ObjectPlacement(0.0, 0.0, 1.0)
    )


@functools.cache
def _categories(setting: str, only: tuple[str, ...]) -> tuple[str, ...]:
    """The categories of a setting, or those of them in `only`."""
    return tuple(
        name
        for name, category in CATEGORIES.items()
        if getattr(category, setting) is not None and (not only or name in only)
    )


def _rescale(
    placed: PlacedObject, size: float, y: float, *, rng: RandomStream, depth: float
) -> PlacedObject:
    """The object standing at height y of the image, its larger side about `size`, nearer ones larger."""
    low = placed.shape.low.min(0)
    high = placed.shape.high.max(0)
    wanted = size * rng.uniform(0.8, 1.2) * (0.86 + 0.28 * depth)
    scale = wanted / float((high - low).max())
    scale = min(scale, (y + 0.03) / float(high[1]))
    return placed._replace(
        placement=ObjectPlacement(0.5, min(y, 1.0 + float(low[1]) * scale), scale)
    )


class _OcclusionGrid:
    """The coarse grid: which object is visible in each cell, and how many cells of each object remain visible.

    Cells hold 0 outside the image, 1 for the background and 2 + n for object n; the image has a margin of GRID cells.
    """

    def __init__(self, rules: SplitSettings, rng: RandomStream) -> None:
        self.rules = rules
        self.rng = rng
        self.objects: list[PlacedObject] = []
        self.object_map = np.zeros((3 * GRID, 3 * GRID), np.int64)
        self.object_map[GRID : 2 * GRID, GRID : 2 * GRID] = 1
        self.area = np.zeros(0)
        self.left = np.zeros(0)

    def add(self, placed: PlacedObject) -> None:
        """Find a horizontal position for an object in front of the others and place it there."""
        shape, column, row = _silhouette(placed)
        wide = shape.shape[1]
        spread = (np.arange(POSITIONS) + self.rng.random()) / POSITIONS
        columns = np.rint(GRID * (1 + spread) - wide * (0.15 + 0.7 * spread)).astype(
            np.int64
        )
        down, right = np.nonzero(shape)
        cells_of = (down + row) * self.object_map.shape[1] + right + columns[:, None]
        count = len(self.objects) + 2
        cells = (
            self.object_map.ravel().take(cells_of)
            + count * np.arange(POSITIONS)[:, None]
        )
        hits = np.bincount(cells.ravel(), minlength=count * POSITIONS).reshape(
            POSITIONS, count
        )
        best = int(self._cost(hits).argmin())
        self.left = np.append(self.left - hits[best, 2:], hits[best, 1:].sum())
        self.area = np.append(self.area, max(1, hits[best, 1:].sum()))
        moved = placed.placement._replace(
            x=placed.placement.x + (columns[best].item() - column) / GRID
        )
        self.objects.append(placed._replace(placement=moved))
        spot = self.object_map[
            row : row + shape.shape[0], columns[best] : columns[best] + wide
        ]
        spot[shape & (spot > 0)] = count

    def _cost(self, hits: Int64Array) -> Float64Array:
        """The cost of each position; hits (positions, 2 + objects) are the cells it would cover."""
        wanted = np.zeros(len(self.objects))
        weight = np.full(len(self.objects), 0.3)
        clear = np.flatnonzero(self.left > 0.75 * self.area)
        if len(clear) and self.rng.bernoulli(self.rules.occlusion_rate):
            victim = clear[self.rng.integer(len(clear))]
            wanted[victim] = self.rng.uniform(*self.rules.occluded_share)
            weight[victim] = 1.0
        visible = (self.left - hits[:, 2:]) / self.area
        before = self.left / self.area
        cost = np.abs(np.minimum(before, 1.0 - wanted) - visible) @ weight
        cost += 4.0 * np.maximum(0.0, LEAST_VISIBLE - visible).sum(1)
        cost += 1.5 * np.maximum(0.0, hits[:, 0] / hits.sum(1) - 0.05)
        jitter = np.array([self.rng.random() for _ in range(POSITIONS)])
        return np.asarray(cost + 0.05 * jitter, np.float64)


def _silhouette(placed: PlacedObject) -> tuple[BoolArray, int, int]:
    """Its cells as a bool array, and the column and row of the grid at which the array begins."""
    at = placed.in_pixels(GRID)
    shape = placed.shape
    slope = np.array([at.scale, -at.scale])
    shift = np.array([at.x + GRID, at.y + GRID])
    corners = np.stack([shape.low.min(0), shape.high.max(0)]) * slope + shift
    column, row = np.floor(corners.min(0)).astype(int).tolist()
    right, bottom = np.ceil(corners.max(0)).astype(int).tolist()
    image = Image.new("L", (right - column + 1, bottom - row + 1))
    pen = ImageDraw.Draw(image)
    for outline in shape.outlines(slope, shift - (column + 0.5, row + 0.5), bulk=True):
        pen.polygon(outline, fill=1)
    return np.asarray(image).astype(np.bool_), column, row
