"""What the annotations of an image say: names, sizes, places, who hides whom, what stands on what."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from maskwise.builder.draft import SourceImage
from maskwise.builder.knowledge import Noun, load_knowledge, to_noun
from maskwise.masks import Mask, Masks
from maskwise.masks.measure import pairwise_intersection
from maskwise.schema import Region

MIN_SHARE = 0.0015
"""Smallest visible share of the image for an object that is asked about: 25 x 25 pixels
of a 640 x 640 image. With 0.003 half of COCO's images with many objects allowed no
question about several of them."""

MIN_PART_SHARE = 0.0006
"""The same for a part; parts are smaller than objects and still easy to point at."""

MIN_DOUBTFUL_SHARE = 0.04
"""From this share of the image on, the label of an object of a doubtful category (knowledge.yaml) is believed: on 111
COCO photos most wrong labels that spoiled a question were on smaller objects of these categories."""

MIN_OVERLOOKED_SHARE = 0.008
"""The same for categories of which annotators often leave small ones out (`overlooked` in knowledge.yaml): a question
that is meant for one of them has further answers that nobody marked."""

MIN_DUPLICATE_OVERLAP = 0.7
"""Two objects of one kind with different names whose boxes have this IoU may be one object with two labels: a laptop
that is a "tv" too."""

MIN_NESTED = 0.9
MAX_NESTED_RATIO = 0.25
"""An object with this share of its box inside that of a much larger one of its name is a member of it, and the larger
one is a bunch or a pile."""

MAX_SHARE = 0.9
"""An object that fills more of the image than this is its background, whatever its name."""

MAX_OCCLUSION = 0.85
"""An object that is hidden more than this cannot be recognised."""

MIN_OCCLUSION = 0.1
"""An object counts as occluded from this rate on."""

MIN_COVER = 0.1
"""An occluder hides at least this share of what is hidden of an object."""

MAIN_COVER = 0.75
"""An occluder that hides at least this share of what is hidden is the only one worth mentioning."""

FOOT = 0.15
"""The lowest part of an object, as a share of its height, with which it stands on something."""

MIN_SUPPORT = 0.6
"""Something stands on a surface if this share of its foot lies in front of the surface's amodal mask."""


@dataclass(frozen=True, eq=False)  # an image measures each region once
class RegionFacts:
    """One region: its number as a mark (from 1), noun, visible box in fractions of the image, and measurements.

    share: visible area over that of the image; occlusion: hidden share, None where it is not known.
    """

    number: int
    id: str
    noun: Noun
    box: tuple[float, float, float, float]
    share: float
    occlusion: float | None
    part_of: str | None
    has_amodal: bool

    @property
    def center(self) -> tuple[float, float]:
        """The center of the box."""
        x, y, width, height = self.box
        return x + width / 2, y + height / 2

    @property
    def bottom(self) -> float:
        """The lower edge of the box."""
        return self.box[1] + self.box[3]

    @property
    def right_edge(self) -> float:
        """The right edge of the box."""
        return self.box[0] + self.box[2]

    @property
    def is_occluded(self) -> bool:
        """Whether a part that matters is hidden."""
        return self.occlusion is not None and self.occlusion >= MIN_OCCLUSION

    @property
    def is_doubtful(self) -> bool:
        """Whether its label may well be wrong."""
        table = load_knowledge().table
        if self.noun.known in table.doubtful:
            return self.share < MIN_DOUBTFUL_SHARE
        return self.noun.known in table.overlooked and self.share < MIN_OVERLOOKED_SHARE

    @property
    def is_suitable(self) -> bool:
        """Whether it is large and visible enough to be asked about, and not the whole image."""
        smallest = MIN_SHARE if self.part_of is None else MIN_PART_SHARE
        is_visible = (self.occlusion or 0.0) <= MAX_OCCLUSION
        return smallest <= self.share <= MAX_SHARE and is_visible


