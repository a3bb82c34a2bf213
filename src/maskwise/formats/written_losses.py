"""What a format cannot say, counted while a dataset is written in it.

Formats that people train with have no place for much of what a dataset holds. Their writers report it: every count is
a number of records that were left out, merged or changed.
"""

from collections import Counter
from typing import Literal

from maskwise.formats.annotations import AnnotatedImage
from maskwise.masks import Mask, Masks
from maskwise.masks.contours import trace_polygons
from maskwise.schema import Region, Sample

Property = Literal[
    "amodal masks",
    "answers",
    "ignored pixels",
    "instances",
    "masks",
    "names",
    "other regions",
]
"""What some of the formats can say."""


class Losses:
    """Counts of what is not written. keeps: what the format can say."""

    def __init__(self, *keeps: Property) -> None:
        self.keeps = set(keeps)
        self.counts: Counter[str] = Counter()

    def note_image(self, exported: AnnotatedImage) -> None:
        """Count what this image and its regions have and the format lacks."""
        image = exported.image
        self._add(
            "licenses or attributions of images", image.license or image.attribution
        )
        asked = {region.id for sample in exported.samples for region in sample.targets}
        for region in exported.regions:
            self._add("depths of regions", region.order is not None)
            self._add("parts that name their whole", region.part_of is not None)
            self._add("crowd marks", region.crowd)
            self._add("overlaps of pieces", region.overlap is not None)
            if "other regions" not in self.keeps:
                self._add("regions that no question asks for", region.id not in asked)

    def note_sample(self, sample: Sample) -> None:
        """Count what this question has and the format lacks."""
        hidden = [
            region
            for region in sample.targets
            if region.amodal is not None and region.visible is not None
        ]
        if "amodal masks" not in self.keeps:
            self._add("second masks of targets (visible or amodal)", len(hidden))
            self._add("questions for both masks", sample.mask_type == "both")
        if "answers" not in self.keeps:
            self._add("answers in words", sample.answer is not None)
        if "ignored pixels" not in self.keeps:
            self._add("questions with ignored pixels", sample.ignore is not None)
        if "instances" not in self.keeps:
            self._add("questions whose targets are merged", len(sample.targets) > 1)
        if "masks" not in self.keeps:
            self._add("masks that become boxes", len(sample.targets))
        if "names" not in self.keeps:
            self._add("names of targets", any(item.name for item in sample.targets))
        self._add("questions with further annotators", bool(sample.other_targets))
        self._add("questions with earlier turns", bool(sample.turns))
        self._add("questions with tags", bool(set(sample.tags) - {"split"}))

    def note(self, what: str, count: int = 1) -> None:
        """Count something that only this writer knows."""
        self._add(what, count)

    def _add(self, what: str, count: object) -> None:
        number = count if isinstance(count, int) else int(bool(count))
        if number:
            self.counts[what] += int(number)


def requested_mask(sample: Sample, region: Region) -> Mask:
    """The mask that the question asks for, where it is known: amodal if it asks for that, otherwise visible."""
    first, second = region.visible, region.amodal
    if sample.mask_type == "amodal":
        first, second = second, first
    mask = first if first is not None else second
    assert mask is not None
    return mask


def requested_masks(sample: Sample) -> list[Mask]:
    """The masks of all targets that have pixels."""
    masks = [requested_mask(sample, region) for region in sample.targets]
    return [mask for mask in masks if mask.area]


def merge_masks(masks: list[Mask]) -> Mask:
    """The union of one mask or more."""
    merged = Masks.from_masks(masks).merge([0, len(masks)], [masks[0].size])
    return merged[0]


def has_holes(mask: Mask) -> bool:
    """Whether a component of the mask encloses background."""
    return any(len(rings) > 1 for rings in trace_polygons(mask.to_dense()))
