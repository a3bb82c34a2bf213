"""Color names, measured from pixels."""

import numpy as np

from maskwise.arrays import BoolArray, Float32Array

HUES = {
    "red": ((0, 15), (340, 360)),
    "orange": ((15, 42),),
    "yellow": ((42, 70),),
    "green": ((70, 165),),
    "blue": ((165, 260),),
    "purple": ((260, 300),),
    "pink": ((300, 340),),
}
"""Ranges of hue in degrees."""

MIN_CHROMA = 0.15
"""Chroma relative to the value, below which a pixel is black, gray or white."""

MIN_CHROMA_VALUE = 0.3
"""The chroma of darker pixels is compared with this value: noise would give them a color."""

DARK = 0.22
BRIGHT = 0.72
"""Values below which a pixel is black, and above which a pixel without chroma is white."""

BROWN_HUE = 45
BROWN_VALUE = 0.65
"""Brown is a red or orange of at most this hue and value."""


def color_share(pixels: Float32Array, mask: BoolArray, color: str) -> float:
    """Share of the pixels [h, w, 3] in 0..1 inside a mask that have a color; 0 if the mask is empty."""
    if not mask.any():
        return 0.0
    return float(np.mean(_has_color(pixels[mask], color)))


def _has_color(pixels: Float32Array, color: str) -> BoolArray:
    """bool [n] for pixels [n, 3]."""
    value: Float32Array = pixels.max(1)
    chroma: Float32Array = value - pixels.min(1)
    neutral: BoolArray = chroma < MIN_CHROMA * np.maximum(value, MIN_CHROMA_VALUE)
    dark: BoolArray = value < DARK
    bright: BoolArray = value > BRIGHT
    if color == "black":
        return dark
    if color == "white":
        return neutral & bright
    if color == "grey":
        return neutral & ~dark & ~bright
    hue = _hue(pixels, value, chroma)
    colored: BoolArray = ~neutral & ~dark
    if color == "brown":
        return colored & (hue < BROWN_HUE) & (value < BROWN_VALUE)
    in_range = np.zeros(len(pixels), np.bool_)
    for start, stop in HUES[color]:
        in_range |= (hue >= start) & (hue < stop)
    return colored & in_range


def _hue(
    pixels: Float32Array, value: Float32Array, chroma: Float32Array
) -> Float32Array:
    """Degrees, as in HSV."""
    red, green, blue = pixels.T
    scale = np.maximum(chroma, 1e-6)  # gray has no hue: any will do
    # The brightest channel decides the third of the circle, the two others the place in it.
    from_red = (green - blue) / scale
    from_green = (blue - red) / scale + 2
    from_blue = (red - green) / scale + 4
    sector = np.select(
        [value == red, value == green], [from_red, from_green], from_blue
    )
    hue: Float32Array = (60 * sector) % 360
    return hue
