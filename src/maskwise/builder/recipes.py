"""The recipes that write questions, by name."""

from maskwise.builder.amodal_reason_seg import AMODAL_REASON_SEG
from maskwise.builder.mmr import MMR
from maskwise.builder.r2sm import R2SM
from maskwise.builder.recipe import Recipe
from maskwise.errors import UnknownNameError

RECIPES = {recipe.name: recipe for recipe in (AMODAL_REASON_SEG, R2SM, MMR)}


def find_recipe(name: str) -> Recipe:
    """The recipe of a name."""
    if name not in RECIPES:
        raise UnknownNameError("recipe", name, list(RECIPES))
    return RECIPES[name]
