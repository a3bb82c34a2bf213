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


_ARC = np.linspace(0.0, math.pi / 2, 7)
_COS = np.cos(_ARC)
_SIN = np.sin(_ARC)
_CIRCLE = np.stack(
    [
        np.cos(np.linspace(0, 2 * math.pi, 24, False)),
        np.sin(np.linspace(0, 2 * math.pi, 24, False)),
    ],
    1,
)
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
        moved = self.points * slope if slope.ndim == 1 else self.points @ slope
        flat = (moved + shift).ravel().tolist()
        starts = self.starts
        return [
            flat[2 * starts[i] : 2 * starts[i + 1]]
            for i in (self.bulk if bulk else range(len(self.facets)))
        ]


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
        starts = np.cumsum([0] + [len(facet.outline) for facet in self.facets])
        points = np.concatenate([facet.outline for facet in self.facets])
        low = np.minimum.reduceat(points, starts[:-1])
        high = np.maximum.reduceat(points, starts[:-1])
        extent = (high - low).max(1)
        bulk = np.flatnonzero(extent > DETAIL * extent.max()).tolist()
        return ObjectShape(
            tuple(self.facets), points, tuple(starts.tolist()), low, high, tuple(bulk)
        )

    def project(self, points: Sequence[Point]) -> Floats:
        """Points (n, 3) to the image plane (n, 2)."""
        cos = self.cos
        sin = self.sin
        rise = self.rise
        tilt = self.tilt
        return np.array(
            [
                (x * cos + z * sin, y * rise - (z * cos - x * sin) * tilt)
                for x, y, z in points
            ]
        )

    def facing(self, x: float, y: float, z: float) -> float:
        """Brightness of a face with this normal, in the object's own axes."""
        near = z * self.cos - x * self.sin
        across = x * self.cos + z * self.sin
        return self.light.brightness(
            across, y * self.rise - near * self.tilt, y * self.tilt + near * self.rise
        )

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
        low = heights[0] * self.rise
        high = heights[-1] * self.rise
        ys = np.concatenate(
            [
                low - self.tilt * radii[0] * _COS,
                heights * self.rise,
                high + self.tilt * radii[-1] * _SIN,
            ]
        )
        ys = np.maximum.accumulate(ys) + base
        widths = np.maximum(
            np.concatenate([radii[0] * _SIN, radii, radii[-1] * _COS]), 0.0
        )
        outline = np.empty((2 * len(ys), 2))
        outline[: len(ys), 0] = axis + widths
        outline[len(ys) :, 0] = (axis - widths)[::-1]
        outline[: len(ys), 1] = ys
        outline[len(ys) :, 1] = ys[::-1]
        self.add(part, outline, paint, LatheShading(axis, ys, widths))

    def band(
        self,
        part: str,
        low: tuple[float, float],
        high: tuple[float, float],
        paint: str = "accent",
    ) -> None:
        """A stripe around a body of revolution, between two (height, radius): its front half."""
        front = np.concatenate([-_ARC[::-1], _ARC[1:]]) - math.pi / 2
        edges = [
            np.stack(
                [
                    radius * np.cos(front),
                    height * self.rise + radius * self.tilt * np.sin(front),
                ],
                1,
            )
            for height, radius in (low, high)
        ]
        outline = np.concatenate([edges[0], edges[1][::-1]])
        ys = np.array([low[0] * self.rise - 1.0, high[0] * self.rise])
        self.add(
            part, outline, paint, LatheShading(0.0, ys, np.array([low[1], high[1]]))
        )

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
        ((cx, cy),) = self.project([(x, height, z)])
        if rim:
            edge = ellipse(cx, cy, radius, radius * self.tilt)
            self.add(part, edge, paint, min(1.25, self.facing(0, 1, 0) * 1.12))
        half = radius * (1.0 - rim)
        inner = ellipse(cx, cy, half, half * self.tilt)
        if not hollow:
            self.add(part, inner, paint, self.facing(0, 1, 0))
            return
        ys = cy + half * self.tilt * np.sin(np.linspace(-math.pi / 2, math.pi / 2, 11))
        self.add(part, inner, paint, LatheShading(cx, ys, np.full(11, half), True))

    # -- boxes and plates ------------------------------------------------------------------------------------------

    def cuboid(
        self,
        part: str,
        x: tuple[float, float],
        y: tuple[float, float],
        z: tuple[float, float],
        paint: str = "main",
    ) -> None:
        """A box: its faces towards the viewer."""
        (x0, x1) = x
        (y0, y1) = y
        (z0, z1) = z
        if abs(self.sin) > 0.02:
            side, out = (x1, 1.0) if self.sin < 0 else (x0, -1.0)
            self.panel(
                part,
                [(side, y0, z0), (side, y0, z1), (side, y1, z1), (side, y1, z0)],
                (out, 0, 0),
                paint,
            )
        end, out = (z1, 1.0) if self.cos > 0 else (z0, -1.0)
        self.panel(
            part,
            [(x0, y0, end), (x1, y0, end), (x1, y1, end), (x0, y1, end)],
            (0, 0, out),
            paint,
        )
        self.level(part, x, z, y1, paint)

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
        (x0, x1) = x
        (z0, z1) = z
        self.panel(
            part, [(x0, y, z0), (x1, y, z0), (x1, y, z1), (x0, y, z1)], (0, 1, 0), paint
        )

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
        self.add(part, low, paint, self.facing(0, 0, 1) * 0.75)
        self.add(part, high, paint, TubeShading(soft) if soft else self.facing(0, 1, 0))

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
        self.add(
            part,
            front,
            paint,
            TubeShading(soft) if soft else gain * self.facing(0, 0, 1),
        )

    def seam(self, part: str, line: Floats, paint: str = "shade") -> None:
        """A thin dark line on a surface, given in the image plane (n, 2)."""
        half = np.array([0.012, 0.0])
        self.add(part, np.concatenate([line - half, line[::-1] + half]), paint, 0.78)

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
        self.add(
            part,
            _stroke(line[:, :2], np.maximum(line[:, 2], 0.0)),
            paint,
            TubeShading(float(line[:, 2].mean())),
        )

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
        self.add(part, _CIRCLE * (rx, ry) + (x, y), paint, BallShading(x, y, rx, ry))


