"""What a language model is told about an image: the recipe's instructions, and its regions by number."""

from typing import NamedTuple

from maskwise.builder.facts import ImageFacts, RegionFacts
from maskwise.builder.recipe import Recipe, output_schema
from maskwise.builder.region_marks import encode_marks
from maskwise.writers.request import CompletionRequest

MAX_MARKS = 60
"""Regions that are marked in one image, the largest ones; more would cover each other."""

CAPTION_TOKENS = 60
"""About how many tokens a caption of two sentences has."""

TOKEN_MARGIN = 2.5
"""A reply may be this many times as long as expected before it is cut off."""

SYSTEM = """\
You write questions and answers for a benchmark of reasoning segmentation. You see an image on which regions are
outlined and numbered, and a list of these regions. The list is correct: trust it where you cannot recognise a region.
Readers see the plain image, without outlines and numbers, so never mention marks, regions, numbers, outlines or
coordinates. Write plain, natural English. Return only the JSON object that the schema describes."""


class MarkedRegions(NamedTuple):
    """What a model sees of an image: the image with outlines and numbers, a line about each region, the ids of regions
    by number.
    """

    image: bytes
    lines: tuple[str, ...]
    ids: dict[int, str]


def mark_regions(facts: ImageFacts, recipe: Recipe) -> MarkedRegions | None:
    """The regions of an image that a recipe may ask about; None if there is none."""
    marked = _choose(facts, recipe)
    if not marked:
        return None
    assert facts.image.load is not None, "images of a dataset can be opened"
    regions = {region.number: facts.image.by_id[region.id] for region in marked}
    return MarkedRegions(
        image=encode_marks(facts.image.load(), regions),
        lines=tuple(_describe(region, facts) for region in marked),
        ids={region.number: region.id for region in marked},
    )


def make_request(facts: ImageFacts, recipe: Recipe) -> CompletionRequest | None:
    """The request about one image; None if it has no region that could be asked about."""
    regions = mark_regions(facts, recipe)
    if regions is None:
        return None
    return CompletionRequest(
        prompt_version=recipe.prompt_version,
        system=SYSTEM,
        text="\n".join((recipe.instructions, "", "The regions:", *regions.lines)),
        schema=output_schema(recipe),
        image=regions.image,
        max_tokens=round(TOKEN_MARGIN * expected_tokens(recipe)),
    )


def expected_tokens(recipe: Recipe) -> int:
    """About how many tokens a reply has."""
    return recipe.per_image * recipe.answer_tokens + CAPTION_TOKENS * recipe.caption


def _choose(facts: ImageFacts, recipe: Recipe) -> list[RegionFacts]:
    """The regions that are marked, in the order of their numbers."""
    regions = facts.regions if recipe.parts else facts.objects
    candidates = [region for region in regions if region.is_suitable]
    largest = sorted(candidates, key=lambda region: -region.share)[:MAX_MARKS]
    return sorted(largest, key=lambda region: region.number)


def _describe(region: RegionFacts, facts: ImageFacts) -> str:
    """One line of the list: number, name, place, size and what hides it."""
    name = region.noun.text
    for whole in facts.objects:
        if whole.id == region.part_of:
            name = f"{name} (part of {whole.number})"
    size = f"{100 * region.share:.1f} % of the image"
    line = f"{region.number}: {name}; {_place(region)}; {size}"
    if not region.is_occluded:
        return line
    line += f"; occluded: {100 * (region.occlusion or 0):.0f} % is hidden"
    occluders = facts.hidden_by.get(region.id, ())
    if occluders:
        numbers = ", ".join(str(occluder.number) for occluder in occluders)
        line += f" by {numbers}"
    return line


def _place(region: RegionFacts) -> str:
    """The third of the image in which the center lies, down and across."""
    x, y = region.center
    across = "left" if x < 1 / 3 else "right" if x > 2 / 3 else "center"
    down = "top" if y < 1 / 3 else "bottom" if y > 2 / 3 else "middle"
    return f"{down} {across}"
