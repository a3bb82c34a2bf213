"""Outlines of masks along pixel edges, and polygons with holes as one line.

A ring is int64 [n, 2] of x, y, its corners only, not closed. Pixel (x, y) covers [x, x + 1] x [y, y + 1].
"""

from collections.abc import Sequence

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array, NumberArray


def trace_rings(inside: BoolArray) -> list[Int64Array]:
    """The rings of a plane (height, width): exteriors clockwise as seen, holes counter-clockwise; none crosses itself.

    Foreground pixels that touch at a corner only are separate. Corners in a row are paired to horizontal edges, those
    in a column to vertical ones; a ring alternates between the two.
    """
    corners, tie = _corners(inside)
    x, y = corners.T
    by_row = np.lexsort((x, y))
    by_column = np.lexsort((tie, y, x))
    across = _partners(by_row)
    down = _partners(by_column)
    rings: list[Int64Array] = []
    for walk in _walk(across.tolist(), down.tolist()):
        ring = _directed(corners[walk], inside)
        rings += _split(ring)
    return rings


def count_corners(inside: BoolArray) -> int:
    """How many corners the rings of a plane have."""
    return len(_corners(inside)[0])


def trace_polygons(inside: BoolArray) -> list[list[Int64Array]]:
    """One list per 4-connected component: its exterior ring, then its holes."""
    from scipy import ndimage  # noqa: PLC0415

    labels = ndimage.label(inside)[0]
    exteriors: dict[int, list[Int64Array]] = {}
    holes: list[tuple[int, Int64Array]] = []
    for ring in trace_rings(inside):
        label = int(labels[_pixel_inside(ring)])
        if _signed_area(ring) > 0:
            exteriors[label] = [ring]
        else:
            holes.append((label, ring))
    for label, ring in holes:
        exteriors[label].append(ring)
    return list(exteriors.values())


def chain_rings(rings: Sequence[NumberArray]) -> Float64Array:
    """An exterior and its holes as one flat polygon `[x, y, ...]`.

    Each hole is reached from the first point of the exterior and left the same way back. By the even-odd rule the two
    ways cancel, so that drawing the polygon leaves the holes empty.
    """
    exterior = np.asarray(rings[0], np.float64)
    first_point = exterior[:1]
    parts = [exterior]
    for ring in rings[1:]:
        hole = np.asarray(ring, np.float64)
        parts += [first_point, hole, hole[:1]]
    if len(parts) > 1:
        parts.append(first_point)
    return np.concatenate(parts).ravel()


def _corners(inside: BoolArray) -> tuple[Int64Array, Int64Array]:
    """Where an outline turns, [n, 2], and the order of the two corners where two outlines touch at a point."""
    padded = np.pad(inside, 1)
    # The four pixels around each point of the lattice.
    upper_left = padded[:-1, :-1]
    upper_right = padded[:-1, 1:]
    lower_left = padded[1:, :-1]
    lower_right = padded[1:, 1:]
    # An outline turns where one or three of the four are foreground.
    turns = upper_left ^ upper_right ^ lower_left ^ lower_right
    # Two outlines touch where only the two pixels of a diagonal are foreground.
    is_diagonal = (upper_left == lower_right) & (upper_right == lower_left)
    touches = is_diagonal & (upper_left != upper_right)
    rows, columns = np.nonzero(turns | touches)
    is_touch = touches[rows, columns]
    count = np.where(is_touch, 2, 1)
    points = np.repeat(np.stack([columns, rows], 1), count, 0)
    order = np.arange(len(points))
    is_reversed = np.repeat(upper_right[rows, columns] & is_touch, count)
    return points, np.where(is_reversed, -order, order)


def _partners(order: Int64Array) -> Int64Array:
    """The corner at the other end of each corner's edge, given all corners sorted along their lines."""
    partners = np.empty(len(order), np.int64)
    partners[order[0::2]] = order[1::2]
    partners[order[1::2]] = order[0::2]
    return partners


def _walk(across: Sequence[int], down: Sequence[int]) -> list[list[int]]:
    """Rings of corners, each followed across, down, across, ..."""
    seen = [False] * len(across)
    rings = []
    for start in range(len(across)):
        ring: list[int] = []
        here = start
        while not seen[here]:
            there = across[here]
            seen[here] = True
            seen[there] = True
            ring += (here, there)
            here = down[there]
        if ring:
            rings.append(ring)
    return rings


def _directed(ring: Int64Array, inside: BoolArray) -> Int64Array:
    """The ring in the direction that has the foreground on its right: along its upper edges from left to right."""
    x0, y = ring[0].tolist()
    x1, _ = ring[1].tolist()
    height = inside.shape[0]
    is_upper_edge = y < height and bool(inside[y, min(x0, x1)])
    runs_right = x1 > x0
    if runs_right == is_upper_edge:
        return ring
    # Reversed, and rolled so that it still begins with a horizontal edge.
    return np.roll(ring[::-1], 2, 0)


def _split(ring: Int64Array) -> list[Int64Array]:
    """The ring cut at points that it visits twice."""
    points = [(x, y) for x, y in ring.tolist()]
    if len(set(points)) == len(points):
        return [ring]
    path: list[tuple[int, int]] = []
    place: dict[tuple[int, int], int] = {}
    loops = []
    for point in points:
        if point in place:
            first = place[point]
            loops.append(path[first:])
            for left in path[first:]:
                del place[left]
            del path[first:]
        place[point] = len(path)
        path.append(point)
    return [np.array(loop, np.int64) for loop in [*loops, path]]


def _pixel_inside(ring: Int64Array) -> tuple[int, int]:
    """Row and column of a foreground pixel beside the first horizontal edge."""
    following = np.roll(ring, -1, 0)
    is_horizontal = ring[:, 1] == following[:, 1]
    edge = int(is_horizontal.argmax())
    x0, y = ring[edge].tolist()
    x1, _ = following[edge].tolist()
    # The foreground is on the right of the ring: below an edge to the right.
    return (y, x0) if x1 > x0 else (y - 1, x1)


def _signed_area(ring: Int64Array) -> int:
    """Twice the area, positive for a ring that runs clockwise as seen."""
    x, y = ring.T
    next_x = np.roll(x, -1)
    next_y = np.roll(y, -1)
    return int((x * next_y - next_x * y).sum())
