"""Polygons as OpenCV fills them: hand-worked ones, recorded ones of each release, and many beside OpenCV itself."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from maskwise.benchmarks.polygon_fill import Drawing, fill_polygon
from tests.shared import shared


def image(points: list[list[int]], *rows: str, drawing: Drawing = "4.11") -> None:
    found = fill_polygon(
        np.array(points, np.int32).reshape(-1, 2),
        len(rows),
        len(rows[0]),
        drawing=drawing,
    )
    assert ["".join(".#"[int(inside)] for inside in row) for row in found] == list(rows)


def test_a_rectangle_has_both_its_borders() -> None:
    image([[1, 1], [3, 1], [3, 2], [1, 2]], ".....", ".###.", ".###.", ".....")


def test_one_point_two_points_and_none() -> None:
    image([[2, 1]], "....", "..#.")
    image([[0, 0], [3, 1]], "##..", "..##")
    image([], "....", "....")


def test_a_triangle() -> None:
    image([[0, 0], [4, 0], [0, 4]], "#####", "####.", "###..", "##...", "#....")


def test_a_bow_tie_is_empty_where_it_winds_back() -> None:
    image([[0, 0], [4, 4], [4, 0], [0, 4]], "#...#", "##.##", "#####", "##.##", "#...#")


def test_what_lies_outside_is_cut_off() -> None:
    image([[-5, -5], [20, -5], [20, 20], [-5, 20]], "###", "###")
    image([[10, 10], [20, 10], [20, 20]], "...", "...")
    image([[-2, 1], [5, 1]], "...", "###", "...")


def test_releases_4_8_to_4_10_reach_over_a_slanted_outline() -> None:
    """As OpenCV 4.8.0.74 drew it; opencv/opencv#26130 tells of it."""
    image([[0, 1], [1, 5]], "..", "#.", "#.", "##", ".#", ".#", drawing="4.8")
    image([[0, 1], [1, 5]], "..", "#.", "#.", "#.", ".#", ".#", drawing="4.11")


RECORDED: list[tuple[Drawing, int, int, list[list[int]], str]] = json.loads(
    Path(__file__).with_name("recorded_polygons.json").read_text()
)


@pytest.mark.parametrize(("drawing", "height", "width", "points", "bits"), RECORDED)
def test_recorded_drawings(
    drawing: Drawing, height: int, width: int, points: list[list[int]], bits: str
) -> None:
    """Random polygons, many of them crossing themselves or the frame, as the releases 4.8.0 and 4.11.0 drew them."""
    found = fill_polygon(np.array(points, np.int32), height, width, drawing=drawing)
    assert np.packbits(found).tobytes().hex() == bits


def by_opencv(points: NDArray[np.int32], height: int, width: int) -> NDArray[np.bool_]:
    cv2: Any = pytest.importorskip(
        "cv2", reason="compares with OpenCV, which the bench extra brings"
    )
    if tuple(map(int, cv2.__version__.split(".")[:2])) < (4, 11):
        pytest.skip(f"OpenCV {cv2.__version__} draws otherwise than 4.11 and later")
    plane = np.zeros((height, width), np.uint8)
    cv2.polylines(plane, points[None], True, 1, 1)
    cv2.fillPoly(plane, points[None], 1)
    return plane > 0


@settings(max_examples=400, deadline=None)
@given(
    st.integers(1, 30),
    st.integers(1, 30),
    st.lists(
        st.one_of(
            st.tuples(st.integers(0, 30), st.integers(0, 30)),
            st.tuples(st.integers(-100, 100), st.integers(-100, 100)),
        ),
        min_size=1,
        max_size=12,
    ),
)
def test_any_polygon_as_opencv(
    height: int, width: int, corners: list[tuple[int, int]]
) -> None:
    points = np.array(corners, np.int32)
    assert np.array_equal(
        fill_polygon(points, height, width), by_opencv(points, height, width)
    )


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1)),
        max_size=8,
    )
)
def test_far_points_take_no_memory(corners: list[tuple[int, int]]) -> None:
    assert fill_polygon(np.array(corners, np.int32).reshape(-1, 2), 9, 7).shape == (
        9,
        7,
    )


def test_every_real_polygon_as_opencv() -> None:
    shapes = 0
    for path in sorted(shared("data", "reasonseg_val").glob("*.json")):
        for shape in json.loads(path.read_text())["shapes"]:
            points = np.array(shape["points"], np.int32)
            height, width = points[:, ::-1].max(0) + 2
            assert np.array_equal(
                fill_polygon(points, height, width), by_opencv(points, height, width)
            )
            shapes += 1
    assert shapes == 146
