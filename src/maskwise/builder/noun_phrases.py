"""Noun phrases that single out one object among those of the same name or kind: "the car on the left"."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from maskwise.builder.facts import ImageFacts, RegionFacts
from maskwise.builder.knowledge import load_knowledge
from maskwise.language.word_forms import ORDINALS

MIN_GAP = 0.07
"""Two objects are told apart by place if their centers are this far apart, as a fraction of the image."""

MIN_RATIO = 1.5
"""One object is larger than another if it covers this many times as much of the image."""

MAX_ORDERED = 5
"""At most this many objects are counted from the left."""

GROUND = ("vehicle", "animal", "piece of furniture", "piece of greenery")
"""Kinds of things that stand on the ground."""


def name_objects(facts: ImageFacts) -> dict[str, str]:
    """A phrase with its name for every object that can be singled out so, by id."""
    groups: dict[str, list[RegionFacts]] = {}
    nameless = load_knowledge().vague | facts.crowds
    for one in facts.objects:
        if one.noun.known not in nameless:
            groups.setdefault(one.noun.text, []).append(one)
    return {
        id: phrase
        for noun, group in groups.items()
        for id, phrase in tell_apart(group, noun).items()
    }


def describe_objects(facts: ImageFacts) -> dict[str, str]:
    """A phrase without its name for every object that can be singled out by its kind: "the animal on the left"."""
    found: dict[str, str] = {}
    for noun, kind in load_knowledge().classes.items():
        group = [one for one in facts.objects if one.noun.known in kind.objects]
        if group and facts.settle(kind):
            found = tell_apart(group, noun) | found
    return found


@lru_cache(maxsize=1)
def _ground_things() -> frozenset[str]:
    classes = load_knowledge().classes
    return frozenset({"person", "streetlight"}).union(
        *(classes[name].objects for name in GROUND)
    )


def tell_apart(group: Sequence[RegionFacts], noun: str) -> dict[str, str]:
    """Phrases for those of a group of alike objects that can be told apart by place or size, by id."""
    if len(group) == 1:
        return {group[0].id: f"the {noun}"}
    for axis in (0, 1):
        ordered = sorted(group, key=lambda one: one.center[axis])
        apart = all(
            b.center[axis] - a.center[axis] >= MIN_GAP for a, b in pairwise(ordered)
        )
        if apart and len(group) <= (MAX_ORDERED, 2)[axis]:
            return {
                one.id: phrase
                for one, phrase in zip(ordered, _in_order(noun, ordered, axis))
            }
    return _extremes(group, noun)


def _in_order(noun: str, ordered: Sequence[RegionFacts], axis: int) -> list[str]:
    if axis == 1:
        return [f"the upper {noun}", f"the lower {noun}"]
    if len(ordered) == 2:
        if ordered[0].center[0] < 0.5 < ordered[1].center[0]:
            return [f"the {noun} on the left", f"the {noun} on the right"]
        return [f"the left {noun}", f"the right {noun}"]
    if len(ordered) == 3:
        return [
            f"the {noun} {place}"
            for place in ("on the left", "in the middle", "on the right")
        ]
    return [
        f"the {ordinal} {noun} from the left" for ordinal in ORDINALS[: len(ordered)]
    ]


def _extremes(group: Sequence[RegionFacts], noun: str) -> dict[str, str]:
    found = {}
    by_size = sorted(group, key=lambda one: -one.share)
    if by_size[0].share >= MIN_RATIO * by_size[1].share:
        found[by_size[0].id] = f"the largest {noun}"
    for side, one in outermost(group).items():
        found[one.id] = f"the {side}most {noun}"
    front = nearest(group)
    if front is not None:
        found[front.id] = f"the nearest {noun}"
    return found


def outermost(group: Sequence[RegionFacts]) -> dict[str, RegionFacts]:
    """The objects at the sides "left" and "right" of a group of two or more, where center and edge agree."""
    found = {}
    for side, sign in (("left", 1), ("right", -1)):
        first, second, *_ = sorted(group, key=lambda one: sign * one.center[0])
        edges = [sign * (one.box[0] + one.box[2] * (sign < 0)) for one in group]
        apart = abs(first.center[0] - second.center[0]) >= MIN_GAP
        if apart and sign * (first.box[0] + first.box[2] * (sign < 0)) == min(edges):
            found[side] = first
    return found


def nearest(group: Sequence[RegionFacts]) -> RegionFacts | None:
    """The object in front, if one reaches lowest in the image and is clearly the largest too.

    Only for things that stand on the ground: elsewhere the lower edge says nothing about depth.
    """
    if any(one.noun.known not in _ground_things() for one in group):
        return None
    by_bottom = sorted(group, key=lambda one: -one.bottom)
    first = by_bottom[0]
    second = by_bottom[1] if len(by_bottom) > 1 else None
    if second is None or first.bottom - second.bottom < MIN_GAP / 2:
        return None
    others = max(one.share for one in group if one is not first)
    return first if first.share >= MIN_RATIO * others else None
