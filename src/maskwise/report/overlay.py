"""Draw regions on their image so that visible, hidden and whole are told apart at a glance.

    visible part    translucent fill, solid outline
    hidden part     stripes
    whole (amodal)  dashed outline, where it runs outside the visible part

Each region has one colour of the Okabe-Ito palette, which stays distinct for colour-blind readers; stripes turn with
each region too. Names stand on the regions, a legend and if wanted the question and its answer below the image.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from maskwise.errors import ImageError
from maskwise.masks import Masks
from maskwise.schema import Answer, MaskType, PredictedRegion, Region

Drawable = Region | PredictedRegion
Colour = tuple[int, int, int]
Bools = NDArray[np.bool_]
Pixels = NDArray[np.uint8]
Box = tuple[int, int, int, int]

PALETTE: tuple[Colour, ...] = (
    (230, 159, 0),
    (86, 180, 233),
    (0, 158, 115),
    (240, 228, 66),
    (0, 114, 178),
    (213, 94, 0),
    (204, 121, 167),
)
"""Okabe and Ito, "Color Universal Design" (2008), without black."""

INK: Colour = (24, 24, 24)
PAPER: Colour = (250, 250, 250)
SHORT_SIDE = 640
LONG_SIDE = 2048
"""An image is drawn with a longer side between these two, so that lines and names are legible."""
MAX_NAME = 28


def draw_overlay(
    image: Image.Image,
    regions: Sequence[Drawable],
    *,
    mask_type: MaskType = "both",
    question: str | None = None,
    answer: Answer | None = None,
) -> Image.Image:
    """The image with its regions drawn, as RGB. Masks must have the image's size.

    mask_type: "visible" draws visible masks alone, "amodal" outlines the whole, "both" outlines either. A region
    that lacks the wanted mask is drawn with the one it has. question, answer: written below; the words of the
    answer that speak of a region are underlined in its colour. Small images come back enlarged, large ones reduced.
    """
    for region in regions:
        _check_size(region, image)
    base = image.convert("RGB").resize(_legible(image.size), Image.Resampling.BICUBIC)
    stroke = max(2, round(max(base.size) / 400))
    shapes = [_shape(region, index, base.size) for index, region in enumerate(regions)]
    canvas = np.array(base)
    _dim_background(canvas, shapes, mask_type)
    for shape in sorted(shapes, key=lambda shape: -shape.depth):
        _paint_visible(canvas, shape, mask_type)
    for shape in shapes:
        _paint_hidden(canvas, shape, mask_type, stroke)
    for shape in shapes:
        _outline(canvas, shape, mask_type, stroke)
    drawn = Image.fromarray(canvas)
    _write_names(drawn, shapes, _font(base.size))
    return _with_caption(drawn, shapes, mask_type, question=question, answer=answer)


@dataclass(frozen=True)
class _Shape:
    """A region ready to draw. Masks are bool arrays of a window of the canvas, None where unknown."""

    visible: Bools | None
    amodal: Bools | None
    corner: tuple[int, int]
    """First row and column of the window, which frames everything known with some room to spare."""
    name: str
    colour: Colour
    turn: int
    """Which way its stripes run, 0 to 3."""
    depth: float
    """Larger lies further back and is painted first."""

    @property
    def whole(self) -> Bools:
        """Everything known of it."""
        known = [mask for mask in (self.visible, self.amodal) if mask is not None]
        return np.logical_or.reduce(known)

    def window(self, canvas: NDArray[Any]) -> NDArray[Any]:
        """Its part of the canvas, to paint on."""
        (top, left), (height, width) = self.corner, self.whole.shape
        return canvas[top : top + height, left : left + width]


def _check_size(region: Drawable, image: Image.Image) -> None:
    for mask in (region.visible, region.amodal):
        if mask is not None and mask.size != (image.height, image.width):
            raise ImageError(
                f"a mask of height and width {mask.size} does not fit an image of "
                f"{image.width} x {image.height}"
            )


def _legible(size: tuple[int, int]) -> tuple[int, int]:
    """Width and height to draw at: enlarged by a whole factor, or reduced."""
    longest = max(size)
    scale = min(1.0, LONG_SIDE / longest) if longest >= SHORT_SIDE else -(-SHORT_SIDE // longest)
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _shape(region: Drawable, index: int, size: tuple[int, int]) -> _Shape:
    known = [mask for mask in (region.visible, region.amodal) if mask is not None]
    resized = Masks.from_masks(known).resize(size[::-1])
    rows, columns = _frame(resized, spare=max(size) // 50)
    dense = iter(mask.to_dense()[rows, columns] for mask in resized)
    order = getattr(region, "order", None)
    return _Shape(
        visible=None if region.visible is None else next(dense),
        amodal=None if region.amodal is None else next(dense),
        corner=(rows.start, columns.start),
        name=(region.name or "").strip(),
        colour=PALETTE[index % len(PALETTE)],
        turn=index % 4,
        depth=order if order is not None else max(mask.area for mask in known),
    )


def _frame(masks: Masks, spare: int) -> tuple[slice, slice]:
    """Rows and columns that frame all the masks, with room to spare, inside the image."""
    boxes = masks.box()
    boxes = boxes[boxes[:, 2] > 0] if boxes[:, 2].any() else boxes
    (left, top), (right, bottom) = boxes[:, :2].min(0), (boxes[:, :2] + boxes[:, 2:]).max(0)
    height, width = masks.size[0].tolist()
    return (
        slice(max(0, int(top) - spare), min(height, int(bottom) + spare)),
        slice(max(0, int(left) - spare), min(width, int(right) + spare)),
    )


# -- painting ----------------------------------------------------------------------------------------------------------


def _blend(canvas: Pixels, where: Bools, colour: Colour, strength: float) -> None:
    canvas[where] = (canvas[where] * (1 - strength) + np.array(colour) * strength).round().astype(np.uint8)


def _dim_background(canvas: Pixels, shapes: list[_Shape], mask_type: MaskType) -> None:
    """What is no region steps back."""
    rest = np.ones(canvas.shape[:2], np.bool_)
    for shape in shapes:
        shown = shape.visible if mask_type == "visible" and shape.visible is not None else shape.whole
        shape.window(rest)[shown] = False
    if shapes:
        grey = canvas[rest].mean(1, keepdims=True)
        canvas[rest] = (canvas[rest] * 0.45 + grey * 0.3 + 255 * 0.15).round().astype(np.uint8)


def _paint_visible(canvas: Pixels, shape: _Shape, mask_type: MaskType) -> None:
    if shape.visible is not None:
        _blend(shape.window(canvas), shape.visible, shape.colour, 0.5)
    elif shape.amodal is not None:
        # Which pixels are seen is unknown: a lighter fill says so.
        _blend(shape.window(canvas), shape.amodal, shape.colour, 0.5 if mask_type == "amodal" else 0.3)


def _paint_hidden(canvas: Pixels, shape: _Shape, mask_type: MaskType, stroke: int) -> None:
    if mask_type == "visible" or shape.visible is None or shape.amodal is None:
        return
    hidden = shape.amodal & ~shape.visible
    stripes = _stripes(hidden.shape, shape.turn, stroke)
    _blend(shape.window(canvas), hidden & ~stripes, PAPER, 0.3)
    _blend(shape.window(canvas), hidden & stripes, shape.colour, 0.95)


def _stripes(shape: tuple[int, ...], turn: int, stroke: int) -> Bools:
    """A field of slanted stripes, steep or flat."""
    down, right = np.ogrid[: shape[0], : shape[1]]
    slant = (down + right, down - right, (5 * down + 2 * right) // 4, (2 * down - 5 * right) // 4)[turn]
    return slant % (6 * stroke) < 5 * stroke // 2


def _outline(canvas: Pixels, shape: _Shape, mask_type: MaskType, stroke: int) -> None:
    """Solid around what the image is to show, dashed around the rest of the whole."""
    window, seen, whole = shape.window(canvas), shape.visible, shape.amodal
    if whole is not None and mask_type == "amodal":
        _line(window, _edge(whole, stroke), shape.colour, stroke)
        return
    if whole is not None and (mask_type == "both" or seen is None):
        edge = _edge(whole, stroke)
        beyond = edge if seen is None else edge & ~_grow(_edge(seen, stroke), stroke)
        _line(window, beyond & _dashes(whole, 5 * stroke), shape.colour, stroke)
    if seen is not None:
        _line(window, _edge(seen, stroke), shape.colour, stroke)


def _edge(mask: Bools, width: int) -> Bools:
    """The pixels of the mask within `width` of its outside; the frame of the image counts as outside."""
    return mask & (_box_counts(mask, width) < (2 * width + 1) ** 2)


def _grow(mask: Bools, width: int) -> Bools:
    return _box_counts(mask, width) > 0


def _box_counts(mask: Bools, width: int) -> NDArray[np.int32]:
    """How many pixels of the mask lie in the square of side 2 * width + 1 around each pixel."""
    side = 2 * width + 1
    sums = np.pad(mask.astype(np.int32), ((width + 1, width), (width + 1, width)))
    for axis in (0, 1):
        np.cumsum(sums, axis, out=sums)
    return sums[side:, side:] - sums[side:, :-side] - sums[:-side, side:] + sums[:-side, :-side]


def _line(window: Pixels, edge: Bools, colour: Colour, stroke: int) -> None:
    _blend(window, _grow(edge, (stroke + 1) // 3), INK, 0.8)
    _blend(window, edge, colour, 1.0)


def _dashes(mask: Bools, length: int) -> Bools:
    """A field that cuts the outline of the mask into dashes: by column where it runs flat, by row where it is steep."""
    steep, level = np.gradient(_box_counts(mask, length).astype(np.float32))
    flat = np.abs(steep) > np.abs(level)
    down, right = np.ogrid[: mask.shape[0], : mask.shape[1]]
    return np.where(flat, right, down) // length % 2 == 0


# -- words -------------------------------------------------------------------------------------------------------------


def _font(size: tuple[int, int], share: float = 1 / 38) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(max(13, round(max(size) * share)))
    assert isinstance(font, ImageFont.FreeTypeFont)
    return font


def _write_names(image: Image.Image, shapes: list[_Shape], font: ImageFont.FreeTypeFont) -> None:
    """Each name on its own region, moved where another name stands, always inside the image."""
    draw = ImageDraw.Draw(image, "RGBA")
    taken: list[Box] = []
    for shape in shapes:
        if not shape.name or not shape.whole.any():
            continue
        pad = font.size / 4
        text = _shorten(shape.name, font, image.width - 2 * pad - 2)
        size = (math.ceil(font.getlength(text) + 2 * pad), math.ceil(font.size + 2 * pad))
        # A name larger than its region would hide it, and stands above it instead.
        roomy = shape.whole.sum() > 2 * size[0] * size[1]
        places = list(_places(_middle(shape), size, image.size, nearest=0 if roomy else 1))
        box = next((box for box in places if not any(_meet(box, old) for old in taken)), places[0])
        taken.append(box)
        draw.rounded_rectangle(box, pad, fill=(*shape.colour, 235), outline=(*INK, 255), width=1)
        centre = ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2)
        draw.text(centre, text, font=font, anchor="mm", fill=_ink_on(shape.colour))


def _shorten(text: str, font: ImageFont.FreeTypeFont, width: float) -> str:
    short = text if len(text) <= MAX_NAME else text[: MAX_NAME - 1] + "…"
    while len(short) > 1 and font.getlength(short) > width:
        short = short.rstrip("…")[:-1] + "…"
    return short


def _middle(shape: _Shape) -> tuple[int, int]:
    """A pixel (x, y) of the image deep inside what is seen of it, or inside the whole if nothing is."""
    mask = shape.visible if shape.visible is not None and shape.visible.any() else shape.whole
    step = max(1, max(mask.shape) // 128)
    small = mask[::step, ::step]
    if not small.any():
        step, small = 1, mask
    width, deep = 1, small
    while (inner := small & ~_edge(small, width)).any():
        width, deep = width + 1, inner
    rows, columns = np.nonzero(deep)
    middle = len(rows) // 2
    return shape.corner[1] + int(columns[middle]) * step, shape.corner[0] + int(rows[middle]) * step


def _places(
    anchor: tuple[int, int], size: tuple[int, int], frame: tuple[int, int], *, nearest: int
) -> Iterator[Box]:
    """Boxes around the anchor, nearest first, above before beside, inside the frame."""
    width, height = size
    for distance in range(nearest, 9):
        for angle in range(12 if distance else 1):
            x = anchor[0] - width / 2 + math.sin(angle * math.pi / 6) * distance * width * 0.6
            y = anchor[1] - height / 2 - math.cos(angle * math.pi / 6) * distance * height * 1.1
            yield _fit(round(x), round(y), size, frame)


def _fit(x: int, y: int, size: tuple[int, int], frame: tuple[int, int]) -> Box:
    left = min(max(0, x), max(0, frame[0] - size[0] - 1))
    top = min(max(0, y), max(0, frame[1] - size[1] - 1))
    return left, top, left + size[0], top + size[1]


def _meet(a: Box, b: Box) -> bool:
    return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]


def _ink_on(colour: Colour) -> Colour:
    luminance = (0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]) / 255
    return INK if luminance > 0.45 else PAPER


# -- below the image -------------------------------------------------------------------------------------------------

Word = tuple[str, Colour | None]


def _with_caption(
    image: Image.Image,
    shapes: list[_Shape],
    mask_type: MaskType,
    *,
    question: str | None,
    answer: Answer | None,
) -> Image.Image:
    """The image on a sheet with question, answer and legend below it."""
    font = _font(image.size)
    line, margin = round(font.size * 1.5), round(font.size * 0.8)
    width = max(image.width, SHORT_SIDE // 2)
    lines: list[list[Word]] = []
    for words in (_plain(question), _underlined(answer, shapes)):
        lines += _wrap(words, font, width - 2 * margin)
    legend = _legend(shapes, mask_type)
    rows = len(lines) + bool(legend)
    if not rows:
        return image
    sheet = Image.new("RGB", (width, image.height + rows * line + margin), PAPER)
    sheet.paste(image)
    for number, words in enumerate(lines):
        _write_words(sheet, words, (margin, image.height + margin // 2 + number * line), font)
    if legend:
        place = (margin, image.height + margin // 2 + len(lines) * line)
        _write_legend(sheet, legend, place, mask_type=mask_type, font=font)
    return sheet


def _plain(text: str | None) -> list[Word]:
    return [(word, None) for word in text.split()] if text else []


def _underlined(answer: Answer | None, shapes: list[_Shape]) -> list[Word]:
    """The answer's words, with the colour of the first region their phrase speaks of."""
    if answer is None:
        return []
    words: list[Word] = []
    for start, stop in _spans(answer.text):
        owners = [
            region
            for phrase in answer.phrases
            if phrase.start < stop and start < phrase.stop
            for region in phrase.regions
            if region < len(shapes)
        ]
        words.append((answer.text[start:stop], shapes[owners[0]].colour if owners else None))
    return words


