"""Questions as logical forms, which are executed on a scene graph.

Execution gives the indices of the targets, from left to right. If people could disagree (a mug slightly to the left, a
bottle one might drink from), the truth value is unknown and execution raises `AmbiguousError`: such a question is not
asked.

    ObjectQuery(predicates, superlative)  objects for which every predicate holds; `superlative` selects one of them
    PartQuery(part, of)                   that part of each such object
    PartAffordanceQuery(use)              parts that serve a purpose
    PartNameQuery(part)                   every part of that name in the image
    UnionQuery(forms)                     the targets of any of the forms
"""

from dataclasses import dataclass
from typing import Literal

from maskwise.world.catalogue import (
    AFFORDANCES,
    CATEGORIES,
    CONFUSABLE,
    PART_AFFORDANCES,
    PLAIN_COLORS,
    SUPERCATEGORIES,
    Affordance,
    Supercategory,
)
from maskwise.world.scene_graph import SAME_PLACE, SceneGraph, SceneNode

TruthValue = bool | None

LEAST_SHARE = 0.1
"""A target shows at least this fraction of itself..."""

LEAST_PIXELS = 0.001
"""... and this fraction of the image."""

LEAST_PROOF = 0.0006
"""A color is recognised from at least this fraction of the image."""

HIDES = 0.08
"""One object occludes another if it hides at least this fraction of it..."""

TOUCHES = 0.01
"""... and does not if it hides less than this; in between it is ambiguous."""

LARGER = 1.4
"""How many times larger an object must be to be called the larger one."""


class AmbiguousError(Exception):
    """People could disagree about the targets."""


@dataclass(frozen=True)
class HasCategory:
    """Of this category. `cautious`: ambiguous for objects that have a part of that name."""

    category: str
    cautious: bool = False

    def holds(self, scene: SceneGraph, place: int) -> TruthValue:
        category = scene.nodes[place].category
        if category == self.category:
            return True
        if self.category == scene.setting:
            return None
        return (
            None
            if self.cautious and category in CONFUSABLE.get(self.category, ())
            else False
        )


@dataclass(frozen=True)
class HasSupercategory:
    """Of this supercategory: a piece of furniture, a toy, ..."""

    kind: str

    def holds(self, scene: SceneGraph, place: int) -> TruthValue:
        return _member(scene, place, SUPERCATEGORIES[self.kind])


@dataclass(frozen=True)
class HasAffordance:
    """Usable for this purpose."""

    use: str

    def holds(self, scene: SceneGraph, place: int) -> TruthValue:
        return _member(scene, place, AFFORDANCES[self.use])


@dataclass(frozen=True)
class HasColor:
    """Of this main color; ambiguous if that is hidden. `cautious`: also ambiguous for objects that show the color
    elsewhere.
    """

    color: str
    cautious: bool = False

    def holds(self, scene: SceneGraph, place: int) -> TruthValue:
        node = scene.nodes[place]
        category = CATEGORIES[node.category]
        if not color_shows(scene, node):
            return None
        partial = category.colored != "{color} {noun}"
        if node.color == self.color:
            return None if self.cautious and partial else True
        return (
            None
            if self.cautious
            and (self.color in category.tints or self.color in PLAIN_COLORS)
            else False
        )


@dataclass(frozen=True)
class HasMaterial:
    """Of this material."""

    material: str

    def holds(self, scene: SceneGraph, place: int) -> TruthValue:
        return scene.nodes[place].material == self.material


@dataclass(frozen=True)
class Beside:
    """To the left or right of another object."""

    side: Literal["left", "right"]
    other: "ObjectQuery"

    def holds(self, scene: SceneGraph, place: int) -> TruthValue:
        other = self.other.execute_unique(scene)
        if place == other:
            return False
        steps = _steps(scene.nodes[other], scene.nodes[place])
        if self.side == "left":
            steps = -steps[0], -steps[1]
        return (
            True
            if min(steps) > SAME_PLACE
            else False
            if max(steps) < -SAME_PLACE
            else None
        )


