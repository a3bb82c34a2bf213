"""Cues: words of a question that decide which mask type it requests, or that seem to."""

from collections.abc import Sequence
from typing import Literal

import msgspec

CueKind = Literal[
    "completeness",
    "removal",
    "see-through",
    "extent",
    "continuation",
    "restoration",
    "visible-only",
    "exclusion",
    "mention",
]

Polarity = Literal["amodal", "visible", "none"]

POLARITIES: dict[CueKind, Polarity] = {
    # Requests for what is hidden.
    "completeness": "amodal",  # "all of the bus, hidden part included"
    "removal": "amodal",  # "as if the dog were not there"
    "see-through": "amodal",  # "look through the fence"
    "extent": "amodal",  # "how far does the sofa reach behind the table?"
    "continuation": "amodal",  # "keep drawing where the bag swallows it"
    "restoration": "amodal",  # "restore the missing corner"
    # Requests for no more than what is seen.
    "visible-only": "visible",  # "only what shows"
    "exclusion": "visible",  # "leave out the hidden part"
    # Words of hiding or wholeness that request nothing.
    "mention": "none",  # "the cup hidden behind the vase"
}
"""Kind of cue to the mask type that it requests; in the order of the network's outputs, after "no cue"."""

KINDS: tuple[CueKind, ...] = tuple(POLARITIES)


class CueSpan(msgspec.Struct, frozen=True):
    """Words that decide, `question[start:end]`, with the kind of the cue and the mask type that it requests."""

    start: int
    end: int
    text: str
    kind: CueKind
    polarity: Polarity


def split_at_cues(
    question: str, spans: Sequence[CueSpan]
) -> list[tuple[str, CueSpan | None]]:
    """The question in pieces, each with its cue or None, to be marked on a page; together they are the question."""
    pieces: list[tuple[str, CueSpan | None]] = []
    end = 0
    for span in spans:
        pieces.append((question[end : span.start], None))
        pieces.append((question[span.start : span.end], span))
        end = span.end
    pieces.append((question[end:], None))
    return [(text, span) for text, span in pieces if text]