def _spans(text: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(r"\S+", text)]


def _wrap(words: list[Word], font: ImageFont.FreeTypeFont, width: int) -> list[list[Word]]:
    lines: list[list[Word]] = []
    room = 0.0
    for word in words:
        need = font.getlength(word[0] + " ")
        if not lines or need > room:
            lines.append([])
            room = width
        lines[-1].append(word)
        room -= need
    return lines


def _write_words(
    sheet: Image.Image, words: list[Word], place: tuple[int, int], font: ImageFont.FreeTypeFont
) -> None:
    draw = ImageDraw.Draw(sheet)
    x, y = place
    bottom = y + font.size * 1.2
    for number, (text, colour) in enumerate(words):
        draw.text((x, y), text, font=font, fill=INK)
        together = number + 1 < len(words) and words[number + 1][1] == colour
        if colour is not None:
            end = x + font.getlength(text + " " if together else text.rstrip(".,;:!?"))
            draw.rectangle((x, bottom, end, bottom + font.size / 6), fill=colour)
        x += round(font.getlength(text + " "))


def _legend(shapes: list[_Shape], mask_type: MaskType) -> list[str]:
    """Which signs the image shows."""
    shown = []
    if any(shape.visible is not None for shape in shapes):
        shown.append("visible")
    if mask_type != "visible" and any(
        shape.visible is not None and shape.amodal is not None for shape in shapes
    ):
        shown.append("hidden")
    if any(
        shape.amodal is not None and (mask_type != "visible" or shape.visible is None) for shape in shapes
    ):
        shown.append("whole outline")
    return shown


