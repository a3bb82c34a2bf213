"""Snow, frost and fog over an image, drawn from random numbers. Light is 0 to 1 (height, width, 3)."""

import numpy as np
from PIL import Image

from maskwise.arrays import Float64Array

ICE = np.array([0.82, 0.89, 0.95])
"""The color of frost: white with some blue."""


def add_fog(light: Float64Array, step: int, rng: np.random.Generator) -> Float64Array:
    """Clouds added to the image, which is darkened so that its brightest point stays."""
    amount = (1.5, 2.0, 2.5, 2.5, 3.0)[step]
    decay = (2.0, 2.0, 1.7, 1.5, 1.4)[step]
    brightest = max(float(light.max()), 1e-9)
    clouds = draw_clouds(light.shape[0], light.shape[1], decay, rng)
    foggy = light + amount * clouds[..., None]
    return foggy * brightest / (brightest + amount)


def add_frost(light: Float64Array, step: int, rng: np.random.Generator) -> Float64Array:
    """Ice over the image, thicker towards its border, with needles in two directions."""
    image_share = (1.0, 0.8, 0.7, 0.65, 0.6)[step]
    ice_share = (0.4, 0.6, 0.7, 0.7, 0.75)[step]
    height, width = light.shape[:2]
    clouds = draw_clouds(height, width, 1.6, rng)
    ridges = 1 - np.abs(2 * clouds - 1)
    grain = rng.random((height, width))
    needles = np.zeros((height, width))
    for angle in rng.uniform(-80, 80, 2):
        streaks = blur_along(grain[..., None], min(height, width) / 40, float(angle))
        needles = np.maximum(needles, _stretch(streaks[..., 0]))
    rows = np.abs(np.linspace(-1, 1, height))[:, None]
    columns = np.abs(np.linspace(-1, 1, width))[None, :]
    border = np.maximum(rows, columns)
    # Ice grows from the border: half as thick in the middle.
    thickness = (0.5 + 0.5 * border) * (0.35 * ridges + 0.65 * needles**2)
    ice = ICE * _stretch(thickness)[..., None]
    return image_share * light + ice_share * ice


def add_snow(
    light: Float64Array, step: int, rng: np.random.Generator, scale: float
) -> Float64Array:
    """Falling flakes, blurred by their motion, over an image that turns whiter.

    scale: pixels for one pixel of an image of 224.
    """
    mean = (0.1, 0.2, 0.55, 0.55, 0.55)[step]
    zoom = (3.0, 2.0, 4.0, 4.5, 2.5)[step] * scale
    threshold = (0.5, 0.5, 0.9, 0.85, 0.85)[step]
    speed = (4, 4, 8, 8, 12)[step] * scale
    kept = (0.8, 0.7, 0.7, 0.65, 0.55)[step]
    height, width = light.shape[:2]
    rows = max(2, round(height / max(zoom, 1)))
    columns = max(2, round(width / max(zoom, 1)))
    coarse = rng.normal(mean, 0.3, (rows, columns))
    flakes = _resize(coarse, height, width)
    flakes[flakes < threshold] = 0
    angle = rng.uniform(-135, -45)
    falling = blur_along(np.clip(flakes, 0, 1)[..., None], speed, angle)
    gray = light @ np.array([0.299, 0.587, 0.114])
    whiter = np.maximum(light, (gray * 1.5 + 0.5)[..., None])
    hazy = kept * light + (1 - kept) * whiter
    # A second layer, turned upside down, as in the original.
    return np.asarray(hazy + falling + falling[::-1, ::-1])


def draw_clouds(
    height: int, width: int, decay: float, rng: np.random.Generator
) -> Float64Array:
    """Random clouds (height, width) from 0 to 1; each finer octave is `decay` times weaker."""
    total = np.zeros((height, width))
    weight = 1.0
    cells = 2
    while cells < min(height, width):
        total += weight * _resize(rng.random((cells, cells)), height, width)
        weight /= decay
        cells *= 2
    return _stretch(total)


def blur_along(light: Float64Array, deviation: float, angle: float) -> Float64Array:
    """Blurred along a line at `angle` degrees, by a Gaussian with this deviation in pixels."""
    reach = max(1, round(2 * deviation))
    steps = np.arange(-reach, reach + 1)
    weights = np.exp(-0.5 * (steps / max(deviation, 0.3)) ** 2)
    weights /= weights.sum()
    radians = np.deg2rad(angle)
    blurred = np.zeros_like(light)
    padding = ((reach, reach), (reach, reach), (0, 0))
    padded = np.pad(light, padding, mode="edge")
    height, width = light.shape[:2]
    for step, weight in zip(steps.tolist(), weights):
        row = reach + round(step * float(np.sin(radians)))
        column = reach + round(step * float(np.cos(radians)))
        blurred += weight * padded[row : row + height, column : column + width]
    return blurred


def _stretch(values: Float64Array) -> Float64Array:
    """The values from 0 to 1."""
    low = float(values.min())
    high = float(values.max())
    return (values - low) / max(high - low, 1e-12)


def _resize(values: Float64Array, height: int, width: int) -> Float64Array:
    image = Image.fromarray(values.astype(np.float32))
    return np.array(image.resize((width, height), Image.Resampling.BICUBIC), np.float64)
