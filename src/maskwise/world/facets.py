"""Object shapes as flat facets: solids projected to polygons, before they are rasterized.

Object coordinates: x right, y up, z towards the viewer, the ground at y = 0. The projection is parallel and looks down
by a constant tilt, so a circle on the ground becomes an ellipse of height `tilt`. Outlines have the same unit, x right
and y up from the point on the ground below the object's center; scale and position are applied later.
"""

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Point = tuple[float, float, float]

AMBIENT = 0.52
DIFFUSE = 0.62
"""Brightness of a face turned away from the light, and how much the light adds."""

DETAIL = 0.15
"""A facet whose extent is a smaller fraction of its object's is a detail: it casts no shadow."""


class Paint(NamedTuple):
    """Color (red, green, blue in 0..1), gloss in 0..1 and the name of a texture or None."""

    rgb: tuple[float, float, float]
    gloss: float = 0.15
    texture: str | None = None


class DirectionalLight(NamedTuple):
    """A unit vector towards the light: x right, y up, z towards the viewer."""

    x: float
    y: float
    z: float

    def brightness(self, x: float, y: float, z: float) -> float:
        """Brightness of a flat face with this normal (unit length)."""
        return AMBIENT + DIFFUSE * max(0.0, x * self.x + y * self.y + z * self.z)


class LatheShading(NamedTuple):
    """Shading of a lathed body: half width `widths` at heights `ys` about the axis x; `hollow` is seen from inside."""

    x: float
    ys: Floats
    widths: Floats
    hollow: bool = False


class BallShading(NamedTuple):
    """Shading of an ellipsoid."""

    x: float
    y: float
    rx: float
    ry: float


class TubeShading(NamedTuple):
    """Shading of a surface with rounded edges of this radius."""

    radius: float


Shading = float | LatheShading | BallShading | TubeShading


class Facet(NamedTuple):
    """One piece of surface: which part it belongs to, its outline (n, 2), paint and shading. Later facets lie over
    earlier ones.
    """

    part: str
    outline: Floats
    paint: Paint
    shading: Shading


# A quarter of a circle in 6 steps, and a whole one in 24: no corner is visible at the
# sizes objects have in an image.
_ARC = np.linspace(0.0, math.pi / 2, 7)
_COS = np.cos(_ARC)
_SIN = np.sin(_ARC)
_ANGLES = np.linspace(0, 2 * math.pi, 24, False)
_CIRCLE = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], 1)
# The four quarters (4, 4, 2) of that circle in 3 steps each, for rounded corners.
_QUARTERS = np.stack(
    [_CIRCLE[np.arange(start, start + 7, 2) % 24] for start in (0, 6, 12, 18)]
)


class ObjectShape(NamedTuple):
    """The facets of an object, and their outlines as one array.

    Outline i is points[starts[i]:starts[i + 1]]; low and high (n, 2) are the corners of its box. `bulk` are the facets
    of the silhouette, without details.
    """

    facets: tuple[Facet, ...]
    points: Floats
    starts: tuple[int, ...]
    low: Floats
    high: Floats
    bulk: tuple[int, ...]

    def outlines(
        self, slope: Floats, shift: Floats, *, bulk: bool = False
    ) -> list[list[float]]:
        """Each outline (or only those of the bulk) as [x, y, x, y, ...], every point multiplied by slope (2,) or
        (2, 2) and shifted.
        """
        scaled = self.points * slope if slope.ndim == 1 else self.points @ slope
        coordinates = (scaled + shift).ravel().tolist()
        outlines = []
        for facet in self.bulk if bulk else range(len(self.facets)):
            # Two coordinates per point.
            start = 2 * self.starts[facet]
            stop = 2 * self.starts[facet + 1]
            outlines.append(coordinates[start:stop])
        return outlines


