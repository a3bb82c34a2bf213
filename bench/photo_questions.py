"""Questions about annotated photographs that the annotations settle: categories, attributes, relations, absent things.

They measure the chooser `match`, so that they name what they ask for. A question is asked only if exactly the objects
that it means are annotated: no crowd and no object of its category is left out.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from maskwise.models.photo.vocabulary import COCO_CATEGORIES
from maskwise.schema import ImageInfo, Region, Sample
from maskwise.store import Dataset, DatasetWriter

WORDINGS = (
    "Segment {0}.",
    "Please mark {0}.",
    "Which pixels show {0}?",
    "Mark only the visible part of {0}.",
)
PLURAL = {
    "person": "people",
    "knife": "knives",
    "sheep": "sheep",
    "mouse": "mice",
    "skis": "skis",
    "scissors": "scissors",
}

MIN_AREA = 0.005
"""Smallest target, as a share of its image."""

MIN_GAP = 0.07
"""Two objects are told apart by place if their centers are this far apart, as a share of the image."""

MIN_RATIO = 1.5
"""One object is the largest if it is this many times as large as the next."""

MAX_OBJECTS = 6
PER_FAMILY = 3
ABSENT = 3
"""Questions per image: at most of each family, and about absent things."""


class _Object(NamedTuple):
    region: Region
    x: float
    y: float
    area: float


class _Question(NamedTuple):
    noun_phrase: str
    targets: tuple[Region, ...]
    family: str


def write_questions(source: Dataset, out: Path, seed: int = 0) -> Dataset:
    """A dataset of questions about all images of a COCO dataset; images stay where they are."""
    with DatasetWriter(
        out, name="photo-questions", image_root=source.image_root, overwrite=True
    ) as writer:
        for row in range(len(source.images)):
            info = source.image(row)
            regions = source.regions_of(row)
            writer.add_image(info, regions)
            for number, question in enumerate(
                _questions(info, regions, random.Random(f"{seed} {info.id}"))
            ):
                writer.add_sample(
                    _to_sample(
                        info,
                        number,
                        question,
                        random.Random(f"{seed} {info.id} {number}"),
                    )
                )
    return Dataset.open(out)


def _to_sample(
    info: ImageInfo, number: int, question: _Question, choice: random.Random
) -> Sample:
    return Sample(
        id=f"{info.id}-{number}",
        image_id=info.id,
        question=choice.choice(WORDINGS).format(question.noun_phrase),
        targets=question.targets,
        tags={"family": question.family},
    )


def _questions(
    info: ImageInfo, regions: tuple[Region, ...], choice: random.Random
) -> Iterator[_Question]:
    groups = _groups(info, regions)
    families = [
        list(_categories(groups)),
        list(_attributes(groups)),
        list(_relations(groups)),
    ]
    for found in families:
        yield from choice.sample(found, min(PER_FAMILY, len(found)))
    present = {region.name for region in regions}
    for name in choice.sample(
        [name for name in COCO_CATEGORIES if name not in present], ABSENT
    ):
        yield _Question(f"the {name}", (), "absent")


def _groups(info: ImageInfo, regions: tuple[Region, ...]) -> dict[str, list[_Object]]:
    """The objects of each category, for categories without a crowd, without small objects and with not too many."""
    groups: dict[str, list[_Object]] = {}
    unusable = {region.name for region in regions if region.crowd}
    for region in regions:
        assert region.visible is not None, "COCO annotates visible masks"
        left, top, width, height = region.visible.box
        area = region.visible.area / (info.width * info.height)
        center = (left + width / 2) / info.width, (top + height / 2) / info.height
        groups.setdefault(region.name, []).append(_Object(region, *center, area))
        if area < MIN_AREA:
            unusable.add(region.name)
    return {
        name: found
        for name, found in groups.items()
        if name not in unusable and len(found) <= MAX_OBJECTS
    }


def _categories(groups: dict[str, list[_Object]]) -> Iterator[_Question]:
    for name, found in groups.items():
        phrase = f"the {name}" if len(found) == 1 else f"all the {_plural(name)}"
        yield _Question(phrase, tuple(one.region for one in found), "category")


def _plural(name: str) -> str:
    return PLURAL.get(name) or name + (
        "es" if name.endswith(("s", "ch", "sh", "x")) else "s"
    )


def _attributes(groups: dict[str, list[_Object]]) -> Iterator[_Question]:
    for name, found in groups.items():
        if len(found) < 2:
            continue
        across = sorted(found, key=lambda one: one.x)
        if across[1].x - across[0].x >= MIN_GAP:
            yield _Question(
                f"the {name} farthest to the left", (across[0].region,), "attribute"
            )
        if across[-1].x - across[-2].x >= MIN_GAP:
            yield _Question(f"the rightmost {name}", (across[-1].region,), "attribute")
        sizes = sorted(found, key=lambda one: -one.area)
        if sizes[0].area >= MIN_RATIO * sizes[1].area:
            yield _Question(f"the largest {name}", (sizes[0].region,), "attribute")
        if sizes[-2].area >= MIN_RATIO * sizes[-1].area:
            yield _Question(f"the smallest {name}", (sizes[-1].region,), "attribute")


def _relations(groups: dict[str, list[_Object]]) -> Iterator[_Question]:
    """Objects of one category beside the only object of another; those that are beside it or not clearly elsewhere."""
    for name, found in groups.items():
        for other, anchors in groups.items():
            if other == name or len(anchors) != 1:
                continue
            anchor = anchors[0]
            for words, sign in (("to the left of", -1), ("to the right of", 1)):
                distances = [sign * (one.x - anchor.x) for one in found]
                there = [
                    one.region
                    for one, distance in zip(found, distances)
                    if distance >= MIN_GAP
                ]
                if len(there) == 1 and all(
                    abs(distance) >= MIN_GAP for distance in distances
                ):
                    yield _Question(
                        f"the {name} {words} the {other}", tuple(there), "relation"
                    )
