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
    return max(1, round(width * scale)), max(1, round(height * scale))


def mask_to_path(mask: Mask) -> str:
    """The `d` of an SVG path, to be filled by the even-odd rule, in path units; empty for an empty mask."""
    scale = CANVAS / max(1, *mask.size)
    tolerance = max(TOLERANCE / scale, STAIR)
    step = 1
    points = MAX_POINTS + 1
    while points > MAX_POINTS:
        rings = [simplify(ring, tolerance * step) for ring in trace(mask, step)]
        points = sum(map(len, rings))
        step = 2 * step
    return "".join(
        _ring_to_path(np.rint(ring * scale).astype(np.int64)) for ring in rings
    )


def trace(mask: Mask, step: int = 1) -> list[Points]:
    """The closed outlines of a mask along pixel edges: only their corners, int64 [n, 2] x, y in pixels each.

    step: look at every step-th pixel; doubled while there are more than MAX_CORNERS corners.
    """
    left, top, width, height = Masks.from_masks([mask]).box()[0].tolist()
    if not width:
        return []
    inside = mask.to_dense()[top : top + height, left : left + width]
    while count_corners(inside[::step, ::step]) > MAX_CORNERS:
        step *= 2
    return [ring * step + (left, top) for ring in trace_rings(inside[::step, ::step])]


def simplify(ring: Points, tolerance: float) -> Points:
    """The ring with fewer points, none of those left out further from it than the tolerance (Douglas, Peucker 1973)."""
    if len(ring) < 5:
        return ring
    far = int(((ring - ring[0]) ** 2).sum(1).argmax())
    closed = np.concatenate([ring, ring[:1]])
    keep = np.zeros(len(closed), np.bool_)
    keep[[0, far, len(ring)]] = True
    spans = [(0, far), (far, len(ring))]
    while spans:
        first, last = spans.pop()
        if last - first < 2:
            continue
        distance = _distances(closed[first + 1 : last], closed[first], closed[last])
        worst = int(distance.argmax())
        if distance[worst] > tolerance:
            middle = first + 1 + worst
            keep[middle] = True
            spans += [(first, middle), (middle, last)]
    simple = ring[keep[:-1]]
    return simple if len(simple) > 2 else ring[[0, len(ring) // 3, 2 * len(ring) // 3]]


def _distances(points: Points, start: Points, end: Points) -> NDArray[np.float64]:
    """How far points lie from the line between two others, or from the one where they are the same."""
    along = end - start
    away = points - start
    length = float(np.hypot(*along))
    if not length:
        return np.asarray(np.hypot(away[:, 0], away[:, 1]), np.float64)
    return np.asarray(
        np.abs(along[0] * away[:, 1] - along[1] * away[:, 0]) / length, np.float64
    )


def _ring_to_path(ring: Points) -> str:
    """One closed ring, its steps relative; a ring of less than one unit stays visible as one."""
    steps = np.diff(ring, axis=0)
    steps = steps[steps.any(1)]
    x, y = ring[0].tolist()
    if len(steps) < 2:
        return f"M{x} {y}h1v1h-1z"
    return (
        f"M{x} {y}l"
        + " ".join(f"{right} {down}" for right, down in steps.tolist())
        + "z"
    )
