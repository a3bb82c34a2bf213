"""What a rendered scene holds: every object and part with its masks and measures.

Which masks these are:
- The amodal mask of an object is its whole shape as if no other object stood in front of it, cut by the frame.
- Its visible mask is what of that is seen. Visible masks of objects never overlap.
- Parts divide their object: where two parts of one object overlap, the pixel belongs to the one in front, in both
  masks alike, as if the object stood alone. So the parts' amodal masks together are the object's amodal mask, their
  visible masks its visible mask, and a part's visible mask is its amodal mask within the visible object.
- A part that has no pixel in the frame (cut off, or behind its own object) is not listed.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskwise.world.canvas import Patch
from maskwise.world.catalogue import CATEGORIES
from maskwise.world.layout import Layout, Thing
from maskwise.world.render import Rendering

SAME_PLACE = 0.05
"""Centres closer than this share of the frame are neither left nor right of each other."""


class Item(NamedTuple):
    """One object, or one part of it (`part` is then its name and `whole` the position of its object).

    `order`: depth of its object, 1 = front. `seen`, `full`: pixels of the visible and the amodal mask. `x`, `full_x`:
    the mean column of these masks as a share of the frame; where nothing is seen `x` is `full_x`. `proof`: pixels
    seen of those parts of its object that carry the colour. `name` is unique in its scene.
    """

    category: str
    colour: str
    material: str
    part: str | None
    whole: int
    order: int
    seen: int
    full: int
    x: float
    full_x: float
    proof: int
    name: str = ""

    @property
    def hidden(self) -> float:
        """The share of it that is hidden, 0 to 1."""
        return 1.0 - self.seen / self.full


class Extent(NamedTuple):
    """Where an object lies: its window (rows, columns), and in it the number of the part at each pixel, counted from
    1 as in its category, 0 outside.
    """

    window: tuple[slice, slice]
    parts: NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Inventory:
    """All items, each object followed by its parts, from the front to the back.

    extents: one an object, by `order` - 1. covers: int64 (objects, objects), pixels where the first is seen in front
    of the second. owner: int8 (size, size), `order` - 1 of the object seen at each pixel, or -1. label: int16
    (size, size), the position of the part seen there, or -1. setting: `table` or `room`.
    """

    setting: str
    items: tuple[Item, ...]
    extents: tuple[Extent, ...]
    covers: NDArray[np.int64]
    owner: NDArray[np.int8]
    label: NDArray[np.int16]

    def objects(self) -> list[int]:
        """Positions of the objects."""
        return [place for place, item in enumerate(self.items) if item.part is None]

    def parts(self, whole: int) -> list[int]:
        """Positions of an object's parts."""
        return [
            place for place, item in enumerate(self.items) if item.whole == whole and item.part is not None
        ]

    def hiders(self, place: int) -> NDArray[np.int64]:
        """How many pixels of an item each object hides, by `order` - 1; its own object hides none."""
        item = self.items[place]
        if item.part is None:
            return self.covers[:, item.order - 1]
        window, parts = self.extents[item.order - 1]
        above = self.owner[window][parts == _number(item)]
        counts = np.bincount(above + np.int64(1), minlength=len(self.extents) + 1)[1:]
        counts[item.order - 1] = 0
        return counts

    def dense(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Visible and amodal masks of all items, bool (items, size, size) each."""
        visible = np.empty((len(self.items), *self.owner.shape), np.bool_)
        amodal = np.zeros_like(visible)
        for place, item in enumerate(self.items):
            window, parts = self.extents[item.order - 1]
            if item.part is None:
                np.not_equal(parts, 0, out=amodal[place][window])
                np.equal(self.owner, item.order - 1, out=visible[place])
            else:
                np.equal(parts, _number(item), out=amodal[place][window])
                np.equal(self.label, place, out=visible[place])
        return visible, amodal


def take_stock(layout: Layout, rendering: Rendering) -> Inventory:
    """List and measure everything that has a pixel in the frame."""
    things = layout.things
    present = [number for number in range(len(things) - 1, -1, -1) if _appears(rendering.patches[number])]
    rank = np.full(len(things) + 1, -1, np.int8)
    rank[present] = np.arange(len(present))
    owner = rank[rendering.owner]
    label = np.full(owner.shape, -1, np.int16)
    items: list[Item] = []
    extents: list[Extent] = []
    covers = np.zeros((len(present), len(present)), np.int64)
    for place, number in enumerate(present):
        extent = _extent(things[number], rendering.patches[number])
        new = _measure(things[number], extent, owner, place, len(items))
        above = owner[extent.window]
        covers[:, place] = np.bincount(above[extent.parts > 0] + np.int64(1), minlength=len(present) + 1)[1:]
        spot = label[extent.window]
        np.copyto(spot, _positions(new, len(items))[extent.parts], where=above == place)
        items += new
        extents.append(extent)
    np.fill_diagonal(covers, 0)
    return Inventory(layout.setting, name_items(items), tuple(extents), covers, owner, label)


def _appears(patch: Patch | None) -> bool:
    return patch is not None and bool(patch.facet.any())


def _extent(thing: Thing, patch: Patch | None) -> Extent:
    assert patch is not None
    names = CATEGORIES[thing.category].parts
    table = np.array([0] + [names.index(facet.part) + 1 for facet in thing.figure.facets], np.uint8)
    return Extent(patch.window, table[patch.facet])


def _number(item: Item) -> int:
    """The number of a part within its category, counted from 1."""
    assert item.part is not None
    return CATEGORIES[item.category].parts.index(item.part) + 1


def _positions(items: list[Item], first: int) -> NDArray[np.int16]:
    """From part numbers to positions among all items."""
    table = np.full(len(CATEGORIES[items[0].category].parts) + 1, -1, np.int16)
    for step, item in enumerate(items[1:], 1):
        table[_number(item)] = first + step
    return table


def _measure(thing: Thing, extent: Extent, owner: NDArray[np.int8], place: int, first: int) -> list[Item]:
    """The object and those of its parts that have a pixel in the frame."""
    names = CATEGORIES[thing.category].parts
    (rows, columns), parts = extent
    width, count = parts.shape[1], len(names) + 1
    at = parts * np.int64(width) + np.arange(width)
    here = owner[rows, columns] == place
    full, seen = (
        np.bincount(index, minlength=count * width).reshape(count, width) for index in (at.ravel(), at[here])
    )
    colour_on = CATEGORIES[thing.category].colour_on or names
    proof = int(sum(seen[number].sum() for number, name in enumerate(names, 1) if name in colour_on))
    middle = (np.arange(columns.start, columns.stop) + 0.5) / owner.shape[1]

    def item(part: str | None, chosen: slice) -> Item:
        whole, shown = full[chosen].sum(0), seen[chosen].sum(0)
        area, visible = int(whole.sum()), int(shown.sum())
        full_x = float(whole @ middle) / area
        x = float(shown @ middle) / visible if visible else full_x
        return Item(
            thing.category,
            thing.colour,
            thing.material,
            part,
            first,
            place + 1,
            visible,
            area,
            x,
            full_x,
            proof,
        )

    inside = np.flatnonzero(full[1:].any(1)).tolist()
    return [item(None, slice(1, count))] + [
        item(names[number], slice(number + 1, number + 2)) for number in inside
    ]


def name_items(items: list[Item]) -> tuple[Item, ...]:
    """Give every item its unique name: colour and category, and where two share these, their place."""
    names: dict[int, str] = {}
    groups: dict[tuple[str, str], list[int]] = {}
    for place, item in enumerate(items):
        if item.part is None:
            groups.setdefault((item.category, item.colour), []).append(place)
    for (category, colour), places in groups.items():
        plain = CATEGORIES[category].coloured.format(colour=colour, noun=category)
        for place, word in zip(*_tell_apart(items, places)):
            names[place] = f"{word} {plain}".strip()
    return tuple(
        item._replace(
            name=names[item.whole] if item.part is None else f"{item.part} of the {names[item.whole]}"
        )
        for item in items
    )


def _tell_apart(items: list[Item], places: list[int]) -> tuple[list[int], list[str]]:
    """Words that tell items of one colour and category apart: two by side where they are clearly apart, else by depth;
    more, which no scene has but a model may see, by their number from the left.
    """
    if len(places) == 1:
        return places, [""]
    ordered = sorted(places, key=lambda place: items[place].full_x)
    if len(ordered) > 2:
        return ordered, [f"number {number}" for number in range(1, len(ordered) + 1)]
    left, right = ordered
    if items[right].full_x - items[left].full_x > SAME_PLACE:
        return [left, right], ["left", "right"]
    return places, ["front", "back"]
