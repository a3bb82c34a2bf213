"""Shapes of the categories: each of them stands on the ground and is well formed."""

import math

import numpy as np
import pytest

from maskwise.world.catalogue import CATEGORIES
from maskwise.world.facets import DirectionalLight, FacetBuilder, ObjectShape
from maskwise.world.paints import FIXED, paints_for
from maskwise.world.random_streams import RandomStream
from maskwise.world.rasterizer import ObjectPlacement, rasterize
from maskwise.world.shapes import SHAPES
from maskwise.world.shapes.orientation import lying_turn

LIGHT = DirectionalLight(0.5, 0.6, 0.62)
VARIANTS = 12


def stream(seed: int) -> RandomStream:
    return RandomStream(np.random.SeedSequence(seed))


def build(category: str, seed: int, tilt: float = 0.4) -> ObjectShape:
    rng = stream(seed)
    color = CATEGORIES[category].colors[0]
    material = CATEGORIES[category].materials[0]
    builder = FacetBuilder(tilt, LIGHT, paints_for(color, material, rng))
    SHAPES[category](builder, rng)
    return builder.build()


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_shape_depends_on_its_stream_alone(category: str) -> None:
    first = build(category, 3)
    again = build(category, 3)
    assert (first.points == again.points).all()
    assert [facet.part for facet in first.facets] == [
        facet.part for facet in again.facets
    ]


@pytest.mark.parametrize("category", CATEGORIES)
def test_outlines_are_finite_polygons(category: str) -> None:
    for seed in range(VARIANTS):
        shape = build(category, seed)
        assert np.isfinite(shape.points).all()
        for facet in shape.facets:
            assert len(facet.outline) >= 3
            assert facet.outline.shape[1] == 2


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_shape_fits_the_byte_that_numbers_its_facets(category: str) -> None:
    for seed in range(VARIANTS):
        assert len(build(category, seed).facets) <= 255


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_shape_is_one_or_two_units_large_and_centered(category: str) -> None:
    for seed in range(VARIANTS):
        shape = build(category, seed)
        left, low = shape.low.min(0)
        right, high = shape.high.max(0)
        assert 0.8 < max(right - left, high - low) < 3.2
        assert left < 0 < right
        assert high > 0


@pytest.mark.parametrize("category", CATEGORIES)
def test_a_shape_stands_at_its_ground_point(category: str) -> None:
    """Its lowest point is that of a base of at most a unit's depth, seen from above."""
    for seed in range(VARIANTS):
        low = build(category, seed).low.min(0)[1]
        assert -1.2 * 0.4 * 1.5 < low < 0.12


@pytest.mark.parametrize("category", CATEGORIES)
def test_every_part_is_in_sight_in_most_variants(category: str) -> None:
    """Drawn alone and large, each part of the category shows."""
    seen = dict.fromkeys(CATEGORIES[category].parts, 0)
    for seed in range(VARIANTS):
        shape = build(category, seed)
        extent = float((shape.high.max(0) - shape.low.min(0)).max())
        place = ObjectPlacement(100.0, 150.0, 90.0 / extent)
        raster = rasterize(shape, place, 200, LIGHT)
        assert raster is not None
        shown = set(np.unique(raster.facet).tolist()) - {0}
        for part in {shape.facets[number - 1].part for number in shown}:
            seen[part] += 1
    assert min(seen.values()) >= VARIANTS // 2, seen


@pytest.mark.parametrize("category", CATEGORIES)
def test_parts_that_carry_the_color_are_painted_with_it(category: str) -> None:
    carriers = CATEGORIES[category].color_on or CATEGORIES[category].parts
    fixed_colors = {paint.rgb for paint in FIXED.values()}
    for seed in range(4):
        shape = build(category, seed)
        for part in carriers:
            colors = {facet.paint.rgb for facet in shape.facets if facet.part == part}
            if CATEGORIES[category].color_on:
                assert colors - fixed_colors, part


@pytest.mark.parametrize(
    "category", [name for name, category in CATEGORIES.items() if category.flat]
)
def test_flat_objects_lie_on_the_ground(category: str) -> None:
    """Seen from the side (no tilt) they are thin."""
    for seed in range(VARIANTS):
        shape = build(category, seed, tilt=0.0)
        left, low = shape.low.min(0)
        right, high = shape.high.max(0)
        assert high - low < 0.45
        assert right - left > 2 * (high - low)


def test_lying_objects_never_point_at_the_viewer() -> None:
    rng = stream(5)
    turns = [lying_turn(rng, 0.75) for _ in range(400)]
    across = np.abs(np.cos(turns))
    assert across.min() >= math.cos(0.75)
    points_left = np.cos(turns) < 0
    assert 0.4 < points_left.mean() < 0.6


@pytest.mark.parametrize("category", ["mug", "teapot", "pan", "apple"])
def test_handed_shapes_come_in_both_hands(category: str) -> None:
    """The center of the outline lies on either side of the axis."""
    middles = []
    for seed in range(24):
        shape = build(category, seed)
        middles.append(float(shape.low.min(0)[0] + shape.high.max(0)[0]))
    assert min(middles) < -0.01
    assert max(middles) > 0.01


def test_a_box_shows_two_sides() -> None:
    for seed in range(VARIANTS):
        shape = build("box", seed)
        body = [facet for facet in shape.facets if facet.part == "body"]
        assert len(body) == 3, "side, front and top"
