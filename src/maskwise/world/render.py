"""A layout as an image and as exact masks."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from maskwise.world.backdrop import Backdrop, draw_backdrop
from maskwise.world.canvas import Patch, Planes, draw
from maskwise.world.catalogue import CATEGORIES
from maskwise.world.chance import Chance
from maskwise.world.layout import Layout, Thing
from maskwise.world.textures import SIDE, cut


class Rendering(NamedTuple):
    """image: uint8 (size, size, 3). owner: int8 (size, size), the number of the thing seen at each pixel, -1 for
    none. patches: one a thing, as `Layout.things`, None where a thing lies outside the frame.
    """

    image: NDArray[np.uint8]
    owner: NDArray[np.int8]
    patches: list[Patch | None]


def render(layout: Layout, backdrop: Backdrop, size: int, chance: Chance) -> Rendering:
    """Draw the setting, the shadows on the ground, and the things from the back to the front."""
    planes = draw_backdrop(backdrop, size, layout.light)
    _cast_shadows(planes, layout, size)
    owner = np.full((size, size), -1, np.int8)
    patches = []
    for number, thing in enumerate(layout.things):
        patch = draw(thing.figure, thing.at(size), size, layout.light)
        patches.append(patch)
        if patch is not None:
            _dim_around(planes, patch, size, layout)
            _lay(planes, patch)
            owner[patch.window][patch.facet > 0] = number
    return Rendering(_expose(planes, size, chance), owner, patches)


def _lay(planes: Planes, patch: Patch) -> None:
    rows, columns = patch.window
    under = planes[:, rows, columns]
    under *= 1 - patch.cover
    under += patch.colour


def _cast_shadows(planes: Planes, layout: Layout, size: int) -> None:
    """Darken the ground: every outline is laid down along the light, at half resolution, then softened."""
    half = size // 2
    image = Image.new("L", (half, half))
    pen = ImageDraw.Draw(image)
    for thing in layout.things:
        _lay_shadow(pen, thing, layout, half)
    soft = image.filter(ImageFilter.GaussianBlur(0.012 * size)).resize(
        (size, size), Image.Resampling.BILINEAR
    )
    edge = round(layout.horizon * size)
    dim = 1 - np.asarray(soft)[edge:].astype(np.float32) * np.float32(0.5 / 255)
    planes[:, edge:] *= dim


def _lay_shadow(pen: ImageDraw.ImageDraw, thing: Thing, layout: Layout, half: int) -> None:
    light, place = layout.light, thing.at(half)
    rise = np.sqrt(1 - layout.tilt**2)
    flip = np.array([place.scale, -place.scale])
    if CATEGORIES[thing.category].flat:
        slant, shift = np.eye(2), np.array([-0.1 * light.x / light.y, -0.03])
    else:
        slant = np.array(
            [[1.0, 0.0], [-0.8 * light.x / light.y / rise, 0.7 * layout.tilt * light.z / light.y / rise]]
        )
        shift = np.array([0.0, -0.02])
    for outline in thing.figure.pens(slant * flip, shift * flip + (place.x, place.y), bulk=True):
        pen.polygon(outline, fill=255)


def _dim_around(planes: Planes, patch: Patch, size: int, layout: Layout) -> None:
    """A soft dark rim on whatever is behind, on the side away from the light: things look apart, not pasted."""
    reach = max(2, round(0.03 * size))
    padded = np.zeros((patch.cover.shape[0] + 2 * reach, patch.cover.shape[1] + 2 * reach), np.uint8)
    padded[reach:-reach, reach:-reach] = patch.cover * 255
    soft = np.asarray(Image.fromarray(padded).filter(ImageFilter.BoxBlur(reach * 0.5)))
    shift = -round(np.sign(layout.light.x) * reach * 0.4)
    top, left = patch.row - reach, patch.column - reach + shift
    rows = slice(max(top, 0), min(top + soft.shape[0], size))
    columns = slice(max(left, 0), min(left + soft.shape[1], size))
    piece = soft[rows.start - top : rows.stop - top, columns.start - left : columns.stop - left]
    planes[:, rows, columns] *= 1 - piece.astype(np.float32) * np.float32(0.3 / 255)


def _expose(planes: Planes, size: int, chance: Chance) -> NDArray[np.uint8]:
    """Exposure, sensor noise and rounding to bytes (size, size, 3)."""
    gain, noise = chance.between(0.88, 1.06), chance.between(0.004, 0.018)
    planes *= np.float32(255 * gain)
    grain = cut("grain", chance.below(SIDE), chance.below(SIDE), (size, size))
    planes += np.float32(255 * noise) * grain
    np.clip(planes, 0, 255, out=planes)
    image = np.empty((size, size, 3), np.uint8)
    for channel, plane in enumerate(planes):
        image[..., channel] = plane
    return image
