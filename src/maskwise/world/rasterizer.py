"""Rasterize facets: colors, and the facet number of every pixel.

An object is drawn once, at three times the image resolution, as a map of facet numbers. The masks are that map sampled
at the pixel centers; the colors are its average over each pixel, so the image is anti-aliased while the masks are
exact. Nothing here is random.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from maskwise.world.facets import (
    AMBIENT,
    DIFFUSE,
    BallShading,
    DirectionalLight,
    Facet,
    LatheShading,
    ObjectShape,
    TubeShading,
)
from maskwise.world.textures import crop_texture

FINE = 3
"""Oversampling factor; odd, so that pixel centers are samples."""

Floats = NDArray[np.float64]
Planes = NDArray[np.float32]

_WHITE = 200.0
"""The byte for brightness 1; brighter faces use the values above."""


class ObjectPlacement(NamedTuple):
    """Where an object stands: its ground point in pixels (x right, y down) and its scale in pixels per unit."""

    x: float
    y: float
    scale: float


class ObjectRaster(NamedTuple):
    """A rasterized object: the first row and column of its box, its colors (3, h, w) multiplied by cover, cover
    (h, w) in 0..1, and facet (h, w): the number of the facet at each pixel center, counted from 1, or 0.
    """

    row: int
    column: int
    color: Planes
    cover: Planes
    facet: NDArray[np.uint8]

    @property
    def window(self) -> tuple[slice, slice]:
        """Its rows and columns in the image."""
        height, width = self.cover.shape
        return slice(self.row, self.row + height), slice(
            self.column, self.column + width
        )


def rasterize(
    shape: ObjectShape, place: ObjectPlacement, size: int, light: DirectionalLight
) -> ObjectRaster | None:
    """Rasterize an object within an image of size x size pixels; None if it lies outside."""
    left, top, right, bottom = _box(shape, place, size)
    if left >= right or top >= bottom:
        return None
    fine = _number(shape, place, (left, top), (right - left, bottom - top))
    facet = np.ascontiguousarray(fine[FINE // 2 :: FINE, FINE // 2 :: FINE])
    color, cover = _average(fine, shape.facets)
    shader = _Shader(shape, _grown(fine, facet), (left, top), place, light)
    shader.shade_all()
    color *= shader.shade
    if shader.gloss is not None:
        color += shader.gloss * cover
    return ObjectRaster(top, left, color, cover, facet)


def _box(
    shape: ObjectShape, place: ObjectPlacement, size: int
) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of the pixels that a shape may touch within the image."""
    (left, low) = shape.low.min(0).tolist()
    (right, high) = shape.high.max(0).tolist()
    x, y, scale = place
    return (
        max(math.floor(x + scale * left) - 1, 0),
        max(math.floor(y - scale * high) - 1, 0),
        min(math.ceil(x + scale * right) + 1, size),
        min(math.ceil(y - scale * low) + 1, size),
    )


def _number(
    shape: ObjectShape,
    place: ObjectPlacement,
    corner: tuple[int, int],
    box: tuple[int, int],
) -> NDArray[np.uint8]:
    """The map of facet numbers, FINE times finer than the box (width, height)."""
    slope = np.array([FINE * place.scale, -FINE * place.scale])
    shift = np.array(
        [FINE * (place.x - corner[0]) - 0.5, FINE * (place.y - corner[1]) - 0.5]
    )
    image = Image.new("L", (box[0] * FINE, box[1] * FINE))
    pen = ImageDraw.Draw(image)
    for number, outline in enumerate(shape.outlines(slope, shift), 1):
        pen.polygon(outline, fill=number)
    return np.asarray(image)


def _average(
    fine: NDArray[np.uint8], facets: tuple[Facet, ...]
) -> tuple[Planes, Planes]:
    """Mean color times cover (3, h, w), and cover (h, w), of each pixel, curved facets at full brightness."""
    table = np.zeros((len(facets) + 1, 4), np.uint8)
    for number, facet in enumerate(facets, 1):
        level = _WHITE * (facet.shading if isinstance(facet.shading, float) else 1.0)
        table[number] = [min(255, int(level * value)) for value in facet.paint.rgb] + [
            255
        ]
    packed = table.view(np.uint32)[:, 0].take(fine)
    height, width = packed.shape
    # CMYK is used for four arbitrary bytes: Pillow would weight RGBA by its alpha.
    mean = np.asarray(
        Image.frombuffer("CMYK", (width, height), packed, "raw", "CMYK", 0, 1).reduce(
            FINE
        )
    )
    planes = mean.transpose(2, 0, 1).astype(np.float32)
    return planes[:3] * np.float32(1 / _WHITE), planes[3] * np.float32(1 / 255)


