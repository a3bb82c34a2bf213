"""Questions that other images have too: a cap for every string, and for questions with the same content words."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from maskwise.builder.cue_tags import CUE_PAIR_TAG
from maskwise.builder.draft import Draft
from maskwise.builder.filters.filter import (
    FilterCount,
    FilterFinding,
    FilterOptions,
    FilterResult,
)
from maskwise.builder.filters.question_index import STOPWORDS
from maskwise.language.lexicons import word_set
from maskwise.language.tokens import split_words

REASON = "repeated-question"

FRAME_WORDS = STOPWORDS | word_set(
    "what which who where find show mark point out tell thing things something anything whatever here see spot "
    "highlight outline one somebody someone people person view and also do does might need look looking for"
)
"""Words of the frames of questions: two questions with the same other words ask the same."""

MIN_ALIKE = 4
"""So many questions with the same content are kept in any dataset."""


def content_words(question: str) -> frozenset[str]:
    """The words of a question that say what it asks for; all words if there are no others."""
    words = frozenset(split_words(question))
    return words - FRAME_WORDS or words


def limit_repeats(result: FilterResult, options: FilterOptions) -> FilterResult:
    """The result without questions that were kept often enough before; the first ones stay."""
    texts: Counter[str] = Counter()
    alike: Counter[frozenset[str]] = Counter()
    most_alike = max(MIN_ALIKE, int(options.max_alike * len(result.kept)))
    kept: list[Draft] = []
    rejected: list[FilterFinding] = []
    for group in _together(result.kept):
        detail = None
        for draft in group:
            if texts[draft.question] >= options.max_repeats:
                detail = f"{options.max_repeats} questions have the same words"
            elif alike[content_words(draft.question)] >= most_alike:
                detail = f"{most_alike} questions have the same content words"
        if detail is not None:
            rejected += [
                FilterFinding(draft=draft, reason=REASON, detail=detail)
                for draft in group
            ]
            continue
        kept += group
        texts.update(draft.question for draft in group)
        alike.update(content_words(draft.question) for draft in group)
    left = {id(draft) for draft in kept}
    return FilterResult(
        kept=tuple(draft for draft in result.kept if id(draft) in left),
        rejected=(*result.rejected, *rejected),
        flags=tuple(flag for flag in result.flags if id(flag.draft) in left),
        counts=(*result.counts, _count(len(result.kept), len(rejected))),
    )


def _together(drafts: Iterable[Draft]) -> Iterable[list[Draft]]:
    """Drafts in their order, those of a minimal pair as one group: they are kept or rejected together."""
    groups: defaultdict[object, list[Draft]] = defaultdict(list)
    for draft in drafts:
        pair = draft.tags.get(CUE_PAIR_TAG)
        key = id(draft) if pair is None else (draft.image_id, pair)
        groups[key].append(draft)
    return groups.values()


def _count(reached: int, rejected: int) -> FilterCount:
    return FilterCount(
        name="Repeated question",
        reason=REASON,
        description="Enough questions about other images have the same words, or the same content words.",
        reached=reached,
        rejected=rejected,
    )
