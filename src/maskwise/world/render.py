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
            is_object = raster.facet > 0
            object_map[raster.window][is_object] = number
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
    # A standard deviation of 2.4 % of the image, because the resolution is halved.
    blur = ImageFilter.GaussianBlur(0.012 * size)
    blurred = image.filter(blur)
    shadow = blurred.resize((size, size), Image.Resampling.BILINEAR)
    horizon_row = round(layout.horizon * size)
    shadow_bytes = np.asarray(shadow)
    ground_shadow = shadow_bytes[horizon_row:].astype(np.float32)
    # A full shadow takes half of the light.
    darkening = ground_shadow * np.float32(0.5 / 255)
    planes[:, horizon_row:] *= 1 - darkening


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
        shift_x = -0.1 * light.x / light.y
        shift = np.array([shift_x, -0.03])
    else:
        # Height becomes a distance on the ground, away from the light.
        # 0.8 and 0.7 make it shorter than the light alone would.
        rise = np.sqrt(1 - layout.tilt**2)
        across = -0.8 * light.x / light.y / rise
        away = 0.7 * layout.tilt * light.z / light.y / rise
        x_row = [1.0, 0.0]
        y_row = [across, away]
        slant = np.array([x_row, y_row])
        shift = np.array([0.0, -0.02])
    ground_point = (place.x, place.y)
    slope = slant * to_pixels
    position = shift * to_pixels + ground_point
    outlines = placed.shape.outlines(slope, position, bulk=True)
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
    blurred = Image.fromarray(padded).filter(blur)
    shadow = np.asarray(blurred)

    light_side = np.sign(layout.light.x)
    shift = -round(light_side * reach * 0.4)
    top = raster.row - reach
    left = raster.column - reach + shift
    shadow_height, shadow_width = shadow.shape
    # The part of the shadow that lies inside the image.
    rows = slice(max(top, 0), min(top + shadow_height, size))
    columns = slice(max(left, 0), min(left + shadow_width, size))
    shadow_rows = slice(rows.start - top, rows.stop - top)
    shadow_columns = slice(columns.start - left, columns.stop - left)
    inside_image = shadow[shadow_rows, shadow_columns].astype(np.float32)
    # At most 0.3 of the light is taken: less than by a cast shadow.
    darkening = inside_image * np.float32(0.3 / 255)
    light_left = 1 - darkening
    planes[:, rows, columns] *= light_left


def _expose(planes: Planes, size: int, rng: RandomStream) -> NDArray[np.uint8]:
    """Exposure, sensor noise and rounding to bytes (size, size, 3). Changes planes."""
    exposure = rng.uniform(0.88, 1.06)
    noise_level = rng.uniform(0.004, 0.018)
    grain_row = rng.integer(SIDE)
    grain_column = rng.integer(SIDE)
    grain = crop_texture("grain", grain_row, grain_column, (size, size))
    planes *= np.float32(255 * exposure)
    noise = np.float32(255 * noise_level) * grain
    planes += noise
    np.clip(planes, 0, 255, out=planes)
    image = np.empty((size, size, 3), np.uint8)
    for channel, plane in enumerate(planes):
        image[..., channel] = plane
    return image
