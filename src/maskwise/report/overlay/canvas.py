"""Regions placed on the canvas: masks resized and cropped, with color and painting order."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwise.arrays import BoolArray
from maskwise.masks import Masks
from maskwise.schema import PredictedRegion, Region

Drawable = Region | PredictedRegion
Color = tuple[int, int, int]

PALETTE: tuple[Color, ...] = (
    (230, 159, 0),
    (86, 180, 233),
    (0, 158, 115),
    (240, 228, 66),
    (0, 114, 178),
    (213, 94, 0),
    (204, 121, 167),
)
"""Okabe and Ito, "Color Universal Design" (2008), without black."""

DARK: Color = (24, 24, 24)
LIGHT: Color = (250, 250, 250)
MIN_SIDE = 640
MAX_SIDE = 2048
"""The longer side of the canvas lies between these two, so that lines and names are legible."""


@dataclass(frozen=True)
class CanvasRegion:
    """A region ready to paint. Masks are bool arrays of a crop of the canvas, None where unknown."""

    visible: BoolArray | None
    amodal: BoolArray | None
    corner: tuple[int, int]
    """First row and column of the crop, which contains both masks and a margin."""
    name: str
    color: Color
    stripes: int
    """Direction of the stripes, 0 to 3."""
    depth: float
    """Regions with a larger value are further back and are painted first."""

    @property
    def extent(self) -> BoolArray:
        """Union of the known masks."""
        known = [mask for mask in (self.visible, self.amodal) if mask is not None]
        extent: BoolArray = np.logical_or.reduce(known)
        return extent

    def crop(self, canvas: NDArray[Any]) -> NDArray[Any]:
        """A writable view of the region's part of the canvas."""
        (top, left) = self.corner
        (height, width) = self.extent.shape
        return canvas[top : top + height, left : left + width]


def legible_size(size: tuple[int, int]) -> tuple[int, int]:
    """Width and height of the canvas: enlarged by a whole factor, or reduced."""
    width, height = size
    longest = max(size)
    scale = min(1.0, MAX_SIDE / longest)
    if longest < MIN_SIDE:
        # A whole factor keeps pixels square; rounded up.
        scale = -(-MIN_SIDE // longest)
    return max(1, round(width * scale)), max(1, round(height * scale))


def place_region(region: Drawable, index: int, size: tuple[int, int]) -> CanvasRegion:
    """The region on a canvas of this width and height; the index chooses color and stripes."""
    width, height = size
    known = [mask for mask in (region.visible, region.amodal) if mask is not None]
    resized = Masks.from_masks(known).resize((height, width))
    rows, columns = _bounds(resized, margin=max(size) // 50)
    crops = [mask.to_dense()[rows, columns] for mask in resized]
    # The visible mask, if known, is the first; the amodal one the last.
    depth = getattr(region, "order", None)
    if depth is None:
        # Without an order, larger regions are taken to be further back.
        depth = max(mask.area for mask in known)
    return CanvasRegion(
        visible=None if region.visible is None else crops[0],
        amodal=None if region.amodal is None else crops[-1],
        corner=(rows.start, columns.start),
        name=(region.name or "").strip(),
        color=PALETTE[index % len(PALETTE)],
        stripes=index % 4,
        depth=depth,
    )


def _bounds(masks: Masks, margin: int) -> tuple[slice, slice]:
    """Rows and columns that contain all masks and a margin, inside the canvas."""
    boxes = masks.box()
    has_pixels = boxes[:, 2] > 0
    if has_pixels.any():
        boxes = boxes[has_pixels]
    corners = boxes[:, :2]
    left, top = corners.min(0).tolist()
    right, bottom = (corners + boxes[:, 2:]).max(0).tolist()
    height, width = masks.size[0].tolist()
    rows = slice(max(0, top - margin), min(height, bottom + margin))
    columns = slice(max(0, left - margin), min(width, right + margin))
    return rows, columns
