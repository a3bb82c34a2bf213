"""What recipes work on and make: images with their regions, and drafts of samples that filters accept or reject."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import msgspec
from PIL import Image

from maskwise.errors import RecordError
from maskwise.masks import Masks, pair_areas
from maskwise.schema import Answer, ImageInfo, MaskType, Phrase, Region, Sample
from maskwise.store import Dataset

DraftKind = Literal["referring", "reasoning"]


@dataclass(frozen=True, eq=False)
class SourceImage:
    """An image with all its regions. load: opens the pixels, where they are known.

    Measurements are made once, when they are first needed.
    """

    info: ImageInfo
    regions: tuple[Region, ...]
    load: Callable[[], Image.Image] | None = None

    @classmethod
    def of(cls, dataset: Dataset, key: int | str) -> "SourceImage":
        """The image of a row or an id of a dataset."""
        return cls(
            dataset.image(key), dataset.regions_of(key), lambda: dataset.open_image(key)
        )

    @cached_property
    def by_id(self) -> dict[str, Region]:
        """The regions by their ids."""
        return {region.id: region for region in self.regions}

    @cached_property
    def parts(self) -> dict[str, tuple[Region, ...]]:
        """The direct parts of each region that has any, by the id of the whole."""
        parts_of_whole: dict[str, list[Region]] = {}
        for region in self.regions:
            if region.part_of is not None:
                parts_of_whole.setdefault(region.part_of, []).append(region)
        return {whole: tuple(parts) for whole, parts in parts_of_whole.items()}

    @cached_property
    def occlusion(self) -> dict[str, float]:
        """Share of the amodal mask that is hidden, 0 to 1, of each region with both masks; 0 if the mask is empty."""
        known = [
            region
            for region in self.regions
            if region.visible is not None and region.amodal is not None
        ]
        visible = Masks.from_masks(
            [region.visible for region in known if region.visible is not None]
        )
        amodal = Masks.from_masks(
            [region.amodal for region in known if region.amodal is not None]
        )
        areas = pair_areas(visible, amodal)
        shown = areas.intersection.tolist()
        whole = amodal.area().tolist()
        return {
            region.id: 1 - part / area if area else 0.0
            for region, part, area in zip(known, shown, whole)
        }


class DraftTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A phrase of the answer, and the ids of the regions it refers to (usually one)."""

    phrase: str
    regions: tuple[str, ...]


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A sample that a writer proposes. `targets` are in the order in which their phrases occur in the answer.

    `kind`: a referring question may name its targets, a reasoning question may not. Further properties are in `tags`.
    """

    image_id: str
    question: str
    answer: str
    targets: tuple[DraftTarget, ...]
    mask_type: MaskType
    kind: DraftKind
    tags: dict[str, str] = {}

    @property
    def region_ids(self) -> tuple[str, ...]:
        """The regions that the draft refers to, each once, in the order of the answer."""
        return tuple(
            dict.fromkeys(id for target in self.targets for id in target.regions)
        )


def draft_to_sample(draft: Draft, image: SourceImage, id: str) -> Sample:
    """The sample of a draft; RecordError if a phrase is not in the answer or a region not in the image."""
    spans = find_phrases(draft.answer, [target.phrase for target in draft.targets])
    place = {region: number for number, region in enumerate(draft.region_ids)}
    missing = [
        target.phrase for target, span in zip(draft.targets, spans) if span is None
    ]
    unknown = [region for region in place if region not in image.by_id]
    if missing or unknown:
        raise RecordError(
            f"draft about image {draft.image_id!r}: phrases {missing} are not in the answer {draft.answer!r}, in this "
            f"order, or regions {unknown} are not in the image"
        )
    phrases = tuple(
        Phrase(
            start=span[0],
            stop=span[1],
            regions=tuple(place[region] for region in target.regions),
        )
        for target, span in zip(draft.targets, spans)
        if span is not None
    )
    return Sample(
        id=id,
        image_id=draft.image_id,
        question=draft.question,
        mask_type=draft.mask_type,
        targets=tuple(image.by_id[region] for region in place),
        answer=Answer(text=draft.answer, phrases=phrases),
        tags={"question_type": draft.kind} | draft.tags,
    )


def find_phrases(answer: str, phrases: Sequence[str]) -> list[tuple[int, int] | None]:
    """Where phrases occur in an answer as whole words, each after the one before; None for one that does not."""
    spans: list[tuple[int, int] | None] = []
    position = 0
    for phrase in phrases:
        match = (
            re.compile(rf"(?<!\w){re.escape(phrase)}(?!\w)").search(answer, position)
            if phrase
            else None
        )
        spans.append(match and match.span())
        position = match.end() if match else position
    return spans
