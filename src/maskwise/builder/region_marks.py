"""Numbered region marks: the image that a language model sees, with an outline and a number for every region."""

import io
from collections.abc import Mapping

import msgspec
import numpy as np
from PIL import Image

from maskwise.report.overlay.canvas import place_region
from maskwise.report.overlay.labels import default_font, write_labels
from maskwise.report.overlay.paint import paint_outline
from maskwise.schema import Region

MAX_SIDE = 1024
"""Longer side of the marked image. Providers scale larger images down, or charge more for them."""

QUALITY = 85


def draw_marks(image: Image.Image, regions: Mapping[int, Region]) -> Image.Image:
    """A copy of the image, reduced to MAX_SIDE, with the visible outline of each region and its number.

    Outlines are painted in the order given: parts after objects.
    """
    scale = min(1.0, MAX_SIDE / max(image.size))
    size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    canvas = np.array(image.convert("RGB").resize(size, Image.Resampling.BICUBIC))
    stroke = max(2, round(max(size) / 400))
    placed = [
        place_region(msgspec.structs.replace(region, name=str(number)), number, size)
        for number, region in regions.items()
    ]
    for region in placed:
        paint_outline(canvas, region, "visible", stroke)
    marked = Image.fromarray(canvas)
    write_labels(marked, placed, default_font(size, 1 / 45))
    return marked


def encode_marks(image: Image.Image, regions: Mapping[int, Region]) -> bytes:
    """The marked image as JPEG bytes."""
    file = io.BytesIO()
    draw_marks(image, regions).save(file, "JPEG", quality=QUALITY)
    return file.getvalue()