class FacetBuilder:
    """Collects the facets of one object for one view and light."""

    def __init__(
        self,
        tilt: float,
        light: DirectionalLight,
        paints: dict[str, Paint],
        turn: float = 0.0,
    ) -> None:
        self.tilt = tilt
        self.rise = math.sqrt(1.0 - tilt * tilt)
        self.light = light
        self.paints = paints
        self.facets: list[Facet] = []
        self.turn_to(turn)

    def turn_to(self, turn: float) -> None:
        """Rotate what is drawn next about the vertical axis, in radians; positive turns the front leftwards."""
        self.cos = math.cos(turn)
        self.sin = math.sin(turn)

    def build(self) -> ObjectShape:
        """Everything drawn so far."""
        outlines = [facet.outline for facet in self.facets]
        points = np.concatenate(outlines)
        lengths = [len(outline) for outline in outlines]
        starts = np.cumsum([0, *lengths])
        low = np.minimum.reduceat(points, starts[:-1])
        high = np.maximum.reduceat(points, starts[:-1])
        extent = (high - low).max(1)
        bulk = np.flatnonzero(extent > DETAIL * extent.max()).tolist()
        return ObjectShape(
            tuple(self.facets), points, tuple(starts.tolist()), low, high, tuple(bulk)
        )

    def project(self, points: Sequence[Point]) -> Floats:
        """Points (n, 3) to the image plane (n, 2)."""
        projected = []
        for x, y, z in points:
            across = x * self.cos + z * self.sin
            near = z * self.cos - x * self.sin
            projected.append((across, y * self.rise - near * self.tilt))
        return np.array(projected)

    def facing(self, x: float, y: float, z: float) -> float:
        """Brightness of a face with this normal, in the object's own axes."""
        near = z * self.cos - x * self.sin
        across = x * self.cos + z * self.sin
        up = y * self.rise - near * self.tilt
        towards_viewer = y * self.tilt + near * self.rise
        return self.light.brightness(across, up, towards_viewer)

    def add(self, part: str, outline: Floats, paint: str, shading: Shading) -> None:
        """Add a facet in front of those before it."""
        self.facets.append(Facet(part, outline, self.paints[paint], shading))

    # -- bodies of revolution --------------------------------------------------------------------------------------

    def lathe(
        self,
        part: str,
        profile: Sequence[tuple[float, float]],
        paint: str = "main",
        *,
        x: float = 0.0,
        z: float = 0.0,
        smooth: bool = True,
    ) -> None:
        """A body of revolution about a vertical axis. profile: (height, radius), from below, heights rising."""
        points = np.array(profile)
        if smooth and len(points) > 2:
            points = curve(points, 4)
        heights, radii = points.T
        ((axis, base),) = self.project([(x, 0.0, z)]).tolist()
        # The right half from below: the front of the lowest circle, the side, the back
        # of the highest circle.
        low = heights[0] * self.rise
        high = heights[-1] * self.rise
        front_ys = low - self.tilt * radii[0] * _COS
        back_ys = high + self.tilt * radii[-1] * _SIN
        ys = np.concatenate([front_ys, heights * self.rise, back_ys])
        # Where the body narrows quickly a circle hides the one above: no y falls back.
        ys = np.maximum.accumulate(ys) + base
        widths = np.concatenate([radii[0] * _SIN, radii, radii[-1] * _COS])
        # The smooth curve may fall below zero at a tip.
        widths = np.maximum(widths, 0.0)
        right_half = np.stack([axis + widths, ys], 1)
        left_half = np.stack([axis - widths, ys], 1)[::-1]
        outline = np.concatenate([right_half, left_half])
        self.add(part, outline, paint, LatheShading(axis, ys, widths))

    def band(
        self,
        part: str,
        low: tuple[float, float],
        high: tuple[float, float],
        paint: str = "accent",
    ) -> None:
        """A stripe around a body of revolution, between two (height, radius): its front half."""
        front_angles = np.concatenate([-_ARC[::-1], _ARC[1:]]) - math.pi / 2
        edges = []
        for height, radius in (low, high):
            edge_x = radius * np.cos(front_angles)
            edge_y = height * self.rise + radius * self.tilt * np.sin(front_angles)
            edges.append(np.stack([edge_x, edge_y], 1))
        lower_edge, upper_edge = edges
        outline = np.concatenate([lower_edge, upper_edge[::-1]])
        (low_y, low_radius) = low
        (high_y, high_radius) = high
        # The shading begins one unit lower: the front of the stripe hangs below low_y.
        ys = np.array([low_y * self.rise - 1.0, high_y * self.rise])
        widths = np.array([low_radius, high_radius])
        self.add(part, outline, paint, LatheShading(0.0, ys, widths))

    def disc(
        self,
        part: str,
        height: float,
        radius: float,
        paint: str = "main",
        *,
        x: float = 0.0,
        z: float = 0.0,
        hollow: bool = False,
        rim: float = 0.0,
    ) -> None:
        """A level disc, seen from above; `hollow` shades it as an opening, with a rim of the given fraction."""
        ((center_x, center_y),) = self.project([(x, height, z)])
        brightness = self.facing(0, 1, 0)
        if rim:
            edge = ellipse(center_x, center_y, radius, radius * self.tilt)
            # An edge catches more light than a face, but must not become white.
            self.add(part, edge, paint, min(1.25, brightness * 1.12))
        inner_radius = radius * (1.0 - rim)
        inner_height = inner_radius * self.tilt
        inner = ellipse(center_x, center_y, inner_radius, inner_height)
        if not hollow:
            self.add(part, inner, paint, brightness)
            return
        angles = np.linspace(-math.pi / 2, math.pi / 2, 11)
        ys = center_y + inner_height * np.sin(angles)
        widths = np.full(11, inner_radius)
        self.add(part, inner, paint, LatheShading(center_x, ys, widths, True))

    # -- boxes and plates ------------------------------------------------------------------------------------------

    def cuboid(
        self,
        part: str,
        x: tuple[float, float],
        y: tuple[float, float],
        z: tuple[float, float],
        paint: str = "main",
    ) -> None:
        """A box: those of its faces that are turned to the viewer."""
        left, right = x
        low, high = y
        back, front = z
        # A side that is almost edge-on would be thinner than a pixel.
        if abs(self.sin) > 0.02:
            side_x, out = (right, 1.0) if self.sin < 0 else (left, -1.0)
            side_face = [
                (side_x, low, back),
                (side_x, low, front),
                (side_x, high, front),
                (side_x, high, back),
            ]
            self.panel(part, side_face, (out, 0, 0), paint)
        end_z, out = (front, 1.0) if self.cos > 0 else (back, -1.0)
        end_face = [
            (left, low, end_z),
            (right, low, end_z),
            (right, high, end_z),
            (left, high, end_z),
        ]
        self.panel(part, end_face, (0, 0, out), paint)
        self.level(part, x, z, high, paint)

    def panel(
        self,
        part: str,
        corners: Sequence[Point],
        normal: Point,
        paint: str = "main",
        *,
        gain: float = 1.0,
    ) -> None:
        """A flat face with the given normal; `gain` brightens it."""
        self.add(part, self.project(corners), paint, gain * self.facing(*normal))

    def level(
        self,
        part: str,
        x: tuple[float, float],
        z: tuple[float, float],
        y: float,
        paint: str = "main",
    ) -> None:
        """A level rectangle at height y."""
        left, right = x
        back, front = z
        corners = [
            (left, y, back),
            (right, y, back),
            (right, y, front),
            (left, y, front),
        ]
        self.panel(part, corners, (0, 1, 0), paint)

    def slab(
        self,
        part: str,
        outline: Sequence[tuple[float, float]] | Floats,
        paint: str = "main",
        *,
        base: float = 0.0,
        thick: float = 0.05,
        soft: float = 0.0,
    ) -> None:
        """A thin plate lying level: outline (n, 2) of x and z. `soft` rounds its upper edge by that radius."""
        low = self.project([(x, base, z) for x, z in outline])
        high = low + np.array([0.0, thick * self.rise])
        # Its edge is in the shade of its upper side.
        self.add(part, low, paint, self.facing(0, 0, 1) * 0.75)
        shading = TubeShading(soft) if soft else self.facing(0, 1, 0)
        self.add(part, high, paint, shading)

    def screen(
        self,
        part: str,
        outline: Sequence[tuple[float, float]] | Floats,
        paint: str = "main",
        *,
        z: float = 0.0,
        thick: float = 0.0,
        soft: float = 0.0,
        gain: float = 1.0,
    ) -> None:
        """A plate standing upright: outline (n, 2) of x and y, facing the front, its back `thick` behind."""
        front = self.project([(x, y, z) for x, y in outline])
        if thick:
            back = front - self.project([(0.0, 0.0, thick)])
            self.add(part, _swept(back, front), paint, 0.78 * gain)
        shading = TubeShading(soft) if soft else gain * self.facing(0, 0, 1)
        self.add(part, front, paint, shading)

    def seam(self, part: str, line: Floats, paint: str = "shade") -> None:
        """A thin dark line on a surface, given in the image plane (n, 2)."""
        half_width = np.array([0.012, 0.0])
        outline = np.concatenate([line - half_width, line[::-1] + half_width])
        self.add(part, outline, paint, 0.78)

    # -- round bodies ----------------------------------------------------------------------------------------------

    def tube(
        self,
        part: str,
        path: Sequence[Point],
        radius: float | Sequence[float],
        paint: str = "main",
        *,
        smooth: bool = True,
    ) -> None:
        """A bent rod along a path; radius: one, or one per point."""
        line = np.empty((len(path), 3))
        line[:, :2] = self.project(path)
        line[:, 2] = radius
        if smooth and len(path) > 2:
            line = curve(line, 4)
        # The smooth curve may give a radius below zero at a pointed end.
        radii = np.maximum(line[:, 2], 0.0)
        mean_radius = float(line[:, 2].mean())
        outline = _stroke(line[:, :2], radii)
        self.add(part, outline, paint, TubeShading(mean_radius))

    def ball(
        self,
        part: str,
        center: Point,
        radius: float,
        paint: str = "main",
        *,
        wide: float = 1.0,
        tall: float = 1.0,
    ) -> None:
        """An ellipsoid."""
        ((x, y),) = self.project([center])
        rx = radius * wide
        ry = radius * tall
        self.add(part, ellipse(x, y, rx, ry), paint, BallShading(x, y, rx, ry))


