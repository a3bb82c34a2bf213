"""The types of all filters: what a filter is, its options, and what it finds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from maskwise.builder.cue_tags import AnyCue
from maskwise.builder.draft import Draft, SourceImage
from maskwise.builder.filters.question_index import QuestionIndex


class FilterOptions(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Thresholds. All but `max_repeats` are shares from 0 to 1."""

    min_area: float = 0.0005
    """Smallest area of a target, of its requested mask, as a share of the image."""
    max_occlusion: float = 0.9
    """Largest hidden share of a target."""
    min_occlusion: float = 0.05
    """Smallest hidden share of at least one target of a question that asks for the amodal mask."""
    max_border: float = 0.2
    """Largest share of the perimeter of a target's box that lies on the image border, for amodal masks."""
    max_similarity: float = 0.8
    """Questions about the same targets are duplicates above this similarity (Dice coefficient of word pairs)."""
    max_repeats: int = 2
    """Most questions of a dataset with the same words."""
    max_alike: float = 0.01
    """Most questions with the same content words, as a share of all; four are kept in any case."""
    min_wording_probability: float = 0.8
    """The classifier must be this sure that a question asks for another mask type, to flag it."""


class WordingPrediction(Protocol):
    """The mask type that a classifier reads from a question, its probability, and the words that decide."""

    @property
    def mask_type(self) -> str: ...

    @property
    def probability(self) -> float: ...

    @property
    def spans(self) -> Sequence[AnyCue]: ...


ClassifyWording = Callable[[Sequence[str]], Sequence[WordingPrediction]]
"""One prediction per question."""


@dataclass(frozen=True)
class FilterContext:
    """What checks know beside the draft and its image.

    leaked: ids of images that have a near-identical image in another split or dataset, with a description of it.
    accepted: the questions accepted so far.
    """

    options: FilterOptions
    leaked: Mapping[str, str] | None = None
    accepted: QuestionIndex = field(default_factory=QuestionIndex)


Check = Callable[[Draft, SourceImage, FilterContext], str | None]
"""Why a draft is rejected; None if it passes."""


@dataclass(frozen=True)
class Filter:
    """A reason to reject a draft.

    name: a title for reports. reason: a code. check: None for the filter that asks the
    writer, which sees all drafts at once.
    """

    name: str
    reason: str
    description: str
    check: Check | None


class FilterFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Why a draft was rejected, or kept although a person should look at it.

    reason: the code of the filter or of the flag; detail: in words.
    """

    draft: Draft
    reason: str
    detail: str


class FilterCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many drafts no earlier filter rejected, how many this one rejected, and how many it could not check."""

    name: str
    reason: str
    description: str
    reached: int
    rejected: int
    not_checked: int = 0


class FilterResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the filters decided. Drafts are in the order given; counts are in the order of the filters."""

    kept: tuple[Draft, ...]
    rejected: tuple[FilterFinding, ...]
    flags: tuple[FilterFinding, ...]
    counts: tuple[FilterCount, ...]
