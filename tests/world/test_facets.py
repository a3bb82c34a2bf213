"""Solids become the polygons that a parallel view from above shows."""

import math

import numpy as np
import pytest

from maskwise.world.facets import (
    AMBIENT,
    DETAIL,
    DIFFUSE,
    BallShading,
    DirectionalLight,
    FacetBuilder,
    LatheShading,
    Paint,
    TubeShading,
    curve,
    ellipse,
    rotation,
    rounded,
    tapered,
)

LIGHT = DirectionalLight(0.48, 0.6, 0.64)
PAINTS = {name: Paint((0.5, 0.5, 0.5)) for name in ("main", "accent", "shade", "steel")}
TILT = 0.4


@pytest.fixture
def builder() -> FacetBuilder:
    return FacetBuilder(TILT, LIGHT, PAINTS)


def area(outline: np.ndarray) -> float:
    x, y = outline.T
    return abs(float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum()) / 2)


# -- outlines ----------------------------------------------------------------------


def test_an_ellipse_has_its_radii() -> None:
    outline = ellipse(2.0, -1.0, 3.0, 0.5)
    assert outline.min(0) == pytest.approx([-1.0, -1.5])
    assert outline.max(0) == pytest.approx([5.0, -0.5])
    assert area(outline) == pytest.approx(math.pi * 1.5, rel=0.02)


def test_rounded_corners_stay_in_the_rectangle() -> None:
    outline = rounded((-1.0, 3.0), (0.0, 2.0), 0.5)
    assert outline.min(0) == pytest.approx([-1.0, 0.0])
    assert outline.max(0) == pytest.approx([3.0, 2.0])
    corner_loss = (4 - math.pi) * 0.25
    assert area(outline) == pytest.approx(8.0 - corner_loss, rel=0.01)


def test_a_tapered_outline_is_symmetrical() -> None:
    outline = tapered((0.0, 2.0), (3.0, 1.0), x=5.0)
    assert outline.tolist() == [[3, 0], [7, 0], [6, 3], [4, 3]]


def test_a_rotation_turns_anticlockwise() -> None:
    turned = np.array([(1.0, 0.0)]) @ rotation(math.pi / 2)
    assert turned[0] == pytest.approx([0.0, 1.0])


def test_a_curve_passes_through_its_points() -> None:
    points = np.array([(0.0, 0.0), (1.0, 2.0), (3.0, 1.0), (4.0, 4.0)])
    smooth = curve(points, 5)
    assert len(smooth) == 3 * 5 + 1
    assert smooth[::5] == pytest.approx(points)


def test_a_curve_of_a_line_is_the_line() -> None:
    line = np.array([(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)])
    smooth = curve(line, 4)
    assert smooth[:, 1] == pytest.approx(1 + 2 * smooth[:, 0])


# -- view and light ----------------------------------------------------------------


def test_height_goes_up_and_nearness_down(builder: FacetBuilder) -> None:
    origin, right, up, near = builder.project(
        [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    )
    assert origin == pytest.approx([0, 0])
    assert right == pytest.approx([1, 0])
    assert up == pytest.approx([0, math.sqrt(1 - TILT**2)])
    assert near == pytest.approx([0, -TILT])


def test_turning_keeps_heights_and_lengths_on_the_ground(builder: FacetBuilder) -> None:
    builder.turn_to(0.7)
    up, right = builder.project([(0, 1, 0), (1, 0, 0)])
    assert up == pytest.approx([0, builder.rise])
    assert math.hypot(right[0], right[1] / TILT) == pytest.approx(1.0)


def test_a_face_towards_the_light_is_brightest() -> None:
    towards = LIGHT.brightness(*LIGHT)
    assert towards == pytest.approx(AMBIENT + DIFFUSE)
    away = LIGHT.brightness(-LIGHT.x, -LIGHT.y, -LIGHT.z)
    assert away == AMBIENT
    assert away < LIGHT.brightness(0, 0, 1) < towards


# -- solids ------------------------------------------------------------------------


def test_a_box_shows_at_most_three_faces(builder: FacetBuilder) -> None:
    builder.cuboid("body", (-1, 1), (0, 1), (-1, 1))
    assert len(builder.facets) == 2, "front and top: the sides are seen edge-on"
    for turn in (0.5, -0.5, math.pi - 0.5):
        turned = FacetBuilder(TILT, LIGHT, PAINTS, turn)
        turned.cuboid("body", (-1, 1), (0, 1), (-1, 1))
        assert len(turned.facets) == 3


@pytest.mark.parametrize("turn", [0.0, 0.3, -0.8, 2.5])
def test_the_faces_of_a_box_cover_its_silhouette(turn: float) -> None:
    """They are the projection of all eight corners, without gap or overlap."""
    builder = FacetBuilder(TILT, LIGHT, PAINTS, turn)
    builder.cuboid("body", (-1.0, 1.0), (0.0, 0.8), (-0.5, 0.5))
    corners = builder.project(
        [(x, y, z) for x in (-1.0, 1.0) for y in (0.0, 0.8) for z in (-0.5, 0.5)]
    )
    points = np.concatenate([facet.outline for facet in builder.facets])
    assert points.min(0) == pytest.approx(corners.min(0))
    assert points.max(0) == pytest.approx(corners.max(0))
    from scipy.spatial import ConvexHull  # noqa: PLC0415

    silhouette = ConvexHull(corners).volume
    assert sum(area(facet.outline) for facet in builder.facets) == pytest.approx(
        silhouette
    )


def test_a_lathed_body_is_symmetrical_about_its_axis(builder: FacetBuilder) -> None:
    builder.lathe("body", [(0.0, 0.3), (0.4, 0.6), (1.0, 0.2)], x=0.5)
    (facet,) = builder.facets
    half = len(facet.outline) // 2
    right = facet.outline[:half]
    left = facet.outline[half:][::-1]
    assert right[:, 0] + left[:, 0] == pytest.approx(np.ones(half))
    assert (right[:, 1] == left[:, 1]).all()
    assert (np.diff(right[:, 1]) >= 0).all()
    assert facet.outline[:, 1].min() == pytest.approx(-0.3 * TILT)
    assert facet.outline[:, 1].max() == pytest.approx(builder.rise + 0.2 * TILT)
    assert isinstance(facet.shading, LatheShading)


def test_a_level_disc_is_an_ellipse_of_the_tilt(builder: FacetBuilder) -> None:
    builder.disc("top", 1.0, 0.5)
    (facet,) = builder.facets
    extent = facet.outline.max(0) - facet.outline.min(0)
    assert extent == pytest.approx([1.0, TILT])
    assert facet.outline.mean(0) == pytest.approx([0.0, builder.rise])


def test_a_rim_is_larger_and_brighter_than_the_disc(builder: FacetBuilder) -> None:
    builder.disc("top", 1.0, 0.5, rim=0.2)
    rim, disc = builder.facets
    assert area(disc.outline) == pytest.approx(0.64 * area(rim.outline))
    assert isinstance(rim.shading, float)
    assert isinstance(disc.shading, float)
    assert rim.shading > disc.shading


def test_an_opening_is_shaded_as_seen_from_inside(builder: FacetBuilder) -> None:
    builder.disc("top", 1.0, 0.5, hollow=True)
    (opening,) = builder.facets
    assert isinstance(opening.shading, LatheShading)
    assert opening.shading.hollow


def test_a_plate_shows_its_edge_in_front(builder: FacetBuilder) -> None:
    square = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]
    builder.slab("plate", square, thick=0.2)
    edge, top = builder.facets
    assert (top.outline - edge.outline)[:, 1] == pytest.approx(
        np.full(4, 0.2 * builder.rise)
    )
    assert edge.shading < top.shading


