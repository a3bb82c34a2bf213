"""Which things stand where: categories, colours, depth, and how much each hides of another.

Things are placed from the back to the front. For every new thing a few places side by side are tried on a coarse
grid, and the one that comes nearest to the wanted hiding is taken.
"""

import functools
from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from maskwise.world.canvas import Place
from maskwise.world.catalogue import CATEGORIES, HELD_OUT, SPLITS, Split
from maskwise.world.chance import Chance
from maskwise.world.paints import paints_for
from maskwise.world.shapes import SHAPES
from maskwise.world.sketch import Figure, Light, Sketch

GRID = 40
"""Cells of the coarse grid along each side of the frame."""

LEAST_SEEN = 0.25
"""No thing should be left with less than this share of itself in sight, as far as the places tried allow."""

PLACES = 12
"""Places tried for every thing."""


class Thing(NamedTuple):
    """One thing of a scene. `place` is in shares of the frame: x right, y down, scale per unit of its shape."""

    category: str
    colour: str
    material: str
    figure: Figure
    place: Place

    def at(self, size: int) -> Place:
        """Its place in pixels."""
        return Place(*(value * size for value in self.place))


class Layout(NamedTuple):
    """Things from the back to the front, and what they share."""

    setting: str
    horizon: float
    tilt: float
    light: Light
    things: tuple[Thing, ...]


def arrange(split: str, chance: Chance) -> Layout:
    """Choose a setting and fill it."""
    rules = SPLITS[split]
    setting = "table" if chance.often(0.6) else "room"
    horizon = chance.between(0.3, 0.42)
    tilt = chance.between(0.36, 0.52) if setting == "table" else chance.between(0.26, 0.4)
    light = _light(chance)
    count = rules.things[0] + chance.below(rules.things[1] - rules.things[0] + 1)
    board = _Board(rules, chance)
    low, high = horizon + 0.13, 0.96
    for slot in range(count):
        depth = (slot + chance.between(0.15, 0.85)) / count
        kind = _choose(setting, rules, board.things, chance)
        thing = _shape(kind, tilt, light, chance)
        board.put(_scaled(thing, setting, low + (high - low) * depth, chance, depth))
    return Layout(setting, horizon, tilt, light, tuple(board.things))


def _light(chance: Chance) -> Light:
    direction = np.array([chance.sign() * chance.between(0.3, 0.75), chance.between(0.5, 0.8), 0.65])
    return Light(*(direction / np.linalg.norm(direction)).tolist())


def _choose(setting: str, rules: Split, before: list[Thing], chance: Chance) -> tuple[str, str, str]:
    """Category, colour and material. One thing in four repeats a category, so that colours and places matter; no
    more than three share a category, and two a colour as well.
    """
    counts = Counter(thing.category for thing in before)
    names = [
        name for name in (counts if before and chance.often(0.25) else _fitting(setting)) if counts[name] < 3
    ]
    name = chance.pick(names or _fitting(setting))
    twins = Counter(thing.colour for thing in before if thing.category == name)
    unseen = chance.often(rules.unseen)
    colours = [colour for colour in CATEGORIES[name].colours if (colour in HELD_OUT[name]) == unseen]
    colour = chance.pick([colour for colour in colours if twins[colour] < 2] or colours)
    return name, colour, chance.pick(CATEGORIES[name].materials)


def _shape(kind: tuple[str, str, str], tilt: float, light: Light, chance: Chance) -> Thing:
    """A thing at the origin, of unit scale."""
    category, colour, material = kind
    sketch = Sketch(tilt, light, paints_for(colour, material, chance))
    SHAPES[category](sketch, chance)
    return Thing(category, colour, material, sketch.figure(), Place(0.0, 0.0, 1.0))


@functools.cache
def _fitting(setting: str) -> tuple[str, ...]:
    """The categories of a setting."""
    return tuple(name for name, category in CATEGORIES.items() if getattr(category, setting) is not None)


