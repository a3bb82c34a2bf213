"""Textures: fixed noise arrays from which surfaces take crops."""

import functools
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIDE = 1024
"""Textures are SIDE x SIDE and repeat. Larger than any image of the dataset (160), so
that two crops rarely show the same piece."""

Texture = NDArray[np.float32]

TEXTURES = ("wood", "cloth", "brushed", "marble", "plaster", "grain")
"""The position in this list is the seed of the texture: append, never reorder."""


@functools.lru_cache(maxsize=len(TEXTURES))
def load_texture(name: str) -> Texture:
    """A texture, float32 (SIDE, SIDE), computed once.

    The values are factors around 1 to multiply a color with; those of `grain` are
    approximately standard normal noise to add to an image.
    """
    seed = TEXTURES.index(name)
    # PCG64 by name: the default generator of numpy may change between versions.
    generator = np.random.Generator(np.random.PCG64(seed))
    random = generator.random
    if name == "grain":
        return _grain(random)
    noise = functools.partial(_smooth_noise, random)
    if name == "wood":
        return _wood(noise)
    if name == "cloth":
        return _cloth(noise)
    if name == "brushed":
        scratches = 0.2 * noise(400, 8)
        slow_change = 0.25 * noise(20, 2)
        return 1 + scratches + slow_change
    if name == "marble":
        return _marble(noise)
    # Plaster.
    soft_spots = 0.05 * noise(30, 30)
    roughness = 0.06 * noise(300, 300)
    return 1 + soft_spots + roughness


def _grain(random: Callable[..., Texture]) -> Texture:
    """Noise with mean 0 and variance 1.

    The sum of four uniform numbers is close to normal: its mean is 2 and its variance
    4/12, hence the factor sqrt(3). numpy keeps the sequence of uniform numbers stable
    between versions, but not that of its normal ones.
    """
    uniform = random((4, SIDE, SIDE), np.float32)
    centered = uniform.sum(0) - 2
    grain: Texture = (centered * math.sqrt(3)).astype(np.float32)
    return grain


def _smooth_noise(random: Callable[..., Texture], rows: int, columns: int) -> Texture:
    """Noise in -0.5..0.5 with `rows` x `columns` bumps, float32 (SIDE, SIDE).

    The last row and column repeat the first ones, so that the texture repeats without
    a visible border.
    """
    values = random((rows + 1, columns + 1), np.float32)
    coarse = values - np.float32(0.5)
    coarse[-1] = coarse[0]
    coarse[:, -1] = coarse[:, 0]
    image = Image.fromarray(coarse)
    smooth = image.resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    return np.asarray(smooth)


def _wood(noise: Callable[[int, int], Texture]) -> Texture:
    """40 growth rings across the texture, bent by noise, with fine fibers along them."""
    ring_numbers = np.linspace(0, 40, SIDE, False, dtype=np.float32)
    straight_rings = ring_numbers[:, None]
    # Noise of -0.5..0.5 moves a ring by up to two and a half of its neighbors.
    bend = 5 * noise(16, 4)
    rings = straight_rings + bend
    ring_brightness = np.float32(0.11) * np.sin(2 * np.pi * rings)
    fibers = 0.22 * noise(340, 12)
    wood: Texture = 1 + ring_brightness + fibers
    return wood


def _cloth(noise: Callable[[int, int], Texture]) -> Texture:
    """Fine noise and a weave: a checkerboard of single pixels."""
    row_plus_column = np.indices((SIDE, SIDE)).sum(0)
    weave = row_plus_column % 2 - 0.5
    # The bumps of the noise are two or three pixels wide, like threads.
    threads = 0.3 * noise(420, 420)
    values = 1 + threads + 0.05 * weave
    cloth: Texture = values.astype(np.float32)
    return cloth


def _marble(noise: Callable[[int, int], Texture]) -> Texture:
    """Dark veins where smooth noise crosses zero, on slightly uneven stone."""
    # The coarse noise gives the course of the veins, the finer one their bends.
    course = noise(10, 8)
    bends = 0.5 * noise(40, 30)
    distance = np.abs(course + bends)
    veins = 0.22 * np.exp(-40 * distance)
    # 1.03: the stone is lighter than average where no vein darkens it.
    stone = 1.03 - veins
    marble: Texture = stone + 0.08 * noise(60, 60)
    return marble


def crop_texture(name: str, top: int, left: int, shape: tuple[int, int]) -> Texture:
    """A crop of a texture, shape (height, width), starting at any position.

    A view of the texture where the crop lies within it; a copy where it wraps around.
    """
    height, width = shape
    top = top % SIDE
    left = left % SIDE
    texture = load_texture(name)
    crop = texture[top : top + height, left : left + width]
    if crop.shape == shape:
        return crop
    rows = (np.arange(height) + top) % SIDE
    columns = (np.arange(width) + left) % SIDE
    return texture[rows[:, None], columns[None]]
