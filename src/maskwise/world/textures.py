"""Textures: fixed noise arrays from which surfaces take crops."""

import functools
import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIDE = 1024
"""Textures are SIDE x SIDE and repeat."""

Texture = NDArray[np.float32]

TEXTURES = ("wood", "cloth", "brushed", "marble", "plaster", "grain")


@functools.lru_cache(maxsize=len(TEXTURES))
def load_texture(name: str) -> Texture:
    """A texture as factors around 1 (or, for `grain`, standard normal noise), float32 (SIDE, SIDE)."""
    random = np.random.Generator(np.random.PCG64(TEXTURES.index(name))).random
    if name == "grain":
        four = random((4, SIDE, SIDE), np.float32)
        grain: Texture = ((four.sum(0) - 2) * math.sqrt(3)).astype(np.float32)
        return grain

    def noise(rows: int, columns: int) -> Texture:
        small = random((rows + 1, columns + 1), np.float32) - np.float32(0.5)
        small[-1], small[:, -1] = small[0], small[:, 0]
        bent = Image.fromarray(small).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
        return np.asarray(bent)

    if name == "wood":
        rings = np.linspace(0, 40, SIDE, False, dtype=np.float32)[:, None] + 5 * noise(
            16, 4
        )
        wood: Texture = (
            1 + np.float32(0.11) * np.sin(2 * np.pi * rings) + 0.22 * noise(340, 12)
        )
        return wood
    if name == "cloth":
        weave = np.indices((SIDE, SIDE)).sum(0) % 2 - 0.5
        cloth: Texture = (1 + 0.3 * noise(420, 420) + 0.05 * weave).astype(np.float32)
        return cloth
    if name == "brushed":
        return 1 + 0.2 * noise(400, 8) + 0.25 * noise(20, 2)
    if name == "marble":
        veins = np.abs(noise(10, 8) + 0.5 * noise(40, 30))
        marble: Texture = 1.03 - 0.22 * np.exp(-40 * veins) + 0.08 * noise(60, 60)
        return marble
    return 1 + 0.05 * noise(30, 30) + 0.06 * noise(300, 300)


def crop_texture(name: str, top: int, left: int, shape: tuple[int, int]) -> Texture:
    """A crop of a texture, shape (height, width), starting at any position."""
    top = top % SIDE
    left = left % SIDE
    piece = load_texture(name)[top : top + shape[0], left : left + shape[1]]
    if piece.shape == shape:
        return piece
    rows = (np.arange(shape[0]) + top) % SIDE
    columns = (np.arange(shape[1]) + left) % SIDE
    return load_texture(name)[rows[:, None], columns[None]]