def curve(points: Floats, pieces: int) -> Floats:
    """A Catmull-Rom curve through points (n, k): each span in `pieces` steps, (n - 1) * pieces + 1 rows."""
    return _curve_matrix(len(points), pieces) @ points


@functools.cache
def _curve_matrix(count: int, pieces: int) -> Floats:
    """The matrix that `curve` multiplies its points with."""
    points = np.eye(count)
    padded = np.concatenate(
        [2 * points[:1] - points[1:2], points, 2 * points[-1:] - points[-2:-1]]
    )
    a, b, c, d = (padded[start : start + count - 1, None] for start in range(4))
    t = (np.arange(pieces) / pieces)[None, :, None]
    spans = b + 0.5 * t * (
        c - a + t * (2 * a - 5 * b + 4 * c - d + t * (3 * (b - c) + d - a))
    )
    return np.concatenate([spans.reshape(-1, count), points[-1:]])


def rounded(x: tuple[float, float], y: tuple[float, float], radius: float) -> Floats:
    """A rectangle with round corners as an outline (n, 2)."""
    centers = np.array(
        [
            (x[1] - radius, y[1] - radius),
            (x[0] + radius, y[1] - radius),
            (x[0] + radius, y[0] + radius),
            (x[1] - radius, y[0] + radius),
        ]
    )
    return (centers[:, None] + radius * _QUARTERS).reshape(-1, 2)


def tapered(
    low: tuple[float, float], high: tuple[float, float], x: float = 0.0
) -> Floats:
    """A symmetrical trapezium about x as an outline (4, 2): (height, half width) below and above."""
    (y0, half0) = low
    (y1, half1) = high
    return np.array(
        [(x - half0, y0), (x + half0, y0), (x + half1, y1), (x - half1, y1)]
    )


def rotation(angle: float) -> Floats:
    """The matrix (2, 2) that turns an outline anticlockwise when the outline is multiplied with it."""
    return np.array(
        [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
    )


def ellipse(x: float, y: float, rx: float, ry: float) -> Floats:
    """An ellipse as an outline (24, 2)."""
    return _CIRCLE * (rx, ry) + (x, y)


def _stroke(line: Floats, radii: Floats) -> Floats:
    """The outline of a line of varying width."""
    ahead = np.empty_like(line)
    ahead[1:-1] = line[2:] - line[:-2]
    ahead[0] = line[1] - line[0]
    ahead[-1] = line[-1] - line[-2]
    length = np.maximum(np.hypot(ahead[:, 0], ahead[:, 1]), 1e-9)
    normal = np.stack([-ahead[:, 1], ahead[:, 0]], 1) * (radii / length)[:, None]
    return np.concatenate([line + normal, (line - normal)[::-1]])


def _swept(back: Floats, front: Floats) -> Floats:
    """The area that a convex outline sweeps from `back` to `front`, its shifted copy: the body of a plate."""
    ((right, up),) = front[:1] - back[:1]
    across = front[:, 0] * up - front[:, 1] * right
    first = int(across.argmin())
    last = int(across.argmax())
    ahead, behind = (back, front) if _turns_left(front) else (front, back)
    rows = np.arange(len(front))
    one = (
        (rows >= first) & (rows <= last)
        if first < last
        else (rows >= first) | (rows <= last)
    )
    order = (first + rows) % len(front)
    span = int(one.sum())
    start_to_end = order[:span]
    rest = np.append(order[span - 1 :], order[:1])
    return np.concatenate([ahead[start_to_end], behind[rest]])


def _turns_left(outline: Floats) -> bool:
    """Whether a convex outline runs anticlockwise (y up)."""
    (x0, y0) = outline[0]
    (x1, y1) = outline[len(outline) // 3]
    (x2, y2) = outline[2 * len(outline) // 3]
    return bool((x1 - x0) * (y2 - y0) > (y1 - y0) * (x2 - x0))