def curve(points: Floats, pieces: int) -> Floats:
    """A Catmull-Rom curve through points (n, k): each span in `pieces` steps, (n - 1) * pieces + 1 rows."""
    return _curve_matrix(len(points), pieces) @ points


@functools.cache
def _curve_matrix(count: int, pieces: int) -> Floats:
    """The matrix that `curve` multiplies its points with."""
    points = np.eye(count)
    # One point more at each end, in the direction of the first and the last span.
    before_first = 2 * points[:1] - points[1:2]
    after_last = 2 * points[-1:] - points[-2:-1]
    padded = np.concatenate([before_first, points, after_last])
    # Each span runs from b to c; a and d are the points before and after it.
    a, b, c, d = (padded[start : start + count - 1, None] for start in range(4))
    t = (np.arange(pieces) / pieces)[None, :, None]
    # The Catmull-Rom polynomial in Horner's form.
    cubic = 3 * (b - c) + d - a
    quadratic = 2 * a - 5 * b + 4 * c - d + t * cubic
    linear = c - a + t * quadratic
    spans = b + 0.5 * t * linear
    return np.concatenate([spans.reshape(-1, count), points[-1:]])


def rounded(x: tuple[float, float], y: tuple[float, float], radius: float) -> Floats:
    """A rectangle with round corners as an outline (n, 2)."""
    left = x[0] + radius
    right = x[1] - radius
    low = y[0] + radius
    high = y[1] - radius
    # Centers of the corners, anticlockwise from the upper right.
    centers = np.array([(right, high), (left, high), (left, low), (right, low)])
    return (centers[:, None] + radius * _QUARTERS).reshape(-1, 2)


