"""Paste a cut-out into an image: scale, place, blend its edge and match its light."""

from typing import NamedTuple

import numpy as np
from PIL import Image, ImageFilter

from maskwise.arrays import BoolArray, Float32Array, Int64Array, UInt8Array
from maskwise.builder.cutouts import Cutout

SCALES = (0.5, 1.5)
"""How much a cut-out may shrink or grow: more would show as blur or as missing detail."""

AREA_RATIOS = (0.25, 2.0)
"""Area of the occluder relative to the target: a smaller one hides too little, a larger
one covers the target and its surroundings."""

BELOW = (-0.1, 0.35)
"""Where the lower edge of the occluder lies, relative to that of the target, in heights of the target: what stands in
front stands lower in an image taken from eye level."""

PLACEMENTS = 32
"""Positions that are tried for one cut-out; the one nearest to the wanted rate is used."""

FEATHER = 0.8
"""Standard deviation in pixels of the soft edge; a hard edge would look cut out."""

GAINS = (0.75, 1.33)
"""Lowest and highest factor of a channel, so that a dark scene does not blacken the
object."""

MIN_SIDE = 4
"""Smallest side of a scaled cut-out in pixels: narrower, the soft edge leaves nothing."""

SOLID = 0.5
"""Opacity from which on a pixel belongs to the cut-out."""


class CutoutPlacement(NamedTuple):
    """A cut-out in its final size at row `top` and column `left` of the image, and the occlusion rate it causes."""

    cutout: Cutout
    top: int
    left: int
    rate: float

    @property
    def window(self) -> tuple[slice, slice]:
        """The rows and columns of the image that the cut-out spans."""
        height, width = self.cutout.mask.shape
        return slice(self.top, self.top + height), slice(self.left, self.left + width)


def place(
    cutout: Cutout,
    target: BoolArray,
    rates: tuple[float, float],
    random: np.random.Generator,
) -> CutoutPlacement | None:
    """A placement that hides a share of `target` (bool [height, width]) within `rates`; None if none was found.

    The size suits the target, whatever the two objects are.
    """
    scale = _draw_scale(cutout, int(target.sum()), random)
    if scale is None:
        return None
    target_rows = np.flatnonzero(target.any(1))
    below = random.uniform(*BELOW, PLACEMENTS) * len(target_rows)
    bottoms = int(target_rows[-1]) + below.astype(int)
    scaled = _rescale(cutout, scale)
    return _best_placement(scaled, target, rates, random, bottoms=bottoms)


def place_at(
    cutout: Cutout,
    target: BoolArray,
    rates: tuple[float, float],
    random: np.random.Generator,
    *,
    scale: float,
    bottom: int,
    keep_clear: BoolArray,
) -> CutoutPlacement | None:
    """A placement in a given size, with its lower edge in a given row, that covers no pixel of `keep_clear`."""
    bottoms = np.full(PLACEMENTS, bottom)
    scaled = _rescale(cutout, scale)
    return _best_placement(
        scaled, target, rates, random, bottoms=bottoms, keep_clear=keep_clear
    )


def place_beside(
    cutout: Cutout,
    keep_clear: BoolArray,
    random: np.random.Generator,
    *,
    scale: float,
    bottom: int,
) -> CutoutPlacement | None:
    """A placement in a given size, with its lower edge in a given row, anywhere in the image (bool [height, width])
    where it covers no pixel of `keep_clear`.
    """
    scaled = _rescale(cutout, scale)
    height, width = scaled.mask.shape
    top = bottom - height
    room = keep_clear.shape[1] - width
    if room < 0 or not 0 <= top <= keep_clear.shape[0] - height:
        return None
    solid = soft_edge(scaled.mask) >= SOLID
    for left in random.integers(0, room + 1, PLACEMENTS).tolist():
        window = slice(top, top + height), slice(left, left + width)
        if not (keep_clear[window] & solid).any():
            return CutoutPlacement(scaled, top, left, 0.0)
    return None


