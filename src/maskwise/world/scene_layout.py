"""Sample the objects of a scene and their positions: categories, colors, depth and occlusion.

Objects are placed from the back to the front. For every new object a few horizontal
positions are tried on a coarse grid, and the one nearest to the wanted occlusion is used.
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
    ScenePreset,
    SplitSettings,
)
from maskwise.world.facets import DirectionalLight, FacetBuilder, ObjectShape
from maskwise.world.paints import paints_for
from maskwise.world.random_streams import RandomStream
from maskwise.world.rasterizer import ObjectPlacement
from maskwise.world.shapes import SHAPES

GRID = 40
"""Cells of the coarse grid along each side of the image: fine enough to estimate how
much of an object is hidden, and 16 times fewer than the pixels of an image of 160."""

LEAST_VISIBLE = 0.25
"""An object keeps at least this fraction visible, as far as the positions tried allow."""

POSITIONS = 12
"""Horizontal positions tried for every object."""

LOWEST_GROUND = 0.96
"""The ground point of the nearest object, as a fraction of the image height."""


class PlacedObject(NamedTuple):
    """One object of a scene.

    `placement` is in fractions of the image: x right, y down, scale per shape unit.
    """

    category: str
    color: str
    material: str
    shape: ObjectShape
    placement: ObjectPlacement

    def in_pixels(self, size: int) -> ObjectPlacement:
        """Its placement in an image of size x size pixels."""
        x, y, scale = self.placement
        return ObjectPlacement(x * size, y * size, scale * size)


class SceneLayout(NamedTuple):
    """The objects of a scene from the back to the front, and its setting, view and light.

    setting: `table` or `room`. horizon: the foot of the wall, as a fraction of the
    image height. tilt: sine of the angle at which the view looks down.
    """

    setting: str
    horizon: float
    tilt: float
    light: DirectionalLight
    objects: tuple[PlacedObject, ...]


def sample_layout(split: str, preset: str, rng: RandomStream) -> SceneLayout:
    """Sample a setting and place objects in it."""
    preset_settings = PRESETS[preset]
    split_settings = _with_preset(SPLITS[split], preset_settings)
    setting = "table" if rng.bernoulli(0.6) else "room"
    horizon = rng.uniform(0.3, 0.42)
    # A table is looked at from a steeper angle than a room.
    tilt_range = (0.36, 0.52) if setting == "table" else (0.26, 0.4)
    tilt = rng.uniform(*tilt_range)
    light = _sample_light(rng)
    fewest, most = split_settings.objects
    count = fewest + rng.integer(most - fewest + 1)
    categories = list_categories(setting, preset_settings.categories)
    grid = _OcclusionGrid(split_settings, rng)
    # Clear of the wall, so that the farthest object stands on the ground.
    highest_ground = horizon + 0.13
    for slot in range(count):
        # 0 is the farthest, 1 the nearest; a slot each, so that depths differ.
        depth = (slot + rng.uniform(0.15, 0.85)) / count
        kind = _sample_kind(categories, split_settings, grid.objects, rng)
        placed = build_object(kind, tilt, light, rng)
        category_size = getattr(CATEGORIES[placed.category], setting)
        size = category_size * preset_settings.scale
        y = highest_ground + (LOWEST_GROUND - highest_ground) * depth
        grid.add(_stand(placed, size, y, rng=rng, depth=depth))
    return SceneLayout(setting, horizon, tilt, light, tuple(grid.objects))


def _with_preset(split: SplitSettings, preset: ScenePreset) -> SplitSettings:
    """The settings of a split, with those that the preset names in their place."""
    occlusion_rate = preset.occlusion_rate
    return split._replace(
        objects=preset.objects or split.objects,
        occlusion_rate=split.occlusion_rate
        if occlusion_rate is None
        else occlusion_rate,
        occluded_share=preset.occluded_share or split.occluded_share,
    )


def _sample_light(rng: RandomStream) -> DirectionalLight:
    """Light from the upper left or upper right, always from the viewer's side.

    The upward part is never small, because shadows grow with its inverse.
    """
    x = rng.sign() * rng.uniform(0.3, 0.75)
    y = rng.uniform(0.5, 0.8)
    direction = np.array([x, y, 0.65])
    unit = direction / np.linalg.norm(direction)
    return DirectionalLight(*unit.tolist())


def _sample_kind(
    categories: tuple[str, ...],
    split_settings: SplitSettings,
    before: list[PlacedObject],
    rng: RandomStream,
) -> tuple[str, str, str]:
    """Category, color and material of the next object.

    One object in four repeats a category, so that colors and positions matter; at most
    three objects share a category and at most two of them a color.
    """
    counts = Counter(placed.category for placed in before)
    repeats = bool(before) and rng.bernoulli(0.25)
    candidates = list(counts) if repeats else list(categories)
    allowed = [name for name in candidates if counts[name] < 3]
    category = rng.choice(allowed or categories)
    # Drawn again where all candidates were there three times.
    while counts[category] >= 3:
        category = rng.choice(categories)

    used_colors = Counter(
        placed.color for placed in before if placed.category == category
    )
    is_held_out = rng.bernoulli(split_settings.held_out_colors)
    colors = []
    for color in CATEGORIES[category].colors:
        if (color in HELD_OUT[category]) == is_held_out:
            colors.append(color)
    unused_colors = [color for color in colors if used_colors[color] < 2]
    color = rng.choice(unused_colors or colors)
    material = rng.choice(CATEGORIES[category].materials)
    return category, color, material


def build_object(
    kind: tuple[str, str, str], tilt: float, light: DirectionalLight, rng: RandomStream
) -> PlacedObject:
    """An object at the origin with unit scale."""
    category, color, material = kind
    paints = paints_for(color, material, rng)
    builder = FacetBuilder(tilt, light, paints)
    SHAPES[category](builder, rng)
    origin = ObjectPlacement(0.0, 0.0, 1.0)
    return PlacedObject(category, color, material, builder.build(), origin)


@functools.cache
def list_categories(setting: str, only: tuple[str, ...]) -> tuple[str, ...]:
    """The categories of a setting, or those of them in `only` if that is not empty."""
    names = []
    for name, category in CATEGORIES.items():
        is_wanted = not only or name in only
        if is_wanted and getattr(category, setting) is not None:
            names.append(name)
    return tuple(names)


def _stand(
    placed: PlacedObject, size: float, y: float, *, rng: RandomStream, depth: float
) -> PlacedObject:
    """The object with its ground point at height y of the image, in the middle.

    Its larger side is about `size` of the image, nearer objects larger. It is made
    smaller or moved up where it would leave the image at the top or bottom.
    """
    low = placed.shape.low.min(0)
    high = placed.shape.high.max(0)
    wanted_size = size * rng.uniform(0.8, 1.2) * (0.86 + 0.28 * depth)
    scale = wanted_size / float((high - low).max())
    # At most 3 % of the image height above the upper border.
    largest_scale = (y + 0.03) / float(high[1])
    scale = min(scale, largest_scale)
    lowest_y = 1.0 + float(low[1]) * scale
    return placed._replace(placement=ObjectPlacement(0.5, min(y, lowest_y), scale))


class _OcclusionGrid:
    """A coarse map of the scene: which object is visible in each cell.

    Cells hold 0 outside the image, 1 for the background and 2 + n for object n; the
    image has a margin of GRID cells on every side. areas and visible_cells (objects,)
    count each object's cells inside the image, and those that are still visible.
    """

    def __init__(self, split_settings: SplitSettings, rng: RandomStream) -> None:
        self.split_settings = split_settings
        self.rng = rng
        self.objects: list[PlacedObject] = []
        self.object_map = np.zeros((3 * GRID, 3 * GRID), np.int64)
        self.object_map[GRID : 2 * GRID, GRID : 2 * GRID] = 1
        self.areas = np.zeros(0)
        self.visible_cells = np.zeros(0)

    def add(self, placed: PlacedObject) -> None:
        """Place an object in front of the others, at the best horizontal position."""
        silhouette, column, row = _silhouette(placed)
        height, width = silhouette.shape
        columns = self._candidate_columns(width)
        covered_cells = self._count_covered_cells(silhouette, row, columns)
        best = int(self._cost(covered_cells).argmin())

        best_column = columns[best]
        covered = covered_cells[best]
        inside_image = covered[1:].sum()
        visible_cells = self.visible_cells - covered[2:]
        self.visible_cells = np.append(visible_cells, inside_image)
        # At least 1, because shares are computed by dividing by it.
        self.areas = np.append(self.areas, max(1, inside_image))

        shift = (best_column.item() - column) / GRID
        placement = placed.placement._replace(x=placed.placement.x + shift)
        box = self.object_map[row : row + height, best_column : best_column + width]
        box[silhouette & (box > 0)] = len(self.objects) + 2
        self.objects.append(placed._replace(placement=placement))

    def _candidate_columns(self, width: int) -> Int64Array:
        """First columns (POSITIONS,) to try for an object of this width, from the left.

        At both ends 15 % of the object are outside the image.
        """
        spread = (np.arange(POSITIONS) + self.rng.random()) / POSITIONS
        columns = GRID * (1 + spread) - width * (0.15 + 0.7 * spread)
        return np.rint(columns).astype(np.int64)

    def _count_covered_cells(
        self, silhouette: BoolArray, row: int, columns: Int64Array
    ) -> Int64Array:
        """How many cells of each value the object would cover, (positions, 2 + objects)."""
        down, right = np.nonzero(silhouette)
        map_width = self.object_map.shape[1]
        cells = (down + row) * map_width + right + columns[:, None]
        values = self.object_map.ravel().take(cells)
        # One histogram for all positions: each has its own range of values.
        value_count = len(self.objects) + 2
        offsets = value_count * np.arange(POSITIONS)[:, None]
        histogram = np.bincount(
            (values + offsets).ravel(), minlength=value_count * POSITIONS
        )
        return histogram.reshape(POSITIONS, value_count)

    def _cost(self, covered_cells: Int64Array) -> Float64Array:
        """The cost of each position (positions,).

        Sometimes one object that is still clear is chosen to be hidden by a wanted
        share; the others should stay as they are. The weights were tuned on the
        occlusion rates of the splits: the chosen object counts about three times as
        much as another, losing an object from sight most.
        """
        wanted_hidden = np.zeros(len(self.objects))
        weight = np.full(len(self.objects), 0.3)
        clear = np.flatnonzero(self.visible_cells > 0.75 * self.areas)
        if len(clear) and self.rng.bernoulli(self.split_settings.occlusion_rate):
            chosen = clear[self.rng.integer(len(clear))]
            wanted_hidden[chosen] = self.rng.uniform(
                *self.split_settings.occluded_share
            )
            weight[chosen] = 1.0

        visible = (self.visible_cells - covered_cells[:, 2:]) / self.areas
        visible_before = self.visible_cells / self.areas
        wanted_visible = np.minimum(visible_before, 1.0 - wanted_hidden)
        cost = np.abs(wanted_visible - visible) @ weight
        cost += 4.0 * np.maximum(0.0, LEAST_VISIBLE - visible).sum(1)
        # 5 % of an object may be outside the image without a cost.
        outside_share = covered_cells[:, 0] / covered_cells.sum(1)
        cost += 1.5 * np.maximum(0.0, outside_share - 0.05)
        # Among equal positions, any.
        jitter = np.array([self.rng.random() for _ in range(POSITIONS)])
        return np.asarray(cost + 0.05 * jitter, np.float64)


def _silhouette(placed: PlacedObject) -> tuple[BoolArray, int, int]:
    """Its cells as a bool array, and the column and row of the grid where that begins."""
    at = placed.in_pixels(GRID)
    shape = placed.shape
    slope = np.array([at.scale, -at.scale])
    shift = np.array([at.x + GRID, at.y + GRID])
    corners = np.stack([shape.low.min(0), shape.high.max(0)]) * slope + shift
    column, row = np.floor(corners.min(0)).astype(int).tolist()
    right, bottom = np.ceil(corners.max(0)).astype(int).tolist()
    image = Image.new("L", (right - column + 1, bottom - row + 1))
    pen = ImageDraw.Draw(image)
    # Pillow's coordinates are pixel centers, ours are corners: half a cell apart.
    begin = (column + 0.5, row + 0.5)
    for outline in shape.outlines(slope, shift - begin, bulk=True):
        pen.polygon(outline, fill=1)
    return np.asarray(image).astype(np.bool_), column, row
