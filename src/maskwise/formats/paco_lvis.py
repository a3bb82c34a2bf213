"""PACO-LVIS: objects and their parts, visible masks.

A part's `obj_ann_id` is the annotation of its object; for an object it is its own id. Part categories are called
`object:part`.
"""

import msgspec

from maskwise.formats.annotation_format import (
    AnnotatedImages,
    AnnotationFormat,
    PublishedCount,
)
from maskwise.formats.annotations import RegionAnnotation
from maskwise.formats.coco import read_instances
from maskwise.formats.coco_file import CocoAnnotation, Id
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.read_context import ReadContext

README = "github.com/facebookresearch/paco, docs/PACO_DATASET.md"


class PacoInstance(CocoAnnotation, frozen=True):
    """An object or a part."""

    segmentation: msgspec.Raw
    obj_ann_id: Id
    iscrowd: int | bool = 0


def read(context: ReadContext) -> AnnotatedImages:
    """Images with their objects and parts."""
    return read_instances(context, PacoInstance, to_region)


def to_region(annotation: PacoInstance, name: str, record: str) -> RegionAnnotation:
    """An object, or a part with the id of its object."""
    part_of = (
        None if annotation.obj_ann_id == annotation.id else str(annotation.obj_ann_id)
    )
    return RegionAnnotation(
        str(annotation.id),
        name,
        record,
        visible=annotation.segmentation,
        part_of=part_of,
        crowd=bool(annotation.iscrowd),
    )


PACO_LVIS = AnnotationFormat(
    name="paco_lvis",
    title="PACO-LVIS: visible masks of 75 kinds of objects and their parts",
    layout=FileLayout(
        annotations=(
            "annotations/paco_lvis_v1_{split}.json",
            "paco_lvis_v1_{split}.json",
        ),
        images=(".", "images", "coco"),
        splits=("train", "val", "test"),
        notes="file names carry their COCO folder, as in train2017/000000000009.jpg.",
    ),
    read=read,
    published=(
        PublishedCount("train", "images", 45_790, README),
        PublishedCount("train", "regions", 217_117 + 395_071, README),
        PublishedCount("val", "images", 2_410, README),
        PublishedCount("val", "regions", 10_794 + 20_945, README),
        PublishedCount("test", "images", 9_443, README),
        PublishedCount("test", "regions", 45_861 + 86_041, README),
    ),
    facts={
        "license": "CC BY 4.0; COCO photos under their own Flickr licenses",
        "download": README,
    },
)
