"""Masks as SVG paths: contours traced along pixel edges and simplified to screen resolution."""

import numpy as np
from numpy.typing import NDArray

from maskwise.masks import Mask, Masks
from maskwise.masks.contours import count_corners, trace_rings

CANVAS = 1600
"""The longer side of an image in path units."""
TOLERANCE = 1.6
"""Largest distance of the simplified outline from the true one in path units: about half a pixel on a screen."""
STAIR = 0.75
"""Smallest tolerance in mask pixels: the stairs of a slanted edge, which deviate by 0.71, are removed."""
MAX_CORNERS = 20_000
MAX_POINTS = 1500
"""Limits of one mask, before and after simplification. A mask with more is traced on every 2nd, 4th, ... pixel."""

Points = NDArray[np.int64]
"""[n, 2] x, y."""


def canvas_size(width: int, height: int) -> tuple[int, int]:
    """Width and height of an image in path units."""
    scale = CANVAS / max(width, height)
    # A very long image still has a shorter side.
    path_width = max(1, round(width * scale))
    path_height = max(1, round(height * scale))
    return path_width, path_height


def mask_to_path(mask: Mask) -> str:
    """The `d` of an SVG path, to be filled by the even-odd rule, in path units; empty for an empty mask."""
    scale = CANVAS / max(1, *mask.size)
    tolerance = max(TOLERANCE / scale, STAIR)
    step = 1
    while True:
        rings = [simplify(ring, tolerance * step) for ring in trace(mask, step)]
        point_count = sum(len(ring) for ring in rings)
        if point_count <= MAX_POINTS:
            break
        step = 2 * step
    paths = []
    for ring in rings:
        path_units = np.rint(ring * scale).astype(np.int64)
        paths.append(_ring_to_path(path_units))
    return "".join(paths)


def trace(mask: Mask, step: int = 1) -> list[Points]:
    """The closed outlines of a mask along pixel edges: only their corners, int64 [n, 2] x, y in pixels each.

    step: look at every step-th pixel; doubled while there are more than MAX_CORNERS corners.
    """
    (box,) = Masks.from_masks([mask]).box()
    left, top, width, height = box.tolist()
    if not width:
        return []
    inside = mask.to_dense()[top : top + height, left : left + width]
    while count_corners(inside[::step, ::step]) > MAX_CORNERS:
        step *= 2
    rings = trace_rings(inside[::step, ::step])
    return [ring * step + (left, top) for ring in rings]


def simplify(ring: Points, tolerance: float) -> Points:
    """The ring with fewer points, none of those left out further from it than the tolerance (Douglas, Peucker 1973)."""
    if len(ring) < 5:
        return ring
    # A ring has no ends: it is divided at its first point and the one farthest from it.
    offsets = ring - ring[0]
    squared_distance = (offsets**2).sum(1)
    farthest = int(squared_distance.argmax())
    closed = np.concatenate([ring, ring[:1]])
    is_kept = np.zeros(len(closed), np.bool_)
    is_kept[[0, farthest, len(ring)]] = True
    spans = [(0, farthest), (farthest, len(ring))]
    while spans:
        first, last = spans.pop()
        if last - first < 2:
            continue
        between = closed[first + 1 : last]
        distance = _distances(between, closed[first], closed[last])
        worst = int(distance.argmax())
        if distance[worst] > tolerance:
            middle = first + 1 + worst
            is_kept[middle] = True
            spans += [(first, middle), (middle, last)]
    simple = ring[is_kept[:-1]]
    if len(simple) > 2:
        return simple
    # Two points have no area: a triangle keeps the ring visible.
    third = len(ring) // 3
    two_thirds = 2 * len(ring) // 3
    return ring[[0, third, two_thirds]]


def _distances(points: Points, start: Points, end: Points) -> NDArray[np.float64]:
    """How far points lie from the line between two others, or from the one where they are the same."""
    along_x, along_y = end - start
    away_x, away_y = (points - start).T
    length = float(np.hypot(along_x, along_y))
    if not length:
        return np.asarray(np.hypot(away_x, away_y), np.float64)
    doubled_area = np.abs(along_x * away_y - along_y * away_x)
    return np.asarray(doubled_area / length, np.float64)


def _ring_to_path(ring: Points) -> str:
    """One closed ring, its steps relative; a ring of less than one unit stays visible as one."""
    steps = np.diff(ring, axis=0)
    steps = steps[steps.any(1)]
    x, y = ring[0].tolist()
    if len(steps) < 2:
        return f"M{x} {y}h1v1h-1z"
    lines = [f"{right} {down}" for right, down in steps.tolist()]
    return f"M{x} {y}l" + " ".join(lines) + "z"
