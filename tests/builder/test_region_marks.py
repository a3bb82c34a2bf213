"""Numbered region marks: drawn on a reduced copy of the image, the same every time."""

import io

import numpy as np
from PIL import Image

from maskwise.builder.region_marks import MAX_SIDE, draw_marks, encode_marks
from maskwise.masks import Mask
from maskwise.schema import Region


def region(height: int, width: int) -> Region:
    mask = np.zeros((height, width), np.bool_)
    mask[height // 4 : height // 2, width // 4 : width // 2] = True
    return Region(id="a", name="cup", visible=Mask.from_dense(mask))


def test_a_region_is_outlined_and_numbered() -> None:
    image = Image.new("RGB", (400, 300), (128, 128, 128))
    plain = np.asarray(image)
    marked = np.asarray(draw_marks(image, {7: region(300, 400)}))
    changed = np.any(plain != marked, axis=2)
    assert changed[75, 100:200].mean() > 0.9, "the upper edge is drawn"
    assert not changed[200:].any(), "nothing is drawn elsewhere"
    other = np.asarray(draw_marks(image, {8: region(300, 400)}))
    assert (marked != other).any(), "the number is drawn"
    assert (plain == 128).all(), "the image itself is untouched"


def test_large_images_are_reduced() -> None:
    image = Image.new("RGB", (3000, 1500))
    data = encode_marks(image, {1: region(1500, 3000)})
    assert Image.open(io.BytesIO(data)).size == (MAX_SIDE, MAX_SIDE // 2)
    assert data == encode_marks(image, {1: region(1500, 3000)})
