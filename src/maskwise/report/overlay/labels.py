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
    longer_side = max(size)
    # Below 13 pixels letters cannot be read.
    height = max(13, round(longer_side * share))
    font = ImageFont.load_default(height)
    assert isinstance(font, ImageFont.FreeTypeFont)
    return font


def write_labels(
    image: Image.Image, regions: list[CanvasRegion], font: ImageFont.FreeTypeFont
) -> None:
    """Write each name on its region, or near it where another name is in the way; always inside the image."""
    draw = ImageDraw.Draw(image, "RGBA")
    pad = font.size / 4
    taken: list[LabelBox] = []
    for region in regions:
        if not region.name or not region.extent.any():
            continue
        widest = image.width - 2 * pad - 2
        text = _shorten(region.name, font, widest)
        width = math.ceil(font.getlength(text) + 2 * pad)
        height = math.ceil(font.size + 2 * pad)
        # A label larger than its region would cover it, so it is written above.
        label_area = width * height
        is_roomy = region.extent.sum() > 2 * label_area
        candidates = _candidate_boxes(
            _center(region), (width, height), image.size, nearest=0 if is_roomy else 1
        )
        box = _first_free(list(candidates), taken)
        taken.append(box)
        fill = (*region.color, 235)
        draw.rounded_rectangle(box, pad, fill=fill, outline=(*DARK, 255), width=1)
        left, top, right, bottom = box
        center = ((left + right) / 2, (top + bottom) / 2)
        text_color = _text_color(region.color)
        draw.text(center, text, font=font, anchor="mm", fill=text_color)


def _first_free(candidates: list[LabelBox], taken: list[LabelBox]) -> LabelBox:
    """The first box that overlaps no label written before; the first of all if none is free."""
    for box in candidates:
        if not any(_overlap(box, other) for other in taken):
            return box
    return candidates[0]


def _shorten(text: str, font: ImageFont.FreeTypeFont, width: float) -> str:
    """The text, cut to MAX_NAME characters and to a width in pixels."""
    short = text if len(text) <= MAX_NAME else text[: MAX_NAME - 1] + "…"
    while len(short) > 1 and font.getlength(short) > width:
        short = short.rstrip("…")[:-1] + "…"
    return short


def _center(region: CanvasRegion) -> tuple[int, int]:
    """A pixel (x, y) of the canvas deep inside the visible mask, or inside the extent if nothing is visible."""
    mask = region.extent
    if region.visible is not None and region.visible.any():
        mask = region.visible
    # About 128 pixels are enough to find the middle, and much faster.
    step = max(1, max(mask.shape) // 128)
    small = mask[::step, ::step]
    if not small.any():
        step = 1
        small = mask
    rows, columns = np.nonzero(deepest_pixels(small))
    middle = len(rows) // 2
    top, left = region.corner
    x = left + int(columns[middle]) * step
    y = top + int(rows[middle]) * step
    return x, y


def _candidate_boxes(
    anchor: tuple[int, int],
    size: tuple[int, int],
    canvas: tuple[int, int],
    *,
    nearest: int,
) -> Iterator[LabelBox]:
    """Boxes around the anchor, nearest first, above before beside, inside the canvas.

    Twelve directions at each of up to eight distances, which are measured in labels.
    """
    anchor_x, anchor_y = anchor
    width, height = size
    for distance in range(nearest, 9):
        for direction in range(12 if distance else 1):
            angle = direction * math.pi / 6
            right = math.sin(angle) * distance * width * 0.6
            up = math.cos(angle) * distance * height * 1.1
            x = anchor_x - width / 2 + right
            y = anchor_y - height / 2 - up
            yield _clamp(round(x), round(y), size, canvas)


def _clamp(x: int, y: int, size: tuple[int, int], canvas: tuple[int, int]) -> LabelBox:
    """The box of this size at x, y, moved into the canvas."""
    width, height = size
    canvas_width, canvas_height = canvas
    last_left = max(0, canvas_width - width - 1)
    last_top = max(0, canvas_height - height - 1)
    left = min(max(0, x), last_left)
    top = min(max(0, y), last_top)
    return left, top, left + width, top + height


def _overlap(a: LabelBox, b: LabelBox) -> bool:
    a_left, a_top, a_right, a_bottom = a
    b_left, b_top, b_right, b_bottom = b
    across = a_left <= b_right and b_left <= a_right
    down = a_top <= b_bottom and b_top <= a_bottom
    return across and down


def _text_color(background: Color) -> Color:
    """Dark on a light background, light on a dark one; luminance as in ITU-R BT.601."""
    red, green, blue = background
    weighted = 0.299 * red + 0.587 * green + 0.114 * blue
    luminance = weighted / 255
    return DARK if luminance > 0.45 else LIGHT
