"""Paste a cut-out into an image: scale, place, blend its edge and match its light."""

from typing import NamedTuple

import numpy as np
from PIL import Image, ImageFilter

from maskwise.arrays import BoolArray, Float32Array, UInt8Array
from maskwise.builder.cutouts import Cutout

SCALES = (0.5, 1.5)
"""How much a cut-out may shrink or grow: more would show as blur or as missing detail."""

AREA_RATIOS = (0.25, 2.0)
"""Area of the occluder relative to the target."""

BELOW = (-0.1, 0.35)
"""Where the lower edge of the occluder lies, relative to that of the target, in heights of the target: what stands in
front stands lower in an image taken from eye level."""

PLACEMENTS = 32
FEATHER = 0.8
"""Standard deviation in pixels of the soft edge."""

GAINS = (0.75, 1.33)


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

    The whole cut-out stays inside the image, so that its own mask is complete.
    """
    scaled = _scale(cutout, int(target.sum()), random)
    if scaled is None:
        return None
    rows = np.flatnonzero(target.any(1))
    columns = np.flatnonzero(target.any(0))
    height, width = scaled.mask.shape
    wanted = random.uniform(*rates)
    bottom = int(rows[-1])
    tall = len(rows)
    tops = bottom + (random.uniform(*BELOW, PLACEMENTS) * tall).astype(int) - height
    lefts = random.integers(columns[0] - width, columns[-1] + 1, PLACEMENTS)
    solid = soft_edge(scaled.mask) >= 0.5
    area = int(target.sum())
    best = None
    for top, left in zip(tops.tolist(), lefts.tolist()):
        if not (
            0 <= top <= target.shape[0] - height
            and 0 <= left <= target.shape[1] - width
        ):
            continue
        rate = (
            int((target[top : top + height, left : left + width] & solid).sum()) / area
        )
        if rates[0] <= rate <= rates[1] and (
            best is None or abs(rate - wanted) < abs(best.rate - wanted)
        ):
            best = CutoutPlacement(scaled, top, left, rate)
    return best


def paste(
    image: UInt8Array, placement: CutoutPlacement
) -> tuple[UInt8Array, BoolArray]:
    """The image with the cut-out in front, and the pixels it covers (bool [height, width])."""
    window = placement.window
    cutout = placement.cutout
    alpha = soft_edge(cutout.mask)
    behind = image[window].astype(np.float32)
    front = match_light(cutout, behind)
    out = image.copy()
    out[window] = np.clip(
        alpha[..., None] * front + (1 - alpha[..., None]) * behind + 0.5, 0, 255
    ).astype(np.uint8)
    covered = np.zeros(image.shape[:2], np.bool_)
    covered[window] = alpha >= 0.5
    return out, covered


def soft_edge(mask: BoolArray) -> Float32Array:
    """Opacity float32 [h, w]: the mask one pixel narrower, which removes the rim of its old background, blurred."""
    grey = Image.fromarray(mask.astype(np.uint8) * 255)
    padded = Image.new("L", (grey.width + 2, grey.height + 2))
    padded.paste(grey, (1, 1))
    soft = padded.filter(ImageFilter.MinFilter(3)).filter(
        ImageFilter.GaussianBlur(FEATHER)
    )
    return np.asarray(soft, np.float32)[1:-1, 1:-1] / 255.0


def match_light(cutout: Cutout, behind: Float32Array) -> Float32Array:
    """The cut-out's pixels, brightened or darkened halfway to what lies behind, each channel within GAINS."""
    own = cutout.pixels.astype(np.float32)
    mean = own[cutout.mask].mean(0)
    around = behind.reshape(-1, 3).mean(0)
    brightness = np.sqrt((around.mean() + 1) / (mean.mean() + 1))
    tint = (
        (around + 1) / (around.mean() + 1) / ((mean + 1) / (mean.mean() + 1))
    ) ** 0.25
    gain: Float32Array = np.clip(brightness * tint, *GAINS).astype(np.float32)
    return own * gain


def _scale(
    cutout: Cutout, target_area: int, random: np.random.Generator
) -> Cutout | None:
    """The cut-out in a size that suits the target; None if it would have to shrink or grow too much."""
    area = int(cutout.mask.sum())
    lowest = max(SCALES[0], (AREA_RATIOS[0] * target_area / area) ** 0.5)
    highest = min(SCALES[1], (AREA_RATIOS[1] * target_area / area) ** 0.5)
    if lowest > highest:
        return None
    scale = random.uniform(lowest, highest)
    height, width = (max(4, round(side * scale)) for side in cutout.mask.shape)
    pixels = Image.fromarray(cutout.pixels).resize(
        (width, height), Image.Resampling.BICUBIC
    )
    mask = Image.fromarray(cutout.mask.astype(np.uint8) * 255).resize(
        (width, height), Image.Resampling.BILINEAR
    )
    return Cutout(
        cutout.name, np.asarray(pixels), np.asarray(mask) >= 128, cutout.image
    )