@dataclass(frozen=True)
class OccludedBy:
    """Partly hidden by another object; without one, by any object."""

    other: "ObjectQuery | None" = None

    def holds(self, scene: SceneGraph, place: int) -> TruthValue:
        node = scene.nodes[place]
        if self.other is None:
            return _enough(node.amodal_area - node.visible_area, node.amodal_area)
        other = self.other.execute_unique(scene)
        return False if place == other else _covers(scene, other, place)


@dataclass(frozen=True)
class Occludes:
    """Partly hides another object; without one, any object."""

    other: "ObjectQuery | None" = None

    def holds(self, scene: SceneGraph, place: int) -> TruthValue:
        if self.other is None:
            truths = [
                _covers(scene, place, other)
                for other in scene.objects()
                if other != place
            ]
            return True if True in truths else None if None in truths else False
        other = self.other.execute_unique(scene)
        return False if place == other else _covers(scene, place, other)


@dataclass(frozen=True)
class Unoccluded:
    """Not hidden by anything."""

    def holds(self, scene: SceneGraph, place: int) -> TruthValue:
        hidden = OccludedBy().holds(scene, place)
        return None if hidden is None else not hidden


Predicate = (
    HasCategory
    | HasSupercategory
    | HasAffordance
    | HasColor
    | HasMaterial
    | Beside
    | OccludedBy
    | Occludes
    | Unoccluded
)
Superlative = Literal["leftmost", "rightmost", "largest", "smallest"]


@dataclass(frozen=True)
class ObjectQuery:
    """Objects for which every predicate holds."""

    predicates: tuple[Predicate, ...]
    superlative: Superlative | None = None

    def execute(self, scene: SceneGraph) -> tuple[int, ...]:
        """Indices of the objects, left to right."""
        matches = []
        for place in scene.objects():
            truths = [predicate.holds(scene, place) for predicate in self.predicates]
            if False in truths:
                continue
            if None in truths:
                raise AmbiguousError
            matches.append(place)
        if self.superlative is not None:
            matches = [_extreme(scene, matches, self.superlative)]
        return _ordered(scene, matches)

    def execute_unique(self, scene: SceneGraph) -> int:
        """The only object; ambiguous if there is none or several."""
        matches = self.execute(scene)
        if len(matches) != 1:
            raise AmbiguousError
        return matches[0]


@dataclass(frozen=True)
class PartQuery:
    """The part of this name of each object; objects without it give nothing."""

    part: str
    of: ObjectQuery

    def execute(self, scene: SceneGraph) -> tuple[int, ...]:
        """Indices of the parts, left to right."""
        parts: list[int] = []
        for whole in self.of.execute(scene):
            category = scene.nodes[whole].category
            if self.part in CATEGORIES[category].parts:
                parts += _part(scene, whole, self.part)
        return _ordered(scene, parts)


@dataclass(frozen=True)
class PartAffordanceQuery:
    """Parts that serve a purpose, of any objects."""

    use: str

    def execute(self, scene: SceneGraph) -> tuple[int, ...]:
        """Indices of the parts, left to right."""
        use = PART_AFFORDANCES[self.use]
        parts = []
        if any(category == scene.setting for category, _ in use.yes + use.unsure):
            raise AmbiguousError
        for whole in scene.objects():
            category = scene.nodes[whole].category
            if any(category == other for other, _ in use.unsure):
                raise AmbiguousError
            for owner, part in use.yes:
                if owner == category:
                    parts += _part(scene, whole, part)
        return _ordered(scene, parts)


@dataclass(frozen=True)
class PartNameQuery:
    """Every part of this name."""

    part: str

    def execute(self, scene: SceneGraph) -> tuple[int, ...]:
        """Indices of the parts, left to right."""
        parts: list[int] = []
        for whole in scene.objects():
            names = CATEGORIES[scene.nodes[whole].category].parts
            if any(
                name != self.part and name.rstrip("s") == self.part.rstrip("s")
                for name in names
            ):
                raise AmbiguousError
            parts += _part(scene, whole, self.part) if self.part in names else []
        return _ordered(scene, parts)


