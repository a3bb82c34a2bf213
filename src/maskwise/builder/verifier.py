"""A second writer sees the image and the questions without their answers, and picks the regions.

Where it picks what the answer names, the question is kept as verified; where it picks others, it is kept and flagged,
so that a person looks at it first. One request per image holds all its questions.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from maskwise.builder.draft import Draft, SourceImage
from maskwise.builder.facts import ImageFacts
from maskwise.builder.filters import AskWriter, FilterFinding, FilterResult
from maskwise.builder.prompt import MarkedRegions, mark_regions
from maskwise.builder.recipe import Recipe
from maskwise.errors import ImageError
from maskwise.writers.request import Completion, CompletionRequest

PROMPT_VERSION = "verify-1"

VERIFIED_TAG = "verified"
NOT_CHECKED = "not checked"
"""A tag of samples, and its value beside `agree` and `disagree`, if there was no usable reply."""

DISAGREES = "verifier-disagrees"
"""The reason of a flag, not of a rejection."""

SYSTEM = """\
You answer questions about an image on which regions are outlined and numbered. A list describes these regions; it is
correct. For each question give the numbers of all regions that answer it, and no others: a part if a part is meant, a
whole object if that is meant. Give no number if nothing in the image answers the question. Return only the JSON object
that the schema describes."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "answers": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "question": {"type": "integer"},
                    "regions": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["question", "regions"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["answers"],
    "additionalProperties": False,
}

ANSWER_TOKENS = 30
"""About how many tokens the answer to one question has."""

TOKEN_MARGIN = 3
"""A reply may be this many times as long before it is cut off."""


class PickedRegions(msgspec.Struct, frozen=True):
    """The answer to one question: the numbers of regions."""

    question: int
    regions: list[int]


def verify_drafts(
    result: FilterResult,
    images: Mapping[str, SourceImage],
    recipe: Recipe,
    ask: AskWriter,
) -> tuple[FilterResult, dict[str, int]]:
    """The result with the tag `verified` on every kept draft and flags where the verifier disagrees; how many there are
    of each.

    ask: sends requests to the verifier.
    """
    groups = [
        [*drafts] for _, drafts in groupby(result.kept, lambda draft: draft.image_id)
    ]
    marked = [_mark(images[group[0].image_id], recipe) for group in groups]
    requests = [
        verify_request([draft.question for draft in group], regions)
        for group, regions in zip(groups, marked)
        if regions is not None
    ]
    completions = iter(ask(requests))
    verdicts: dict[int, str] = {}
    details: dict[int, str] = {}
    for group, regions in zip(groups, marked):
        if regions is None:
            continue
        picked = read_picks(next(completions), regions)
        image = images[group[0].image_id]
        for number, draft in enumerate(group, 1):
            if number in picked:
                detail = compare_picks(draft, picked[number], image)
                verdicts[id(draft)] = "agree" if detail is None else "disagree"
                details[id(draft)] = detail or ""
    return _apply(result, verdicts, details)


def _mark(image: SourceImage, recipe: Recipe) -> MarkedRegions | None:
    """What the verifier sees; None for an image that cannot be opened or has nothing to pick."""
    try:
        return mark_regions(ImageFacts(image), recipe)
    except ImageError:
        return None


def verify_request(
    questions: Sequence[str], regions: MarkedRegions
) -> CompletionRequest:
    """The request about the questions of one image."""
    numbered = [f"{number}. {text}" for number, text in enumerate(questions, 1)]
    lines = ["The regions:", *regions.lines, "", "The questions:", *numbered]
    return CompletionRequest(
        prompt_version=PROMPT_VERSION,
        system=SYSTEM,
        text="\n".join(lines),
        schema=SCHEMA,
        image=regions.image,
        max_tokens=TOKEN_MARGIN * ANSWER_TOKENS * len(questions),
    )


def read_picks(
    completion: Completion, regions: MarkedRegions
) -> dict[int, frozenset[str]]:
    """The ids of the picked regions by the number of the question; an answer with an unknown number is left out."""
    picks: dict[int, frozenset[str]] = {}
    answers = (completion.output or {}).get("answers")
    for item in answers if isinstance(answers, list) else []:
        try:
            answer = msgspec.convert(item, PickedRegions)
            ids = frozenset(regions.ids[number] for number in answer.regions)
        except (msgspec.ValidationError, KeyError):
            continue
        picks[answer.question] = ids
    return picks


def compare_picks(
    draft: Draft, picked: frozenset[str], image: SourceImage
) -> str | None:
    """How the verifier's regions differ from those of the answer; None if they are the same."""
    stated = frozenset(draft.region_ids)
    if picked == stated:
        return None

    def name(ids: frozenset[str]) -> str:
        named = [region.name for region in image.regions if region.id in ids]
        return ", ".join(named) or "nothing"

    return f"the verifier picked {name(picked)}; the answer names {name(stated)}"


def _apply(
    result: FilterResult, verdicts: Mapping[int, str], details: Mapping[int, str]
) -> tuple[FilterResult, dict[str, int]]:
    """Tags and flags. verdicts, details: by the identity of a draft."""
    tagged: dict[int, Draft] = {}
    counts: Counter[str] = Counter()
    for draft in result.kept:
        verdict = verdicts.get(id(draft), NOT_CHECKED)
        counts[verdict] += 1
        tags = draft.tags | {VERIFIED_TAG: verdict}
        tagged[id(draft)] = msgspec.structs.replace(draft, tags=tags)

    def flags() -> Iterator[FilterFinding]:
        for flag in result.flags:
            # Flags are found by the identity of their draft, which is a new one.
            draft = tagged[id(flag.draft)]
            yield msgspec.structs.replace(flag, draft=draft)
        for key, draft in tagged.items():
            if details.get(key):
                yield FilterFinding(draft=draft, reason=DISAGREES, detail=details[key])

    kept = tuple(tagged.values())
    verified = msgspec.structs.replace(result, kept=kept, flags=tuple(flags()))
    return verified, dict(counts)
