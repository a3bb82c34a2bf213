"""KINS: amodal masks of KITTI traffic scenes, in the fields of 2019 or of 2020.

2019: `segmentation` amodal, `inmodal_seg` visible. 2020: `a_segm`, `i_segm`, and the order within a cluster of
touching objects, `ico_id` in cluster `oco_id`: 1 is in front; 0 means that the object touches no other.
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

MISSING = msgspec.Raw()


class KinsInstance(CocoAnnotation, frozen=True):
    """An object in either set of fields."""

    segmentation: msgspec.Raw = MISSING
    inmodal_seg: msgspec.Raw = MISSING
    a_segm: msgspec.Raw = MISSING
    i_segm: msgspec.Raw = MISSING
    ico_id: int = 0
    iscrowd: int | bool = 0


def read(context: ReadContext) -> AnnotatedImages:
    """Images with their objects, visible and amodal."""
    return read_instances(context, KinsInstance, to_region)


def to_region(annotation: KinsInstance, name: str, record: str) -> RegionAnnotation:
    """An object with both masks; a mask that is missing in both sets of fields is invalid."""
    newer = annotation.a_segm is not MISSING or annotation.i_segm is not MISSING
    return RegionAnnotation(
        str(annotation.id),
        name,
        record,
        visible=annotation.i_segm if newer else annotation.inmodal_seg,
        amodal=annotation.a_segm if newer else annotation.segmentation,
        order=annotation.ico_id or None,
        crowd=bool(annotation.iscrowd),
    )


_KITTI_TRAINING = ("training/image_2", "train_imgs", "images/train", "image_2", ".")
_KITTI_TESTING = ("testing/image_2", "test_imgs", "images/test", "image_2", ".")

KINS = AnnotationFormat(
    name="kins",
    title="KINS: visible and amodal masks of traffic scenes (KITTI), fields of 2019 or 2020",
    layout=FileLayout(
        annotations=(
            "annotations/update_{split}_2020.json",
            "update_{split}_2020.json",
            "annotations/instances_{split}.json",
            "instances_{split}.json",
        ),
        images={
            "train": _KITTI_TRAINING,
            "val": _KITTI_TESTING,
            "test": _KITTI_TESTING,
        },
        splits=("train", "val", "test"),
        notes="train is KITTI's training folder; val (2019) and test (2020) are its testing folder.",
    ),
    read=read,
    published=(
        PublishedCount(None, "images", 14_991, "MUVA paper, Table 1"),
        PublishedCount(None, "regions", 190_626, "MUVA paper, Table 1"),
    ),
    facts={
        "license": "none stated for the annotations; KITTI images CC BY-NC-SA 3.0",
        "download": "github.com/qqlu/Amodal-CocoInstance-Segmentation-through-KINS-Dataset",
    },
)
