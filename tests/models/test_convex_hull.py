import numpy as np
import pytest
from scipy.spatial import ConvexHull, QhullError

from maskwise.arrays import BoolArray
from maskwise.models.convex_hull import fill_hull


def hull_of_scipy(mask: BoolArray) -> BoolArray:
    try:
        equations = ConvexHull(np.argwhere(mask)).equations
    except (QhullError, ValueError):
        return mask
    rows, columns = np.indices(mask.shape)
    inside = [a * rows + b * columns + c <= 1e-9 for a, b, c in equations]
    hull: BoolArray = np.all(inside, 0)
    return hull


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("pixels", [1, 2, 3, 4, 12, 60])
def test_the_hull_is_that_of_scipy(seed: int, pixels: int) -> None:
    random = np.random.default_rng(seed)
    mask = np.zeros((24, 31), np.bool_)
    mask[random.integers(0, 24, pixels), random.integers(0, 31, pixels)] = True
    assert (fill_hull(mask) == hull_of_scipy(mask)).all()


@pytest.mark.parametrize("index", [np.s_[3], np.s_[:, 2], np.s_[:0]])
def test_the_hull_of_a_line_or_of_nothing_is_the_mask(index: object) -> None:
    mask = np.zeros((6, 7), np.bool_)
    mask[index] = True  # type: ignore[index]
    assert (fill_hull(mask) == mask).all()


def test_the_hull_of_a_box_is_the_box() -> None:
    mask = np.zeros((6, 7), np.bool_)
    mask[1:4, 2:6] = True
    assert (fill_hull(mask) == mask).all()
