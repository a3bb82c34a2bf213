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
    across = _partners(np.lexsort((corners[:, 0], corners[:, 1])))
    down = _partners(np.lexsort((tie, corners[:, 1], corners[:, 0])))
    rings: list[Int64Array] = []
    for walk in _walk(across.tolist(), down.tolist()):
        rings += _split(_directed(corners[walk], inside))
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
    parts = [exterior]
    for hole in rings[1:]:
        parts += [
            exterior[:1],
            np.asarray(hole, np.float64),
            np.asarray(hole, np.float64)[:1],
        ]
    if len(parts) > 1:
        parts.append(exterior[:1])
    return np.concatenate(parts).ravel()


def _corners(inside: BoolArray) -> tuple[Int64Array, Int64Array]:
    """Where an outline turns, [n, 2], and the order of the two corners where two outlines touch at a point."""
    padded = np.pad(inside, 1)
    a = padded[:-1, :-1]
    b = padded[:-1, 1:]
    c = padded[1:, :-1]
    d = padded[1:, 1:]
    turns = a ^ b ^ c ^ d
    touches = (a == d) & (b == c) & (a != b)
    rows, columns = np.nonzero(turns | touches)
    count = np.where(touches[rows, columns], 2, 1)
    order = np.arange(int(count.sum()))
    falling = np.repeat(b[rows, columns] & touches[rows, columns], count)
    return np.repeat(np.stack([columns, rows], 1), count, 0), np.where(
        falling, -order, order
    )


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
            seen[here] = seen[there] = True
            ring += (here, there)
            here = down[there]
        if ring:
            rings.append(ring)
    return rings


def _directed(ring: Int64Array, inside: BoolArray) -> Int64Array:
    """The ring in the direction that has the foreground on its right: along its upper edges from left to right."""
    (x0, y) = ring[0].tolist()
    (x1, _) = ring[1].tolist()
    below = y < inside.shape[0] and bool(inside[y, min(x0, x1)])
    return ring if (x1 > x0) == below else np.roll(ring[::-1], 2, 0)


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
    edge = int((ring[:, 1] == following[:, 1]).argmax())
    (x0, y) = ring[edge].tolist()
    (x1, _) = following[edge].tolist()
    return (y, x0) if x1 > x0 else (y - 1, x1)


def _signed_area(ring: Int64Array) -> int:
    x, y = ring.T
    return int((x * np.roll(y, -1) - np.roll(x, -1) * y).sum())
