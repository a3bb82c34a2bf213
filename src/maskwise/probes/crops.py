"""Crops of an image that keep what its questions are about."""

from collections.abc import Sequence

import numpy as np

from maskwise.arrays import BoolArray, UInt8Array
from maskwise.probes.corruptions import ChangedImage
from maskwise.schema import Region

REMOVED = (0.05, 0.10, 0.15, 0.20, 0.25)
"""The share of each side that a crop removes, by severity."""

WINDOWS = 24
"""Windows that are drawn for one crop; the one that cuts regions least is used."""

MOST_LOST = 0.5
"""No region may lose more than this share: a question may refer to any of them."""

Window = tuple[slice, slice]


def crop(
    pixels: UInt8Array,
    regions: Sequence[Region],
    severity: int,
    rng: np.random.Generator,
) -> ChangedImage | None:
    """A smaller window of an image; None if every window would cut a region off."""
    planes = []
    for region in regions:
        mask = region.amodal if region.visible is None else region.visible
        if mask is not None and mask.area:
            planes.append(mask.to_dense())
    window = _find_window(pixels.shape[:2], planes, REMOVED[severity - 1], rng)
    if window is None:
        return None
    rows, columns = window

    def move_mask(mask: BoolArray) -> BoolArray:
        return mask[rows, columns]

    return ChangedImage(np.ascontiguousarray(pixels[rows, columns]), move_mask)


def _find_window(
    size: tuple[int, ...],
    planes: Sequence[BoolArray],
    removed: float,
    rng: np.random.Generator,
) -> Window | None:
    """Rows and columns of the window that cuts the worst region least."""
    height, width = size
    new_height = max(1, round(height * (1 - removed)))
    new_width = max(1, round(width * (1 - removed)))
    areas = np.array([plane.sum() for plane in planes], np.float64)
    best = None
    least_lost = MOST_LOST
    for _ in range(WINDOWS):
        top = int(rng.integers(height - new_height + 1))
        left = int(rng.integers(width - new_width + 1))
        window = (slice(top, top + new_height), slice(left, left + new_width))
        kept = np.array([plane[window].sum() for plane in planes], np.float64)
        lost = float((1 - kept / areas).max(initial=0.0))
        is_first = best is None and lost <= least_lost
        if is_first or lost < least_lost:
            best = window
            least_lost = lost
    return best