def _write_legend(
    sheet: Image.Image,
    signs: list[str],
    place: tuple[int, int],
    *,
    mask_type: MaskType,
    font: ImageFont.FreeTypeFont,
) -> None:
    draw = ImageDraw.Draw(sheet)
    x, y = place
    height = round(font.size)
    for sign in signs:
        sheet.paste(_swatch(sign, (2 * height, height), mask_type), (x, y + round(font.size * 0.2)))
        x += round(2.5 * height)
        draw.text((x, y), sign, font=font, fill=INK)
        x += round(font.getlength(sign + "    "))


def _swatch(sign: str, size: tuple[int, int], mask_type: MaskType) -> Image.Image:
    """A sample of the sign, painted as the image is."""
    canvas = np.full((size[1], size[0], 3), PAPER, np.uint8)
    none = np.zeros(size[::-1], np.bool_)
    whole = np.pad(~none[1:-1, 1:-1], 1)
    masks = {"visible": (whole, whole), "hidden": (none, whole), "whole outline": (none, whole)}[sign]
    shape = _Shape(*masks, corner=(0, 0), name="", colour=(120, 120, 120), turn=0, depth=0)
    if sign == "hidden":
        _paint_hidden(canvas, shape, mask_type, max(1, size[1] // 8))
    else:
        _paint_visible(canvas, shape, mask_type)
        _outline(canvas, shape, mask_type, max(1, size[1] // 14))
    return Image.fromarray(canvas)
