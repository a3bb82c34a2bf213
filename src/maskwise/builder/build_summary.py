"""The summary of a build: what was written, rejected, flagged and kept, what it cost, and statistics of the result.

    summary = summarize_build(result, images, build=BuildFacts(recipe="r2sm", source="coco_val", out="r2sm_val"))

`msgspec.json.encode(summary)` is the build.json that lies beside the report.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np

import maskwise
from maskwise.builder.draft import Draft, SourceImage
from maskwise.builder.filters import MASK_TYPE_WORDING, FilterCount, FilterResult
from maskwise.builder.text_baseline import TextBaseline, measure_text_alone
from maskwise.report.dataset_stats import count_occlusion

WORD_BANDS = (5, 10, 15, 20, 30, 50)
"""Upper ends of the bands of words per question and answer."""

MAX_VALUES = 20
"""Categories and tag values that are listed: as many as a chart shows with readable
labels. Tags with more values are left out."""


class WriterFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A request that brought nothing. status: refused, truncated, invalid or failed."""

    image_id: str
    status: str
    reason: str


class FailureReason(msgspec.Struct, frozen=True, kw_only=True):
    """How many requests brought nothing for the same reason, and one of them."""

    count: int
    example: WriterFailure


class WriterUsage(msgspec.Struct, frozen=True, kw_only=True):
    """What the writer did over all runs of the build. failures: examples of the last run; reasons: all of its failures.

    statuses: number of requests by the status of their completion; empty for a writer that makes no calls. malformed:
    samples in completions that do not fit the schema or name a region that is not marked. unanswered: requests whose
    answer was never received, for example because the process was killed; unanswered_cost: the most they cost.
    """

    writer: str = "grammar"
    model: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    unanswered: int = 0
    unanswered_cost: float = 0.0
    statuses: dict[str, int] = {}
    malformed: int = 0
    failures: tuple[WriterFailure, ...] = ()
    reasons: tuple[FailureReason, ...] = ()

    @property
    def calls(self) -> int:
        """Requests with a completion of any status."""
        return sum(self.statuses.values())


class BuildFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a build was asked to do, and what its writer did. options: as given, for people to read.

    verifier: the model that picked regions without the answers; verified: questions by what it found.
    """

    recipe: str
    source: str
    out: str
    options: dict[str, str | int | float | bool | None] = {}
    usage: WriterUsage = WriterUsage()
    verifier: str | None = None
    verified: dict[str, int] = {}


class BuildStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Histograms of the kept questions. Names are in ascending order, or most frequent first."""

    questions_per_image: dict[str, int]
    targets_per_question: dict[str, int]
    occlusion: dict[str, int]
    """Targets with both masks, each region once, by the hidden share of the amodal mask."""
    words_per_question: dict[str, int]
    words_per_answer: dict[str, int]
    question_types: dict[str, int]
    mask_types: dict[str, int]
    categories: dict[str, int]
    category_count: int
    tags: dict[str, dict[str, int]]


class BuildSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of build.json. images: all images of the source that were worked on."""

    maskwise: str
    build: BuildFacts
    images: int
    images_kept: int
    written: int
    rejected: int
    flagged: int
    kept: int
    filters: tuple[FilterCount, ...]
    flags: dict[str, int]
    statistics: BuildStatistics
    text_alone: TextBaseline | None = None
    """None in summaries of earlier versions."""


def summarize_build(
    result: FilterResult, images: Mapping[str, SourceImage], *, build: BuildFacts
) -> BuildSummary:
    """The summary of a build. images: all that were worked on, by id."""
    flags = Counter({MASK_TYPE_WORDING: 0}) + Counter(
        flag.reason for flag in result.flags
    )
    return BuildSummary(
        maskwise=maskwise.__version__,
        build=build,
        images=len(images),
        images_kept=len({draft.image_id for draft in result.kept}),
        written=len(result.kept) + len(result.rejected),
        rejected=len(result.rejected),
        flagged=len({id(flag.draft) for flag in result.flags}),
        kept=len(result.kept),
        filters=result.counts,
        flags=dict(flags),
        statistics=_measure(result.kept, images),
        text_alone=measure_text_alone(result.kept, images),
    )


def _measure(
    drafts: tuple[Draft, ...], images: Mapping[str, SourceImage]
) -> BuildStatistics:
    per_image = Counter(draft.image_id for draft in drafts)
    targets: dict[str, set[str]] = {}
    for draft in drafts:
        targets.setdefault(draft.image_id, set()).update(draft.region_ids)
    names: Counter[str] = Counter()
    rates: list[float] = []
    for id, regions in targets.items():
        image = images[id]
        names.update(
            region.name.strip() for region in image.regions if region.id in regions
        )
        rates += [rate for region, rate in image.occlusion.items() if region in regions]
    return BuildStatistics(
        questions_per_image=_count_numbers(per_image[image] for image in images),
        targets_per_question=_count_numbers(len(draft.region_ids) for draft in drafts),
        occlusion=count_occlusion(np.array(rates)) if rates else {},
        words_per_question=_count_words(draft.question for draft in drafts),
        words_per_answer=_count_words(draft.answer for draft in drafts),
        question_types=_most_frequent(draft.kind for draft in drafts),
        mask_types=_most_frequent(draft.mask_type for draft in drafts),
        categories=dict(names.most_common(MAX_VALUES)),
        category_count=len(names),
        tags=_count_tags(drafts),
    )


def _count_numbers(numbers: Iterable[int]) -> dict[str, int]:
    return {str(number): count for number, count in sorted(Counter(numbers).items())}


def _count_words(texts: Iterable[str]) -> dict[str, int]:
    """Texts by their number of words, in bands."""
    names = []
    lowest = 1
    for highest in WORD_BANDS:
        names.append(f"{lowest} to {highest}")
        lowest = highest + 1
    names.append(f"{lowest} or more")
    counts = dict.fromkeys(names, 0)
    for text in texts:
        band = bisect_left(WORD_BANDS, len(text.split()))
        counts[names[band]] += 1
    return counts


def _count_tags(drafts: Iterable[Draft]) -> dict[str, dict[str, int]]:
    """Values of tags, most frequent first, of the tags with few values."""
    values: dict[str, list[str]] = {}
    for draft in drafts:
        for name, value in draft.tags.items():
            values.setdefault(name, []).append(value)
    counts = {}
    for name, tag_values in values.items():
        value_counts = _most_frequent(tag_values)
        if len(value_counts) <= MAX_VALUES:
            counts[name] = value_counts
    return counts


def _most_frequent(values: Iterable[Any]) -> dict[str, int]:
    return {str(value): count for value, count in Counter(values).most_common()}
