"""The words of a question that decide its mask type, stored in a tag of the sample.

cues = "completeness 8 26; mention 30 44"        kind, first character, end
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, get_args

from maskwise.language.intent import CueKind

CUES_TAG = "cues"

CUE_PAIR_TAG = "cue_pair"
"""Samples of an image with the same value ask the same question with one cue changed."""


class Cue(NamedTuple):
    """The kind of a cue and its place, `question[start:end]`."""

    kind: CueKind
    start: int
    end: int


class AnyCue(Protocol):
    """What the intent classifier and the grammar know about a cue."""

    @property
    def kind(self) -> CueKind: ...

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...


def encode_cues(cues: Iterable[AnyCue]) -> str:
    """Cues as the text of a tag; empty for none."""
    return "; ".join(f"{cue.kind} {cue.start} {cue.end}" for cue in cues)


def decode_cues(text: str) -> Sequence[Cue]:
    """The cues of a tag; ValueError for a text that is not from `encode_cues`."""
    cues = []
    for item in filter(None, text.split("; ")):
        kind, start, end = item.split(" ")
        if kind not in get_args(CueKind):
            raise ValueError(f"{text!r}: unknown kind of cue {kind!r}")
        cues.append(Cue(kind, int(start), int(end)))  # type: ignore[arg-type]
    return cues
