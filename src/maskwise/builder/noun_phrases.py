"""Noun phrases that single out one object among those of the same name or kind: "the car on the left"."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from maskwise.builder.facts import ImageFacts, RegionFacts
from maskwise.builder.knowledge import load_knowledge
from maskwise.language.word_forms import ORDINALS

MIN_GAP = 0.07
"""Two objects are told apart by place if their centers are this far apart, as a fraction of the image."""

MIN_ORDINAL_GAP = 0.12
"""The same for objects that are counted from the left: nobody counts what nearly overlaps."""

MIN_RATIO = 1.5
"""One object is larger than another if it covers this many times as much of the image."""

MAX_ORDERED = 5
"""At most this many objects are counted from the left."""

GROUND = ("vehicle", "animal", "piece of furniture", "piece of greenery")
"""Kinds of things that stand on the ground."""


def name_objects(facts: ImageFacts) -> dict[str, str]:
    """A phrase with its name for every object that can be singled out so, by id."""
    groups: dict[str, list[RegionFacts]] = {}
    nameless = load_knowledge().table.vague | facts.crowds
    for region in facts.objects:
        if region.noun.known not in nameless:
            groups.setdefault(region.noun.text, []).append(region)
    phrases: dict[str, str] = {}
    for noun, group in groups.items():
        phrases |= tell_apart(group, noun)
    return phrases


def describe_objects(facts: ImageFacts) -> dict[str, str]:
    """A phrase without its name for every object that can be singled out by its kind: "the animal on the left"."""
    descriptions: dict[str, str] = {}
    for noun, kind in load_knowledge().kinds.items():
        group = [
            region for region in facts.objects if region.noun.known in kind.objects
        ]
        disputed = kind.maybe | kind.objects
        unsettled = facts.crowds & disputed or facts.by_category.keys() & kind.maybe
        if group and not unsettled:
            # An object of two kinds keeps the description of the first.
            descriptions = tell_apart(group, noun) | descriptions
    return descriptions


@lru_cache(maxsize=1)
def _ground_things() -> frozenset[str]:
    classes = load_knowledge().kinds
    return frozenset({"person", "streetlight"}).union(
        *(classes[name].objects for name in GROUND)
    )


def tell_apart(group: Sequence[RegionFacts], noun: str) -> dict[str, str]:
    """Phrases for those of a group of alike objects that can be told apart by place or size, by id."""
    if len(group) == 1:
        return {group[0].id: f"the {noun}"}
    # Across the image first; "the upper" and "the lower" exist for two objects only.
    for axis, most in ((0, MAX_ORDERED), (1, 2)):
        ordered = sorted(group, key=lambda region: region.center[axis])
        places = [region.center[axis] for region in ordered]
        gap = MIN_GAP if len(group) <= 3 else MIN_ORDINAL_GAP
        apart = all(after - before >= gap for before, after in pairwise(places))
        if apart and len(group) <= most:
            ids = [region.id for region in ordered]
            return dict(zip(ids, _in_order(noun, ordered, axis)))
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
    phrases = {}
    by_size = sorted(group, key=lambda region: -region.share)
    if by_size[0].share >= MIN_RATIO * by_size[1].share:
        phrases[by_size[0].id] = f"the largest {noun}"
    for side, region in outermost(group).items():
        phrases[region.id] = f"the {side}most {noun}"
    front = nearest(group)
    if front is not None:
        phrases[front.id] = f"the nearest {noun}"
    return phrases


def outermost(group: Sequence[RegionFacts]) -> dict[str, RegionFacts]:
    """The objects at the sides "left" and "right" of a group of two or more, where center and edge agree."""
    at_side = {}
    by_center = sorted(group, key=lambda region: region.center[0])
    leftmost = by_center[0]
    if by_center[1].center[0] - leftmost.center[0] >= MIN_GAP and all(
        leftmost.box[0] <= region.box[0] for region in group
    ):
        at_side["left"] = leftmost
    # Of objects with equal centers the first of the group counts, on both sides.
    from_right = sorted(group, key=lambda region: -region.center[0])
    rightmost = from_right[0]
    if rightmost.center[0] - from_right[1].center[0] >= MIN_GAP and all(
        rightmost.right_edge >= region.right_edge for region in group
    ):
        at_side["right"] = rightmost
    return at_side


def nearest(group: Sequence[RegionFacts]) -> RegionFacts | None:
    """The object in front, if one reaches lowest in the image and is clearly the largest too.

    Only for things that stand on the ground: elsewhere the lower edge says nothing about depth.
    """
    if any(region.noun.known not in _ground_things() for region in group):
        return None
    if len(group) < 2:
        return None
    first, second, *_ = sorted(group, key=lambda region: -region.bottom)
    if first.bottom - second.bottom < MIN_GAP:
        return None
    largest_other = max(region.share for region in group if region is not first)
    return first if first.share >= MIN_RATIO * largest_other else None
