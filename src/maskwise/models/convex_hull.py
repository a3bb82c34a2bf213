"""The convex hull of a mask, filled."""

import numpy as np

from maskwise.arrays import BoolArray

Point = tuple[int, int]
"""Row and column of a pixel."""


def fill_hull(mask: BoolArray) -> BoolArray:
    """The pixels whose centers lie in the convex hull of a mask's pixel centers; the mask itself if it is a line."""
    corners = find_corners(mask)
    if len(corners) < 3:
        return mask
    rows, columns = np.indices(mask.shape)
    hull = np.ones(mask.shape, np.bool_)
    for (row, column), (next_row, next_column) in zip(
        corners, [*corners[1:], corners[0]]
    ):
        # Exact in integers: positive on the left of an edge, 0 on it.
        side = (next_row - row) * (columns - column)
        side -= (next_column - column) * (rows - row)
        hull &= side >= 0
    return hull


def find_corners(mask: BoolArray) -> list[Point]:
    """The corners of the convex hull of a mask's pixel centers, in order; fewer than three for a line.

    The monotone chain of Andrew (1979), of the first and the last pixel of each row.
    """
    rows = np.flatnonzero(mask.any(1))
    firsts = mask[rows].argmax(1)
    lasts = mask.shape[1] - 1 - mask[rows, ::-1].argmax(1)
    ends = np.stack([firsts, lasts], 1).tolist()
    points = [
        (row, column)
        for row, columns in zip(rows.tolist(), ends)
        for column in dict.fromkeys(columns)
    ]
    lower = _half_hull(points)
    upper = _half_hull(points[::-1])
    return lower[:-1] + upper[:-1]


def _half_hull(points: list[Point]) -> list[Point]:
    """The corners on one side of the line from the first to the last of sorted points, both included."""
    chain: list[Point] = []
    for point in points:
        while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= 0:
            chain.pop()
        chain.append(point)
    return chain


def _turn(first: Point, second: Point, third: Point) -> int:
    """Positive if a path through three points turns left, 0 if it is straight."""
    return (second[0] - first[0]) * (third[1] - first[1]) - (second[1] - first[1]) * (
        third[0] - first[0]
    )
