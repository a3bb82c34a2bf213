"""Outlines: exact before smoothing, close after it, bounded whatever the mask."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image, ImageDraw

from maskwise.masks import Mask
from maskwise.report.svg_contours import (
    CANVAS,
    MAX_POINTS,
    canvas_size,
    mask_to_path,
    simplify,
    trace,
)


def fill(rings: list[np.ndarray], shape: tuple[int, int]) -> np.ndarray:
    """The even-odd rule, by hand: each vertical edge turns over all pixels to its right."""
    plane = np.zeros(shape, np.bool_)
    for ring in rings:
        for (x, y), (next_x, next_y) in zip(ring, np.roll(ring, -1, axis=0)):
            assert (x == next_x) != (y == next_y)
            if x == next_x:
                plane[min(y, next_y) : max(y, next_y), x:] ^= True
    return plane


def parse(path: str) -> list[list[tuple[int, int]]]:
    """The rings of a path of relative steps."""
    rings = []
    for x, y, steps in re.findall(r"M(\d+) (\d+)l([-\d ]+)z", path):
        points = [(int(x), int(y))]
        numbers = list(map(int, steps.split()))
        for right, down in zip(numbers[::2], numbers[1::2]):
            points.append((points[-1][0] + right, points[-1][1] + down))
        rings.append(points)
    return rings


@given(arrays.arrays(np.bool_, st.tuples(st.integers(1, 12), st.integers(1, 12))))
def test_traced_outlines_enclose_exactly_the_mask(plane: np.ndarray) -> None:
    assert (fill(trace(Mask.from_dense(plane)), plane.shape) == plane).all()


def test_a_square_has_four_corners() -> None:
    plane = np.zeros((6, 9), np.bool_)
    plane[2:5, 3:7] = True
    [ring] = trace(Mask.from_dense(plane))
    assert sorted(map(tuple, ring.tolist())) == [(3, 2), (3, 5), (7, 2), (7, 5)]


def test_smoothing_stays_close() -> None:
    down, right = np.mgrid[:300, :400]
    plane = ((down - 150) ** 2 + (right - 190) ** 2 < 120**2) & ~(
        (down - 150) ** 2 + (right - 190) ** 2 < 50**2
    )
    path = mask_to_path(Mask.from_dense(plane))
    drawn = np.zeros((1200, 1600), np.bool_)
    for ring in parse(path):
        image = Image.new("1", (1600, 1200))
        ImageDraw.Draw(image).polygon(ring, fill=1)
        drawn ^= np.asarray(image)
    true = plane.repeat(4, 0).repeat(4, 1)
    assert len(path) < 2500
    assert (drawn & true).sum() / (drawn | true).sum() > 0.99


def test_points_left_out_are_near() -> None:
    ring = np.array([(0, 0), (50, 1), (100, 0), (100, 100), (0, 100)])
    assert simplify(ring, 2.0).tolist() == [[0, 0], [100, 0], [100, 100], [0, 100]]
    assert simplify(ring, 0.5).tolist() == ring.tolist()


@pytest.mark.parametrize("share", [0.5, 0.01])
def test_noise_stays_bounded(share: float) -> None:
    path = mask_to_path(
        Mask.from_dense(np.random.default_rng(0).random((500, 500)) < share)
    )
    assert path
    assert len(re.findall(r"-?\d+", path)) <= 2 * MAX_POINTS + 2 * path.count("M")


def test_small_and_empty_masks() -> None:
    assert mask_to_path(Mask.empty(20, 20)) == ""
    plane = np.zeros((4000, 5000), np.bool_)
    plane[7, 9] = True
    assert mask_to_path(Mask.from_dense(plane)) == "M3 2h1v1h-1z", (
        "one pixel of a huge image stays visible"
    )


def test_canvas_keeps_the_shape() -> None:
    assert canvas_size(400, 300) == (CANVAS, CANVAS * 3 // 4)
    assert canvas_size(1, 100_000) == (1, CANVAS)
