"""Recipe `r2sm`: for one object, questions that want the visible mask and questions that want the amodal one.

After R2SM (arXiv 2506.01795): the wording, not the image, decides which mask is meant. Every suitable object gets a
referring and, where it can be described without its name, a reasoning question in visible wording. An object that is
really occluded gets the same in amodal wording. The prompts and thresholds of the paper are not public; these are ours.
"""

from collections.abc import Iterator
from typing import Any

from maskwise.builder.facts import RegionFacts
from maskwise.builder.grammar import AnswerPhrase, ProposedQuestion
from maskwise.builder.knowledge import load_knowledge
from maskwise.builder.object_questions import (
    GrammarContext,
    ask_choices,
    ask_hidden,
    ask_kinds,
    ask_uses,
)
from maskwise.builder.recipe import Recipe

MAX_OBJECTS = 4
"""Objects of one image that are asked about, the occluded ones first."""

VISIBLE = (
    "Segment {np}.",
    "Please mark {np}.",
    "Where is {np}? Mark {it}.",
    "Outline {np} as far as {it} can be seen.",
    "Mark only the visible part of {np}.",
    "Which pixels show {np}?",
)
COVERED = (
    "Mark what {occluder} leaves visible of {np}.",
    "Segment {np}, but leave out what {occluder} covers.",
)
"""Visible wordings that speak of occlusion."""

AMODAL = (
    "Segment the whole of {np}, including what is hidden behind {occluder}.",
    "Outline the complete shape of {np}, even where {occluder} covers {it}.",
    "Mark {np} as if {occluder} were not there.",
    "If nothing covered {np}, which area would {it} fill?",
    "Draw the full extent of {np}, hidden parts included.",
)
VISIBLE_REQUESTS = (
    "",
    " Segment {it}.",
    " Mark only what can be seen of {it}.",
    " Outline what is visible of {it}.",
)
AMODAL_REQUESTS = (
    " Outline its complete shape, hidden parts included.",
    " Segment all of {it}, also what is covered.",
    " Mark the whole object, as if nothing were in front of {it}.",
)

INSTRUCTIONS = f"""\
Choose up to {MAX_OBJECTS} objects of this image that a person might ask about, the occluded ones first. Write questions
about one object each, which is the only target:
- a referring question (kind "referring") that names the object and singles it out, in visible wording (mask_type
  "visible"): it asks for the object as it appears, or for its visible part;
- a reasoning question (kind "reasoning") in visible wording that describes the object by its use, its place or common
  sense, without its name or a synonym of it;
- only if the object is listed as occluded: one of each kind in amodal wording (mask_type "amodal"), which asks for the
  complete shape, including what is hidden.

The wording alone must say which mask is meant. A question that only mentions something in front of the object still
wants the visible mask. Vary the wording. The answer is one short sentence with one phrase for the object; give the
phrase and the number of its region."""


def write(context: GrammarContext) -> dict[str, Any]:
    """The grammar's output."""
    implicit: dict[str, list[ProposedQuestion]] = {}
    for ask in (ask_uses, ask_kinds, ask_choices, ask_hidden):
        for proposal in ask(context):
            if len(proposal.about) == 1:
                implicit.setdefault(proposal.about[0].id, []).append(proposal)
    samples: list[dict[str, Any]] = []
    for region in _choose(context):
        samples += _referring(context, region)
        samples += _reasoning(context, region, implicit.get(region.id, []))
    return {"samples": samples}


def _choose(context: GrammarContext) -> list[RegionFacts]:
    knowledge = load_knowledge()
    unsuitable = knowledge.background | knowledge.vague
    objects = [
        region
        for region in context.facts.objects
        if region.is_suitable
        and region.id in context.names
        and region.noun.known not in unsuitable
    ]
    context.random.shuffle(objects)
    return sorted(objects, key=lambda region: not region.is_occluded)[:MAX_OBJECTS]


def _referring(
    context: GrammarContext, region: RegionFacts
) -> Iterator[dict[str, Any]]:
    occluder = _occluder(context, region)
    words = {
        "np": context.names[region.id],
        "it": _it(region),
        "occluder": occluder or "",
    }
    visible = VISIBLE if occluder is None else (*VISIBLE, *COVERED)
    yield _item(
        context,
        region,
        context.random.choice(visible).format(**words),
        "visible",
        "referring",
    )
    if region.is_occluded:
        amodal = [
            text for text in AMODAL if occluder is not None or "{occluder}" not in text
        ]
        yield _item(
            context,
            region,
            context.random.choice(amodal).format(**words),
            "amodal",
            "referring",
        )


def _reasoning(
    context: GrammarContext, region: RegionFacts, proposals: list[ProposedQuestion]
) -> Iterator[dict[str, Any]]:
    picked = context.random.sample(
        proposals, min(2 if region.is_occluded else 1, len(proposals))
    )
    if picked:
        request = context.random.choice(VISIBLE_REQUESTS).format(it=_it(region))
        yield _item(
            context, region, picked[0].question + request, "visible", "reasoning"
        )
    if picked and region.is_occluded:
        request = context.random.choice(AMODAL_REQUESTS).format(it=_it(region))
        yield _item(
            context, region, picked[-1].question + request, "amodal", "reasoning"
        )


def _item(
    context: GrammarContext,
    region: RegionFacts,
    question: str,
    mask_type: str,
    kind: str,
) -> dict[str, Any]:
    opening = (
        "these are "
        if region.noun.is_plural
        else context.random.choice(("this is ", "that is ", "it is "))
    )
    ending = ", with its hidden part." if mask_type == "amodal" else "."
    phrase = AnswerPhrase(context.names[region.id], (region.number,))
    item = ProposedQuestion(question, (opening, phrase, ending), kind).to_item()
    return item | {"mask_type": mask_type, "kind": kind}


def _occluder(context: GrammarContext, region: RegionFacts) -> str | None:
    """The phrase of what hides an object, if one annotated object does that and can be singled out."""
    front = context.facts.main_occluder(region.id)
    return None if front is None else context.names.get(front.id)


def _it(region: RegionFacts) -> str:
    return "them" if region.noun.is_plural else "it"


R2SM = Recipe(
    name="r2sm",
    title="per object, questions in visible and in amodal wording, referring and reasoning",
    prompt_version="r2sm 1",
    instructions=INSTRUCTIONS,
    per_image=3 * MAX_OBJECTS,
    write=write,
    reasoning_share=0.5,
)
