"""Scenes drawn again with one object removed, replaced, uncovered or covered.

    key = parse_scene_id("test-2506-3")
    scene = key.make(size=224, questions=5)
    image, graph = key.draw(remove_objects(scene.layout, [2]), size=224)

Background, light and noise stay, so that an edited scene differs from its original by the
object alone, and a question's logical form gives its exact targets in the edited scene.
"""

import re
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from maskwise.arrays import Float64Array, UInt8Array
from maskwise.language.word_forms import is_plural
from maskwise.world.catalogue import CATEGORIES, PRESETS, SPLITS
from maskwise.world.random_streams import RandomStream, scene_streams
from maskwise.world.rasterizer import ObjectPlacement
from maskwise.world.scene_graph import SceneGraph
from maskwise.world.scene_layout import (
    LOWEST_GROUND,
    PlacedObject,
    SceneLayout,
    build_object,
    list_categories,
    sample_layout,
)
from maskwise.world.scenes import Scene, draw_layout, make_scene

MAX_NUMBER = 2**31
"""The largest seed or index that is read from an id."""

STEP_FORWARD = 0.02
"""How far in front of an object its cover stands, as a fraction of the image height."""


class SceneKey(NamedTuple):
    """What determines a scene."""

    preset: str
    split: str
    seed: int
    number: int

    def make(self, size: int, questions: int) -> Scene:
        """The scene itself."""
        return make_scene(
            self.seed,
            self.number,
            self.split,
            size,
            questions=questions,
            preset=self.preset,
        )

    def draw(self, layout: SceneLayout, size: int) -> tuple[UInt8Array, SceneGraph]:
        """The scene with another layout."""
        streams = scene_streams(self.seed, SPLITS[self.split].number, self.number)
        # Random numbers of the layout come first, as when the scene was made.
        sample_layout(self.split, self.preset, streams["layout"])
        return draw_layout(layout, size, streams)


def parse_scene_id(id: str) -> SceneKey | None:
    """What determines the scene with this id; None for the id of another image."""
    pattern = r"(?:([\w-]+)-)?(train|val|test)-(\d{1,10})-(\d{1,10})"
    match = re.fullmatch(pattern, id)
    if match is None:
        return None
    preset = match[1] or "default"
    seed = int(match[3])
    index = int(match[4])
    if preset not in PRESETS or max(seed, index) >= MAX_NUMBER:
        return None
    return SceneKey(preset, match[2], seed, index)


def number_in_layout(scene: Scene) -> dict[int, int]:
    """The number in the layout of each object of the scene graph, by its `order`."""
    numbers = {}
    objects = [scene.nodes[place] for place in scene.graph.objects()]
    behind = iter(reversed(range(len(scene.layout.objects))))
    for node in objects:
        for number in behind:
            placed = scene.layout.objects[number]
            kind = (placed.category, placed.color, placed.material)
            # Objects outside the image are in the layout only.
            if kind == (node.category, node.color, node.material):
                numbers[node.order] = number
                break
    return numbers


def remove_objects(layout: SceneLayout, numbers: Collection[int]) -> SceneLayout:
    """The layout without some objects."""
    kept = [
        placed for number, placed in enumerate(layout.objects) if number not in numbers
    ]
    return layout._replace(objects=tuple(kept))


def replace_object(
    layout: SceneLayout, number: int, rng: RandomStream
) -> SceneLayout | None:
    """The layout with an object of another category, as large, in the place of an object.

    None if every category of the setting is in the scene already.
    """
    old = layout.objects[number]
    new = _new_object(layout, rng)
    if new is None:
        return None
    placement = _fit(new, _box(old), old.placement.y)
    objects = list(layout.objects)
    objects[number] = new._replace(placement=placement)
    return layout._replace(objects=tuple(objects))


def cover_object(
    layout: SceneLayout, number: int, rng: RandomStream
) -> SceneLayout | None:
    """The layout with a further object of another category in front of an object.

    How much it covers is random: the scene graph tells. None as for `replace_object`.
    """
    target = layout.objects[number]
    new = _new_object(layout, rng)
    if new is None:
        return None
    box = _box(target)
    width = box[1, 0] - box[0, 0]
    shift = rng.uniform(-0.35, 0.35) * width
    # Smaller than the target, so that some of it stays visible.
    share = rng.uniform(0.5, 0.85)
    center = box.mean(0) + np.array([shift, 0.0])
    half = share * (box[1] - box[0]) / 2
    smaller = np.stack([center - half, center + half])
    y = min(target.placement.y + STEP_FORWARD, LOWEST_GROUND)
    cover = new._replace(placement=_fit(new, smaller, y))
    objects = list(layout.objects)
    objects.insert(number + 1, cover)
    return layout._replace(objects=tuple(objects))


def _new_object(layout: SceneLayout, rng: RandomStream) -> PlacedObject | None:
    """An object of a category that is not in the scene, at the origin."""
    present = {placed.category for placed in layout.objects}
    usable = []
    for name in list_categories(layout.setting, ()):
        if name not in present and not is_plural(name) and not CATEGORIES[name].flat:
            usable.append(name)
    if not usable:
        return None
    category = rng.choice(usable)
    color = rng.choice(CATEGORIES[category].colors)
    material = rng.choice(CATEGORIES[category].materials)
    return build_object((category, color, material), layout.tilt, layout.light, rng)


def _box(placed: PlacedObject) -> Float64Array:
    """The corners of an object in fractions of the image: (2, 2), x and y."""
    x, y, scale = placed.placement
    low = placed.shape.low.min(0) * scale
    high = placed.shape.high.max(0) * scale
    # y points up in the shape and down in the image.
    return np.array([[x + low[0], y - high[1]], [x + high[0], y - low[1]]])


def _fit(placed: PlacedObject, box: Float64Array, y: float) -> ObjectPlacement:
    """Where an object has the center and the larger side of a box, on the ground at y."""
    low = placed.shape.low.min(0)
    high = placed.shape.high.max(0)
    scale = float((box[1] - box[0]).max() / (high - low).max())
    middle = float((low[0] + high[0]) / 2)
    x = float(box[:, 0].mean()) - middle * scale
    return ObjectPlacement(x, y, scale)
