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

WHITE_BYTE = 200.0
"""The byte for brightness 1; faces brighter than 1 use the values above."""

LEAST_HALF_WIDTH = 1e-4
"""Smallest half width that a lathed body is divided by: its tip has none."""


class ObjectPlacement(NamedTuple):
    """Where an object stands: its ground point (x right, y down) and its scale.

    In pixels, and pixels per shape unit, here; a layout uses fractions of the image.
    """

    x: float
    y: float
    scale: float


class ObjectRaster(NamedTuple):
    """A rasterized object within its box, h x w pixels.

    row, column: the first ones of the box in the image. color: float32 (3, h, w),
    multiplied by cover. cover: float32 (h, w) in 0..1. facet: (h, w), the number of
    the facet at each pixel center, counted from 1, or 0.
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
        rows = slice(self.row, self.row + height)
        columns = slice(self.column, self.column + width)
        return rows, columns


def rasterize(
    shape: ObjectShape, place: ObjectPlacement, size: int, light: DirectionalLight
) -> ObjectRaster | None:
    """Rasterize an object within an image of size x size pixels; None if outside."""
    left, top, right, bottom = _box(shape, place, size)
    if left >= right or top >= bottom:
        return None
    corner = (left, top)
    box = (right - left, bottom - top)
    fine = _draw_facet_numbers(shape, place, corner, box)
    center = FINE // 2
    facet = np.ascontiguousarray(fine[center::FINE, center::FINE])
    color, cover = _average_colors(fine, shape.facets)
    numbers = _with_rim(fine, facet)
    shader = _Shader(shape, numbers, corner, place, light)
    shader.shade_all()
    color *= shader.shade
    if shader.gloss is not None:
        color += shader.gloss * cover
    return ObjectRaster(top, left, color, cover, facet)


def _box(
    shape: ObjectShape, place: ObjectPlacement, size: int
) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of the pixels that a shape may touch in the image.

    One pixel wider than the shape, because of rounding. y points up in the shape and
    down in the image.
    """
    left, low = shape.low.min(0).tolist()
    right, high = shape.high.max(0).tolist()
    x, y, scale = place
    first_column = math.floor(x + scale * left) - 1
    first_row = math.floor(y - scale * high) - 1
    last_column = math.ceil(x + scale * right) + 1
    last_row = math.ceil(y - scale * low) + 1
    return (
        max(first_column, 0),
        max(first_row, 0),
        min(last_column, size),
        min(last_row, size),
    )


def _draw_facet_numbers(
    shape: ObjectShape,
    place: ObjectPlacement,
    corner: tuple[int, int],
    box: tuple[int, int],
) -> NDArray[np.uint8]:
    """The facet number of every fine pixel, uint8, FINE times the box (width, height).

    0 where there is no facet; later facets cover earlier ones.
    """
    left, top = corner
    width, height = box
    fine_scale = FINE * place.scale
    slope = np.array([fine_scale, -fine_scale])
    # Pillow's coordinates are pixel centers, ours are corners: half a pixel apart.
    shift_x = FINE * (place.x - left) - 0.5
    shift_y = FINE * (place.y - top) - 0.5
    image = Image.new("L", (width * FINE, height * FINE))
    pen = ImageDraw.Draw(image)
    shift = np.array([shift_x, shift_y])
    outlines = shape.outlines(slope, shift)
    for number, outline in enumerate(outlines, 1):
        pen.polygon(outline, fill=number)
    return np.asarray(image)


def _average_colors(
    fine: NDArray[np.uint8], facets: tuple[Facet, ...]
) -> tuple[Planes, Planes]:
    """Mean color times cover (3, h, w), and cover (h, w), of each pixel.

    Flat facets are already lit; curved ones have brightness 1 and are shaded later.
    """
    # One row per facet number: red, green, blue, cover; row 0 is "no facet".
    table = np.zeros((len(facets) + 1, 4), np.uint8)
    for number, facet in enumerate(facets, 1):
        brightness = facet.shading if isinstance(facet.shading, float) else 1.0
        level = WHITE_BYTE * brightness
        color_bytes = [min(255, int(level * value)) for value in facet.paint.rgb]
        table[number] = [*color_bytes, 255]
    # Four bytes as one number: one table lookup per fine pixel instead of four.
    packed = table.view(np.uint32)[:, 0].take(fine)
    height, width = packed.shape
    # CMYK is used for four arbitrary bytes: Pillow would weight RGBA by its alpha.
    image = Image.frombuffer("CMYK", (width, height), packed, "raw", "CMYK", 0, 1)
    mean = np.asarray(image.reduce(FINE))
    planes = mean.transpose(2, 0, 1).astype(np.float32)
    color = planes[:3] * np.float32(1 / WHITE_BYTE)
    cover = planes[3] * np.float32(1 / 255)
    return color, cover


