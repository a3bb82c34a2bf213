"""The scene graph: every object and part of a rendered scene with its masks, areas and occlusions.

Definition of the masks:
- The amodal mask of an object is its whole shape as if no other object were in front of it, cropped to the image.
- The visible mask is the visible part of the amodal mask. Visible masks of objects never overlap.
- Parts partition their object: if two parts of one object overlap, the pixel belongs to the part in front, in both
  masks, as if the object stood alone. So the amodal masks of the parts add up to the object's amodal mask, their
  visible masks to its visible mask, and a part's visible mask is its amodal mask within the visible object.
- A part without a pixel in the image (cropped, or behind its own object) is not listed.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskwise.world.catalogue import CATEGORIES
from maskwise.world.rasterizer import ObjectRaster
from maskwise.world.scene_layout import PlacedObject, SceneLayout

SAME_PLACE = 0.05
"""Centers closer than this fraction of the image width are neither left nor right of each other."""


class SceneNode(NamedTuple):
    """One object, or one part of it (`part` is then its name and `whole` the index of its object).

    `order`: depth of its object, 1 = front. `visible_area`, `amodal_area`: pixels of the two masks. `visible_x`,
    `amodal_x`: the mean column of these masks as a fraction of the image width; if nothing is visible, `visible_x` is
    `amodal_x`. `color_area`: visible pixels of those parts of its object that carry the color. `name` is unique in
    its scene.
    """

    category: str
    color: str
    material: str
    part: str | None
    whole: int
    order: int
    visible_area: int
    amodal_area: int
    visible_x: float
    amodal_x: float
    color_area: int
    name: str = ""

    @property
    def occlusion_rate(self) -> float:
        """The fraction of the amodal mask that is hidden, 0 to 1."""
        return 1.0 - self.visible_area / self.amodal_area


ObjectExtent = tuple[tuple[slice, slice], NDArray[np.uint8]]
"""The amodal extent of an object: its window (rows, columns), and in it the number of the
part at each pixel, counted from 1 as in its category, 0 outside."""


@dataclass(frozen=True, slots=True)
class SceneGraph:
    """All nodes, each object followed by its parts, from the front to the back.

    extents: one per object, by `order` - 1. occluded_pixels: int64 (objects, objects), pixels where the first object
    is visible in front of the second. object_map: int8 (size, size), `order` - 1 of the object visible at each pixel,
    or -1. part_map: int16 (size, size), the index of the part visible there, or -1. setting: `table` or `room`.
    """

    setting: str
    nodes: tuple[SceneNode, ...]
    extents: tuple[ObjectExtent, ...]
    occluded_pixels: NDArray[np.int64]
    object_map: NDArray[np.int8]
    part_map: NDArray[np.int16]

    def objects(self) -> list[int]:
        """Indices of the objects."""
        return [place for place, node in enumerate(self.nodes) if node.part is None]

    def parts(self, whole: int) -> list[int]:
        """Indices of an object's parts."""
        return [
            place
            for place, node in enumerate(self.nodes)
            if node.whole == whole and node.part is not None
        ]

    def occluders(self, place: int) -> NDArray[np.int64]:
        """How many pixels of a node each object hides, by `order` - 1; its own object hides none."""
        node = self.nodes[place]
        if node.part is None:
            return self.occluded_pixels[:, node.order - 1]
        window, parts = self.extents[node.order - 1]
        visible_ranks = self.object_map[window][parts == _number(node)]
        counts = _count_ranks(visible_ranks, len(self.extents))
        counts[node.order - 1] = 0
        return counts

    def dense(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Visible and amodal masks of all nodes, bool (nodes, size, size) each."""
        visible = np.empty((len(self.nodes), *self.object_map.shape), np.bool_)
        amodal = np.zeros_like(visible)
        for place, node in enumerate(self.nodes):
            window, parts = self.extents[node.order - 1]
            if node.part is None:
                np.not_equal(parts, 0, out=amodal[place][window])
                np.equal(self.object_map, node.order - 1, out=visible[place])
            else:
                np.equal(parts, _number(node), out=amodal[place][window])
                np.equal(self.part_map, place, out=visible[place])
        return visible, amodal


def build_scene_graph(
    layout: SceneLayout,
    visible_objects: NDArray[np.int8],
    rasters: list[ObjectRaster | None],
) -> SceneGraph:
    """List and measure every object and part that has a pixel in the image.

    visible_objects, rasters: what `render` returns for the layout.
    """
    # From the front to the back; the layout lists objects from the back.
    present = []
    for number in reversed(range(len(layout.objects))):
        raster = rasters[number]
        if raster is not None and raster.facet.any():
            present.append((number, raster))
    numbers = [number for number, _ in present]
    # The last entry is for -1, the background.
    rank_of = np.full(len(layout.objects) + 1, -1, np.int8)
    rank_of[numbers] = np.arange(len(present))
    object_map = rank_of[visible_objects]
    part_map = np.full(object_map.shape, -1, np.int16)
    nodes: list[SceneNode] = []
    extents: list[ObjectExtent] = []
    occluded_pixels = np.zeros((len(present), len(present)), np.int64)
    for rank, (number, raster) in enumerate(present):
        placed = layout.objects[number]
        parts = _part_numbers(placed, raster)
        window = raster.window
        object_nodes = _measure(placed, (window, parts), object_map, rank, len(nodes))
        visible_ranks = object_map[window]
        occluded_pixels[:, rank] = _count_ranks(visible_ranks[parts > 0], len(present))
        node_of_part = _positions(object_nodes, len(nodes))
        is_visible = visible_ranks == rank
        np.copyto(part_map[window], node_of_part[parts], where=is_visible)
        nodes += object_nodes
        extents.append((window, parts))
    # An object is visible at its own pixels, which does not occlude it.
    np.fill_diagonal(occluded_pixels, 0)
    return SceneGraph(
        layout.setting,
        name_nodes(nodes),
        tuple(extents),
        occluded_pixels,
        object_map,
        part_map,
    )


def _count_ranks(ranks: NDArray[np.int8], count: int) -> NDArray[np.int64]:
    """How often each of `count` ranks occurs; -1, the background, is left out."""
    counts = np.bincount(ranks + np.int64(1), minlength=count + 1)
    return counts[1:]


def _part_numbers(placed: PlacedObject, raster: ObjectRaster) -> NDArray[np.uint8]:
    """The number of the part at each pixel of the raster, 0 outside the object."""
    names = CATEGORIES[placed.category].parts
    part_of_facet = [names.index(facet.part) + 1 for facet in placed.shape.facets]
    table = np.array([0, *part_of_facet], np.uint8)
    return table[raster.facet]


def _number(node: SceneNode) -> int:
    """The number of a part within its category, counted from 1."""
    assert node.part is not None
    return CATEGORIES[node.category].parts.index(node.part) + 1


def _positions(nodes: list[SceneNode], first: int) -> NDArray[np.int16]:
    """From part numbers to indices among all nodes."""
    table = np.full(len(CATEGORIES[nodes[0].category].parts) + 1, -1, np.int16)
    for step, node in enumerate(nodes[1:], 1):
        table[_number(node)] = first + step
    return table


def _measure(
    placed: PlacedObject,
    extent: ObjectExtent,
    object_map: NDArray[np.int8],
    rank: int,
    first: int,
) -> list[SceneNode]:
    """The object and those of its parts that have a pixel in the image.

    rank: its place from the front, from 0. first: the index of its node.
    """
    category = CATEGORIES[placed.category]
    (rows, columns), parts = extent
    width = parts.shape[1]
    count = len(category.parts) + 1
    # One histogram over part and column: pixels (count, width) of each.
    cells = parts * np.int64(width) + np.arange(width)
    is_visible = object_map[rows, columns] == rank
    amodal_pixels = np.bincount(cells.ravel(), minlength=count * width)
    amodal_pixels = amodal_pixels.reshape(count, width)
    visible_pixels = np.bincount(cells[is_visible], minlength=count * width)
    visible_pixels = visible_pixels.reshape(count, width)

    color_area = 0
    for number, name in enumerate(category.parts, 1):
        if name in (category.color_on or category.parts):
            color_area += int(visible_pixels[number].sum())
    image_width = object_map.shape[1]
    column_centers = (np.arange(columns.start, columns.stop) + 0.5) / image_width

    def node(part: str | None, numbers: slice) -> SceneNode:
        amodal_columns = amodal_pixels[numbers].sum(0)
        visible_columns = visible_pixels[numbers].sum(0)
        amodal_area = int(amodal_columns.sum())
        visible_area = int(visible_columns.sum())
        amodal_x = float(amodal_columns @ column_centers) / amodal_area
        visible_x = amodal_x
        if visible_area:
            visible_x = float(visible_columns @ column_centers) / visible_area
        return SceneNode(
            category=placed.category,
            color=placed.color,
            material=placed.material,
            part=part,
            whole=first,
            order=rank + 1,
            visible_area=visible_area,
            amodal_area=amodal_area,
            visible_x=visible_x,
            amodal_x=amodal_x,
            color_area=color_area,
        )

    nodes = [node(None, slice(1, count))]
    for number, name in enumerate(category.parts, 1):
        if amodal_pixels[number].any():
            nodes.append(node(name, slice(number, number + 1)))
    return nodes


def name_nodes(nodes: list[SceneNode]) -> tuple[SceneNode, ...]:
    """Give every node a unique name: color and category, and the position if two objects share these."""
    groups: dict[tuple[str, str], list[int]] = {}
    for place, node in enumerate(nodes):
        if node.part is None:
            groups.setdefault((node.category, node.color), []).append(place)
    names: dict[int, str] = {}
    for (category, color), places in groups.items():
        plain = CATEGORIES[category].colored.format(color=color, noun=category)
        for place, word in zip(*_tell_apart(nodes, places)):
            names[place] = f"{word} {plain}".strip()
    named = []
    for node in nodes:
        name = names[node.whole]
        if node.part is not None:
            name = f"{node.part} of the {name}"
        named.append(node._replace(name=name))
    return tuple(named)


def _tell_apart(
    nodes: list[SceneNode], places: list[int]
) -> tuple[list[int], list[str]]:
    """Words that distinguish objects of one color and category: two by side if they are clearly apart, else by depth.

    More than two, which no scene has but a model may predict, are numbered from the left.
    """
    if len(places) == 1:
        return places, [""]
    ordered = sorted(places, key=lambda place: nodes[place].amodal_x)
    if len(ordered) > 2:
        return ordered, [f"number {number}" for number in range(1, len(ordered) + 1)]
    left, right = ordered
    if nodes[right].amodal_x - nodes[left].amodal_x > SAME_PLACE:
        return [left, right], ["left", "right"]
    return places, ["front", "back"]
