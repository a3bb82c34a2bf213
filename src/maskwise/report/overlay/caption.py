"""What is written below the image: question, answer and legend."""

import re

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from maskwise.masks import Mask
from maskwise.report.overlay.canvas import DARK, LIGHT, MIN_SIDE, CanvasRegion, Color
from maskwise.report.overlay.labels import default_font
from maskwise.report.overlay.paint import (
    paint_hidden,
    paint_ignored,
    paint_outline,
    paint_visible,
)
from maskwise.schema import Answer, MaskType

ColoredWord = tuple[str, Color | None]
"""A word and the color it is underlined with."""


def add_caption(
    image: Image.Image,
    regions: list[CanvasRegion],
    mask_type: MaskType,
    *,
    question: str | None,
    answer: Answer | None,
    ignored: bool,
) -> Image.Image:
    """The image with question, answer and legend below it; unchanged where there is nothing to write."""
    font = default_font(image.size)
    line = round(font.size * 1.5)
    margin = round(font.size * 0.8)
    width = max(image.width, MIN_SIDE // 2)
    lines: list[list[ColoredWord]] = []
    for words in (_split_question(question), _split_answer(answer, regions)):
        lines += _wrap(words, font, width - 2 * margin)
    legend = _legend_entries(regions, mask_type, ignored=ignored)
    rows = len(lines) + bool(legend)
    if not rows:
        return image
    sheet = Image.new("RGB", (width, image.height + rows * line + margin), LIGHT)
    sheet.paste(image)
    for number, words in enumerate(lines):
        _write_words(
            sheet, words, (margin, image.height + margin // 2 + number * line), font
        )
    if legend:
        place = (margin, image.height + margin // 2 + len(lines) * line)
        _write_legend(sheet, legend, place, mask_type=mask_type, font=font)
    return sheet


def _split_question(text: str | None) -> list[ColoredWord]:
    return [(word, None) for word in text.split()] if text else []


def _split_answer(
    answer: Answer | None, regions: list[CanvasRegion]
) -> list[ColoredWord]:
    """The words of the answer, each with the color of the first region its phrase refers to."""
    if answer is None:
        return []
    words: list[ColoredWord] = []
    for match in re.finditer(r"\S+", answer.text):
        start, stop = match.span()
        owners = [
            region
            for phrase in answer.phrases
            if phrase.start < stop and start < phrase.stop
            for region in phrase.regions
            if region < len(regions)
        ]
        words.append(
            (answer.text[start:stop], regions[owners[0]].color if owners else None)
        )
    return words


def _wrap(
    words: list[ColoredWord], font: ImageFont.FreeTypeFont, width: int
) -> list[list[ColoredWord]]:
    lines: list[list[ColoredWord]] = []
    remaining = 0.0
    for word in words:
        needed = font.getlength(word[0] + " ")
        if not lines or needed > remaining:
            lines.append([])
            remaining = width
        lines[-1].append(word)
        remaining -= needed
    return lines


def _write_words(
    sheet: Image.Image,
    words: list[ColoredWord],
    place: tuple[int, int],
    font: ImageFont.FreeTypeFont,
) -> None:
    draw = ImageDraw.Draw(sheet)
    x, y = place
    bottom = y + font.size * 1.2
    for number, (text, color) in enumerate(words):
        draw.text((x, y), text, font=font, fill=DARK)
        continues = number + 1 < len(words) and words[number + 1][1] == color
        if color is not None:
            end = x + font.getlength(text + " " if continues else text.rstrip(".,;:!?"))
            draw.rectangle((x, bottom, end, bottom + font.size / 6), fill=color)
        x += round(font.getlength(text + " "))


def _legend_entries(
    regions: list[CanvasRegion], mask_type: MaskType, *, ignored: bool
) -> list[str]:
    """The drawing styles that occur in the image."""
    both = [
        region.visible is not None and region.amodal is not None for region in regions
    ]
    entries = {
        "visible": any(region.visible is not None for region in regions),
        "hidden": mask_type != "visible" and any(both),
        "amodal outline": any(
            region.amodal is not None
            and (mask_type != "visible" or region.visible is None)
            for region in regions
        ),
        "ignored": ignored,
    }
    return [name for name, occurs in entries.items() if occurs]


def _write_legend(
    sheet: Image.Image,
    entries: list[str],
    place: tuple[int, int],
    *,
    mask_type: MaskType,
    font: ImageFont.FreeTypeFont,
) -> None:
    draw = ImageDraw.Draw(sheet)
    x, y = place
    height = round(font.size)
    for entry in entries:
        sheet.paste(
            _swatch(entry, (2 * height, height), mask_type),
            (x, y + round(font.size * 0.2)),
        )
        x += round(2.5 * height)
        draw.text((x, y), entry, font=font, fill=DARK)
        x += round(font.getlength(entry + "    "))


def _swatch(entry: str, size: tuple[int, int], mask_type: MaskType) -> Image.Image:
    """A small example of a drawing style."""
    canvas = np.full((size[1], size[0], 3), LIGHT, np.uint8)
    empty = np.zeros(size[::-1], np.bool_)
    full = np.pad(~empty[1:-1, 1:-1], 1)
    visible = full if entry == "visible" else empty
    region = CanvasRegion(
        visible,
        full,
        corner=(0, 0),
        name="",
        color=(120, 120, 120),
        stripes=0,
        depth=0,
    )
    if entry == "ignored":
        paint_ignored(canvas, Mask.from_dense(full), max(1, size[1] // 8))
    elif entry == "hidden":
        paint_hidden(canvas, region, mask_type, max(1, size[1] // 8))
    else:
        paint_visible(canvas, region, mask_type)
        paint_outline(canvas, region, mask_type, max(1, size[1] // 14))
    return Image.fromarray(canvas)