def tapered(
    low: tuple[float, float], high: tuple[float, float], x: float = 0.0
) -> Floats:
    """A symmetrical trapezium about x as an outline (4, 2): (height, half width) below and above."""
    low_y, low_half = low
    high_y, high_half = high
    return np.array(
        [
            (x - low_half, low_y),
            (x + low_half, low_y),
            (x + high_half, high_y),
            (x - high_half, high_y),
        ]
    )


def rotation(angle: float) -> Floats:
    """The matrix (2, 2) that turns an outline anticlockwise when the outline is multiplied with it."""
    cos = math.cos(angle)
    sin = math.sin(angle)
    return np.array([[cos, sin], [-sin, cos]])


def ellipse(x: float, y: float, rx: float, ry: float) -> Floats:
    """An ellipse as an outline (24, 2)."""
    return _CIRCLE * (rx, ry) + (x, y)


def _stroke(line: Floats, radii: Floats) -> Floats:
    """The outline (2n, 2) of a line (n, 2) with half widths radii (n,)."""
    direction = np.empty_like(line)
    direction[1:-1] = line[2:] - line[:-2]
    direction[0] = line[1] - line[0]
    direction[-1] = line[-1] - line[-2]
    dx, dy = direction.T
    # Two equal points have no direction; their offset is then 0, not a division by 0.
    length = np.maximum(np.hypot(dx, dy), 1e-9)
    offset = np.stack([-dy, dx], 1) * (radii / length)[:, None]
    left_edge = line + offset
    right_edge = (line - offset)[::-1]
    return np.concatenate([left_edge, right_edge])


def _swept(back: Floats, front: Floats) -> Floats:
    """The area that a convex outline sweeps from `back` to `front`, its shifted copy.

    This is the body of a plate. Two points of the outline lie farthest on either side
    of the direction of the shift; between them the area follows `back` on one side and
    `front` on the other.
    """
    ((right, up),) = front[:1] - back[:1]
    across = front[:, 0] * up - front[:, 1] * right
    first = int(across.argmin())
    last = int(across.argmax())
    count = len(front)
    if _turns_left(front):
        first_side = back
        second_side = front
    else:
        first_side = front
        second_side = back
    # Points from `first` to `last`, both included, and then back to `first`.
    span = (last - first) % count + 1
    order = (first + np.arange(count)) % count
    there = order[:span]
    back_again = np.append(order[span - 1 :], order[:1])
    return np.concatenate([first_side[there], second_side[back_again]])


def _turns_left(outline: Floats) -> bool:
    """Whether a convex outline runs anticlockwise (y up)."""
    # The corners of a large triangle within the outline.
    x0, y0 = outline[0]
    x1, y1 = outline[len(outline) // 3]
    x2, y2 = outline[2 * len(outline) // 3]
    return bool((x1 - x0) * (y2 - y0) > (y1 - y0) * (x2 - x0))
