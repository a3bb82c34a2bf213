"""The grammar as the writer of a recipe: offline, and the same for the same image and seed."""

from random import Random
from typing import Any

from maskwise.builder.draft import Draft, SourceImage
from maskwise.builder.facts import ImageFacts
from maskwise.builder.object_questions import GrammarContext
from maskwise.builder.recipe import Recipe, output_to_drafts


def write_with_grammar(
    recipe: Recipe, image: SourceImage, seed: int = 0
) -> list[Draft]:
    """The grammar's drafts about one image; they depend on the image's id and regions, the recipe and the seed."""
    facts = ImageFacts(image)
    output = write_output(recipe, facts, seed)
    drafts, _ = output_to_drafts(output, facts, recipe)
    return drafts


def write_output(recipe: Recipe, facts: ImageFacts, seed: int = 0) -> dict[str, Any]:
    """The JSON object that a language model would return."""
    return recipe.write(
        GrammarContext(facts, Random(f"{seed} {recipe.name} {facts.image.info.id}"))
    )
