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


def write_seg_answer(
    sample: Sample, seg_tokens: tuple[str, str]
) -> tuple[str, tuple[int, ...]]:
    """The sample's answer with the tokens of its targets inserted after their phrases, and for each token the position
    of its target in the sample.

    Targets that no phrase refers to follow at the end, in the manner of LISA: "Sure, it is [SEG]."
    """
    wanted = _wanted_tokens(sample.mask_type, seg_tokens)
    target_tokens = "".join(wanted)
    answer = sample.answer
    if answer is None:
        answer = Answer(text="Sure, it is" if sample.targets else NO_TARGET)
    text = ""
    place = 0
    order: list[int] = []
    for phrase in sorted(answer.phrases, key=lambda phrase: phrase.stop):
        new = [target for target in phrase.regions if target not in order]
        text += answer.text[place : phrase.stop]
        text += _group(target_tokens, len(new))
        place = phrase.stop
        order += new
    text += answer.text[place:]
    rest = [target for target in range(len(sample.targets)) if target not in order]
    text += _group(target_tokens, len(rest))
    if rest and sample.answer is None:
        text += "."
    order += rest
    token_targets: list[int] = []
    for target in order:
        token_targets += [target] * len(wanted)
    return text, tuple(token_targets)


def _wanted_tokens(mask_type: MaskType, seg_tokens: tuple[str, str]) -> tuple[str, ...]:
    visible, amodal = seg_tokens
    if mask_type == "visible":
        return (visible,)
    if mask_type == "amodal":
        return (amodal,)
    return (visible, amodal)


def _group(target_tokens: str, count: int) -> str:
    """The tokens of `count` targets, after a space; nothing for none."""
    return f" {target_tokens * count}" if count else ""


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
        start, stop = span
        visible = number if kind == 0 else None
        amodal = number if kind == 1 else None
        targets.append(SegTarget(visible, amodal, start, stop))
    text += pieces[-1]
    phrases = [
        Phrase(start=target.start, stop=target.stop, regions=(number,))
        for number, target in enumerate(targets)
        if target.start < target.stop
    ]
    return Answer(text=text, phrases=tuple(phrases)), targets


def _noun_phrase(text: str, after: int) -> tuple[int, int]:
    """The characters of the noun phrase at the end of a text, not before `after`."""
    # One character earlier, so that a boundary that begins with a space is seen at the very beginning.
    searched = max(0, after - 1)
    start = after
    for mark in BOUNDARIES:
        place = text.rfind(mark, searched)
        if place >= 0:
            start = max(start, place + len(mark))
    phrase = text[start:]
    leading_spaces = len(phrase) - len(phrase.lstrip())
    return start + leading_spaces, len(text)
