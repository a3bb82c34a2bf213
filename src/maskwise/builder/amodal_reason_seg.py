"""Recipe `amodal-reason-seg`: implicit questions whose answers combine objects, each with both masks.

After AmodalReasonSeg (AURA, ICCV 2025): about ten question-answer pairs per image. A question does not name what it
asks for. The answer names every target in a phrase of its own, and different objects are combined in one answer. Both
masks of a target belong to the ground truth, so `mask_type` is "both".
"""

from maskwise.builder.grammar import ProposedQuestion
from maskwise.builder.object_questions import (
    GrammarContext,
    ask_choices,
    ask_comparisons,
    ask_counts,
    ask_ends,
    ask_hidden,
    ask_neighbors,
    ask_occluders,
    ask_remaining,
    ask_riddles,
    ask_surfaces,
    ask_three_uses,
    ask_two_uses,
    ask_uses,
)
from maskwise.builder.recipe import Recipe
from maskwise.builder.selection import add_introduction, mix

PER_IMAGE = 10
MOST_PER_FAMILY = 4

ASK = (
    ask_uses,
    ask_two_uses,
    ask_occluders,
    ask_hidden,
    ask_riddles,
    ask_surfaces,
    ask_comparisons,
    ask_remaining,
    ask_neighbors,
    ask_choices,
    ask_counts,
    ask_ends,
    ask_three_uses,
)

INSTRUCTIONS = f"""\
Write {PER_IMAGE} question-answer pairs about this image, fewer if it shows too little.

A question is implicit: it asks for objects by their use, their state, their place or what common sense says about
them, never by their name or a synonym of it. It cannot be answered without looking at the image, and it reads like
something a person would ask. Vary the perspective: needs, dangers, relations between objects, and what hides what.

An answer is one sentence. Where it makes sense it combines different objects. Every object that answers the question
gets a phrase of its own in the answer, such as "the cup on the left", and no object that does not answer it gets one.
For every phrase give the number of its region."""


def write(context: GrammarContext) -> list[ProposedQuestion]:
    """The grammar's questions: a mix of all families about objects."""
    families = [list(ask(context)) for ask in ASK]
    chosen = mix(
        families,
        PER_IMAGE,
        context.random,
        most=MOST_PER_FAMILY,
        facts=context.facts,
    )
    return [
        add_introduction(proposal, context.facts, context.random) for proposal in chosen
    ]


AMODAL_REASON_SEG = Recipe(
    name="amodal-reason-seg",
    title="about ten implicit question-answer pairs per image; answers combine objects, with both masks",
    prompt_version="amodal-reason-seg 1",
    instructions=INSTRUCTIONS,
    per_image=PER_IMAGE,
    write=write,
    mask_type="both",
    kind="reasoning",
)
