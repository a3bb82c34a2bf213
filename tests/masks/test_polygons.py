"""Polygons and boxes, bit by bit as pycocotools draws them."""

import numpy as np
import pycocotools.mask as pm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwise.errors import MaskError
from maskwise.masks import Masks
from tests.masks.drawn import FILLED, polygons


def draw_official(polygon: list[float], size: tuple[int, int]) -> bytes:
    """Two points repeated stay the two edges they are; pycocotools takes a list of four numbers for a box."""
    xy = polygon[: len(polygon) // 2 * 2]
    while len(xy) < 6:
        xy = xy + xy[-2:]
    return pm.frPyObjects([xy], *size)[0]["counts"]


@settings(max_examples=120)
@given(st.lists(polygons(), min_size=1, max_size=5), FILLED)
def test_polygons(shapes: list[list[float]], size: tuple[int, int]) -> None:
    assert Masks.draw_polygons(shapes, size).to_strings() == [
        draw_official(shape, size) for shape in shapes
    ]


@given(st.lists(polygons(reach=3000.0), min_size=1, max_size=3), FILLED)
def test_polygons_that_leave_the_frame(
    shapes: list[list[float]], size: tuple[int, int]
) -> None:
    assert Masks.draw_polygons(shapes, size).to_strings() == [
        draw_official(shape, size) for shape in shapes
    ]


@given(st.integers(0, 2**32 - 1), st.integers(20, 400))
def test_long_polygons(seed: int, points: int) -> None:
    rng = np.random.default_rng(seed)
    walk = (np.cumsum(rng.normal(0, 6, (points, 2)), 0) + 40).ravel().tolist()
    noise = (rng.random(2 * points) * 90 - 5).tolist()
    size = (80, 100)
    assert Masks.draw_polygons([walk, noise], size).to_strings() == [
        draw_official(xy, size) for xy in (walk, noise)
    ]


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.2, 0.5, 1.0, 0.013]))
def test_edges_over_hundreds_of_columns(seed: int, grid: float) -> None:
    """On a coarse grid edges pass exactly between two rows, where rounding decides."""
    rng = np.random.default_rng(seed)
    size = (300, 700)
    corners = [rng.uniform(-40, 740, (points, 2)) for points in (3, 4, 9)]
    shapes = [(np.round(xy / grid) * grid).ravel().tolist() for xy in corners]
    assert Masks.draw_polygons(shapes, size).to_strings() == [
        draw_official(shape, size) for shape in shapes
    ]


@given(st.lists(st.lists(polygons(), max_size=3), max_size=4), FILLED)
def test_objects_are_unions(
    objects: list[list[list[float]]], size: tuple[int, int]
) -> None:
    short = [
        item
        for item, parts in enumerate(objects)
        if parts and all(len(part) < 6 for part in parts)
    ]
    if short:
        with pytest.raises(MaskError, match="three points") as caught:
            Masks.from_polygons(objects, size)
        assert caught.value.item == short[0]
        return
    masks = Masks.from_polygons(objects, size)
    for counts, parts in zip(masks.to_strings(), objects):
        official = [
            {"size": list(size), "counts": draw_official(part, size)} for part in parts
        ]
        whole = [{"size": list(size), "counts": Masks.empty([size]).to_strings()[0]}]
        assert counts == pm.merge(official + whole)["counts"]


@given(
    st.lists(
        st.tuples(
            *[st.floats(-30, 60, width=32)] * 2, *[st.floats(0, 60, width=32)] * 2
        ),
        min_size=1,
    ),
    FILLED,
)
def test_boxes(
    boxes: list[tuple[float, float, float, float]], size: tuple[int, int]
) -> None:
    official = pm.frPyObjects(np.array(boxes), *size)
    assert Masks.from_boxes(boxes, size).to_strings() == [
        rle["counts"] for rle in official
    ]


@given(
    st.lists(polygons(), min_size=1, max_size=5),
    st.sampled_from([(0, 3), (3, 0), (0, 0)]),
)
def test_frames_without_pixels(
    shapes: list[list[float]], size: tuple[int, int]
) -> None:
    """Where pycocotools draws outside of the frame."""
    assert Masks.draw_polygons(shapes, size).to_strings() == [b"0"] * len(shapes)


def test_a_square_by_hand() -> None:
    (mask,) = Masks.from_polygons([[[1, 1, 3, 1, 3, 3, 1, 3]]], (4, 5))
    assert mask.to_dense().astype(int).tolist() == [
        [0, 0, 0, 0, 0],
        [0, 1, 1, 0, 0],
        [0, 1, 1, 0, 0],
        [0, 0, 0, 0, 0],
    ]
    assert Masks.from_polygons([[]], (4, 5)).area().tolist() == [0]
    assert Masks.from_polygons([], (4, 5)) == Masks.none()
    assert Masks.from_polygons([[[1, 1, 3, 1, 3, 3, 1, 3, 9]]], (4, 5))[0] == mask


@pytest.mark.parametrize("reach", [1e4, 1e6, 2.0**26])
def test_far_corners(reach: float) -> None:
    """An outline of a thousand million pixels costs what it crosses of the frame."""
    square = [-reach, -reach, reach, -reach, reach, reach, -reach, reach]
    wedge = [-reach, -reach, reach, reach, -reach, reach]
    full, half = Masks.draw_polygons([square, wedge], (30, 20))
    assert full.area == 600
    near = [value * 1e4 / reach for value in wedge]
    assert half.counts.encode() == draw_official(near, (30, 20))


def test_large_frames() -> None:
    """Frames whose runs take six and seven characters, where pycocotools reserves too little for its strings."""
    size = (40_000, 50_000)
    (mask,) = Masks.draw_polygons(
        [[10, 20, 45_010, 20, 45_010, 39_000, 10, 39_000]], size
    )
    assert mask.area == 45_000 * 38_980
    assert Masks.from_masks([mask]).box().tolist() == [[10, 20, 45_000, 38_980]]


@pytest.mark.parametrize(
    "bad", [float("nan"), float("inf"), -float("inf"), 2.0**26 + 1, -1e300]
)
@pytest.mark.parametrize("place", range(6))
def test_coordinates_that_are_no_place(bad: float, place: int) -> None:
    fine = [1.0, 1.0, 5.0, 1.0, 5.0, 5.0]
    wrong = [*fine[:place], bad, *fine[place + 1 :]]
    with pytest.raises(MaskError) as caught:
        Masks.draw_polygons([fine, fine, wrong, fine], (10, 10))
    assert caught.value.item == 2
    with pytest.raises(MaskError) as caught:
        Masks.from_polygons([[fine], [fine, wrong]], (10, 10))
    assert caught.value.item == 1
    with pytest.raises(MaskError):
        Masks.from_boxes([[1, 1, bad, 3]], (10, 10))


@pytest.mark.parametrize(
    "bad",
    [[], [1.0], ["a", "b"], [[1, 2], [3]], None, {"x": 1}, [10**400, 1, 2, 3, 4, 5]],
)
def test_what_is_not_a_polygon(bad: object) -> None:
    with pytest.raises(MaskError) as caught:
        Masks.draw_polygons([[1, 1, 2, 2, 3, 3], bad], (10, 10))  # type: ignore[list-item]
    assert caught.value.item == 1


def test_many_crossings_of_one_column() -> None:
    rng = np.random.default_rng(3)
    points = np.stack([np.tile([0.0, 2.0], 60_000), rng.random(120_000) * 100], 1)
    (mask,) = Masks.draw_polygons([points.ravel()], (100, 2))
    assert 0 < mask.area < 200
