"""COCOA-cls: COCOA's things with COCO's 80 classes, one annotation an object.

`segmentation` is the amodal mask, `visible_mask` the visible one, both run lengths; `bbox` is amodal. An annotation
whose `visible_mask` is not a mask is a problem: some loaders read the amodal polygons in its place.
"""

import msgspec

from maskwise.formats.coco import Annotation, read_instances
from maskwise.formats.draft import Outline
from maskwise.formats.layout import Layout, Place
from maskwise.formats.source import Published, Reading, Source


class AmodalInstance(Annotation, frozen=True):
    """An object of COCOA-cls or D2SA. Both masks are always there."""

    segmentation: msgspec.Raw
    visible_mask: msgspec.Raw
    iscrowd: int | bool = 0


def read(place: Place) -> Reading:
    """Images with their objects, visible and amodal."""
    return read_instances(place, AmodalInstance, to_outline)


def to_outline(annotation: AmodalInstance, name: str, record: str) -> Outline:
    """An object with both masks."""
    return Outline(
        str(annotation.id),
        name,
        record,
        visible=annotation.visible_mask,
        amodal=annotation.segmentation,
        crowd=bool(annotation.iscrowd),
    )


COCOA_CLS = Source(
    name="cocoa_cls",
    title="COCOA-cls: visible and amodal masks of 80 COCO classes",
    layout=Layout(
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
        Published(None, "images", 3_501, "Bayesian-Amodal and C2F-Seg loaders"),
        Published(None, "regions", 10_562, "Bayesian-Amodal and C2F-Seg loaders"),
    ),
    facts={
        "licence": "none stated by the authors; COCO photos under their own Flickr licences",
        "download": "github.com/YihongSun/Bayesian-Amodal links the annotations",
    },
)
