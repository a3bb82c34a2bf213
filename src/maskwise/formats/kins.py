"""KINS: traffic scenes of KITTI, amodal, in the fields of 2019 or of 2020.

2019: `segmentation` amodal, `inmodal_seg` visible. 2020: `a_segm`, `i_segm`, and the order within a cluster of
touching objects, `ico_id` in cluster `oco_id`: it begins at 1 in front; 0 means that the object touches no other.
"""

import msgspec

from maskwise.formats.coco import Annotation, read_instances
from maskwise.formats.draft import Outline
from maskwise.formats.layout import Layout, Place
from maskwise.formats.source import Published, Reading, Source

MISSING = msgspec.Raw()


class KinsInstance(Annotation, frozen=True):
    """An object in either set of fields."""

    segmentation: msgspec.Raw = MISSING
    inmodal_seg: msgspec.Raw = MISSING
    a_segm: msgspec.Raw = MISSING
    i_segm: msgspec.Raw = MISSING
    ico_id: int = 0
    iscrowd: int | bool = 0


def read(place: Place) -> Reading:
    """Images with their objects, visible and amodal."""
    return read_instances(place, KinsInstance, to_outline)


def to_outline(annotation: KinsInstance, name: str, record: str) -> Outline:
    """An object with both masks; a mask that neither set of fields tells is malformed, never made up."""
    newer = annotation.a_segm is not MISSING or annotation.i_segm is not MISSING
    return Outline(
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

KINS = Source(
    name="kins",
    title="KINS: visible and amodal masks of traffic scenes (KITTI), fields of 2019 or 2020",
    layout=Layout(
        annotations=(
            "annotations/update_{split}_2020.json",
            "update_{split}_2020.json",
            "annotations/instances_{split}.json",
            "instances_{split}.json",
        ),
        images={"train": _KITTI_TRAINING, "val": _KITTI_TESTING, "test": _KITTI_TESTING},
        splits=("train", "val", "test"),
        notes="train is KITTI's training folder; val (2019) and test (2020) are its testing folder.",
    ),
    read=read,
    published=(
        Published(None, "images", 14_991, "MUVA paper, Table 1"),
        Published(None, "regions", 190_626, "MUVA paper, Table 1"),
    ),
    facts={
        "licence": "none stated for the annotations; KITTI images CC BY-NC-SA 3.0",
        "download": "github.com/qqlu/Amodal-Instance-Segmentation-through-KINS-Dataset",
    },
)
