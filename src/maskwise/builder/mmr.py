"""Recipe `mmr`: a caption first, then questions about several objects and parts at once.

After MMR (ICLR 2025): a global caption, then question-answer pairs about relations of objects and parts, functions of
parts and common sense. Questions contain neither names nor coordinates. Caption and pairs are one call here, the
caption first, so that it guides what follows and the image is paid for once.
"""

from collections import Counter
from typing import Any

from maskwise.builder.object_questions import (
    GrammarContext,
    ask_kinds,
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
from maskwise.builder.selection import mix
from maskwise.language.word_forms import (
    NUMBERS,
    join_words,
    to_plural,
    with_article,
)

PER_IMAGE = 6
MOST_PER_FAMILY = 2

ASK = (
    ask_objects_with_parts,
    ask_two_parts,
    ask_two_uses,
    ask_parts,
    ask_alike_parts,
    ask_uses,
    ask_kinds,
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

MAX_COUNTED = 6
"""Objects of one name that a caption counts; nobody counts more at a glance."""


def write(context: GrammarContext) -> dict[str, Any]:
    """The grammar's output."""
    families = [list(ask(context)) for ask in ASK]
    samples = [
        proposal.to_item()
        for proposal in mix(families, PER_IMAGE, context.random, most=MOST_PER_FAMILY)
    ]
    return {"caption": _caption(context), "samples": samples}


def _caption(context: GrammarContext) -> str:
    counts = Counter(region.noun.text for region in context.facts.objects).most_common(
        6
    )
    named = [_counted(noun, count) for noun, count in counts]
    return (
        f"The image shows {join_words(named)}."
        if named
        else "The image shows nothing that is annotated."
    )


def _counted(noun: str, count: int) -> str:
    """A noun with its number: "a cup", "two cups", "several cups"."""
    if count == 1:
        return with_article(noun)
    number = NUMBERS[count] if count <= MAX_COUNTED else "several"
    return f"{number} {to_plural(noun)}"


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
)
