"""Generate referring expressions: noun phrases for the objects of a scene, each with its logical form."""

from collections.abc import Callable
from functools import partial

from maskwise.world.catalogue import CATEGORIES, MATERIALS
from maskwise.world.logical_forms import (
    AmbiguousError,
    Beside,
    HasCategory,
    HasColor,
    HasMaterial,
    ObjectQuery,
    OccludedBy,
    Occludes,
    Predicate,
    Superlative,
    is_recognisable,
)
from maskwise.world.random_streams import RandomStream
from maskwise.world.scene_graph import SceneGraph, SceneNode

Expression = tuple[ObjectQuery, str]

SUPERLATIVES: tuple[tuple[Superlative, tuple[str, ...]], ...] = (
    (
        "leftmost",
        (
            "the leftmost {noun}",
            "the {noun} furthest to the left",
            "the {noun} on the far left",
        ),
    ),
    (
        "rightmost",
        (
            "the rightmost {noun}",
            "the {noun} furthest to the right",
            "the {noun} on the far right",
        ),
    ),
    ("largest", ("the largest {noun}", "the biggest {noun}")),
    ("smallest", ("the smallest {noun}", "the tiniest {noun}")),
)

Relation = tuple[Callable[[ObjectQuery], Predicate], tuple[str, ...]]
Relative = tuple[Relation, int]

LEFT: Relation = (
    partial(Beside, "left"),
    ("to the left of", "left of", "on the left side of"),
)
RIGHT: Relation = (
    partial(Beside, "right"),
    ("to the right of", "right of", "on the right side of"),
)
BEHIND: Relation = (
    OccludedBy,
    ("behind", "partly hidden behind", "half covered by", "tucked behind"),
)
BEFORE: Relation = (
    Occludes,
    (
        "in front of",
        "standing in front of",
        "partly covering",
        "that blocks the view of",
    ),
)
RELATIONS = (LEFT, RIGHT, BEHIND, BEFORE)


class ReferringExpressions:
    """Generates expressions for one scene. `describe` and `relate` may raise `AmbiguousError`."""

    def __init__(self, scene: SceneGraph, rng: RandomStream) -> None:
        self.scene = scene
        self.rng = rng
        self.objects = scene.objects()
        self.categories = {scene.nodes[place].category for place in self.objects}

    def is_recognisable(self, node: SceneNode) -> bool:
        """Whether enough of a node, and of its object's color, is visible to ask for it and to name it."""
        return is_recognisable(self.scene, node)

    def sample_object(self) -> int | None:
        """A recognisable object, occluded ones with twice the weight; None if there is none."""
        shown = [
            place
            for place in self.objects
            if self.is_recognisable(self.scene.nodes[place])
        ]
        weights = [
            2.0 if self.scene.nodes[place].occlusion_rate > 0.05 else 1.0
            for place in shown
        ]
        return self.rng.weighted_choice(shown, weights) if shown else None

    def sample_any_object(self) -> SceneNode:
        """Any object, occluded or not."""
        return self.scene.nodes[self.rng.choice(self.objects)]

    def shortest(self, place: int | None) -> Expression | None:
        """The shortest expression that refers to this object only: by category, or by color too."""
        if place is None:
            return None
        node = self.scene.nodes[place]
        for color in (None, node.color):
            predicates = (
                (HasCategory(node.category),)
                if color is None
                else (HasCategory(node.category), HasColor(color))
            )
            if self._alone(ObjectQuery(predicates), place):
                return ObjectQuery(
                    predicates
                ), f"the {noun_phrase(node.category, color)}"
        return None

    def describe(self, place: int | None) -> Expression | None:
        """A varied expression for an object, which may fit other objects too."""
        if place is None:
            return None
        node = self.scene.nodes[place]
        rng = self.rng
        predicates: list[Predicate] = [HasCategory(node.category)]
        color = node.color if rng.bernoulli(0.55) else None
        material = (
            node.material
            if MATERIALS[node.material].told and not color and rng.bernoulli(0.5)
            else None
        )
        predicates += [HasColor(color)] if color else []
        predicates += [HasMaterial(material)] if material else []
        noun = rng.choice(
            (node.category, node.category, *CATEGORIES[node.category].also)
        )
        phrase = noun_phrase(
            node.category, color, noun=f"{material} {noun}" if material else noun
        )
        manner = rng.integer(5)
        if manner <= 1:
            return ObjectQuery(tuple(predicates)), f"the {phrase}"
        if manner == 2:
            return self._superlative(predicates, phrase)
        return self.relate(
            predicates,
            phrase,
            self._neighbour(place) if manner == 3 else self.sample_relation(place),
        )

    def relate(
        self, predicates: list[Predicate], phrase: str, relative: Relative | None
    ) -> Expression | None:
        """An expression with a relation to another object, whether or not the relation holds."""
        named = self.shortest(relative[1]) if relative else None
        if relative is None or named is None:
            return None
        relation, words = relative[0]
        return ObjectQuery(
            (*predicates, relation(named[0]))
        ), f"the {phrase} {self.rng.choice(words)} {named[1]}"

    def sample_relation(self, place: int) -> Relative | None:
        """A random other object and a random relation to it."""
        others = [
            other
            for other in self.objects
            if other != place and self.is_recognisable(self.scene.nodes[other])
        ]
        return (self.rng.choice(RELATIONS), self.rng.choice(others)) if others else None

    def _neighbour(self, place: int) -> Relative | None:
        """An object that hides this one or is hidden by it."""
        order = self.scene.nodes[place].order - 1
        occluded_pixels = self.scene.occluded_pixels
        relatives: list[Relative] = []
        for other in self.objects:
            there = self.scene.nodes[other].order - 1
            relatives += [(BEHIND, other)] if occluded_pixels[there, order] else []
            relatives += [(BEFORE, other)] if occluded_pixels[order, there] else []
        return self.rng.choice(relatives) if relatives else None

    def _alone(self, form: ObjectQuery, place: int) -> bool:
        """Whether a form refers to this object and clearly to no other."""
        try:
            return form.execute(self.scene) == (place,)
        except AmbiguousError:
            return False

    def _superlative(self, predicates: list[Predicate], phrase: str) -> Expression:
        superlative, words = self.rng.choice(SUPERLATIVES)
        if len(ObjectQuery(tuple(predicates)).execute(self.scene)) < 2:
            raise AmbiguousError
        return ObjectQuery(tuple(predicates), superlative), self.rng.choice(
            words
        ).format(noun=phrase)


def noun_phrase(
    category: str, color: str | None = None, *, noun: str | None = None
) -> str:
    """The noun of a category (or a synonym) with its color, without article."""
    noun = noun or category
    return (
        CATEGORIES[category].colored.format(color=color, noun=noun) if color else noun
    )
