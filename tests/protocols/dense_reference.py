"""The published rules once more, slowly and plainly: boolean arrays, one question after another.

Written from the descriptions of the published code alone, and shares nothing with `maskwise.protocols.question_rule`.
T is the union of the targets, G the ignored pixels, P the prediction.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Plane = NDArray[np.bool_]
Answer = Literal["masks", "failed", "missing"]


@dataclass(frozen=True)
class Question:
    """masks: as predicted, in order, possibly of another size than the image."""

    image: str
    targets: list[Plane]
    ignore: Plane | None
    answer: Answer
    masks: list[Plane]
    size: tuple[int, int]

    @property
    def wrong_size(self) -> bool:
        return any(mask.shape != self.size for mask in self.masks)

    @property
    def target(self) -> Plane:
        return join(self.targets, self.size)

    @property
    def ignored(self) -> Plane:
        nothing = np.zeros(self.size, np.bool_)
        return nothing if self.ignore is None else self.ignore

    @property
    def drawn(self) -> Plane:
        """All predicted masks; nothing for an answer that cannot be used."""
        return join([] if self.wrong_size else self.masks, self.size)


@dataclass
class Sums:
    """What a script adds up: values of questions, and pixels."""

    values: list[float]
    intersection: int = 0
    union: int = 0

    def add(self, value: float, inter: int, union: int) -> None:
        self.values.append(value)
        self.intersection += inter
        self.union += union


Result = tuple[float | None, float | None]
"""gIoU and cIoU."""


def join(planes: list[Plane], size: tuple[int, int]) -> Plane:
    whole = np.zeros(size, np.bool_)
    for plane in planes:
        whole = whole | plane
    return whole


def overlap(first: Plane, second: Plane) -> tuple[int, int]:
    return int((first & second).sum()), int((first | second).sum())


def mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def ratio(sums: Sums, empty: float | None = None) -> float | None:
    return sums.intersection / sums.union if sums.union else empty


# -- hub copies: ignored pixels are target -----------------------------------------------------------------------------


def segzero(questions: list[Question], *, multi: bool) -> Result:
    sums = Sums([])
    for question in questions:
        truth = question.target | question.ignored
        if question.answer == "missing" or question.wrong_size:
            continue
        no_box = question.answer == "failed" or (not multi and not question.masks)
        if no_box:
            sums.add(0.0, 0, int(truth.sum()))
            continue
        inter, union = overlap(question.drawn, truth)
        if union:
            sums.add(inter / union, inter, union)
    return mean(sums.values), ratio(sums)


def visionreasoner(questions: list[Question], *, no_object: bool) -> Result:
    sums = Sums([])
    for question in questions:
        if question.answer == "missing":
            continue
        truth = question.target | question.ignored
        drawn = np.zeros(question.size, np.bool_)
        for mask in question.masks:
            if mask.shape != question.size:
                break
            drawn = drawn | mask
        inter, union = overlap(drawn, truth)
        value = inter / union if union else 0.0
        if no_object and not truth.any() and not question.masks:
            value = 1.0
        sums.add(value, inter, union)
    return mean(sums.values), ratio(sums, empty=0.0)


def star(questions: list[Question]) -> Result:
    sums = Sums([])
    for question in questions:
        if question.answer == "missing" or question.wrong_size:
            continue
        inter, union = overlap(question.drawn, question.target | question.ignored)
        sums.add(inter / union if union else 1.0, inter, union)
    return mean(sums.values), ratio(sums)


# -- ignored pixels are background -------------------------------------------------------------------------------------


def lens(questions: list[Question]) -> Result:
    sums = Sums([])
    for question in questions:
        truth = question.target & ~question.ignored
        inter, union = overlap(question.drawn, truth)
        sums.add(inter / (union + 1e-5) + (union == 0), inter, union)
    giou = sum(sums.values) / (len(questions) + 1e-5)
    return giou, sums.intersection / (sums.union + 1e-8)


def unipixel(questions: list[Question]) -> Result:
    sums = Sums([])
    for question in questions:
        inter, union = overlap(question.drawn, question.target & ~question.ignored)
        sums.add(inter / union if union else 1.0, inter, union)
    return mean(sums.values), ratio(sums)


# -- ignored pixels are dropped ----------------------------------------------------------------------------------------


def xsam(questions: list[Question], *, pipeline: bool) -> Result:
    sums = Sums([])
    for question in questions:
        kept = ~question.ignored
        truth = question.target & kept
        if pipeline and not truth.any():
            continue
        if question.answer == "missing" or question.wrong_size:
            continue
        inter, union = overlap(question.drawn & kept, truth)
        sums.add(inter / union if union else 1.0, inter, union)
    return mean(sums.values), ratio(sums, empty=None if pipeline else 1.0)


def union_rule(questions: list[Question]) -> Result:
    sums = Sums([])
    for question in questions:
        kept = ~question.ignored
        inter, union = overlap(question.drawn & kept, question.target & kept)
        is_usable = question.answer == "masks" and not question.wrong_size
        value = inter / union if union else float(is_usable)
        sums.add(value, inter, union)
    return mean(sums.values), ratio(sums)


# -- ignored pixels are not known --------------------------------------------------------------------------------------


def sam3i(questions: list[Question]) -> Result:
    sums = Sums([])
    for question in questions:
        if question.answer == "missing":
            continue
        inter, union = overlap(question.drawn, question.target)
        sums.add(inter / union if union else 0.0, inter, union)
    return mean(sums.values), ratio(sums, empty=0.0)


def sam3i_multi(questions: list[Question]) -> Result:
    values = []
    for image in dict.fromkeys(question.image for question in questions):
        of_image = [question for question in questions if question.image == image]
        truth = join([question.target for question in of_image], of_image[0].size)
        ious = []
        for question in of_image:
            if question.answer == "missing":
                continue
            inter, union = overlap(question.drawn, truth)
            usable = question.answer == "masks" and not question.wrong_size
            ious.append(inter / union if union and usable else 0.0)
        values.append(mean(ious) or 0.0)
    return mean(values), None


def gseval(questions: list[Question]) -> Result:
    sums = Sums([])
    for question in questions:
        if question.answer == "missing":
            continue
        inter, union = overlap(question.drawn, question.target)
        sums.add(inter / union if union else 0.0, inter, union)
    return mean(sums.values), ratio(sums)


def sa2va(questions: list[Question]) -> Result:
    sums = Sums([])
    for question in questions:
        inter, union = overlap(question.drawn, question.target)
        sums.add(inter / (union + 1e-5) + (union == 0), inter, union)
    return mean(sums.values), sums.intersection / (sums.union + 1e-10)


def sa2va_first(questions: list[Question], *, scrambled: bool) -> Result:
    sums = Sums([])
    for question in questions:
        usable = question.answer == "masks" and not question.wrong_size
        if not usable or not question.masks:
            sums.values.append(0.0)
            continue
        truth = scramble(question) if scrambled else question.target
        inter, union = overlap(question.masks[0], truth)
        sums.add(inter / (union + 1e-5) + (union == 0), inter, union)
    return mean(sums.values), sums.intersection / (sums.union + 1e-10)


def scramble(question: Question) -> Plane:
    """The plane of 0, 1 and 255 in column order, where every change of value flips foreground and background."""
    plane = question.target.astype(int)
    plane[question.ignored] = 255
    flat = plane.T.reshape(-1)
    value = False
    before = 0
    out = []
    for pixel in flat.tolist():
        if pixel != before:
            value = not value
        before = pixel
        out.append(value)
    return np.array(out).reshape(question.size[::-1]).T
