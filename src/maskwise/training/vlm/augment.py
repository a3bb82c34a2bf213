"""Augmentation of an image together with the masks and texts of its questions.

Samples stay whole records: a question keeps its answer and its targets, and every mask gets the geometry of its image.
An augmentation that would make a text wrong is left out for that image.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Annotated

import msgspec
import numpy as np
from msgspec.structs import replace as replaced
from PIL import Image, ImageEnhance

from maskwise.masks import Mask, Masks
from maskwise.models.vlm.batch import ImageQuestions
from maskwise.schema import Region, Sample
from maskwise.training.vlm.mirrored_text import (
    can_mirror,
    can_mirror_answer,
    mirror_answer,
    mirror_text,
)

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Box = tuple[int, int, int, int]
"""x, y, width, height."""

_PLACES = re.compile(
    r"\b(?:left|right|top|bottom|upper|lower|cent(?:er|re)|middle|corner|edge|border|half|quarter|side|whole image)"
    r"(?:most|-hand|s)?\b",
    re.IGNORECASE,
)
"""Words that may name a place in the image, which a crop would move."""


class Augmentation(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Random changes of an image. All are off by default.

    `flip`: probability of mirroring; `left` and `right` change places in all texts. `crop`: probability of cutting the
    image to a random window of at least `crop_area` of it that contains all targets. `longest_side`: lowest and highest
    longest side to resize to. `brightness`, `contrast`, `saturation`: largest relative change.
    """

    flip: Share = 0.0
    crop: Share = 0.0
    crop_area: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.5
    longest_side: tuple[int, int] | None = None
    brightness: Share = 0.0
    contrast: Share = 0.0
    saturation: Share = 0.0

    def __post_init__(self) -> None:
        if (
            self.longest_side is not None
            and not 16 <= self.longest_side[0] <= self.longest_side[1] <= 8192
        ):
            raise ValueError(
                f"longest_side is {list(self.longest_side)}; expected lowest and highest, 16 to 8192"
            )


def augment(
    item: ImageQuestions, settings: Augmentation, random: np.random.Generator
) -> ImageQuestions:
    """The item with random changes. The same draws are made for every item, so that one does not affect the next."""
    flip, crop, area, x, y, side = random.random(6)
    jitter = random.uniform(-1, 1, 3)
    if item.image is None:
        return item
    if flip < settings.flip and can_flip(item):
        item = mirror(item)
    if crop < settings.crop and (
        window := _find_window(item, settings.crop_area, (area, x, y))
    ):
        item = cut(item, window)
    if settings.longest_side is not None:
        low, high = settings.longest_side
        item = resize(item, round(low + side * (high - low)))
    return _jitter(item, settings, jitter)


# -- flip


def can_flip(item: ImageQuestions) -> bool:
    """False if a text of the item would be wrong for the mirrored image."""
    return all(
        can_mirror(sample.question) and can_mirror_answer(sample.answer)
        for sample in item.samples
    ) and all(can_mirror(region.name) for region in _regions(item))


def mirror(item: ImageQuestions) -> ImageQuestions:
    """Image and masks mirrored left-right; `left` and `right` change places in questions, answers and names."""
    assert item.image is not None
    mirrored = _change_masks(item, lambda masks: masks.flip())
    regions = {
        region.id: replaced(region, name=mirror_text(region.name))
        for region in _regions(mirrored)
    }
    samples = tuple(
        replaced(
            sample,
            question=mirror_text(sample.question),
            answer=None if sample.answer is None else mirror_answer(sample.answer),
            targets=tuple(regions[region.id] for region in sample.targets),
        )
        for sample in mirrored.samples
    )
    return ImageQuestions(
        item.image.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
        samples,
        tuple(regions[region.id] for region in mirrored.regions),
    )


# -- crop and resize


def cut(item: ImageQuestions, window: Box) -> ImageQuestions:
    """Image and masks cut to a window. Regions that are no targets and have no pixel in it are left out."""
    assert item.image is not None
    x, y, width, height = window
    cropped = _change_masks(item, lambda masks: masks.crop(window))
    kept = tuple(
        region
        for region in cropped.regions
        if any(mask.area for mask in _masks_of(region))
    )
    return replace(
        cropped, image=item.image.crop((x, y, x + width, y + height)), regions=kept
    )


