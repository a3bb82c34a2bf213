"""Recipe `mmr`: a caption first, then questions about several objects and parts at once.

After MMR (ICLR 2025): a global caption, then question-answer pairs about relations of objects and parts, functions of
parts and common sense. Questions contain neither names nor coordinates. Caption and pairs are one call here, the
caption first, so that it guides what follows and the image is paid for once.
"""

from maskwise.builder.grammar import ProposedQuestion
from maskwise.builder.object_questions import (
    GrammarContext,
    ask_choices,
    ask_comparisons,
    ask_counts,
    ask_ends,
    ask_neighbors,
    ask_remaining,
    ask_riddles,
    ask_three_uses,
    ask_two_uses,
    ask_uses,
)
from maskwise.builder.part_questions import (
    ask_alike_parts,
    ask_objects_with_parts,
    ask_parts,
    ask_two_parts,
)
from maskwise.builder.recipe import Recipe
from maskwise.builder.selection import add_introduction, mix

PER_IMAGE = 6
"""Questions about one image that a language model is asked for; MMR has 3.4, and some are dropped by filters."""

MOST_WRITTEN = 8
"""Questions about one image by the grammar: where there are few objects it has fewer than MMR's 3.4, and others make up
for them."""

MOST_PER_FAMILY = 3

MULTI_SHARE = 0.7
"""Share of questions about several targets that is aimed at where there are some: MMR has 63 %, and
about half of COCO's images allow none."""

SINGLE_SHARE = 0.55
"""Questions about one target for each about several; at least one."""

ASK = (
    ask_objects_with_parts,
    ask_two_parts,
    ask_two_uses,
    ask_three_uses,
    ask_parts,
    ask_alike_parts,
    ask_uses,
    ask_remaining,
    ask_counts,
    ask_ends,
    ask_riddles,
    ask_neighbors,
    ask_choices,
    ask_comparisons,
)

INSTRUCTIONS = f"""\
First write a caption of the whole image in one or two sentences. Then write {PER_IMAGE} question-answer pairs, fewer if
the image shows too little.

A question asks about several targets at once where that is natural: objects, parts, or objects together with their
parts. It is about how objects and parts relate, what parts are for, or what common sense says. It contains no name of
an object or part of this image, no synonym of one, and no coordinates or region numbers. It reads like something a
person would ask in a conversation about the image.

An answer is one or two sentences. Every target gets a phrase of its own in the answer, such as "the handle of the knife
on the left". For every phrase give the number of its region, or of its regions if the phrase means several."""


def write(context: GrammarContext) -> list[ProposedQuestion]:
    """The grammar's questions."""
    families = [list(ask(context)) for ask in ASK]
    chosen = mix(
        families,
        MOST_WRITTEN,
        context.random,
        most=MOST_PER_FAMILY,
        facts=context.facts,
        multi_share=MULTI_SHARE,
    )
    balanced = _limit_single_targets(chosen)
    return [
        add_introduction(proposal, context.facts, context.random)
        for proposal in balanced
    ]


def _limit_single_targets(chosen: list[ProposedQuestion]) -> list[ProposedQuestion]:
    """All questions about several targets, and a share of the others, in their order."""
    several = sum(len(proposal.about) > 1 for proposal in chosen)
    allowed = max(1, round(SINGLE_SHARE * several))
    single = [proposal for proposal in chosen if len(proposal.about) == 1]
    kept = {id(proposal) for proposal in single[:allowed]}
    return [
        proposal
        for proposal in chosen
        if len(proposal.about) > 1 or id(proposal) in kept
    ]


MMR = Recipe(
    name="mmr",
    title="a caption, then questions about several objects and parts, without their names",
    prompt_version="mmr 1",
    instructions=INSTRUCTIONS,
    per_image=PER_IMAGE,
    write=write,
    mask_type="visible",
    kind="reasoning",
    parts=True,
    caption=True,
    grouped=True,
)
