"""Sa2VA's own training data: `annotations.json` and the folder `images`.

The JSON is a list of images: `image`, `mask` (per object a list of polygons `[x, y, ...]`) and `text` (per object an
expression). Sa2VA draws the polygons with pycocotools. An expression without text makes its loader fail, so questions
without target or text are not written. Polygons run along pixel edges and go around holes, so masks are read back
exactly.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from maskwise.formats.annotation_format import AnnotatedImages, AnnotationFormat
from maskwise.formats.annotations import (
    ImageAnnotation,
    QuestionAnnotation,
    RegionAnnotation,
    decode_annotations,
)
from maskwise.formats.coco_export import write_json
from maskwise.formats.exported_dataset import export_images, write_image
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.json_files import read_json
from maskwise.formats.read_context import ReadContext, locate_image
from maskwise.formats.written_losses import Losses, merge_masks, requested_masks
from maskwise.store import Dataset


class Sa2vaImage(msgspec.Struct, frozen=True):
    """An image with its objects."""

    image: str
    mask: list[list[list[float]]]
    text: list[str]


def write(dataset: Dataset, folder: Path, *, with_images: bool) -> dict[str, int]:
    """Write `annotations.json` and `images`: per image one object for every question, the union of its targets."""
    losses = Losses("masks")
    entries: list[dict[str, Any]] = []
    for file_name, exported in export_images(dataset, with_images=with_images):
        losses.note_image(exported)
        write_image(folder / "images" / file_name, exported.data)
        masks = []
        texts = []
        for sample in exported.samples:
            losses.note_sample(sample)
            targets = requested_masks(sample)
            if not targets or not sample.question.strip():
                losses.note("questions left out: no target or no text")
                continue
            masks.append(merge_masks(targets).to_polygons())
            texts.append(sample.question)
        if texts:
            entries.append({"image": file_name, "mask": masks, "text": texts})
    write_json(folder / "annotations.json", entries)
    return dict(losses.counts)


def read(context: ReadContext) -> AnnotatedImages:
    """Images with an expression per object."""
    records = read_json(context.annotations, list[msgspec.Raw])
    annotations = _image_annotations(context, records)
    return AnnotatedImages(
        len(records), decode_annotations(annotations, context.diagnostics)
    )


def _image_annotations(
    context: ReadContext, records: list[msgspec.Raw]
) -> Iterator[ImageAnnotation]:
    for position, raw in enumerate(records):
        record = f"[{position}]"
        entry = context.decode(raw, Sa2vaImage, record=record)
        if entry is None:
            continue
        if len(entry.mask) != len(entry.text):
            context.skip(
                "masks do not fit the texts",
                record,
                expected="one per text",
                found=f"{len(entry.mask)} masks, {len(entry.text)} texts",
            )
            continue
        # The file has no sizes, so the image tells.
        image = locate_image(
            context, entry.image, None, id=f"{position}-{entry.image}", record=record
        )
        if image is None:
            continue
        regions = tuple(
            RegionAnnotation(
                str(number), "target", f"{record}, mask[{number}]", visible=polygons
            )
            for number, polygons in enumerate(entry.mask)
        )
        questions = tuple(
            QuestionAnnotation(
                f"{position}/{number}",
                text,
                f"{record}, text[{number}]",
                targets=(str(number),),
            )
            for number, text in enumerate(entry.text)
        )
        yield ImageAnnotation(image, context.file, regions, questions)


SA2VA = AnnotationFormat(
    name="sa2va",
    title="Sa2VA: annotations.json of polygons and expressions, to train with",
    layout=FileLayout(annotations=("annotations.json",), images=("images", ".")),
    read=read,
    write=write,
    lossy=True,
)