@pytest.mark.parametrize("turn", [0.0, 0.4, -0.4])
@pytest.mark.parametrize("clockwise", [False, True])
def test_a_thick_screen_is_the_area_its_front_sweeps(
    turn: float, clockwise: bool
) -> None:
    from scipy.spatial import ConvexHull  # noqa: PLC0415

    builder = FacetBuilder(TILT, LIGHT, PAINTS, turn)
    outline = ellipse(0.0, 1.0, 0.5, 0.5)
    if clockwise:
        outline = outline[::-1]
    builder.screen("plate", outline, thick=0.3)
    body, front = builder.facets
    back = front.outline - builder.project([(0.0, 0.0, 0.3)])
    swept = ConvexHull(np.concatenate([front.outline, back])).volume
    assert area(body.outline) == pytest.approx(swept, rel=1e-6)


def test_a_tube_has_the_given_thickness(builder: FacetBuilder) -> None:
    builder.tube("rod", [(0, 0, 0), (2, 0, 0)], 0.25, smooth=False)
    (facet,) = builder.facets
    assert area(facet.outline) == pytest.approx(2 * 0.5)
    assert facet.shading == TubeShading(0.25)


def test_a_tube_may_end_in_a_point(builder: FacetBuilder) -> None:
    builder.tube("leaf", [(0, 0, 0), (1, 0, 0), (2, 0, 0)], [0.0, 0.4, 0.0])
    (facet,) = builder.facets
    assert np.isfinite(facet.outline).all()
    assert facet.outline[0] == pytest.approx(facet.outline[-1])


def test_a_ball_looks_the_same_from_everywhere(builder: FacetBuilder) -> None:
    builder.ball("head", (0, 1, 0), 0.5)
    builder.turn_to(1.2)
    builder.ball("head", (0, 1, 0), 0.5)
    first, second = builder.facets
    assert (first.outline == second.outline).all()
    assert isinstance(first.shading, BallShading)


def test_details_are_no_part_of_the_silhouette(builder: FacetBuilder) -> None:
    builder.ball("body", (0, 1, 0), 1.0)
    builder.ball("eye", (0, 1, 1), 0.9 * DETAIL)
    builder.ball("head", (0, 2, 0), 1.1 * DETAIL)
    shape = builder.build()
    assert shape.bulk == (0, 2)
    same = np.array([1.0, 1.0])
    none = np.zeros(2)
    assert len(shape.outlines(same, none)) == 3
    assert len(shape.outlines(same, none, bulk=True)) == 2


def test_outlines_are_scaled_and_shifted(builder: FacetBuilder) -> None:
    builder.ball("body", (0, 0, 0), 1.0)
    shape = builder.build()
    (flat,) = shape.outlines(np.array([10.0, -10.0]), np.array([5.0, 7.0]))
    xs = flat[::2]
    ys = flat[1::2]
    assert (min(xs), max(xs)) == pytest.approx((-5.0, 15.0))
    assert (min(ys), max(ys)) == pytest.approx((-3.0, 17.0))
    turn = rotation(math.pi / 2)
    (turned,) = shape.outlines(turn, np.zeros(2))
    assert turned[:2] == pytest.approx([0.0, 1.0])
