"""Draw an image with its masks: `draw_overlay`, and the order in which the layers are painted."""

from collections.abc import Sequence

import numpy as np
from PIL import Image

from maskwise.arrays import UInt8Array
from maskwise.errors import ImageError
from maskwise.masks import Mask
from maskwise.report.overlay.canvas import (
    CanvasRegion,
    Drawable,
    legible_size,
    place_region,
)
from maskwise.report.overlay.caption import add_caption
from maskwise.report.overlay.labels import default_font, write_labels
from maskwise.report.overlay.paint import (
    dim_background,
    paint_hidden,
    paint_ignored,
    paint_outline,
    paint_visible,
)
from maskwise.schema import Answer, MaskType


def draw_overlay(
    image: Image.Image,
    regions: Sequence[Drawable],
    *,
    mask_type: MaskType = "both",
    question: str | None = None,
    answer: Answer | None = None,
    labels: bool = True,
    ignore: Mask | None = None,
) -> Image.Image:
    """Return a new RGB image with the regions drawn. Masks must have the size of the image; otherwise ImageError.

    mask_type: "visible" draws only visible masks, "amodal" outlines the amodal masks, "both" outlines both. A region
    without the requested mask is drawn with the one it has. question, answer: written below; the words of an answer
    phrase are underlined in the color of its region. labels: write region names. ignore: pixels that metrics leave
    out, drawn hatched. Images with a longer side below 640 pixels are enlarged, those above 2048 reduced.
    """
    masks = [mask for region in regions for mask in (region.visible, region.amodal)]
    for mask in (*masks, ignore):
        _check_size(mask, image)
    base = image.convert("RGB").resize(
        legible_size(image.size), Image.Resampling.BICUBIC
    )
    placed = [
        place_region(region, index, base.size) for index, region in enumerate(regions)
    ]
    drawn = Image.fromarray(_paint(base, placed, mask_type, ignore))
    if labels:
        write_labels(drawn, placed, default_font(base.size))
    return add_caption(
        drawn,
        placed,
        mask_type,
        question=question,
        answer=answer,
        ignored=ignore is not None,
    )


def _paint(
    base: Image.Image,
    regions: list[CanvasRegion],
    mask_type: MaskType,
    ignore: Mask | None,
) -> UInt8Array:
    """All masks painted on the image: uint8 [height, width, 3]."""
    canvas = np.array(base)
    stroke = max(2, round(max(base.size) / 400))
    dim_background(canvas, regions, mask_type)
    for region in sorted(regions, key=lambda region: -region.depth):
        paint_visible(canvas, region, mask_type)
    for region in regions:
        paint_hidden(canvas, region, mask_type, stroke)
    for region in regions:
        paint_outline(canvas, region, mask_type, stroke)
    if ignore is not None:
        paint_ignored(canvas, ignore, stroke)
    return canvas


def _check_size(mask: Mask | None, image: Image.Image) -> None:
    if mask is not None and mask.size != (image.height, image.width):
        raise ImageError(
            f"a mask of height and width {mask.size} does not fit an image of {image.width} x {image.height}"
        )
