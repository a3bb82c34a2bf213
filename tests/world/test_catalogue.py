"""The catalogue is complete and means what it says."""

import numpy as np
import pytest

from maskwise.world import make_scene
from maskwise.world.catalogue import (
    AFFORDANCES,
    CATEGORIES,
    COLORS,
    CONFUSABLE,
    HELD_OUT,
    MATERIALS,
    PART_AFFORDANCES,
    SETTINGS,
    SUPERCATEGORIES,
)
from maskwise.world.facets import DirectionalLight, FacetBuilder
from maskwise.world.paints import paints_for
from maskwise.world.random_streams import RandomStream
from maskwise.world.shapes import SHAPES


def rasterize(category: str, variant: int) -> FacetBuilder:
    rng = RandomStream(np.random.SeedSequence([variant, *category.encode()]))
    color = CATEGORIES[category].colors[0]
    material = CATEGORIES[category].materials[0]
    builder = FacetBuilder(
        rng.uniform(0.26, 0.52),
        DirectionalLight(0.5, 0.6, 0.62),
        paints_for(color, material, rng),
    )
    SHAPES[category](builder, rng)
    return builder


def test_there_are_enough_categories_each_with_a_shape() -> None:
    assert len(CATEGORIES) >= 24
    assert set(SHAPES) == set(CATEGORIES)


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_shape_draws_the_parts_it_declares(category: str) -> None:
    declared = CATEGORIES[category].parts
    assert len(declared) >= 2
    assert len(set(declared)) == len(declared)
    for variant in range(6):
        assert {facet.part for facet in rasterize(category, variant).facets} == set(
            declared
        )


@pytest.mark.parametrize("category", CATEGORIES)
def test_variants_differ(category: str) -> None:
    widths = {
        tuple(rasterize(category, variant).build().high.max(0).round(3))
        for variant in range(6)
    }
    assert len(widths) == 6


def test_names_in_the_catalogue_exist() -> None:
    for category in CATEGORIES.values():
        assert set(category.colors) <= set(COLORS)
        assert set(category.materials) <= set(MATERIALS)
        assert set(category.color_on) <= set(category.parts)
        assert set(category.tints) <= set(COLORS)
        assert any(getattr(category, setting) for setting in SETTINGS)
    for group in [*SUPERCATEGORIES.values(), *AFFORDANCES.values()]:
        assert set(group.yes) <= set(CATEGORIES)
        assert set(group.unsure) <= set(CATEGORIES)
        assert not set(group.yes) & set(group.unsure)
    for use in PART_AFFORDANCES.values():
        assert all(
            part in CATEGORIES[category].parts
            for category, part in use.yes + use.unsure
        )
        assert use.names
        assert use.asks
    assert set(CONFUSABLE) | {
        name for names in CONFUSABLE.values() for name in names
    } <= set(CATEGORIES)


def test_other_names_are_no_categories() -> None:
    spoken = [name for category in CATEGORIES.values() for name in category.also]
    assert len(set(spoken)) == len(spoken)
    assert not set(spoken) & set(CATEGORIES)


def test_every_category_has_colors_on_both_sides_of_the_split() -> None:
    for name, category in CATEGORIES.items():
        assert HELD_OUT[name] < set(category.colors)
        assert HELD_OUT[name]
        assert len(category.colors) - len(HELD_OUT[name]) >= 2
    for color in COLORS:
        assert sum(color in held for held in HELD_OUT.values()) < len(CATEGORIES) / 2


def test_every_category_and_part_appears() -> None:
    """With so many scenes a category is missing once in a million."""
    seen = {
        (node.category, node.part)
        for index in range(130)
        for node in make_scene(2, index, size=64, questions=0).nodes
    }
    wanted = {
        (name, part)
        for name, category in CATEGORIES.items()
        for part in (None, *category.parts)
    }
    assert wanted <= seen
