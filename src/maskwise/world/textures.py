"""Textures: fixed noise sheets, cut or bent as a surface needs. A scene chooses where to cut."""

import functools
import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image

SIDE = 1024
"""Sheets are SIDE x SIDE and are read modulo SIDE."""

Sheet = NDArray[np.float32]

SHEETS = ("wood", "cloth", "brushed", "marble", "plaster", "grain")


@functools.lru_cache(maxsize=len(SHEETS))
def sheet(name: str) -> Sheet:
    """A texture as factors around 1 (or, for `grain`, standard normal noise), float32 (SIDE, SIDE)."""
    random = np.random.Generator(np.random.PCG64(SHEETS.index(name))).random
    if name == "grain":
        four = random((4, SIDE, SIDE), np.float32)
        return ((four.sum(0) - 2) * math.sqrt(3)).astype(np.float32)

    def noise(rows: int, columns: int) -> Sheet:
        small = random((rows + 1, columns + 1), np.float32) - np.float32(0.5)
        small[-1], small[:, -1] = small[0], small[:, 0]
        bent = Image.fromarray(small).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
        return np.asarray(bent)

    if name == "wood":
        rings = np.linspace(0, 40, SIDE, False, dtype=np.float32)[:, None] + 5 * noise(16, 4)
        return 1 + np.float32(0.11) * np.sin(2 * np.pi * rings) + 0.22 * noise(340, 12)
    if name == "cloth":
        weave = np.indices((SIDE, SIDE)).sum(0) % 2 - 0.5
        return (1 + 0.3 * noise(420, 420) + 0.05 * weave).astype(np.float32)
    if name == "brushed":
        return 1 + 0.2 * noise(400, 8) + 0.25 * noise(20, 2)
    if name == "marble":
        veins = np.abs(noise(10, 8) + 0.5 * noise(40, 30))
        return 1.03 - 0.22 * np.exp(-40 * veins) + 0.08 * noise(60, 60)
    return 1 + 0.05 * noise(30, 30) + 0.06 * noise(300, 300)


def cut(name: str, top: int, left: int, shape: tuple[int, int]) -> Sheet:
    """A piece of a sheet, shape (height, width), starting anywhere."""
    top, left = top % SIDE, left % SIDE
    piece = sheet(name)[top : top + shape[0], left : left + shape[1]]
    if piece.shape == shape:
        return piece
    rows, columns = (np.arange(shape[0]) + top) % SIDE, (np.arange(shape[1]) + left) % SIDE
    return sheet(name)[rows[:, None], columns[None]]
