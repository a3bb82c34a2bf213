"""Fills, stripes, outlines and hatching of masks on a canvas: uint8 [height, width, 3], changed in place."""

import numpy as np

from maskwise.arrays import BoolArray, Int32Array, UInt8Array
from maskwise.masks import Mask, Masks
from maskwise.report.overlay.canvas import DARK, LIGHT, CanvasRegion, Color
from maskwise.schema import MaskType

FILL = 0.35
UNKNOWN_FILL = 0.2
"""Opacity of a visible mask, and of an amodal mask whose visible part is unknown."""


def dim_background(
    canvas: UInt8Array, regions: list[CanvasRegion], mask_type: MaskType
) -> None:
    """Make everything outside the regions paler and greyer."""
    if not regions:
        return
    outside = np.ones(canvas.shape[:2], np.bool_)
    for region in regions:
        shown = region.extent
        if mask_type == "visible" and region.visible is not None:
            shown = region.visible
        region.crop(outside)[shown] = False
    color = canvas[outside]
    grey = color.mean(1, keepdims=True)
    # Less than half of the color stays: the regions are what a reader looks at.
    pale = color * 0.45 + grey * 0.3 + 255 * 0.15
    canvas[outside] = pale.round().astype(np.uint8)


def paint_visible(
    canvas: UInt8Array, region: CanvasRegion, mask_type: MaskType
) -> None:
    """Fill the visible mask; where it is unknown, the amodal mask with a lighter fill."""
    if region.visible is not None:
        _blend(region.crop(canvas), region.visible, region.color, FILL)
    elif region.amodal is not None:
        opacity = FILL if mask_type == "amodal" else UNKNOWN_FILL
        _blend(region.crop(canvas), region.amodal, region.color, opacity)


def paint_hidden(
    canvas: UInt8Array, region: CanvasRegion, mask_type: MaskType, stroke: int
) -> None:
    """Stripe the hidden part, where both masks are known."""
    if mask_type == "visible" or region.visible is None or region.amodal is None:
        return
    hidden = region.amodal & ~region.visible
    stripes = _stripes(hidden.shape, region.stripes, stroke)
    crop = region.crop(canvas)
    _blend(crop, hidden & ~stripes, LIGHT, 0.3)
    _blend(crop, hidden & stripes, region.color, 0.95)


def paint_outline(
    canvas: UInt8Array, region: CanvasRegion, mask_type: MaskType, stroke: int
) -> None:
    """A solid line around the requested mask, a dashed one around the rest of the amodal extent."""
    crop = region.crop(canvas)
    visible = region.visible
    amodal = region.amodal
    if amodal is not None and mask_type == "amodal":
        _line(crop, _edge(amodal, stroke), region.color, stroke)
        return
    if amodal is not None and (mask_type == "both" or visible is None):
        dashed = _edge(amodal, stroke) & _dashes(amodal, 5 * stroke)
        if visible is not None:
            # No dashes beside the solid line.
            dashed &= ~_dilate(_edge(visible, stroke), stroke)
        _line(crop, dashed, region.color, stroke)
    if visible is not None:
        _line(crop, _edge(visible, stroke), region.color, stroke)


def paint_ignored(canvas: UInt8Array, ignore: Mask, stroke: int) -> None:
    """Hatch the ignored pixels. The mask is resized to the canvas."""
    ignored = Masks.from_masks([ignore]).resize(canvas.shape[:2])[0].to_dense()
    stripes = _stripes(ignored.shape, 0, stroke)
    _blend(canvas, ignored & stripes, DARK, 0.75)
    _blend(canvas, ignored & ~stripes, LIGHT, 0.5)


def deepest_pixels(mask: BoolArray) -> BoolArray:
    """The last nonempty erosion of a mask that has pixels: those deepest inside."""
    width = 1
    deep = mask
    while (inner := mask & ~_edge(mask, width)).any():
        width = width + 1
        deep = inner
    return deep


def _blend(canvas: UInt8Array, where: BoolArray, color: Color, opacity: float) -> None:
    """Mix a color into the pixels of the canvas (height, width, 3) where the mask is."""
    mixed = canvas[where] * (1 - opacity) + np.array(color) * opacity
    canvas[where] = mixed.round().astype(np.uint8)


def _stripes(shape: tuple[int, ...], direction: int, stroke: int) -> BoolArray:
    """Slanted stripes in one of four directions, 2.5 strokes wide, one every 6."""
    height, width = shape
    down, right = np.ogrid[:height, :width]
    slants = (
        down + right,
        down - right,
        (5 * down + 2 * right) // 4,
        (2 * down - 5 * right) // 4,
    )
    period = 6 * stroke
    stripes: BoolArray = slants[direction] % period < 5 * stroke // 2
    return stripes


def _edge(mask: BoolArray, width: int) -> BoolArray:
    """Pixels of the mask within `width` of its outside; beyond the image counts as outside."""
    square = (2 * width + 1) ** 2
    return mask & (_box_counts(mask, width) < square)


def _dilate(mask: BoolArray, width: int) -> BoolArray:
    return _box_counts(mask, width) > 0


def _box_counts(mask: BoolArray, width: int) -> Int32Array:
    """Number of mask pixels in the square of side 2 * width + 1 around each pixel."""
    side = 2 * width + 1
    # A summed-area table; the extra row and column of zeros before it is the empty sum.
    margin = (width + 1, width)
    table = np.pad(mask.astype(np.int32), (margin, margin))
    for axis in (0, 1):
        np.cumsum(table, axis, out=table)
    upper_rows = table[:-side]
    lower_rows = table[side:]
    lower = lower_rows[:, side:] - lower_rows[:, :-side]
    upper = upper_rows[:, side:] - upper_rows[:, :-side]
    counts: Int32Array = lower - upper
    return counts


def _line(canvas: UInt8Array, edge: BoolArray, color: Color, stroke: int) -> None:
    """A colored line with a dark rim, so that it shows on any image."""
    rim = (stroke + 1) // 3
    _blend(canvas, _dilate(edge, rim), DARK, 0.8)
    _blend(canvas, edge, color, 1.0)


def _dashes(mask: BoolArray, length: int) -> BoolArray:
    """Dashes along the outline: cut by column where the outline is horizontal, by row where it is vertical."""
    smooth = _box_counts(mask, length).astype(np.float32)
    vertical, horizontal = np.gradient(smooth)
    is_horizontal = np.abs(vertical) > np.abs(horizontal)
    height, width = mask.shape
    down, right = np.ogrid[:height, :width]
    along = np.where(is_horizontal, right, down)
    dashes: BoolArray = along // length % 2 == 0
    return dashes