@dataclass(frozen=True)
class UnionQuery:
    """The targets of any of the forms."""

    forms: tuple[ObjectQuery, ...]

    def execute(self, scene: SceneGraph) -> tuple[int, ...]:
        """Indices of all targets, left to right."""
        return _ordered(
            scene,
            sorted({place for form in self.forms for place in form.execute(scene)}),
        )


LogicalForm = ObjectQuery | PartQuery | PartAffordanceQuery | PartNameQuery | UnionQuery


def color_shows(scene: SceneGraph, node: SceneNode) -> bool:
    """Whether enough of the parts that carry an object's color is visible to recognise it."""
    return node.color_area >= LEAST_PROOF * scene.object_map.size


def is_recognisable(scene: SceneGraph, node: SceneNode) -> bool:
    """Whether enough of a node, and of its object's color, is visible to ask for it and to name it."""
    enough = LEAST_PIXELS * scene.object_map.size
    share = LEAST_SHARE * node.amodal_area
    return node.visible_area >= max(enough, share) and color_shows(scene, node)


def _member(
    scene: SceneGraph, place: int, group: Supercategory | Affordance
) -> TruthValue:
    """Whether an object belongs; always ambiguous if the setting itself (a table) might be meant."""
    if scene.setting in group.yes + group.unsure:
        return None
    category = scene.nodes[place].category
    return (
        True if category in group.yes else None if category in group.unsure else False
    )


def _covers(scene: SceneGraph, front: int, back: int) -> TruthValue:
    first = scene.nodes[front]
    second = scene.nodes[back]
    return _enough(
        int(scene.occluded_pixels[first.order - 1, second.order - 1]),
        second.amodal_area,
    )


def _enough(pixels: int, whole: int) -> TruthValue:
    share = pixels / whole
    return True if share >= HIDES else None if share >= TOUCHES else False


def _steps(a: SceneNode, b: SceneNode) -> tuple[float, float]:
    """How far b is to the right of a, by the visible and by the amodal masks."""
    return b.visible_x - a.visible_x, b.amodal_x - a.amodal_x


def _part(scene: SceneGraph, whole: int, part: str) -> list[int]:
    """The index of an object's part; ambiguous if no pixel of it is in the image."""
    places = [place for place in scene.parts(whole) if scene.nodes[place].part == part]
    if not places:
        raise AmbiguousError
    return places


def _ordered(scene: SceneGraph, places: list[int]) -> tuple[int, ...]:
    return tuple(sorted(places, key=lambda place: (scene.nodes[place].amodal_x, place)))


def _extreme(scene: SceneGraph, places: list[int], superlative: Superlative) -> int:
    """The leftmost, ... of at least two, by a clear margin."""
    if len(places) < 2:
        raise AmbiguousError
    nodes = scene.nodes
    if superlative in ("leftmost", "rightmost"):
        sign = 1 if superlative == "leftmost" else -1
        by_amodal_x = sorted(places, key=lambda place: sign * nodes[place].amodal_x)
        first_place, second_place, *_ = by_amodal_x
        steps = _steps(nodes[first_place], nodes[second_place])
        # Both the visible and the amodal centers have to be clearly apart.
        if min(sign * step for step in steps) <= SAME_PLACE:
            raise AmbiguousError
        by_visible_x = min(places, key=lambda place: sign * nodes[place].visible_x)
        return _agreed(first_place, by_visible_x)
    order = sorted(
        places,
        key=lambda place: nodes[place].amodal_area,
        reverse=superlative == "largest",
    )
    first = nodes[order[0]]
    second = nodes[order[1]]
    ratio = (
        first.amodal_area / second.amodal_area
        if superlative == "largest"
        else second.amodal_area / first.amodal_area
    )
    if ratio < LARGER:
        raise AmbiguousError
    pick = max if superlative == "largest" else min
    return _agreed(order[0], pick(places, key=lambda place: nodes[place].visible_area))


def _agreed(by_amodal: int, by_visible: int) -> int:
    """The object that both kinds of masks choose."""
    if by_amodal != by_visible:
        raise AmbiguousError
    return by_amodal
