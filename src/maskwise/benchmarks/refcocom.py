"""RefCOCOm: expressions about objects and parts of COCO train2014 images, from the MRES paper, as MMR evaluates them.

A file is a list of segments: `img_name`, `segment_id` and `sentences`; the mask is `masks/SEGMENT_ID.png`, in which
only the value 255 is foreground (MMR divides grey values by 255 and truncates). One sample per sentence, stripped and
in lower case as there.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import msgspec

from maskwise.benchmarks.benchmark import Benchmark
from maskwise.errors import FormatError, ImageError, MaskError
from maskwise.formats.annotation_format import AnnotatedImages
from maskwise.formats.annotations import (
    ImageAnnotation,
    QuestionAnnotation,
    RegionAnnotation,
    decode_annotations,
)
from maskwise.formats.coco_file import Id
from maskwise.formats.file_layout import FileLayout, Size
from maskwise.formats.json_files import read_json
from maskwise.formats.mask_images import read_mask_image
from maskwise.formats.read_context import ReadContext, locate_image
from maskwise.images import check_relative
from maskwise.masks import Mask

FOREGROUND = 255
MASK_FOLDERS = ("masks", "../masks", "../../Refcocom/masks")
"""Where masks are looked for, relative to the annotation file. MMR spells the two folders differently."""


class RefCocomSentence(msgspec.Struct, frozen=True):
    """One expression."""

    sent: str


class RefCocomSegment(msgspec.Struct, frozen=True):
    """One object or part and the expressions that refer to it."""

    img_name: str
    segment_id: Id
    sentences: list[RefCocomSentence]
    cat: str | int = ""


def read(context: ReadContext) -> AnnotatedImages:
    """Images with their expressions."""
    folders = [context.annotations.parent / folder for folder in MASK_FOLDERS]
    masks = next((folder for folder in folders if folder.is_dir()), None)
    if masks is None:
        raise FormatError(
            f"{context.annotations}: no folder of masks; looked for {', '.join(map(str, folders))}"
        )
    by_image: dict[str, list[RefCocomSegment]] = defaultdict(list)
    for position, raw in enumerate(read_json(context.annotations, list[msgspec.Raw])):
        name = f"[{position}]"
        segment = context.decode(raw, RefCocomSegment, record=name)
        if segment is not None:
            by_image[segment.img_name].append(segment)
    return AnnotatedImages(
        len(by_image),
        decode_annotations(
            _image_annotations(context, by_image, masks), context.diagnostics
        ),
    )


def _image_annotations(
    context: ReadContext, by_image: dict[str, list[RefCocomSegment]], masks: Path
) -> Iterator[ImageAnnotation]:
    for name, segments in by_image.items():
        image = locate_image(
            context,
            name,
            None,
            id=PurePosixPath(name).stem or name,
            record=f"image {name}",
        )
        if image is not None:
            size = (image.height, image.width)
            regions = tuple(_region_annotations(context, segments, masks, size=size))
            yield ImageAnnotation(
                image, context.file, regions, tuple(_questions(context, segments))
            )


def _region_annotations(
    context: ReadContext, segments: list[RefCocomSegment], masks: Path, *, size: Size
) -> Iterator[RegionAnnotation]:
    for segment in segments:
        id = str(segment.segment_id)
        record = f"segment {segment.segment_id}"
        try:
            check_relative(f"{id}.png")
            mask = Mask.from_dense(
                read_mask_image(masks / f"{id}.png", size) == FOREGROUND
            )
        except (MaskError, ImageError) as error:
            context.skip("invalid mask", record, expected=f"{id}.png", found=str(error))
            continue
        yield RegionAnnotation(id, str(segment.cat), record, visible=mask)


def _questions(
    context: ReadContext, segments: list[RefCocomSegment]
) -> Iterator[QuestionAnnotation]:
    tags = {"split": context.split, "source": "coco"}
    for segment in segments:
        for number, sentence in enumerate(segment.sentences):
            id = f"{segment.segment_id}/{number}"
            record = f"segment {segment.segment_id}, sentences[{number}]"
            yield QuestionAnnotation(
                id,
                sentence.sent.strip().lower(),
                record,
                targets=(str(segment.segment_id),),
                tags=tags,
            )


REFCOCOM = Benchmark(
    name="refcocom",
    title="RefCOCOm: referring expressions for objects and parts (MRES, CVPR 2024)",
    protocol="mmr",
    layout=FileLayout(
        annotations=(
            "refer_seg/RefCOCOm/annotations/{split}.json",
            "RefCOCOm/annotations/{split}.json",
            "annotations/{split}.json",
        ),
        images=(
            "refer_seg/images/mscoco/images/train2014",
            "images/mscoco/images/train2014",
            "images/train2014",
            "train2014",
            "images",
            ".",
        ),
        notes="the folder masks is beside the folder annotations; every file name there is a split.",
    ),
    read=read,
    facts={
        "license": "none stated for the annotations; COCO photos under their own Flickr licenses",
        "download": "github.com/Rubics-Xuan/MRES",
        "paper": "Wang et al., CVPR 2024",
    },
)
