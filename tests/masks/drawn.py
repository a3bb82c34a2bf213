"""Random planes for the mask tests, and the mask functions written plainly on dense arrays."""

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

Planes = NDArray[np.bool_]

SHAPES = ("noise", "sparse", "dense", "stripes", "boxes", "empty", "full")


def draw(shape: str, size: tuple[int, int], rng: np.random.Generator) -> Planes:
    """One plane. Stripes run along the columns, so that runs cross several of them; boxes may overlap."""
    height, width = size
    plane = np.zeros(size, bool)
    if shape in ("noise", "sparse", "dense"):
        return rng.random(size) < {"noise": 0.5, "sparse": 0.05, "dense": 0.95}[shape]
    if shape == "stripes":
        bounds = np.sort(rng.integers(0, height * width + 1, 4))
        line = np.zeros(height * width, bool)
        line[bounds[0] : bounds[1]] = line[bounds[2] : bounds[3]] = True
        return line.reshape(width, height).T
    if shape == "boxes":
        for _ in range(3):
            top, bottom = np.sort(rng.integers(0, height + 1, 2))
            left, right = np.sort(rng.integers(0, width + 1, 2))
            plane[top:bottom, left:right] = True
        return plane
    return np.full(size, shape == "full")


SMALL = st.integers(1, 12)
LARGE = st.integers(60, 140)

FILLED = st.one_of(
    st.tuples(SMALL, SMALL), st.tuples(LARGE, SMALL), st.tuples(SMALL, LARGE)
)
"""Mostly small frames; some taller or wider than the 64 pixels of a machine word."""


@st.composite
def sizes(make: st.DrawFn) -> tuple[int, int]:
    """Frames, some without pixels."""
    height, width = make(FILLED)
    if make(st.integers(0, 19)) == 0:
        return (0, width) if make(st.booleans()) else (height, 0)
    return height, width


@st.composite
def planes(
    make: st.DrawFn, least: int = 1, most: int = 4, batches: int = 1
) -> tuple[Planes, ...]:
    """`batches` arrays (n, height, width) of one shape."""
    size = make(sizes())
    count = make(st.integers(least, most))
    rng = np.random.default_rng(make(st.integers(0, 2**32 - 1)))
    kinds = make(
        st.lists(
            st.sampled_from(SHAPES), min_size=batches * count, max_size=batches * count
        )
    )
    drawn = np.array([draw(kind, size, rng) for kind in kinds]).reshape(
        batches, count, *size
    )
    return tuple(drawn)


def polygons(reach: float = 40.0) -> st.SearchStrategy[list[float]]:
    """Coordinates of 1 to 8 points, whole, halves, fifths or any, inside and outside of small frames."""
    any_float = st.floats(-reach, reach, width=32)
    grid = st.builds(
        lambda step, number: number / step,
        st.sampled_from([1, 2, 5, 10]),
        st.integers(-60, 200),
    )
    point = st.tuples(any_float | grid, any_float | grid)
    return st.lists(point, min_size=1, max_size=8).map(
        lambda points: [value for point in points for value in point]
    )


def resize(plane: Planes, size: tuple[int, int]) -> Planes:
    rows, columns = (
        ((2 * np.arange(new) + 1) * old) // (2 * max(new, 1))
        for old, new in zip(plane.shape, size)
    )
    return plane[rows][:, columns] if plane.size else np.zeros(size, bool)


def window(plane: Planes, box: tuple[int, int, int, int]) -> Planes:
    x, y, width, height = box
    out = np.zeros((height, width), bool)
    for row in range(height):
        for column in range(width):
            if 0 <= row + y < plane.shape[0] and 0 <= column + x < plane.shape[1]:
                out[row, column] = plane[row + y, column + x]
    return out


def boundary(plane: Planes, distance: int) -> Planes:
    """The pixels with a background pixel, or the outside, in the square around them."""
    height, width = plane.shape
    padded = np.pad(plane, distance)
    kept = plane.copy()
    for down in range(2 * distance + 1):
        for right in range(2 * distance + 1):
            kept &= padded[down : down + height, right : right + width]
    return plane & ~kept


def components(plane: Planes, connectivity: int) -> list[Planes]:
    """Connected parts by flooding, in order of their first pixel down the columns."""
    steps = [(0, 1), (1, 0), (0, -1), (-1, 0)] + [
        (1, 1),
        (1, -1),
        (-1, 1),
        (-1, -1),
    ] * (connectivity == 8)
    left = {(x, y) for y, x in zip(*np.nonzero(plane))}
    parts = []
    for first in sorted(left):
        if first not in left:
            continue
        left.discard(first)
        front = [first]
        part = np.zeros_like(plane)
        while front:
            x, y = front.pop()
            part[y, x] = True
            near = {(x + right, y + down) for right, down in steps} & left
            left -= near
            front += near
        parts.append(part)
    return parts