def _scaled(thing: Thing, setting: str, y: float, chance: Chance, depth: float) -> Thing:
    low, high = thing.figure.low.min(0), thing.figure.high.max(0)
    wanted = getattr(CATEGORIES[thing.category], setting) * chance.between(0.8, 1.2) * (0.86 + 0.28 * depth)
    scale = wanted / float((high - low).max())
    scale = min(scale, (y + 0.03) / float(high[1]))
    return thing._replace(place=Place(0.5, min(y, 1.0 + float(low[1]) * scale), scale))


class _Board:
    """The coarse grid: who is seen where, and how much of each thing is left.

    Cells hold 0 outside the frame, 1 for the setting and 2 + n for thing n; the frame has a margin of GRID cells.
    """

    def __init__(self, rules: Split, chance: Chance) -> None:
        self.rules, self.chance = rules, chance
        self.things: list[Thing] = []
        self.owner = np.zeros((3 * GRID, 3 * GRID), np.int64)
        self.owner[GRID : 2 * GRID, GRID : 2 * GRID] = 1
        self.area = np.zeros(0)
        self.left = np.zeros(0)

    def put(self, thing: Thing) -> None:
        """Find a place side by side with the others and stand the thing there."""
        shape, column, row = _silhouette(thing)
        wide = shape.shape[1]
        spread = (np.arange(PLACES) + self.chance.random()) / PLACES
        columns = np.rint(GRID * (1 + spread) - wide * (0.15 + 0.7 * spread)).astype(np.int64)
        down, right = np.nonzero(shape)
        places = (down + row) * self.owner.shape[1] + right + columns[:, None]
        count = len(self.things) + 2
        cells = self.owner.ravel().take(places) + count * np.arange(PLACES)[:, None]
        hits = np.bincount(cells.ravel(), minlength=count * PLACES).reshape(PLACES, count)
        best = int(self._cost(hits).argmin())
        self.left = np.append(self.left - hits[best, 2:], hits[best, 1:].sum())
        self.area = np.append(self.area, max(1, hits[best, 1:].sum()))
        moved = thing.place._replace(x=thing.place.x + (columns[best].item() - column) / GRID)
        self.things.append(thing._replace(place=moved))
        spot = self.owner[row : row + shape.shape[0], columns[best] : columns[best] + wide]
        spot[shape & (spot > 0)] = count

    def _cost(self, hits: NDArray[np.int64]) -> NDArray[np.float64]:
        """How bad each place is; hits (places, 2 + things) are the cells it would cover."""
        wanted = np.zeros(len(self.things))
        weight = np.full(len(self.things), 0.3)
        clear = np.flatnonzero(self.left > 0.75 * self.area)
        if len(clear) and self.chance.often(self.rules.crowding):
            victim = clear[self.chance.below(len(clear))]
            wanted[victim], weight[victim] = self.chance.between(*self.rules.hiding), 1.0
        seen = (self.left - hits[:, 2:]) / self.area
        before = self.left / self.area
        cost = np.abs(np.minimum(before, 1.0 - wanted) - seen) @ weight
        cost += 4.0 * np.maximum(0.0, LEAST_SEEN - seen).sum(1)
        cost += 1.5 * np.maximum(0.0, hits[:, 0] / hits.sum(1) - 0.05)
        return cost + 0.05 * np.array([self.chance.random() for _ in range(PLACES)])


def _silhouette(thing: Thing) -> tuple[NDArray[np.bool_], int, int]:
    """Its cells as a bool array, and the column and row of the board the array begins at."""
    place, figure = thing.at(GRID), thing.figure
    slope, shift = np.array([place.scale, -place.scale]), np.array([place.x + GRID, place.y + GRID])
    corners = np.stack([figure.low.min(0), figure.high.max(0)]) * slope + shift
    column, row = np.floor(corners.min(0)).astype(int).tolist()
    right, bottom = np.ceil(corners.max(0)).astype(int).tolist()
    image = Image.new("L", (right - column + 1, bottom - row + 1))
    pen = ImageDraw.Draw(image)
    for outline in figure.pens(slope, shift - (column + 0.5, row + 0.5), bulk=True):
        pen.polygon(outline, fill=1)
    return np.asarray(image).astype(np.bool_), column, row
