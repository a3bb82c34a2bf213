"""The recipes that write questions, by name."""

from maskwise.builder.recipe import Recipe
from maskwise.registry import RECIPES


def find_recipe(name: str) -> Recipe:
    """The recipe of a name or of `package.module:attribute`; UnknownNameError lists the
    known ones.
    """
    return RECIPES.load(name, Recipe)