def _with_rim(fine: NDArray[np.uint8], facet: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Facet numbers (h, w) that also cover the anti-aliased edge.

    A pixel whose center is outside takes the last facet at one of its corners.
    """
    first = slice(0, None, FINE)
    last = slice(FINE - 1, None, FINE)
    upper = np.maximum(fine[first, first], fine[first, last])
    lower = np.maximum(fine[last, first], fine[last, last])
    last_facet = np.maximum(upper, lower)
    return np.where(facet == 0, last_facet, facet)


class _Shader:
    """Brightness and gloss of an object: one pass over its curved or textured facets.

    numbers: facet numbers (h, w). x (w,) and y (h,): shape coordinates of the pixel
    centers. shade: brightness factors (h, w). gloss: light to add (h, w), or None.
    """

    def __init__(
        self,
        shape: ObjectShape,
        numbers: NDArray[np.uint8],
        corner: tuple[int, int],
        place: ObjectPlacement,
        light: DirectionalLight,
    ) -> None:
        left, top = corner
        height, width = numbers.shape
        self.shape = shape
        self.numbers = numbers
        self.place = place
        self.light = light
        # 0.5: a pixel is where its center is. y points down in the image.
        x_in_pixels = np.arange(width) + (left + 0.5 - place.x)
        y_in_pixels = place.y - top - 0.5 - np.arange(height)
        x = x_in_pixels / place.scale
        y = y_in_pixels / place.scale
        self.x = x.astype(np.float32)
        self.y = y.astype(np.float32)
        self.shade = np.ones(numbers.shape, np.float32)
        self.gloss: Planes | None = None

    def shade_all(self) -> None:
        """Shade the curved facets, then apply the textures."""
        facets = self.shape.facets
        for number, facet in enumerate(facets, 1):
            if not isinstance(facet.shading, float):
                self._shade_facet(number, facet)
        textures = {facet.paint.texture for facet in facets if facet.paint.texture}
        # The primes make neighboring objects start at unrelated places of a texture.
        texture_row = int(self.place.x * 37)
        texture_column = int(self.place.y * 53)
        for name in textures:
            crop = crop_texture(name, texture_row, texture_column, self.numbers.shape)
            has_texture = [facet.paint.texture == name for facet in facets]
            by_number = np.array([False, *has_texture])
            where = by_number[self.numbers]
            np.multiply(self.shade, crop, out=self.shade, where=where)

    def _shade_facet(self, number: int, facet: Facet) -> None:
        """Set the brightness and gloss of the pixels of one curved facet."""
        rows, columns = self._facet_box(number - 1)
        is_facet = self.numbers[rows, columns] == number
        if not is_facet.any():
            return
        brightness, gloss = self._light_facet(facet, rows, columns, is_facet)
        np.copyto(self.shade[rows, columns], brightness, where=is_facet)
        if gloss is not None:
            if self.gloss is None:
                self.gloss = np.zeros(self.numbers.shape, np.float32)
            np.copyto(self.gloss[rows, columns], gloss, where=is_facet)

    def _facet_box(self, index: int) -> tuple[slice, slice]:
        """Rows and columns a facet may touch, one pixel wider than it is."""
        left, low = self.shape.low[index].tolist()
        right, high = self.shape.high[index].tolist()
        step = 1.0 / self.place.scale
        first_x = float(self.x[0])
        first_y = float(self.y[0])
        first_column = int((left - first_x) / step) - 1
        stop_column = int((right - first_x) / step) + 2
        first_row = int((first_y - high) / step) - 1
        stop_row = int((first_y - low) / step) + 2
        columns = slice(max(0, first_column), max(0, stop_column))
        rows = slice(max(0, first_row), max(0, stop_row))
        return rows, columns

    def _light_facet(
        self, facet: Facet, rows: slice, columns: slice, is_facet: NDArray[np.bool_]
    ) -> tuple[Planes, Planes | None]:
        """Brightness, and gloss if any, of the facet's box (h, w)."""
        shading = facet.shading
        gloss = facet.paint.gloss
        x = self.x[columns]
        y = self.y[rows]
        if isinstance(shading, LatheShading):
            return _light_lathe(shading, x, y, self.light, gloss)
        if isinstance(shading, BallShading):
            return _light_ball(shading, x, y, self.light, gloss)
        assert isinstance(shading, TubeShading)
        radius_in_pixels = shading.radius * self.place.scale
        brightness = _light_edge(is_facet, radius_in_pixels, self.light)
        return brightness, None


def _light_lathe(
    shading: LatheShading, x: Planes, y: Planes, light: DirectionalLight, gloss: float
) -> tuple[Planes, Planes | None]:
    """A body of revolution: the position across it gives the normal of its surface.

    An opening (`hollow`) is dark and brighter on the side away from the light, where
    the light meets its inner wall. Gloss is an upright streak.
    """
    light_side = math.copysign(1.0, light.x)
    profile = np.interp(y, shading.ys, shading.widths)
    half_width = np.maximum(profile, LEAST_HALF_WIDTH).astype(np.float32)
    offset = x[None] - np.float32(shading.x)
    # -1 at the left edge, 1 at the right one: the x component of the normal.
    across = np.clip(offset / half_width[:, None], -1, 1)
    if shading.hollow:
        difference = np.float32(0.15 * light_side) * across
        return np.float32(0.57) - difference, None
    towards_viewer = np.sqrt(1 - across * across)
    # The surface is upright but seen from above: it takes a third of the light's height.
    light_ahead = light.z + 0.35 * light.y
    facing = across * light.x + towards_viewer * light_ahead
    brightness = AMBIENT + DIFFUSE * np.maximum(facing, 0)
    if not gloss:
        return brightness, None
    # The farther aside the light is, the nearer to the edge the streak lies.
    streak_offset = 0.3 + 0.5 * abs(light.x)
    streak = np.float32(light_side * streak_offset)
    distance = across - streak
    # 60: the streak fades over about an eighth of the half width.
    falloff = np.exp(-60 * distance * distance)
    return brightness, np.float32(0.5 * gloss) * falloff


def _light_ball(
    shading: BallShading, x: Planes, y: Planes, light: DirectionalLight, gloss: float
) -> tuple[Planes, Planes | None]:
    """An ellipsoid: brightness by its normal, gloss as a round spot."""
    x_offset = x[None] - np.float32(shading.x)
    y_offset = y[:, None] - np.float32(shading.y)
    across = x_offset * np.float32(1 / shading.rx)
    up = y_offset * np.float32(1 / shading.ry)
    # Pixels of the rim may lie slightly outside the ellipsoid.
    squared_depth = np.maximum(1 - across * across - up * up, 0)
    towards_viewer = np.sqrt(squared_depth)
    facing = across * light.x + up * light.y + towards_viewer * light.z
    brightness = AMBIENT + DIFFUSE * np.maximum(facing, 0)
    if not gloss:
        return brightness, None
    # The spot is between the center and the point that faces the light.
    spot_x = across - np.float32(0.6 * light.x)
    spot_y = up - np.float32(0.6 * light.y)
    squared_distance = spot_x**2 + spot_y**2
    # 14: the spot fades over about a quarter of the radius.
    falloff = np.exp(-14 * squared_distance)
    return brightness, np.float32(0.6 * gloss) * falloff


def _light_edge(
    is_facet: NDArray[np.bool_], radius: float, light: DirectionalLight
) -> Planes:
    """Rounded edges: the gradient of the blurred mask is the slope of the surface."""
    # Below 0.8 pixels the blur would leave the mask as it is.
    blur = max(0.8, 0.7 * radius)
    height, width = is_facet.shape
    padded = np.zeros((height + 2, width + 2), np.uint8)
    padded[1:-1, 1:-1] = is_facet
    padded *= 255
    mask_image = Image.fromarray(padded)
    blurred_image = mask_image.filter(ImageFilter.BoxBlur(blur))
    blurred = np.asarray(blurred_image).astype(np.float32)
    slope_down = blurred[2:, 1:-1] - blurred[:-2, 1:-1]
    slope_right = blurred[1:-1, 2:] - blurred[1:-1, :-2]
    from_above = slope_down * np.float32(light.y)
    from_side = slope_right * np.float32(light.x)
    facing = from_above - from_side
    # The slope of a blurred edge is about 255 / blur: this brings it to about 1.
    unit_facing = facing * np.float32(max(1.0, blur) / 255)
    return np.float32(0.88) + np.float32(0.55) * np.clip(unit_facing, -0.7, 0.7)
