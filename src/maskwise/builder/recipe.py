"""A recipe: what is asked of a writer about one image, and how its output becomes drafts.

    output = {"samples": [{"question": ..., "answer": ..., "targets": [{"phrase": ..., "regions": [1, 2]}]}]}

Regions are given by the numbers of their marks. Recipes that mix mask types or kinds of questions have the fields
`mask_type` and `kind` in every sample; `mmr` has a `caption` before the samples. Language models are held to the JSON
schema; the grammar writes the same object.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import msgspec

from maskwise.builder.draft import Draft, DraftKind, DraftTarget
from maskwise.builder.facts import ImageFacts
from maskwise.builder.grammar import ProposedQuestion
from maskwise.builder.object_questions import GrammarContext
from maskwise.schema import MaskType

OneMask = Literal["visible", "amodal"]


@dataclass(frozen=True)
class Recipe:
    """How a benchmark is built from annotated images.

    prompt_version: part of every request's key; change it with the prompt. mask_type, kind: of all samples, or None if
    each sample says. parts: whether parts are asked about. caption: whether a caption comes before the samples.
    grouped: whether the grammar may name several objects in one phrase.
    write: the questions of the grammar. answer_tokens, reasoning_share: length of one written sample and the share of
    reasoning questions, for the estimate of costs.
    """

    name: str
    title: str
    prompt_version: str
    instructions: str
    per_image: int
    write: Callable[[GrammarContext], list[ProposedQuestion]]
    mask_type: MaskType | None = None
    kind: DraftKind | None = None
    parts: bool = False
    caption: bool = False
    grouped: bool = False
    answer_tokens: int = 90
    reasoning_share: float = 1.0


class WrittenTarget(msgspec.Struct, frozen=True):
    """A phrase of an answer and the numbers of its regions, as a writer returns them."""

    phrase: str
    regions: tuple[int, ...]


class WrittenSample(msgspec.Struct, frozen=True):
    """A sample as a writer returns it."""

    question: str
    answer: str
    targets: tuple[WrittenTarget, ...]
    mask_type: OneMask | None = None
    kind: DraftKind | None = None


def output_schema(recipe: Recipe) -> dict[str, Any]:
    """The JSON schema of a recipe's output; all properties are required, as structured output demands."""
    target = _object(
        phrase={"type": "string"},
        regions={"type": "array", "items": {"type": "integer"}},
    )
    fields: dict[str, Any] = {
        "question": {"type": "string"},
        "answer": {"type": "string"},
        "targets": {"type": "array", "items": target},
    }
    if recipe.mask_type is None:
        fields["mask_type"] = {"type": "string", "enum": list(get_args(OneMask))}
    if recipe.kind is None:
        fields["kind"] = {"type": "string", "enum": list(get_args(DraftKind))}
    samples = {"type": "array", "items": _object(**fields)}
    return (
        _object(caption={"type": "string"}, samples=samples)
        if recipe.caption
        else _object(samples=samples)
    )


def output_to_drafts(
    output: dict[str, Any], facts: ImageFacts, recipe: Recipe
) -> tuple[list[Draft], list[str]]:
    """The drafts of what a writer returned, and the problems of other samples.

    Samples that do not fit the schema, or name a number without a region, are left out.
    """
    drafts: list[Draft] = []
    problems: list[str] = []
    samples = output.get("samples")
    if not isinstance(samples, list):
        return [], [f"expected a list of samples, got {samples!r}"]
    caption = output.get("caption")
    tags = {"caption": caption.strip()} if isinstance(caption, str) else {}
    for number, item in enumerate(samples, 1):
        try:
            sample = msgspec.convert(item, WrittenSample)
            draft = _to_draft(sample, facts, recipe)
            drafts.append(msgspec.structs.replace(draft, tags=draft.tags | tags))
        except (msgspec.ValidationError, LookupError) as error:
            problems.append(f"sample {number}: {error}")
    return drafts, problems


def _to_draft(written: WrittenSample, facts: ImageFacts, recipe: Recipe) -> Draft:
    numbers = [number for target in written.targets for number in target.regions]
    unknown = [number for number in numbers if not 1 <= number <= len(facts.regions)]
    mask_type = recipe.mask_type or written.mask_type
    kind = recipe.kind or written.kind
    if unknown or mask_type is None or kind is None:
        raise LookupError(
            f"there is no region {unknown}"
            if unknown
            else "mask_type or kind is missing"
        )
    regions = [facts.regions[number - 1] for number in numbers]
    levels = {"object" if region.part_of is None else "part" for region in regions}
    return Draft(
        image_id=facts.image.info.id,
        question=written.question.strip(),
        answer=written.answer.strip(),
        targets=tuple(
            DraftTarget(
                phrase=target.phrase,
                regions=tuple(
                    facts.regions[number - 1].id for number in target.regions
                ),
            )
            for target in written.targets
        ),
        mask_type=mask_type,
        kind=kind,
        tags={"level": "mixed" if len(levels) > 1 else "".join(levels) or "object"},
    )


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
