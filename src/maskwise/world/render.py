"""Render a layout as an image and exact masks."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from maskwise.world.background import Background, draw_background
from maskwise.world.catalogue import CATEGORIES
from maskwise.world.random_streams import RandomStream
from maskwise.world.rasterizer import ObjectRaster, Planes, rasterize
from maskwise.world.scene_layout import PlacedObject, SceneLayout
from maskwise.world.textures import SIDE, crop_texture


def render(
    layout: SceneLayout, background: Background, size: int, rng: RandomStream
) -> tuple[NDArray[np.uint8], NDArray[np.int8], list[ObjectRaster | None]]:
    """Draw the background, the shadows, and the objects from the back to the front.

    Returns the image, uint8 (size, size, 3); the number of the object visible at each
    pixel, or -1, int8 (size, size); and a raster per object of the layout, None for an
    object outside the image.
    """
    planes = draw_background(background, size, layout.light)
    _cast_shadows(planes, layout, size)
    object_map = np.full((size, size), -1, np.int8)
    rasters = []
    for number, placed in enumerate(layout.objects):
        raster = rasterize(placed.shape, placed.in_pixels(size), size, layout.light)
        rasters.append(raster)
        if raster is not None:
            _darken_surroundings(planes, raster, size, layout)
            _draw_over(planes, raster)
            object_map[raster.window][raster.facet > 0] = number
    image = _expose(planes, size, rng)
    return image, object_map, rasters


def _draw_over(planes: Planes, raster: ObjectRaster) -> None:
    """Blend an object over what is already drawn, by its cover."""
    rows, columns = raster.window
    covered = planes[:, rows, columns]
    covered *= 1 - raster.cover
    covered += raster.color


def _cast_shadows(planes: Planes, layout: SceneLayout, size: int) -> None:
    """Darken the ground where objects keep the light off.

    Every outline is projected along the light, at half the resolution (shadows are
    blurred anyway), then blurred.
    """
    half_size = size // 2
    image = Image.new("L", (half_size, half_size))
    pen = ImageDraw.Draw(image)
    for placed in layout.objects:
        _draw_shadow(pen, placed, layout, half_size)
    blurred = image.filter(ImageFilter.GaussianBlur(0.012 * size))
    shadow = blurred.resize((size, size), Image.Resampling.BILINEAR)
    horizon_row = round(layout.horizon * size)
    ground_shadow = np.asarray(shadow)[horizon_row:].astype(np.float32)
    # A full shadow takes half of the light.
    planes[:, horizon_row:] *= 1 - ground_shadow * np.float32(0.5 / 255)


def _draw_shadow(
    pen: ImageDraw.ImageDraw, placed: PlacedObject, layout: SceneLayout, size: int
) -> None:
    """Draw the shadow of one object into an image of size x size pixels."""
    light = layout.light
    place = placed.in_pixels(size)
    # y points up in the shape and down in the image.
    to_pixels = np.array([place.scale, -place.scale])
    if CATEGORIES[placed.category].flat:
        # A flat object has a narrow shadow: its own outline, slightly shifted.
        slant = np.eye(2)
        shift = np.array([-0.1 * light.x / light.y, -0.03])
    else:
        # Height becomes a distance on the ground, away from the light.
        rise = np.sqrt(1 - layout.tilt**2)
        across = -0.8 * light.x / light.y / rise
        away = 0.7 * layout.tilt * light.z / light.y / rise
        slant = np.array([[1.0, 0.0], [across, away]])
        shift = np.array([0.0, -0.02])
    ground_point = (place.x, place.y)
    outlines = placed.shape.outlines(
        slant * to_pixels, shift * to_pixels + ground_point, bulk=True
    )
    for outline in outlines:
        pen.polygon(outline, fill=255)


def _darken_surroundings(
    planes: Planes, raster: ObjectRaster, size: int, layout: SceneLayout
) -> None:
    """Darken the surroundings of an object on the side away from the light."""
    reach = max(2, round(0.03 * size))
    height, width = raster.cover.shape
    padded = np.zeros((height + 2 * reach, width + 2 * reach), np.uint8)
    padded[reach:-reach, reach:-reach] = raster.cover * 255
    blur = ImageFilter.BoxBlur(reach * 0.5)
    shadow = np.asarray(Image.fromarray(padded).filter(blur))

    shift = -round(np.sign(layout.light.x) * reach * 0.4)
    top = raster.row - reach
    left = raster.column - reach + shift
    rows = slice(max(top, 0), min(top + shadow.shape[0], size))
    columns = slice(max(left, 0), min(left + shadow.shape[1], size))
    shadow_rows = slice(rows.start - top, rows.stop - top)
    shadow_columns = slice(columns.start - left, columns.stop - left)
    inside_image = shadow[shadow_rows, shadow_columns].astype(np.float32)
    planes[:, rows, columns] *= 1 - inside_image * np.float32(0.3 / 255)


def _expose(planes: Planes, size: int, rng: RandomStream) -> NDArray[np.uint8]:
    """Exposure, sensor noise and rounding to bytes (size, size, 3). Changes planes."""
    exposure = rng.uniform(0.88, 1.06)
    noise_level = rng.uniform(0.004, 0.018)
    grain_row = rng.integer(SIDE)
    grain_column = rng.integer(SIDE)
    grain = crop_texture("grain", grain_row, grain_column, (size, size))
    planes *= np.float32(255 * exposure)
    planes += np.float32(255 * noise_level) * grain
    np.clip(planes, 0, 255, out=planes)
    image = np.empty((size, size, 3), np.uint8)
    for channel, plane in enumerate(planes):
        image[..., channel] = plane
    return image
