"""Write ReasonSeg's layout, the one that LISA and its successors train with: X.jpg and X.json for every question.

The JSON has `text`, `is_sentence` and `shapes`, labelled `target` or `ignore`. LISA draws a polygon with its outline
through the centers of pixels, so the outlines are written along the centers of the border pixels: a mask without holes
is read back exactly. A hole is filled, unless it is ignored.
"""

from pathlib import Path
from typing import Any

import numpy as np

from maskwise.arrays import Int64Array
from maskwise.benchmarks.reasonseg import read
from maskwise.formats.annotation_format import AnnotationFormat
from maskwise.formats.coco_export import write_json
from maskwise.formats.exported_dataset import export_images, split_name, write_image
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.written_losses import (
    Losses,
    has_holes,
    merge_masks,
    requested_masks,
)
from maskwise.masks import Mask
from maskwise.masks.contours import trace_polygons
from maskwise.schema import Sample
from maskwise.store import Dataset


def write(dataset: Dataset, folder: Path, *, with_images: bool) -> dict[str, int]:
    """Write `reason_seg/ReasonSeg/SPLIT`: one JSON per question, and a copy of its image."""
    losses = Losses("ignored pixels", "masks")
    target = folder / "reason_seg" / "ReasonSeg" / split_name(dataset)
    target.mkdir(parents=True)
    number = 0
    for _, exported in export_images(dataset, with_images=with_images):
        losses.note_image(exported)
        for sample in exported.samples:
            losses.note_sample(sample)
            stem = f"{number:06d}"
            number += 1
            # LISA opens the image by its content, so a PNG may be called .jpg.
            write_image(target / f"{stem}.jpg", exported.data)
            write_json(target / f"{stem}.json", _to_content(sample, losses))
    return dict(losses.counts)


def _to_content(sample: Sample, losses: Losses) -> dict[str, Any]:
    shapes = []
    masks = requested_masks(sample)
    if masks:
        merged = merge_masks(masks)
        losses.note("masks whose holes are filled", has_holes(merged))
        shapes += _to_shapes(merged, "target")
    if sample.ignore is not None and sample.ignore.area:
        shapes += _to_shapes(sample.ignore, "ignore")
    length = sample.tags.get("question_type")
    is_sentence = (
        length == "long" if length else sample.question.rstrip()[-1:] in ("?", ".", "!")
    )
    return {"text": [sample.question], "is_sentence": is_sentence, "shapes": shapes}


def _to_shapes(mask: Mask, label: str) -> list[dict[str, Any]]:
    """One polygon per component."""
    components = trace_polygons(mask.to_dense())
    return [
        {"label": label, "points": to_border_pixels(rings[0]).tolist()}
        for rings in components
    ]


def to_border_pixels(ring: Int64Array) -> Int64Array:
    """The border pixels that an exterior ring along pixel edges encloses, as corners x, y; int64 [n, 2].

    The ring runs clockwise, so the foreground is on its right: below an edge to the right, left of an edge down.
    """
    following = np.roll(ring, -1, 0)
    step = np.sign(following - ring)
    dx, dy = step.T
    # The pixel on the right at the beginning of an edge, and the one at its end.
    shift_x = np.where((dx < 0) | (dy > 0), -1, 0)
    shift_y = np.where((dx < 0) | (dy < 0), -1, 0)
    first = ring + np.stack([shift_x, shift_y], 1)
    last = first + (following - ring) - step
    pixels = np.stack([first, last], 1).reshape(-1, 2)
    is_new = (pixels != np.roll(pixels, 1, 0)).any(1)
    # A single pixel has no other one before it.
    return pixels[is_new] if is_new.any() else pixels[:1]


LISA = AnnotationFormat(
    name="lisa",
    title="LISA: ReasonSeg's folder of X.jpg and X.json, to train with",
    layout=FileLayout(
        annotations=("reason_seg/ReasonSeg/{split}", "ReasonSeg/{split}"),
        images=("reason_seg/ReasonSeg/{split}", "ReasonSeg/{split}", "."),
        inside="*.json",
        notes="each X.jpg has an X.json beside it.",
    ),
    read=read,
    write=write,
    lossy=True,
)
