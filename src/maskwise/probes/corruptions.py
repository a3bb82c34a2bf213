"""Common corruptions of images at five severities: noise, blur, weather and digital errors.

The 15 corruptions of Hendrycks and Dietterich ("Benchmarking Neural Network Robustness",
ICLR 2019) with their severities, written anew: `imagecorruptions` fails on NumPy 2. Their
lengths in pixels were made for images of 224 pixels; here they grow with the image.
`frost` is drawn, not pasted from photographs, and `elastic` is the only one that moves
pixels, so that masks have to move with it.

    changed = corrupt(pixels, "fog", 3, np.random.default_rng(0))
"""

import io
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from PIL import Image
from scipy import ndimage, signal

from maskwise.arrays import BoolArray, Float64Array, UInt8Array
from maskwise.errors import RecordError, UnknownNameError
from maskwise.probes.weather import add_fog, add_frost, add_snow, blur_along

REFERENCE_SIDE = 224
"""The side of the images that the published severities were made for."""

SEVERITIES = (1, 2, 3, 4, 5)


class ChangedImage(NamedTuple):
    """An image after a change. move_mask: the same change of a mask, None if no pixel moves."""

    pixels: UInt8Array
    move_mask: Callable[[BoolArray], BoolArray] | None = None


def corrupt(
    pixels: UInt8Array, name: str, severity: int, rng: np.random.Generator
) -> ChangedImage:
    """An image (height, width, 3) with one corruption. severity: 1 to 5."""
    if name not in CORRUPTIONS:
        raise UnknownNameError("corruption", name, CORRUPTIONS)
    if severity not in SEVERITIES:
        raise RecordError(f"severity {severity}: expected 1 to 5")
    if name == ELASTIC:
        return _bend(pixels, severity - 1, rng)
    light = pixels / 255.0
    changed = CHANGES_OF_LIGHT[name](light, severity - 1, rng)
    return ChangedImage(to_bytes(changed))


def to_bytes(light: Float64Array) -> UInt8Array:
    """Light from 0 to 1 as rounded bytes; what lies outside is clipped."""
    return np.asarray(np.rint(np.clip(light, 0, 1) * 255), np.uint8)


def length_scale(light: Float64Array) -> float:
    """Pixels of this image for one pixel of an image of the reference size."""
    height, width = light.shape[:2]
    return float(min(height, width) / REFERENCE_SIDE)


# -- noise


def _gaussian_noise(
    light: Float64Array, step: int, rng: np.random.Generator
) -> Float64Array:
    deviation = (0.08, 0.12, 0.18, 0.26, 0.38)[step]
    return light + rng.normal(0, deviation, light.shape)


def _shot_noise(
    light: Float64Array, step: int, rng: np.random.Generator
) -> Float64Array:
    photons = (60, 25, 12, 5, 3)[step]
    return rng.poisson(light * photons) / photons


def _impulse_noise(
    light: Float64Array, step: int, rng: np.random.Generator
) -> Float64Array:
    share = (0.03, 0.06, 0.09, 0.17, 0.27)[step]
    draw = rng.random(light.shape)
    salted = np.where(draw < share / 2, 1.0, light)
    return np.where(draw > 1 - share / 2, 0.0, salted)


# -- blur


def _defocus_blur(
    light: Float64Array, step: int, rng: np.random.Generator
) -> Float64Array:
    radius = (3, 4, 6, 8, 10)[step] * length_scale(light)
    reach = max(1, round(radius))
    row, column = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    # A soft edge of one pixel, so that a small radius blurs too.
    disk = np.clip(radius + 0.5 - np.hypot(row, column), 0, 1)
    return _convolve(light, disk / disk.sum())


def _glass_blur(
    light: Float64Array, step: int, rng: np.random.Generator
) -> Float64Array:
    deviation = (0.7, 0.9, 1.0, 1.1, 1.5)[step] * length_scale(light)
    distance = (1, 2, 2, 3, 4)[step] * length_scale(light)
    rounds = (2, 1, 3, 2, 2)[step]
    changed = _blur(light, deviation)
    height, width = light.shape[:2]
    reach = max(1, round(distance))
    rows, columns = np.mgrid[:height, :width]
    for _ in range(rounds):
        # Pixels are taken from a neighbor, all at once: the original swaps them in turn.
        steps = rng.integers(-reach, reach + 1, (2, height, width))
        from_row = np.clip(rows + steps[0], 0, height - 1)
        from_column = np.clip(columns + steps[1], 0, width - 1)
        changed = changed[from_row, from_column]
    return _blur(changed, deviation)


def _motion_blur(
    light: Float64Array, step: int, rng: np.random.Generator
) -> Float64Array:
    deviation = (3, 5, 8, 12, 15)[step] * length_scale(light)
    return blur_along(light, deviation, rng.uniform(-45, 45))


def _zoom_blur(
    light: Float64Array, step: int, rng: np.random.Generator
) -> Float64Array:
    largest = (1.10, 1.15, 1.20, 1.25, 1.30)[step]
    factors = np.linspace(1, largest, 11)
    total = np.zeros_like(light)
    for factor in factors:
        total += _zoom(light, float(factor))
    return (light + total) / (len(factors) + 1)