def _grown(fine: NDArray[np.uint8], facet: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Facet numbers with a rim: a pixel whose center is outside takes a facet from one of its corners."""
    first = slice(0, None, FINE)
    last = slice(FINE - 1, None, FINE)
    corners = np.maximum(
        np.maximum(fine[first, first], fine[first, last]),
        np.maximum(fine[last, first], fine[last, last]),
    )
    return np.where(facet == 0, corners, facet)


class _Shader:
    """Brightness and gloss of an object: one pass over its curved or textured facets."""

    def __init__(
        self,
        shape: ObjectShape,
        numbers: NDArray[np.uint8],
        corner: tuple[int, int],
        place: ObjectPlacement,
        light: DirectionalLight,
    ) -> None:
        height, width = numbers.shape
        self.shape = shape
        self.numbers = numbers
        self.place = place
        self.light = light
        self.x = (
            (np.arange(width) + (corner[0] + 0.5 - place.x)) / place.scale
        ).astype(np.float32)
        self.y = ((place.y - corner[1] - 0.5 - np.arange(height)) / place.scale).astype(
            np.float32
        )
        self.shade = np.ones(numbers.shape, np.float32)
        self.gloss: Planes | None = None

    def shade_all(self) -> None:
        """Shade the curved facets, then apply the textures."""
        facets = self.shape.facets
        for number, facet in enumerate(facets, 1):
            if not isinstance(facet.shading, float):
                self._shade_one(number, facet)
        for name in {facet.paint.texture for facet in facets if facet.paint.texture}:
            worn = np.array([False] + [facet.paint.texture == name for facet in facets])
            piece = crop_texture(
                name, int(self.place.x * 37), int(self.place.y * 53), self.numbers.shape
            )
            np.multiply(self.shade, piece, out=self.shade, where=worn[self.numbers])

    def _shade_one(self, number: int, facet: Facet) -> None:
        rows, columns = self._box(number - 1)
        here = self.numbers[rows, columns] == number
        if not here.any():
            return
        value, shine = self._light(facet, rows, columns, here)
        np.copyto(self.shade[rows, columns], value, where=here)
        if shine is not None:
            if self.gloss is None:
                self.gloss = np.zeros(self.numbers.shape, np.float32)
            np.copyto(self.gloss[rows, columns], shine, where=here)

    def _box(self, facet: int) -> tuple[slice, slice]:
        """Rows and columns a facet may touch, one pixel wider than it is."""
        (left, low) = self.shape.low[facet].tolist()
        (right, high) = self.shape.high[facet].tolist()
        step = 1.0 / self.place.scale
        first_x = float(self.x[0])
        first_y = float(self.y[0])
        columns = slice(
            max(0, int((left - first_x) / step) - 1),
            max(0, int((right - first_x) / step) + 2),
        )
        rows = slice(
            max(0, int((first_y - high) / step) - 1),
            max(0, int((first_y - low) / step) + 2),
        )
        return rows, columns

    def _light(
        self, facet: Facet, rows: slice, columns: slice, here: NDArray[np.bool_]
    ) -> tuple[Planes, Planes | None]:
        shading = facet.shading
        gloss = facet.paint.gloss
        if isinstance(shading, LatheShading):
            return _light_round(
                shading, self.x[columns], self.y[rows], self.light, gloss
            )
        if isinstance(shading, BallShading):
            return _light_ball(
                shading, self.x[columns], self.y[rows], self.light, gloss
            )
        assert isinstance(shading, TubeShading)
        return _light_edge(here, shading.radius * self.place.scale, self.light), None


def _light_round(
    shading: LatheShading, x: Planes, y: Planes, light: DirectionalLight, gloss: float
) -> tuple[Planes, Planes | None]:
    side = math.copysign(1.0, light.x)
    half = np.maximum(np.interp(y, shading.ys, shading.widths), 1e-4).astype(np.float32)
    across = np.clip((x[None] - np.float32(shading.x)) / half[:, None], -1, 1)
    if shading.hollow:
        return np.float32(0.57) - np.float32(0.15 * side) * across, None
    front = np.sqrt(1 - across * across)
    value = AMBIENT + DIFFUSE * np.maximum(
        across * light.x + front * (light.z + 0.35 * light.y), 0
    )
    if not gloss:
        return value, None
    offset = across - np.float32(side * (0.3 + 0.5 * abs(light.x)))
    return value, np.float32(0.5 * gloss) * np.exp(-60 * offset * offset)


def _light_ball(
    shading: BallShading, x: Planes, y: Planes, light: DirectionalLight, gloss: float
) -> tuple[Planes, Planes | None]:
    across = (x[None] - np.float32(shading.x)) * np.float32(1 / shading.rx)
    up = (y[:, None] - np.float32(shading.y)) * np.float32(1 / shading.ry)
    front = np.sqrt(np.maximum(1 - across * across - up * up, 0))
    value = AMBIENT + DIFFUSE * np.maximum(
        across * light.x + up * light.y + front * light.z, 0
    )
    if not gloss:
        return value, None
    away = (across - np.float32(0.6 * light.x)) ** 2 + (
        up - np.float32(0.6 * light.y)
    ) ** 2
    return value, np.float32(0.6 * gloss) * np.exp(-14 * away)


def _light_edge(
    here: NDArray[np.bool_], radius: float, light: DirectionalLight
) -> Planes:
    """Rounded edges: the gradient of the blurred mask is used as the slope of the surface."""
    reach = max(0.8, 0.7 * radius)
    padded = np.zeros((here.shape[0] + 2, here.shape[1] + 2), np.uint8)
    padded[1:-1, 1:-1] = here
    padded *= 255
    soft = np.asarray(
        Image.fromarray(padded).filter(ImageFilter.BoxBlur(reach))
    ).astype(np.float32)
    lit = (soft[2:, 1:-1] - soft[:-2, 1:-1]) * np.float32(light.y) - (
        soft[1:-1, 2:] - soft[1:-1, :-2]
    ) * np.float32(light.x)
    return np.float32(0.88) + np.float32(0.55) * np.clip(
        lit * np.float32(max(1.0, reach) / 255), -0.7, 0.7
    )
