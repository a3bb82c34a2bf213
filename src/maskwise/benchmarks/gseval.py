"""GSEval: captions about stuff, parts, single and several objects of COCO photos, from GroundingSuite.

One JSON line per question: `idx`, `image_path`, `class_id`, `label`, `caption`, `box` and `segmentation` (RLE). The
question is the caption; 58 pairs of image and caption occur twice. The box is not that of the mask (more than 5 pixels
off in 1,131 of 3,715 rows), so it is not read.
"""

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from maskwise.benchmarks.benchmark import Benchmark
from maskwise.formats.annotation_format import AnnotatedImages, PublishedCount
from maskwise.formats.annotations import (
    ImageAnnotation,
    QuestionAnnotation,
    RegionAnnotation,
    decode_annotations,
)
from maskwise.formats.coco_file import Id
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.json_files import read_text
from maskwise.formats.read_context import ReadContext, locate_image
from maskwise.formats.segmentations import CocoRle

CLASSES = {1: "stuff", 2: "part", 3: "multi", 4: "single"}
"""Inferred from the rows: the file has only the numbers."""

COUNTED = "counted in GroundingSuite-Eval.jsonl; the README says 3,800"


class GsevalRow(msgspec.Struct, frozen=True):
    """One line."""

    idx: Id
    image_path: str
    class_id: int
    label: str
    caption: str
    segmentation: CocoRle


def read(context: ReadContext) -> AnnotatedImages:
    """Images with their captions."""
    by_image: dict[str, list[GsevalRow]] = defaultdict(list)
    for number, line in enumerate(read_text(context.annotations).splitlines(), 1):
        if not line.strip():
            continue
        row = context.decode(line, GsevalRow, record=f"line {number}")
        if row is not None:
            by_image[row.image_path].append(row)
    annotations = _image_annotations(context, by_image)
    return AnnotatedImages(
        len(by_image), decode_annotations(annotations, context.diagnostics)
    )


def _image_annotations(
    context: ReadContext, by_image: dict[str, list[GsevalRow]]
) -> Iterator[ImageAnnotation]:
    for path, rows in by_image.items():
        image = locate_image(
            context, path, rows[0].segmentation.size, id=path, record=f"image {path}"
        )
        if image is None:
            continue
        regions = tuple(
            RegionAnnotation(
                str(row.idx),
                row.label,
                f"idx {row.idx}",
                visible=msgspec.structs.asdict(row.segmentation),
            )
            for row in rows
        )
        questions = tuple(
            QuestionAnnotation(
                str(row.idx),
                row.caption,
                f"idx {row.idx}",
                targets=(str(row.idx),),
                tags={
                    "split": context.split,
                    "class": CLASSES.get(row.class_id, str(row.class_id)),
                },
            )
            for row in rows
        )
        yield ImageAnnotation(image, context.file, regions, questions)


GSEVAL = Benchmark(
    name="gseval",
    title="GSEval: captions about stuff, parts and objects (GroundingSuite, 2025)",
    protocol="gseval",
    layout=FileLayout(
        annotations=("GroundingSuite-Eval.jsonl",),
        images=(".", "coco", "images"),
        splits=("test",),
        notes="photos are those of COCO, in unlabeled2017.",
    ),
    read=read,
    published=(
        PublishedCount("test", "questions", 3_715, COUNTED),
        PublishedCount("test", "images", 2_727, COUNTED),
    ),
    facts={
        "license": "Apache-2.0; COCO photos under their own Flickr licenses",
        "download": "huggingface.co: hustvl/GSEval",
        "paper": "Hu et al., GroundingSuite, 2025",
    },
)