def _best_placement(
    scaled: Cutout,
    target: BoolArray,
    rates: tuple[float, float],
    random: np.random.Generator,
    *,
    bottoms: Int64Array,
    keep_clear: BoolArray | None = None,
) -> CutoutPlacement | None:
    """Of several positions the one whose occlusion rate is nearest to one drawn from `rates`.

    The whole cut-out stays inside the image, so that its own mask is complete. bottoms: row of the lower edge of each
    position.
    """
    lowest_rate, highest_rate = rates
    wanted_rate = random.uniform(lowest_rate, highest_rate)
    target_columns = np.flatnonzero(target.any(0))
    height, width = scaled.mask.shape
    # From just left of the target to just right of it.
    lefts = random.integers(
        target_columns[0] - width, target_columns[-1] + 1, PLACEMENTS
    )
    solid = soft_edge(scaled.mask) >= SOLID
    target_area = int(target.sum())
    best = None
    for top, left in zip((bottoms - height).tolist(), lefts.tolist()):
        inside_vertically = 0 <= top <= target.shape[0] - height
        inside_horizontally = 0 <= left <= target.shape[1] - width
        if not (inside_vertically and inside_horizontally):
            continue
        window = slice(top, top + height), slice(left, left + width)
        rate = int((target[window] & solid).sum()) / target_area
        if not lowest_rate <= rate <= highest_rate:
            continue
        if keep_clear is not None and (keep_clear[window] & solid).any():
            continue
        if best is None or abs(rate - wanted_rate) < abs(best.rate - wanted_rate):
            best = CutoutPlacement(scaled, top, left, rate)
    return best


def paste(
    image: UInt8Array, placement: CutoutPlacement
) -> tuple[UInt8Array, BoolArray]:
    """The image with the cut-out in front, and the pixels it covers (bool [height, width])."""
    window = placement.window
    cutout = placement.cutout
    opacity = soft_edge(cutout.mask)
    behind = image[window].astype(np.float32)
    front = match_light(cutout, behind)
    opacity_of_channels = opacity[..., None]
    blended = opacity_of_channels * front + (1 - opacity_of_channels) * behind
    out = image.copy()
    # Adding 0.5 rounds: the conversion to integers cuts off.
    out[window] = np.clip(blended + 0.5, 0, 255).astype(np.uint8)
    covered = np.zeros(image.shape[:2], np.bool_)
    covered[window] = opacity >= SOLID
    return out, covered


def soft_edge(mask: BoolArray) -> Float32Array:
    """Opacity float32 [h, w]: the mask one pixel narrower, which removes the rim of its old background, blurred."""
    grey = Image.fromarray(mask.astype(np.uint8) * 255)
    # A border of one pixel, so that the mask also becomes narrower at its own edges.
    padded = Image.new("L", (grey.width + 2, grey.height + 2))
    padded.paste(grey, (1, 1))
    narrowed = padded.filter(ImageFilter.MinFilter(3))
    blurred = narrowed.filter(ImageFilter.GaussianBlur(FEATHER))
    return np.asarray(blurred, np.float32)[1:-1, 1:-1] / 255.0


def match_light(cutout: Cutout, behind: Float32Array) -> Float32Array:
    """The cut-out's pixels, brightened or darkened halfway to what lies behind, each channel within GAINS."""
    own = cutout.pixels.astype(np.float32)
    own_mean = own[cutout.mask].mean(0)
    mean_behind = behind.reshape(-1, 3).mean(0)
    # 1 is added to every mean: a black cut-out or background must not divide by 0. The
    # square root of a ratio is halfway to it, the fourth root a quarter of the way:
    # an object keeps more of its color than of its brightness.
    brightness = np.sqrt((mean_behind.mean() + 1) / (own_mean.mean() + 1))
    tint_behind = (mean_behind + 1) / (mean_behind.mean() + 1)
    own_tint = (own_mean + 1) / (own_mean.mean() + 1)
    tint = (tint_behind / own_tint) ** 0.25
    gain: Float32Array = np.clip(brightness * tint, *GAINS).astype(np.float32)
    return own * gain


def _draw_scale(
    cutout: Cutout, target_area: int, random: np.random.Generator
) -> float | None:
    """A scale that suits the target; None if the cut-out would have to shrink or grow too much."""
    area = int(cutout.mask.sum())
    smallest_scale, largest_scale = SCALES
    smallest_ratio, largest_ratio = AREA_RATIOS
    # Areas grow with the square of the scale.
    lowest = max(smallest_scale, (smallest_ratio * target_area / area) ** 0.5)
    highest = min(largest_scale, (largest_ratio * target_area / area) ** 0.5)
    return None if lowest > highest else random.uniform(lowest, highest)


def _rescale(cutout: Cutout, scale: float) -> Cutout:
    """The cut-out in another size."""
    old_height, old_width = cutout.mask.shape
    height = max(MIN_SIDE, round(old_height * scale))
    width = max(MIN_SIDE, round(old_width * scale))
    pixels = Image.fromarray(cutout.pixels).resize(
        (width, height), Image.Resampling.BICUBIC
    )
    grey = Image.fromarray(cutout.mask.astype(np.uint8) * 255)
    soft_mask = grey.resize((width, height), Image.Resampling.BILINEAR)
    mask = np.asarray(soft_mask) >= 128  # half of 255
    return cutout._replace(pixels=np.asarray(pixels), mask=mask)
