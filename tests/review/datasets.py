"""Small datasets to review."""

import io
from pathlib import Path

import numpy as np
from PIL import Image

from maskwise.masks import Mask
from maskwise.schema import Answer, ImageInfo, Phrase, Region, Sample
from maskwise.store import Dataset, DatasetWriter

HEIGHT = 12
WIDTH = 16


def box(left: int, top: int, width: int, height: int) -> Mask:
    """A mask of one rectangle."""
    plane = np.zeros((HEIGHT, WIDTH), bool)
    plane[top : top + height, left : left + width] = True
    return Mask.from_dense(plane)


def write_samples(
    path: Path, count: int, *, flagged: tuple[int, ...] = (), per_image: int = 4
) -> Dataset:
    """A dataset of `count` questions; image i has the regions `cup` and `table` (cup in front of it)."""
    with DatasetWriter(path, name="cups") as writer:
        for number in range(count):
            image = f"image-{number // per_image}"
            if number % per_image == 0:
                writer.add_image(
                    ImageInfo(id=image, width=WIDTH, height=HEIGHT),
                    _regions(),
                    data=_png(number),
                )
            writer.add_sample(
                Sample(
                    id=f"s{number}",
                    image_id=image,
                    question=f"What can I drink from? {number}",
                    mask_type="both",
                    targets=(_regions()[0],),
                    answer=Answer(
                        text="The cup.",
                        phrases=(Phrase(start=4, stop=7, regions=(0,)),),
                    ),
                    tags={"flags": "mask-type-wording"}
                    if number in flagged
                    else {"split": "val"},
                )
            )
    return Dataset.open(path)


def _regions() -> tuple[Region, Region]:
    cup = Region(id="cup", name="cup", visible=box(2, 2, 4, 4), amodal=box(2, 2, 4, 6))
    table = Region(id="table", name="table", visible=box(0, 6, 16, 6))
    return cup, table


def _png(number: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (WIDTH, HEIGHT), (number % 256, 120, 90)).save(file, "PNG")
    return file.getvalue()
