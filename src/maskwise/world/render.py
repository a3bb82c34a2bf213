"""Render a layout as an image and exact masks."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from maskwise.world.background import Background, draw_background
from maskwise.world.catalogue import CATEGORIES
from maskwise.world.random_streams import RandomStream
from maskwise.world.rasterizer import ObjectRaster, Planes, rasterize
from maskwise.world.scene_layout import PlacedObject, SceneLayout
from maskwise.world.textures import SIDE, crop_texture


class Rendering(NamedTuple):
    """image: uint8 (size, size, 3). object_map: int8 (size, size), the number of the object visible at each pixel, or
    -1. rasters: one per object of the layout, None for an object outside the image.
    """

    image: NDArray[np.uint8]
    object_map: NDArray[np.int8]
    rasters: list[ObjectRaster | None]


def render(
    layout: SceneLayout, background: Background, size: int, rng: RandomStream
) -> Rendering:
    """Draw the background, the shadows on the ground, and the objects from the back to the front."""
    planes = draw_background(background, size, layout.light)
    _cast_shadows(planes, layout, size)
    object_map = np.full((size, size), -1, np.int8)
    rasters = []
    for number, placed in enumerate(layout.objects):
        raster = rasterize(placed.shape, placed.in_pixels(size), size, layout.light)
        rasters.append(raster)
        if raster is not None:
            _dim_around(planes, raster, size, layout)
            _lay(planes, raster)
            object_map[raster.window][raster.facet > 0] = number
    return Rendering(_expose(planes, size, rng), object_map, rasters)


def _lay(planes: Planes, raster: ObjectRaster) -> None:
    rows, columns = raster.window
    under = planes[:, rows, columns]
    under *= 1 - raster.cover
    under += raster.color


def _cast_shadows(planes: Planes, layout: SceneLayout, size: int) -> None:
    """Darken the ground: every outline is projected along the light, at half resolution, then blurred."""
    half = size // 2
    image = Image.new("L", (half, half))
    pen = ImageDraw.Draw(image)
    for placed in layout.objects:
        _lay_shadow(pen, placed, layout, half)
    soft = image.filter(ImageFilter.GaussianBlur(0.012 * size)).resize(
        (size, size), Image.Resampling.BILINEAR
    )
    edge = round(layout.horizon * size)
    dim = 1 - np.asarray(soft)[edge:].astype(np.float32) * np.float32(0.5 / 255)
    planes[:, edge:] *= dim


def _lay_shadow(
    pen: ImageDraw.ImageDraw, placed: PlacedObject, layout: SceneLayout, half: int
) -> None:
    light = layout.light
    place = placed.in_pixels(half)
    rise = np.sqrt(1 - layout.tilt**2)
    flip = np.array([place.scale, -place.scale])
    if CATEGORIES[placed.category].flat:
        slant = np.eye(2)
        shift = np.array([-0.1 * light.x / light.y, -0.03])
    else:
        slant = np.array(
            [
                [1.0, 0.0],
                [
                    -0.8 * light.x / light.y / rise,
                    0.7 * layout.tilt * light.z / light.y / rise,
                ],
            ]
        )
        shift = np.array([0.0, -0.02])
    for outline in placed.shape.outlines(
        slant * flip, shift * flip + (place.x, place.y), bulk=True
    ):
        pen.polygon(outline, fill=255)


def _dim_around(
    planes: Planes, raster: ObjectRaster, size: int, layout: SceneLayout
) -> None:
    """Darken the surroundings of an object on the side away from the light."""
    reach = max(2, round(0.03 * size))
    padded = np.zeros(
        (raster.cover.shape[0] + 2 * reach, raster.cover.shape[1] + 2 * reach), np.uint8
    )
    padded[reach:-reach, reach:-reach] = raster.cover * 255
    soft = np.asarray(Image.fromarray(padded).filter(ImageFilter.BoxBlur(reach * 0.5)))
    shift = -round(np.sign(layout.light.x) * reach * 0.4)
    top = raster.row - reach
    left = raster.column - reach + shift
    rows = slice(max(top, 0), min(top + soft.shape[0], size))
    columns = slice(max(left, 0), min(left + soft.shape[1], size))
    piece = soft[
        rows.start - top : rows.stop - top, columns.start - left : columns.stop - left
    ]
    planes[:, rows, columns] *= 1 - piece.astype(np.float32) * np.float32(0.3 / 255)


def _expose(planes: Planes, size: int, rng: RandomStream) -> NDArray[np.uint8]:
    """Exposure, sensor noise and rounding to bytes (size, size, 3)."""
    gain = rng.uniform(0.88, 1.06)
    noise = rng.uniform(0.004, 0.018)
    planes *= np.float32(255 * gain)
    grain = crop_texture("grain", rng.integer(SIDE), rng.integer(SIDE), (size, size))
    planes += np.float32(255 * noise) * grain
    np.clip(planes, 0, 255, out=planes)
    image = np.empty((size, size, 3), np.uint8)
    for channel, plane in enumerate(planes):
        image[..., channel] = plane
    return image