def _zoom(light: Float64Array, factor: float) -> Float64Array:
    """The middle of an image, enlarged to its size."""
    height, width = light.shape[:2]
    center = np.array([(height - 1) / 2, (width - 1) / 2])
    offset = center - center / factor
    planes = [
        ndimage.affine_transform(
            light[..., channel], np.full(2, 1 / factor), offset, order=1, mode="nearest"
        )
        for channel in range(3)
    ]
    return np.stack(planes, -1)


def _blur(light: Float64Array, deviation: float) -> Float64Array:
    return np.asarray(ndimage.gaussian_filter(light, (deviation, deviation, 0)))


def _convolve(light: Float64Array, kernel: Float64Array) -> Float64Array:
    """By Fourier transform, because a wide kernel takes a second otherwise."""
    reach = kernel.shape[0] // 2
    padded = np.pad(light, ((reach, reach), (reach, reach), (0, 0)), mode="edge")
    return np.asarray(
        signal.fftconvolve(padded, kernel[..., None], "valid", axes=(0, 1))
    )


# -- digital


def _brightness(
    light: Float64Array, step: int, rng: np.random.Generator
) -> Float64Array:
    added = (0.1, 0.2, 0.3, 0.4, 0.5)[step]
    # Adding to the value of HSV keeps hue and saturation: all channels grow alike.
    value = light.max(-1, keepdims=True)
    brighter = np.clip(value + added, 0, 1)
    gray = np.broadcast_to(brighter, light.shape)
    scaled = light * (brighter / np.maximum(value, 1e-9))
    return np.where(value > 0, scaled, gray)


def _contrast(light: Float64Array, step: int, rng: np.random.Generator) -> Float64Array:
    kept = (0.4, 0.3, 0.2, 0.1, 0.05)[step]
    mean = light.mean((0, 1), keepdims=True)
    return np.asarray((light - mean) * kept + mean)


def _pixelate(light: Float64Array, step: int, rng: np.random.Generator) -> Float64Array:
    kept = (0.6, 0.5, 0.4, 0.3, 0.25)[step]
    image = Image.fromarray(to_bytes(light))
    width = max(1, int(image.width * kept))
    height = max(1, int(image.height * kept))
    small = image.resize((width, height), Image.Resampling.BOX)
    large = small.resize(image.size, Image.Resampling.NEAREST)
    return np.asarray(large) / 255.0


def _jpeg(light: Float64Array, step: int, rng: np.random.Generator) -> Float64Array:
    quality = (25, 18, 15, 10, 7)[step]
    file = io.BytesIO()
    Image.fromarray(to_bytes(light)).save(file, "JPEG", quality=quality)
    with Image.open(file) as image:
        return np.asarray(image.convert("RGB")) / 255.0


def _bend(pixels: UInt8Array, step: int, rng: np.random.Generator) -> ChangedImage:
    """Pixels moved by a smooth random field. Deviations are shares of the shorter side."""
    deviation = (0.004, 0.006, 0.009, 0.012, 0.016)[step]
    height, width = pixels.shape[:2]
    side = min(height, width)
    # Smooth over a sixteenth of the side: objects bend, they do not shatter.
    noise = rng.standard_normal((2, height, width))
    smooth = ndimage.gaussian_filter(noise, (0, side / 16, side / 16))
    field = smooth / max(float(smooth.std()), 1e-12) * deviation * side
    places = np.mgrid[:height, :width] + field

    def move_mask(mask: BoolArray) -> BoolArray:
        moved = ndimage.map_coordinates(mask, places, order=0, mode="nearest")
        return np.asarray(moved, np.bool_)

    planes = []
    for channel in range(3):
        plane = pixels[..., channel] / 255.0
        planes.append(ndimage.map_coordinates(plane, places, order=1, mode="nearest"))
    return ChangedImage(to_bytes(np.stack(planes, -1)), move_mask)


def _snow(light: Float64Array, step: int, rng: np.random.Generator) -> Float64Array:
    return add_snow(light, step, rng, length_scale(light))


Corruption = Callable[[Float64Array, int, np.random.Generator], Float64Array]

CHANGES_OF_LIGHT: dict[str, Corruption] = {
    "gaussian noise": _gaussian_noise,
    "shot noise": _shot_noise,
    "impulse noise": _impulse_noise,
    "defocus blur": _defocus_blur,
    "glass blur": _glass_blur,
    "motion blur": _motion_blur,
    "zoom blur": _zoom_blur,
    "snow": _snow,
    "frost": add_frost,
    "fog": add_fog,
    "brightness": _brightness,
    "contrast": _contrast,
    "pixelate": _pixelate,
    "jpeg": _jpeg,
}
"""By name: light from 0 to 1 (height, width, 3), severity from 0, random numbers."""

ELASTIC = "elastic"
"""The corruption that moves pixels."""

CORRUPTIONS = (*CHANGES_OF_LIGHT, ELASTIC)
