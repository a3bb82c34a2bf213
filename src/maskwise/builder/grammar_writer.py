"""The grammar as the writer of a recipe: offline, and the same for the same image and seed."""

from random import Random
from typing import Any

import msgspec

from maskwise.builder.captions import write_caption
from maskwise.builder.draft import Draft, SourceImage
from maskwise.builder.facts import ImageFacts, measure_image
from maskwise.builder.grammar import ProposedQuestion
from maskwise.builder.object_questions import GrammarContext
from maskwise.builder.recipe import Recipe, output_to_drafts


def write_with_grammar(
    recipe: Recipe, image: SourceImage, seed: int = 0
) -> list[Draft]:
    """The grammar's drafts about one image; they depend on the image's id and regions, the recipe and the seed."""
    facts = measure_image(image)
    proposals = _propose(recipe, facts, seed)
    output = _to_output(recipe, facts, proposals)
    drafts, _ = output_to_drafts(output, facts, recipe)
    return [
        msgspec.structs.replace(draft, tags=draft.tags | proposal.all_tags)
        for draft, proposal in zip(drafts, proposals, strict=True)
    ]


def write_output(recipe: Recipe, facts: ImageFacts, seed: int = 0) -> dict[str, Any]:
    """The JSON object that a language model would return."""
    return _to_output(recipe, facts, _propose(recipe, facts, seed))


def _to_output(
    recipe: Recipe, facts: ImageFacts, proposals: list[ProposedQuestion]
) -> dict[str, Any]:
    samples = [proposal.to_item() for proposal in proposals]
    if recipe.caption:
        return {"caption": write_caption(facts), "samples": samples}
    return {"samples": samples}


def _propose(recipe: Recipe, facts: ImageFacts, seed: int) -> list[ProposedQuestion]:
    random = Random(f"{seed} {recipe.name} {facts.image.info.id}")
    context = GrammarContext(
        facts,
        random,
        needs_amodal=recipe.mask_type == "both",
        grouped=recipe.grouped,
    )
    return recipe.write(context)
