"""COCOA-cls: the objects of COCOA with COCO's 80 classes, one annotation per object.

`segmentation` is the amodal mask and `visible_mask` the visible one, both as RLE; `bbox` is amodal. An annotation whose
`visible_mask` is not a mask is skipped with a diagnostic; some loaders silently use the amodal polygons instead.
"""

import msgspec

from maskwise.formats.annotation_format import (
    AnnotatedImages,
    AnnotationFormat,
    PublishedCount,
)
from maskwise.formats.annotations import RegionAnnotation
from maskwise.formats.coco import read_instances
from maskwise.formats.coco_file import CocoAnnotation
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.read_context import ReadContext


class AmodalInstance(CocoAnnotation, frozen=True):
    """An object of COCOA-cls or D2SA. Both masks are required."""

    segmentation: msgspec.Raw
    visible_mask: msgspec.Raw
    iscrowd: int | bool = 0


def read(context: ReadContext) -> AnnotatedImages:
    """Images with their objects, visible and amodal."""
    return read_instances(context, AmodalInstance, to_region)


def to_region(annotation: AmodalInstance, name: str, record: str) -> RegionAnnotation:
    """An object with both masks."""
    return RegionAnnotation(
        str(annotation.id),
        name,
        record,
        visible=annotation.visible_mask,
        amodal=annotation.segmentation,
        crowd=bool(annotation.iscrowd),
    )


COCOA_CLS = AnnotationFormat(
    name="cocoa_cls",
    title="COCOA-cls: visible and amodal masks of 80 COCO classes",
    layout=FileLayout(
        annotations=(
            "annotations/COCO_amodal_{split}2014_with_classes.json",
            "COCOA_annotations_detectron/COCO_amodal_{split}2014_with_classes.json",
            "COCO_amodal_{split}2014_with_classes.json",
        ),
        images=("{split}2014", "images/{split}2014", "images", "."),
        splits=("train", "val"),
    ),
    read=read,
    published=(
        PublishedCount(None, "images", 3_501, "Bayesian-Amodal and C2F-Seg loaders"),
        PublishedCount(None, "regions", 10_562, "Bayesian-Amodal and C2F-Seg loaders"),
    ),
    facts={
        "license": "none stated by the authors; COCO photos under their own Flickr licenses",
        "download": "github.com/YihongSun/Bayesian-Amodal links the annotations",
    },
)
