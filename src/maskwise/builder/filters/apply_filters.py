"""Apply all filters to drafts: a fixed order, one reason per rejected draft, one count per filter."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from maskwise.builder.draft import Draft, SourceImage
from maskwise.builder.filters.blind_check import (
    AskWriter,
    blind_request,
    find_blind_answer,
)
from maskwise.builder.filters.filter import (
    ClassifyWording,
    Filter,
    FilterContext,
    FilterCount,
    FilterFinding,
    FilterOptions,
    FilterResult,
)
from maskwise.builder.filters.form_check import find_wrong_form
from maskwise.builder.filters.question_checks import (
    find_answer_leak,
    find_category_leak,
    find_coordinates,
    find_toxic_word,
)
from maskwise.builder.filters.target_checks import (
    find_hidden_target,
    find_missing_mask,
    find_phrase_mismatch,
    find_small_target,
    find_truncated_target,
    find_unknown_target,
    find_unoccluded_amodal,
)
from maskwise.registry import FILTERS


def find_leaked_image(
    draft: Draft, image: SourceImage, context: FilterContext
) -> str | None:
    """An image that has a near-identical one in another split or dataset."""
    return (context.leaked or {}).get(draft.image_id)


def find_duplicate_question(
    draft: Draft, image: SourceImage, context: FilterContext
) -> str | None:
    """A question that was accepted already in nearly the same words."""
    question = context.accepted.find_duplicate(draft, context.options.max_similarity)
    return None if question is None else f"asks the same as {question!r}"


MASK_TYPE_WORDING = "mask-type-wording"
"""The reason of a flag, not of a rejection."""

UNKNOWN_TARGET = Filter(
    "Unknown target",
    "unknown-target",
    "The answer names a region that is not there.",
    find_unknown_target,
)
PHRASE_MISMATCH = Filter(
    "Phrases and masks disagree",
    "phrase-mismatch",
    "No target, a phrase that is not in the answer, a phrase without a mask, or a mask with two phrases.",
    find_phrase_mismatch,
)
MISSING_MASK = Filter(
    "Missing mask",
    "missing-mask",
    "A target lacks the mask that is asked for.",
    find_missing_mask,
)
LEAKED_IMAGE = Filter(
    "Leaked image",
    "leaked-image",
    "A near-identical image is in another split or in a dataset that was named.",
    find_leaked_image,
)
SMALL_TARGET = Filter(
    "Target too small",
    "small-target",
    "A target covers too little of the image.",
    find_small_target,
)
HIDDEN_TARGET = Filter(
    "Target too hidden",
    "hidden-target",
    "Too much of a target is hidden.",
    find_hidden_target,
)
TRUNCATED_TARGET = Filter(
    "Target truncated",
    "truncated-target",
    "The image border cuts a target off, and the question asks for its whole shape.",
    find_truncated_target,
)
UNOCCLUDED_AMODAL = Filter(
    "Nothing is hidden",
    "unoccluded-amodal",
    "The question asks for the whole shape, hidden part included, but no target is occluded.",
    find_unoccluded_amodal,
)
COORDINATES = Filter(
    "Coordinates in the question",
    "coordinates",
    "The question contains coordinates, sizes in pixels or the number of a mark.",
    find_coordinates,
)
CATEGORY_LEAK = Filter(
    "Category in the question",
    "category-leak",
    "A reasoning question names a target, or the object it is a part of.",
    find_category_leak,
)
ANSWER_LEAK = Filter(
    "Answer in the question",
    "answer-leak",
    "A reasoning question contains what the answer calls a target.",
    find_answer_leak,
)
LOGICAL_FORM = Filter(
    "Wrong targets",
    "logical-form",
    "Not exactly the targets fulfil the logical form of the question, or people would disagree about it.",
    find_wrong_form,
)
TOXIC_WORDS = Filter(
    "Toxic words",
    "toxic-words",
    "The question or the answer contains an offensive word.",
    find_toxic_word,
)
NEAR_DUPLICATE = Filter(
    "Near-duplicate question",
    "near-duplicate",
    "Another question about the image has the same words, or similar ones for the same targets and mask type.",
    find_duplicate_question,
)
BLIND_ANSWER = Filter(
    "Answerable without the image",
    "blind-answer",
    "The writer named all targets of a reasoning question with certainty, from the question alone.",
    None,
)


def load_filters(more: Sequence[str] = ()) -> tuple[Filter, ...]:
    """The built-in filters in the order of application, with further ones before the
    last, which asks the writer and is the most expensive.

    more: names of plug-ins, or `package.module:attribute`.
    """
    built_in = [FILTERS.load(name, Filter) for name in FILTERS.built_in]
    further = [FILTERS.load(name, Filter) for name in more]
    return (*built_in[:-1], *further, built_in[-1])


def apply_filters(
    drafts: Iterable[Draft],
    images: Mapping[str, SourceImage],
    options: FilterOptions | None = None,
    *,
    classify: ClassifyWording | None = None,
    ask: AskWriter | None = None,
    leaked: Mapping[str, str] | None = None,
    more_filters: Sequence[str] = (),
) -> FilterResult:
    """Drafts that pass all filters, the others with reasons, and flags for people to look at.

    images: by id. classify: reads the mask type from questions; a kept draft with another mask type is flagged. ask:
    sends requests to the writer; if None, no question is checked for being answerable without the image. leaked: from
    `find_leaked_images`; if None, images are not checked. more_filters: see
    `load_filters`. Drafts of different images do not affect each other.
    """
    filters = load_filters(more_filters)
    context = FilterContext(options or FilterOptions(), leaked)
    kept: list[Draft] = []
    rejected: list[FilterFinding] = []
    for draft in drafts:
        rejection = _check(draft, images[draft.image_id], filters, context)
        if rejection is None:
            context.accepted.add(draft)
            kept.append(draft)
        else:
            rejected.append(rejection)
    reached = len(kept) + len(rejected)
    not_checked = {} if leaked is not None else {LEAKED_IMAGE.reason: reached}
    kept, blind, not_checked[BLIND_ANSWER.reason] = _check_blind(kept, images, ask)
    rejected += blind
    return FilterResult(
        kept=tuple(kept),
        rejected=tuple(rejected),
        flags=()
        if classify is None
        else tuple(_flag_wording(kept, classify, context.options)),
        counts=_count(filters, reached, rejected, not_checked),
    )


def _check(
    draft: Draft,
    image: SourceImage,
    filters: Sequence[Filter],
    context: FilterContext,
) -> FilterFinding | None:
    """The rejection by the first filter that has a reason."""
    for filter in filters:
        if filter.check is None:
            continue
        detail = filter.check(draft, image, context)
        if detail is not None:
            return FilterFinding(draft=draft, reason=filter.reason, detail=detail)
    return None


def _check_blind(
    drafts: list[Draft], images: Mapping[str, SourceImage], ask: AskWriter | None
) -> tuple[list[Draft], list[FilterFinding], int]:
    """Drafts that need the image, those that do not, and how many reasoning questions could not be checked."""
    asked = [draft for draft in drafts if draft.kind == "reasoning"]
    if ask is None or not asked:
        return drafts, [], len(asked)
    reasons: dict[int, str | None] = {}
    failed = 0
    for draft, completion in zip(
        asked, ask([blind_request(draft) for draft in asked]), strict=True
    ):
        reasons[id(draft)] = find_blind_answer(
            draft, images[draft.image_id], completion
        )
        failed += completion.status != "ok"
    kept = []
    rejected = []
    for draft in drafts:
        detail = reasons.get(id(draft))
        if detail is None:
            kept.append(draft)
        else:
            rejected.append(
                FilterFinding(draft=draft, reason=BLIND_ANSWER.reason, detail=detail)
            )
    return kept, rejected, failed


def _flag_wording(
    drafts: Sequence[Draft], classify: ClassifyWording, options: FilterOptions
) -> Iterator[FilterFinding]:
    """Drafts whose question asks for another mask type than theirs, as far as the classifier can tell."""
    typed = [draft for draft in drafts if draft.mask_type != "both"]
    for draft, prediction in zip(
        typed, classify([draft.question for draft in typed]), strict=True
    ):
        sure = prediction.probability >= options.min_wording_probability
        if prediction.mask_type != draft.mask_type and sure:
            detail = (
                f"reads like a request for the {prediction.mask_type} mask "
                f"(probability {prediction.probability:.2f})"
            )
            yield FilterFinding(draft=draft, reason=MASK_TYPE_WORDING, detail=detail)


def _count(
    filters: Sequence[Filter],
    reached: int,
    rejected: Sequence[FilterFinding],
    not_checked: Mapping[str, int],
) -> tuple[FilterCount, ...]:
    """One count per filter. A filter reaches the drafts that no filter before it rejected."""
    reasons = Counter(rejection.reason for rejection in rejected)
    counts = []
    for filter in filters:
        rejected_count = reasons[filter.reason]
        counts.append(
            FilterCount(
                name=filter.name,
                reason=filter.reason,
                description=filter.description,
                reached=reached,
                rejected=rejected_count,
                not_checked=min(reached, not_checked.get(filter.reason, 0)),
            )
        )
        reached -= rejected_count
    return tuple(counts)
