"""Segmentation tokens in answers: one token per target, whose kind is the mask type.

The token follows the phrase that names its target: "It is the mug [SEG_AMODAL]." A target that is wanted in both types
gets both tokens, the visible one first. An answer without tokens says that there is no target.
"""

from collections.abc import Sequence
from typing import NamedTuple

from maskwise.schema import Answer, MaskType, Phrase, Sample

NO_TARGET = "There is no such object in the image."
"""The answer to a question without targets, if the sample has none."""

BOUNDARIES = (" is ", " are ", ", ", " and ", ". ", ": ")
"""A noun phrase before a token begins after the last of these."""


class SegAnswer(NamedTuple):
    """An answer with tokens, and for each token the position of its target in the sample."""

    text: str
    targets: tuple[int, ...]


def write_seg_answer(sample: Sample, seg_tokens: tuple[str, str]) -> SegAnswer:
    """The sample's answer with the tokens of its targets inserted after their phrases.

    Targets that no phrase refers to follow at the end, in the manner of LISA: "Sure, it is [SEG]."
    """
    inserted = "".join(_wanted_tokens(sample.mask_type, seg_tokens))
    per_target = 2 if sample.mask_type == "both" else 1
    answer = sample.answer or Answer(
        text="Sure, it is" if sample.targets else NO_TARGET
    )
    text = ""
    place = 0
    order = []
    for phrase in sorted(answer.phrases, key=lambda phrase: phrase.stop):
        new = [target for target in phrase.regions if target not in order]
        text += answer.text[place : phrase.stop] + _group(inserted, len(new))
        place = phrase.stop
        order += new
    text += answer.text[place:]
    rest = [target for target in range(len(sample.targets)) if target not in order]
    text += _group(inserted, len(rest)) + (
        "." if rest and answer is not sample.answer else ""
    )
    return SegAnswer(
        text, tuple(target for target in order + rest for _ in range(per_target))
    )


def _wanted_tokens(mask_type: MaskType, seg_tokens: tuple[str, str]) -> tuple[str, ...]:
    visible, amodal = seg_tokens
    return {"visible": (visible,), "amodal": (amodal,), "both": (visible, amodal)}[
        mask_type
    ]


def _group(inserted: str, count: int) -> str:
    return f" {inserted * count}" if count else ""


class SegTarget(NamedTuple):
    """One target of a written answer: the positions of its visible and amodal token among all tokens, one of which may
    be None, and its characters [start, stop) in the answer.
    """

    visible: int | None
    amodal: int | None
    start: int
    stop: int


def read_seg_answer(
    pieces: Sequence[str], kinds: Sequence[int]
) -> tuple[Answer, list[SegTarget]]:
    """A written answer without its tokens, and its targets.

    pieces: the texts before, between and after the tokens (one more than tokens). kinds: 0 = visible, 1 = amodal.
    A visible token directly followed by an amodal one is one target, wanted in both types.
    """
    text = ""
    span = (0, 0)
    targets: list[SegTarget] = []
    for number, (piece, kind) in enumerate(zip(pieces, kinds)):
        adjacent = number > 0 and not piece.strip()
        if adjacent and kind == 1 and targets[-1].amodal is None:
            targets[-1] = targets[-1]._replace(amodal=number)
            continue
        if not adjacent:
            before = len(text)
            text = text + piece.rstrip()
            span = _noun_phrase(text, before)
        targets.append(
            SegTarget(None, number, *span) if kind else SegTarget(number, None, *span)
        )
    text += pieces[-1]
    phrases = [
        Phrase(start=target.start, stop=target.stop, regions=(number,))
        for number, target in enumerate(targets)
        if target.start < target.stop
    ]
    return Answer(text=text, phrases=tuple(phrases)), targets


def _noun_phrase(text: str, after: int) -> tuple[int, int]:
    """The characters of the noun phrase at the end of a text, not before `after`."""
    starts = [
        text.rfind(mark, max(0, after - 1)) + len(mark)
        for mark in BOUNDARIES
        if mark in text[max(0, after - 1) :]
    ]
    start = max([after, *starts])
    return start + len(text[start:]) - len(text[start:].lstrip()), len(text)
