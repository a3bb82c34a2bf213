"""Rasterized objects: exact masks at pixel centers, anti-aliased colors."""

import numpy as np
import pytest

from maskwise.world.facets import DirectionalLight, FacetBuilder, ObjectShape, Paint
from maskwise.world.rasterizer import ObjectPlacement, rasterize

LIGHT = DirectionalLight(0.48, 0.6, 0.64)
PAINTS = {
    "main": Paint((0.8, 0.2, 0.1), 0.0),
    "accent": Paint((0.1, 0.2, 0.8), 0.0),
    "glossy": Paint((0.2, 0.2, 0.2), 0.8),
    "wooden": Paint((0.6, 0.5, 0.3), 0.0, "wood"),
}


def flat_square(paint: str = "main") -> ObjectShape:
    """A square of two units, evenly bright, its lower edge on the ground."""
    builder = FacetBuilder(0.4, LIGHT, PAINTS)
    outline = np.array([(-1.0, 0.0), (1.0, 0.0), (1.0, 2.0), (-1.0, 2.0)])
    builder.add("body", outline, paint, 1.0)
    return builder.build()


def ball(paint: str = "main") -> ObjectShape:
    builder = FacetBuilder(0.4, LIGHT, PAINTS)
    builder.ball("body", (0, 1, 0), 1.0, paint)
    return builder.build()


def full_mask(shape: ObjectShape, place: ObjectPlacement, size: int) -> np.ndarray:
    raster = rasterize(shape, place, size, LIGHT)
    mask = np.zeros((size, size), bool)
    if raster is not None:
        mask[raster.window] = raster.facet > 0
    return mask


def test_a_square_covers_exactly_its_pixels() -> None:
    mask = full_mask(flat_square(), ObjectPlacement(20.0, 30.0, 5.0), 40)
    expected = np.zeros((40, 40), bool)
    expected[20:30, 15:25] = True
    assert (mask == expected).mean() > 0.98, "one row of rounding at most"
    assert mask[21:29, 16:24].all()
    assert not mask[:19].any()
    assert not mask[32:].any()


@pytest.mark.parametrize(
    "place", [(-60.0, 20.0), (100.0, 20.0), (20.0, -30.0), (20.0, 90.0)]
)
def test_an_object_outside_the_image_has_no_raster(place: tuple[float, float]) -> None:
    assert rasterize(flat_square(), ObjectPlacement(*place, 5.0), 40, LIGHT) is None


def test_an_object_is_cropped_to_the_image() -> None:
    place = ObjectPlacement(0.0, 45.0, 10.0)
    raster = rasterize(ball(), place, 40, LIGHT)
    assert raster is not None
    rows, columns = raster.window
    assert columns.start == 0
    assert rows.stop <= 40
    whole = full_mask(ball(), place._replace(x=60.0, y=65.0), 120)
    assert (full_mask(ball(), place, 40) == whole[20:60, 60:100]).all()


@pytest.mark.parametrize("shift", [(1, 0), (0, 1), (7, 11)])
def test_moving_by_whole_pixels_moves_mask_and_colors(shift: tuple[int, int]) -> None:
    right, down = shift
    place = ObjectPlacement(20.3, 30.7, 8.0)
    moved = ObjectPlacement(20.3 + right, 30.7 + down, 8.0)
    first = rasterize(ball("glossy"), place, 80, LIGHT)
    second = rasterize(ball("glossy"), moved, 80, LIGHT)
    assert first is not None
    assert second is not None
    assert (second.row - first.row, second.column - first.column) == (down, right)
    assert (first.facet == second.facet).all()
    assert first.color == pytest.approx(second.color, abs=2e-3)


@pytest.mark.parametrize("scale", [6.0, 20.0, 45.0])
def test_the_area_of_a_ball_is_that_of_its_circle(scale: float) -> None:
    mask = full_mask(ball(), ObjectPlacement(60.0, 110.0, scale), 120)
    # The outline is a polygon of 24 corners, which is 1 % smaller.
    assert mask.sum() == pytest.approx(np.pi * scale**2, rel=0.08)


def test_cover_is_full_inside_and_partial_at_the_edge() -> None:
    raster = rasterize(ball(), ObjectPlacement(30.0, 50.0, 20.0), 60, LIGHT)
    assert raster is not None
    assert raster.cover.min() == 0.0
    assert raster.cover.max() == 1.0
    partial = (raster.cover > 0) & (raster.cover < 1)
    assert 0.02 < partial.mean() < 0.2
    assert (raster.cover[raster.facet > 0] > 0).all()


def test_colors_are_multiplied_by_cover() -> None:
    raster = rasterize(flat_square(), ObjectPlacement(20.4, 30.6, 5.0), 40, LIGHT)
    assert raster is not None
    red, green, blue = raster.color
    # Bytes are rounded: 1 / 200 of the brightness.
    assert red == pytest.approx(0.8 * raster.cover, abs=0.01)
    assert green == pytest.approx(0.2 * raster.cover, abs=0.01)
    assert blue == pytest.approx(0.1 * raster.cover, abs=0.01)


def test_later_facets_cover_earlier_ones() -> None:
    builder = FacetBuilder(0.4, LIGHT, PAINTS)
    builder.ball("body", (0, 1, 0), 1.0)
    builder.ball("spot", (0, 1, 0), 0.5, "accent")
    raster = rasterize(builder.build(), ObjectPlacement(30.0, 50.0, 20.0), 60, LIGHT)
    assert raster is not None
    body_pixels = (raster.facet == 1).sum()
    spot_pixels = (raster.facet == 2).sum()
    assert spot_pixels / (body_pixels + spot_pixels) == pytest.approx(0.25, abs=0.03)
    red, _, blue = raster.color
    assert (blue[raster.facet == 2] > red[raster.facet == 2]).mean() > 0.9


def test_the_side_towards_the_light_is_brighter() -> None:
    raster = rasterize(ball(), ObjectPlacement(30.0, 50.0, 20.0), 60, LIGHT)
    assert raster is not None
    red = raster.color[0]
    middle = red.shape[1] // 2
    assert red[:, middle:].sum() > red[:, :middle].sum()
    assert red[: len(red) // 2].sum() > red[len(red) // 2 :].sum()


def test_gloss_adds_a_white_spot() -> None:
    place = ObjectPlacement(30.0, 50.0, 20.0)
    glossy = rasterize(ball("glossy"), place, 60, LIGHT)
    assert glossy is not None
    red, _, blue = glossy.color
    brightest = np.unravel_index(red.argmax(), red.shape)
    assert red[brightest] > 0.4, "brighter than its paint of 0.2"
    assert red[brightest] == pytest.approx(blue[brightest], abs=0.02)


def test_a_texture_changes_colors_and_not_the_mask() -> None:
    place = ObjectPlacement(30.0, 50.0, 15.0)
    plain = rasterize(flat_square(), place, 60, LIGHT)
    wooden = rasterize(flat_square("wooden"), place, 60, LIGHT)
    assert plain is not None
    assert wooden is not None
    assert (plain.facet == wooden.facet).all()
    inside = wooden.cover == 1
    assert plain.color[0][inside].std() < 0.01
    assert wooden.color[0][inside].std() > 0.02
