"""Region names on the canvas, placed so that they do not cover each other."""

import math
from collections.abc import Iterator

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from maskwise.report.overlay.canvas import DARK, LIGHT, CanvasRegion, Color
from maskwise.report.overlay.paint import deepest_pixels

LabelBox = tuple[int, int, int, int]
"""Left, top, right, bottom."""
MAX_NAME = 28


def default_font(
    size: tuple[int, int], share: float = 1 / 38
) -> ImageFont.FreeTypeFont:
    """Pillow's own font, its height a share of the longer side."""
    font = ImageFont.load_default(max(13, round(max(size) * share)))
    assert isinstance(font, ImageFont.FreeTypeFont)
    return font


def write_labels(
    image: Image.Image, regions: list[CanvasRegion], font: ImageFont.FreeTypeFont
) -> None:
    """Write each name on its region, or near it where another name is in the way; always inside the image."""
    draw = ImageDraw.Draw(image, "RGBA")
    taken: list[LabelBox] = []
    for region in regions:
        if not region.name or not region.extent.any():
            continue
        pad = font.size / 4
        text = _shorten(region.name, font, image.width - 2 * pad - 2)
        size = (
            math.ceil(font.getlength(text) + 2 * pad),
            math.ceil(font.size + 2 * pad),
        )
        # A label larger than its region would cover it, so it is written above.
        fits = region.extent.sum() > 2 * size[0] * size[1]
        boxes = list(
            _candidate_boxes(
                _center(region), size, image.size, nearest=0 if fits else 1
            )
        )
        box = next(
            (box for box in boxes if not any(_overlap(box, old) for old in taken)),
            boxes[0],
        )
        taken.append(box)
        draw.rounded_rectangle(
            box, pad, fill=(*region.color, 235), outline=(*DARK, 255), width=1
        )
        center = ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2)
        draw.text(center, text, font=font, anchor="mm", fill=_text_color(region.color))


def _shorten(text: str, font: ImageFont.FreeTypeFont, width: float) -> str:
    short = text if len(text) <= MAX_NAME else text[: MAX_NAME - 1] + "…"
    while len(short) > 1 and font.getlength(short) > width:
        short = short.rstrip("…")[:-1] + "…"
    return short


def _center(region: CanvasRegion) -> tuple[int, int]:
    """A pixel (x, y) of the canvas deep inside the visible mask, or inside the extent if nothing is visible."""
    mask = (
        region.visible
        if region.visible is not None and region.visible.any()
        else region.extent
    )
    step = max(1, max(mask.shape) // 128)
    small = mask[::step, ::step]
    if not small.any():
        step = 1
        small = mask
    rows, columns = np.nonzero(deepest_pixels(small))
    middle = len(rows) // 2
    return region.corner[1] + int(columns[middle]) * step, region.corner[0] + int(
        rows[middle]
    ) * step


def _candidate_boxes(
    anchor: tuple[int, int],
    size: tuple[int, int],
    canvas: tuple[int, int],
    *,
    nearest: int,
) -> Iterator[LabelBox]:
    """Boxes around the anchor, nearest first, above before beside, inside the canvas."""
    width, height = size
    for distance in range(nearest, 9):
        for angle in range(12 if distance else 1):
            x = (
                anchor[0]
                - width / 2
                + math.sin(angle * math.pi / 6) * distance * width * 0.6
            )
            y = (
                anchor[1]
                - height / 2
                - math.cos(angle * math.pi / 6) * distance * height * 1.1
            )
            yield _clamp(round(x), round(y), size, canvas)


def _clamp(x: int, y: int, size: tuple[int, int], canvas: tuple[int, int]) -> LabelBox:
    left = min(max(0, x), max(0, canvas[0] - size[0] - 1))
    top = min(max(0, y), max(0, canvas[1] - size[1] - 1))
    return left, top, left + size[0], top + size[1]


def _overlap(a: LabelBox, b: LabelBox) -> bool:
    return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]


def _text_color(background: Color) -> Color:
    luminance = (
        0.299 * background[0] + 0.587 * background[1] + 0.114 * background[2]
    ) / 255
    return DARK if luminance > 0.45 else LIGHT