def resize(item: ImageQuestions, longest: int) -> ImageQuestions:
    """Image and masks resized so that the longest side has this length."""
    assert item.image is not None
    scale = longest / max(item.image.size)
    width, height = (max(1, round(side * scale)) for side in item.image.size)
    resized = _change_masks(item, lambda masks: masks.resize((height, width)))
    return replace(
        resized, image=item.image.resize((width, height), Image.Resampling.BICUBIC)
    )


def _find_window(
    item: ImageQuestions, least_area: float, draws: tuple[float, float, float]
) -> Box | None:
    """A window of the image that contains all targets, or None if a text names a place in the image."""
    assert item.image is not None
    texts = [sample.question for sample in item.samples]
    texts += [
        sample.answer.text for sample in item.samples if sample.answer is not None
    ]
    if any(_PLACES.search(text) for text in texts):
        return None
    side = (least_area + draws[0] * (1 - least_area)) ** 0.5
    boxes = [
        mask.box
        for sample in item.samples
        for region in sample.targets
        for mask in _masks_of(region)
    ]
    window = []
    for axis, length in enumerate(item.image.size):
        low = min((box[axis] for box in boxes if box[2]), default=length)
        high = max((box[axis] + box[axis + 2] for box in boxes if box[2]), default=0)
        size = max(round(side * length), high - low, 1)
        first = round(draws[1 + axis] * (length - size))
        if low < high:
            first = min(max(first, high - size), low)
        window.append((first, size))
    return window[0][0], window[1][0], window[0][1], window[1][1]


# -- masks of an item


def _change_masks(
    item: ImageQuestions, change: Callable[[Masks], Masks]
) -> ImageQuestions:
    """The item with every mask changed: those of its regions, of its targets and of ignored pixels."""
    masks = {
        mask
        for region in _regions(item)
        for mask in (*_masks_of(region), region.overlap)
        if mask
    }
    known = [
        *masks,
        *(sample.ignore for sample in item.samples if sample.ignore is not None),
    ]
    new = dict(zip(known, change(Masks.from_masks(known))))

    def changed(region: Region) -> Region:
        visible, amodal, overlap = (
            None if mask is None else new[mask]
            for mask in (region.visible, region.amodal, region.overlap)
        )
        return replaced(region, visible=visible, amodal=amodal, overlap=overlap)

    samples = tuple(
        replaced(
            sample,
            targets=tuple(changed(region) for region in sample.targets),
            ignore=None if sample.ignore is None else new[sample.ignore],
            # Training uses the first annotator only.
            other_targets=(),
        )
        for sample in item.samples
    )
    return replace(
        item, samples=samples, regions=tuple(changed(region) for region in item.regions)
    )


def _regions(item: ImageQuestions) -> Iterable[Region]:
    """All regions of an item: targets of its questions, and those of dense supervision."""
    return (
        *item.regions,
        *(region for sample in item.samples for region in sample.targets),
    )


def _masks_of(region: Region) -> list[Mask]:
    return [mask for mask in (region.visible, region.amodal) if mask is not None]


# -- colors


def _jitter(
    item: ImageQuestions,
    settings: Augmentation,
    draws: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]",
) -> ImageQuestions:
    image = item.image
    assert image is not None
    changes = (
        (ImageEnhance.Brightness, settings.brightness),
        (ImageEnhance.Contrast, settings.contrast),
        (ImageEnhance.Color, settings.saturation),
    )
    for (enhance, strength), draw in zip(changes, draws.tolist()):
        if strength:
            image = enhance(image).enhance(1 + strength * draw)
    return replace(item, image=image)


def choose_questions(
    samples: tuple[Sample, ...], count: int, random: np.random.Generator
) -> tuple[Sample, ...]:
    """At most `count` samples of an image, in random order. A sample holds its question, answer and targets, so they
    cannot be paired with those of another one (the training loader of MMR permutes questions and not answers).
    """
    chosen = random.permutation(len(samples))[:count].tolist()
    return tuple(samples[index] for index in chosen)