class ImageFacts:
    """All regions of an image, measured, crowds left out: objects in order, then parts."""

    def __init__(self, image: SourceImage) -> None:
        regions = [region for region in image.regions if not region.crowd]
        objects = [region for region in regions if region.part_of is None]
        parts = [region for region in regions if region.part_of is not None]
        measured = tuple(_measure(image, [*objects, *parts]))
        self.image = image
        self.objects = measured[: len(objects)]
        self.parts = measured[len(objects) :]

    @cached_property
    def regions(self) -> tuple[RegionFacts, ...]:
        """Objects and parts; the region with number n is regions[n - 1]."""
        return (*self.objects, *self.parts)

    @cached_property
    def parts_of(self) -> dict[str, tuple[RegionFacts, ...]]:
        """The direct parts of each object that has any."""
        parts_of_whole: dict[str, list[RegionFacts]] = {}
        for part in self.parts:
            assert part.part_of is not None, "a part has a whole"
            parts_of_whole.setdefault(part.part_of, []).append(part)
        return {whole: tuple(parts) for whole, parts in parts_of_whole.items()}

    @cached_property
    def by_category(self) -> dict[str, frozenset[int]]:
        """The numbers of the objects of each category that is known."""
        numbers: dict[str, set[int]] = {}
        for region in self.objects:
            if region.noun.known is not None:
                numbers.setdefault(region.noun.known, set()).add(region.number)
        return {name: frozenset(members) for name, members in numbers.items()}

    @cached_property
    def doubtful(self) -> frozenset[int]:
        """The numbers of the objects whose label may well be wrong, or that may be several things."""
        knowledge = load_knowledge()
        numbers = {region.number for region in self.objects if region.is_doubtful}
        by_kind: dict[str, list[RegionFacts]] = {}
        for region in self.objects:
            kind = knowledge.kind_of.get(region.noun.known or "")
            if kind is not None:
                by_kind.setdefault(kind, []).append(region)
        for alike in by_kind.values():
            for first, second in itertools.combinations(alike, 2):
                small, large = sorted((first, second), key=_box_area)
                shared = _shared_area(small, large)
                union = _box_area(small) + _box_area(large) - shared
                if first.noun.known != second.noun.known:
                    if shared >= MIN_DUPLICATE_OVERLAP * union:
                        numbers |= {first.number, second.number}
                elif first.noun.known in knowledge.table.bunched:
                    is_member = shared >= MIN_NESTED * _box_area(small)
                    if is_member and small.share <= MAX_NESTED_RATIO * large.share:
                        numbers.add(large.number)
        return frozenset(numbers)

    @cached_property
    def crowds(self) -> frozenset[str]:
        """The names of regions that show an uncounted crowd of objects."""
        names = (
            to_noun(region.name).known for region in self.image.regions if region.crowd
        )
        return frozenset(name for name in names if name is not None)

    @cached_property
    def occluders(self) -> dict[str, tuple[tuple[RegionFacts, float], ...]]:
        """What hides each occluded object, with its share of what is hidden, the largest share first.

        Some objects are hidden by nothing that is annotated.
        """
        visible = self._masks["visible"]
        amodal = self._masks["amodal"]
        # covered[a, b]: pixels of object a in front of the hidden part of object b.
        in_front = pairwise_intersection(visible, amodal)
        covered = in_front - pairwise_intersection(visible, visible)
        hidden = amodal.area() - visible.area()
        occluders = {}
        for item, region in enumerate(self.objects):
            if region.is_occluded and hidden[item] > 0:
                share = covered[:, item] / hidden[item]
                largest_first = np.argsort(-share).tolist()
                front = [other for other in largest_first if share[other] >= MIN_COVER]
                occluders[region.id] = tuple(
                    (self.objects[other], float(share[other]))
                    for other in front
                    if other != item
                )
        return occluders

    @cached_property
    def hidden_by(self) -> dict[str, tuple[RegionFacts, ...]]:
        """The occluders of each object that has any."""
        return {
            id: tuple(region for region, _ in front)
            for id, front in self.occluders.items()
            if front
        }

    def main_occluder(self, id: str) -> RegionFacts | None:
        """The one object that hides nearly all that is hidden of an object."""
        front = self.occluders.get(id, ())
        return front[0][0] if front and front[0][1] >= MAIN_COVER else None

    @cached_property
    def standing_on(self) -> dict[str, tuple[RegionFacts, ...]]:
        """What stands or lies on each surface: smaller objects whose foot is in front of its amodal mask."""
        names = load_knowledge().table.surfaces
        surfaces = [
            item
            for item, region in enumerate(self.objects)
            if region.noun.known in names
        ]
        if not surfaces:
            return {}
        feet = self._feet()
        share = (
            pairwise_intersection(feet, self._masks["amodal"][surfaces])
            / np.maximum(feet.area(), 1)[:, None]
        )
        things_on_surface = {}
        for column, item in enumerate(surfaces):
            upon = tuple(
                thing
                for other, thing in enumerate(self.objects)
                if other != item
                and share[other, column] >= MIN_SUPPORT
                and thing.share < self.objects[item].share
            )
            things_on_surface[self.objects[item].id] = upon
        return {surface: upon for surface, upon in things_on_surface.items() if upon}

    def _feet(self) -> Masks:
        """The lowest part of each object's visible mask."""
        masks = self._masks["visible"]
        boxes = masks.box().astype(np.float64)
        height = np.ceil(boxes[:, 3] * FOOT)
        boxes[:, 1] += boxes[:, 3] - height
        boxes[:, 3] = height
        return masks & Masks.from_boxes(boxes, masks.size)

    @cached_property
    def _masks(self) -> dict[str, Masks]:
        regions = [self.image.by_id[region.id] for region in self.objects]
        return {
            "visible": Masks.from_masks([_mask(region) for region in regions]),
            "amodal": Masks.from_masks(
                [
                    _mask(region) if region.amodal is None else region.amodal
                    for region in regions
                ]
            ),
        }


@lru_cache(maxsize=8)
def measure_image(image: SourceImage) -> ImageFacts:
    """The facts of an image; those of the last few images are kept, since writers and filters need them."""
    return ImageFacts(image)


def _box_area(region: RegionFacts) -> float:
    return region.box[2] * region.box[3]


def _shared_area(first: RegionFacts, second: RegionFacts) -> float:
    """The area in which two boxes overlap."""
    x, y, _, _ = first.box
    other_x, other_y, _, _ = second.box
    width = min(first.right_edge, second.right_edge) - max(x, other_x)
    height = min(first.bottom, second.bottom) - max(y, other_y)
    return max(0.0, width) * max(0.0, height)


def _measure(image: SourceImage, regions: Sequence[Region]) -> Iterable[RegionFacts]:
    if not regions:
        return
    height = image.info.height
    width = image.info.width
    areas, boxes = Masks.from_masks([_mask(region) for region in regions]).measure()
    fractions = (boxes / np.array([width, height, width, height])).tolist()
    shares = (areas / (height * width)).tolist()
    for number, (region, box, share) in enumerate(zip(regions, fractions, shares), 1):
        yield RegionFacts(
            number=number,
            id=region.id,
            noun=to_noun(region.name),
            box=tuple(box),
            share=share,
            occlusion=image.occlusion.get(region.id),
            part_of=region.part_of,
            has_amodal=region.amodal is not None,
        )


def _mask(region: Region) -> Mask:
    """The visible mask; the amodal one where only that is known."""
    mask = region.visible if region.visible is not None else region.amodal
    assert mask is not None, "a region has a mask"
    return mask
