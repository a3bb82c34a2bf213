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
    rest = np.ones(canvas.shape[:2], np.bool_)
    for region in regions:
        visible_only = mask_type == "visible" and region.visible is not None
        region.crop(rest)[region.visible if visible_only else region.extent] = False
    grey = canvas[rest].mean(1, keepdims=True)
    canvas[rest] = (
        (canvas[rest] * 0.45 + grey * 0.3 + 255 * 0.15).round().astype(np.uint8)
    )


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
    _blend(region.crop(canvas), hidden & ~stripes, LIGHT, 0.3)
    _blend(region.crop(canvas), hidden & stripes, region.color, 0.95)


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
        edge = _edge(amodal, stroke)
        beyond = (
            edge if visible is None else edge & ~_dilate(_edge(visible, stroke), stroke)
        )
        _line(crop, beyond & _dashes(amodal, 5 * stroke), region.color, stroke)
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
    canvas[where] = (
        (canvas[where] * (1 - opacity) + np.array(color) * opacity)
        .round()
        .astype(np.uint8)
    )


def _stripes(shape: tuple[int, ...], direction: int, stroke: int) -> BoolArray:
    """Slanted stripes in one of four directions."""
    down, right = np.ogrid[: shape[0], : shape[1]]
    slant = (
        down + right,
        down - right,
        (5 * down + 2 * right) // 4,
        (2 * down - 5 * right) // 4,
    )[direction]
    stripes: BoolArray = slant % (6 * stroke) < 5 * stroke // 2
    return stripes


def _edge(mask: BoolArray, width: int) -> BoolArray:
    """Pixels of the mask within `width` of its outside; beyond the image counts as outside."""
    return mask & (_box_counts(mask, width) < (2 * width + 1) ** 2)


def _dilate(mask: BoolArray, width: int) -> BoolArray:
    return _box_counts(mask, width) > 0


def _box_counts(mask: BoolArray, width: int) -> Int32Array:
    """Number of mask pixels in the square of side 2 * width + 1 around each pixel."""
    side = 2 * width + 1
    sums = np.pad(mask.astype(np.int32), ((width + 1, width), (width + 1, width)))
    for axis in (0, 1):
        np.cumsum(sums, axis, out=sums)
    counts: Int32Array = (
        sums[side:, side:]
        - sums[side:, :-side]
        - sums[:-side, side:]
        + sums[:-side, :-side]
    )
    return counts


def _line(canvas: UInt8Array, edge: BoolArray, color: Color, stroke: int) -> None:
    _blend(canvas, _dilate(edge, (stroke + 1) // 3), DARK, 0.8)
    _blend(canvas, edge, color, 1.0)


def _dashes(mask: BoolArray, length: int) -> BoolArray:
    """Dashes along the outline: cut by column where the outline is horizontal, by row where it is vertical."""
    vertical, horizontal = np.gradient(_box_counts(mask, length).astype(np.float32))
    flat = np.abs(vertical) > np.abs(horizontal)
    down, right = np.ogrid[: mask.shape[0], : mask.shape[1]]
    dashes: BoolArray = np.where(flat, right, down) // length % 2 == 0
    return dashes
