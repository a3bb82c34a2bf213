"""PACO-LVIS: objects and their parts, visible masks.

A part's `obj_ann_id` is the annotation of its object; an object's is its own id. Part categories are called
`object:part`.
"""

import msgspec

from maskwise.formats.coco import Annotation, Id, read_instances
from maskwise.formats.draft import Outline
from maskwise.formats.layout import Layout, Place
from maskwise.formats.source import Published, Reading, Source

README = "github.com/facebookresearch/paco, docs/PACO_DATASET.md"


class PacoInstance(Annotation, frozen=True):
    """An object or a part."""

    segmentation: msgspec.Raw
    obj_ann_id: Id
    iscrowd: int | bool = 0


def read(place: Place) -> Reading:
    """Images with their objects and parts."""
    return read_instances(place, PacoInstance, to_outline)


def to_outline(annotation: PacoInstance, name: str, record: str) -> Outline:
    """An object, or a part that knows its object."""
    part_of = None if annotation.obj_ann_id == annotation.id else str(annotation.obj_ann_id)
    return Outline(
        str(annotation.id),
        name,
        record,
        visible=annotation.segmentation,
        part_of=part_of,
        crowd=bool(annotation.iscrowd),
    )


PACO_LVIS = Source(
    name="paco_lvis",
    title="PACO-LVIS: visible masks of 75 kinds of objects and their parts",
    layout=Layout(
        annotations=("annotations/paco_lvis_v1_{split}.json", "paco_lvis_v1_{split}.json"),
        images=(".", "images", "coco"),
        splits=("train", "val", "test"),
        notes="file names carry their COCO folder, as in train2017/000000000009.jpg.",
    ),
    read=read,
    published=(
        Published("train", "images", 45_790, README),
        Published("train", "regions", 217_117 + 395_071, README),
        Published("val", "images", 2_410, README),
        Published("val", "regions", 10_794 + 20_945, README),
        Published("test", "images", 9_443, README),
        Published("test", "regions", 45_861 + 86_041, README),
    ),
    facts={"licence": "CC BY 4.0; COCO photos under their own Flickr licences", "download": README},
)
