"""COCOA: every region of a scene with its amodal outline and its depth; several people may annotate one image.

An entry of `annotations` is one person's view of one image. A region's `segmentation` is a single flat polygon
`[x, y, ...]`, its amodal outline. `visible_mask` is there only where the region is occluded; without it the region is
fully visible. `order` is the depth, 1 in front; it may have gaps and `size` may exceed the number of regions, so
nothing here goes by position. `depth_constraint` ("1-2,1-5": 1 lies over 2) is checked against the orders; pairs are
not kept.

Where one image has several annotators, each becomes an image of its own (`image@annotation`) with the same file.
"""

import re
from collections import Counter
from collections.abc import Iterator

import msgspec

from maskwise.formats.coco import Entry, read_entries, read_images
from maskwise.formats.draft import Draft, Outline, finish
from maskwise.formats.layout import Layout, Place, locate_image
from maskwise.formats.records import decode_record, read_json
from maskwise.formats.source import Published, Reading, Source

LOADER = "tests of the COCOA loader shunk031/COCOA"

FULLY_VISIBLE = msgspec.Raw()
"""Stands for a `visible_mask` that is not there."""


class CocoaFile(msgspec.Struct, frozen=True):
    """A whole file."""

    images: list[msgspec.Raw]
    annotations: list[msgspec.Raw]


class CocoaAnnotation(Entry, frozen=True):
    """One person's view of one image."""

    regions: list[msgspec.Raw]
    depth_constraint: str = ""


class CocoaRegion(msgspec.Struct, frozen=True):
    """One region; its outline is one flat polygon."""

    segmentation: list[float]
    name: str
    order: int | None = None
    visible_mask: msgspec.Raw = FULLY_VISIBLE


def read(place: Place) -> Reading:
    """Annotated images with their regions."""
    file = read_json(place.annotations, CocoaFile)
    return Reading(len(file.annotations), finish(_drafts(place, file), place.problems))


def _drafts(place: Place, file: CocoaFile) -> Iterator[Draft]:
    images = read_images(place, file.images)
    annotations = list(read_entries(place, file.annotations, CocoaAnnotation, images=images))
    annotators = Counter(annotation.image_id for annotation in annotations)
    for annotation in annotations:
        entry, record = images[annotation.image_id], f"annotation {annotation.id}"
        id = str(entry.id) if annotators[entry.id] == 1 else f"{entry.id}@{annotation.id}"
        image = locate_image(place, entry.name, (entry.height, entry.width), id=id, record=record)
        if image is not None:
            regions = dict(_regions(place, annotation))
            _check_depths(place, annotation, {region.order for region in regions.values()})
            outlines = (_to_outline(position, region, record) for position, region in regions.items())
            yield Draft(image, place.file, tuple(outlines))


def _regions(place: Place, annotation: CocoaAnnotation) -> Iterator[tuple[int, CocoaRegion]]:
    for position, raw in enumerate(annotation.regions):
        record = f"annotation {annotation.id}, regions[{position}]"
        region = decode_record(raw, CocoaRegion, problems=place.problems, file=place.file, record=record)
        if region is not None:
            yield position, region


def _to_outline(position: int, region: CocoaRegion, record: str) -> Outline:
    outline = [region.segmentation]
    return Outline(
        str(position),
        region.name,
        f"{record}, regions[{position}]",
        visible=outline if region.visible_mask is FULLY_VISIBLE else region.visible_mask,
        amodal=outline,
        order=region.order,
    )


def _check_depths(place: Place, annotation: CocoaAnnotation, orders: set[int | None]) -> None:
    """Report a constraint that is no pair of orders."""
    for pair in filter(None, annotation.depth_constraint.split(",")):
        match = re.fullmatch(r"\s*(\d{1,9})-(\d{1,9})\s*", pair)
        if match is None or not set(map(int, match.groups())) <= orders:
            record, expected = f"annotation {annotation.id}", "two orders of this annotation, as 1-2"
            place.keep("odd depth constraint", record, expected=expected, found=pair)


COCOA = Source(
    name="cocoa",
    title="COCOA: amodal regions of whole scenes with their depth order",
    layout=Layout(
        annotations=("annotations/COCO_amodal_{split}2014.json", "COCO_amodal_{split}2014.json"),
        images=("{split}2014", "images/{split}2014", "images", "."),
        splits=("train", "val", "test"),
        notes="BSDS_amodal_*.json files have the same format: name the file itself.",
    ),
    read=read,
    published=(
        Published("train", "images", 2_500, LOADER),
        Published("val", "images", 1_323, LOADER),
        Published("test", "images", 1_250, LOADER),
    ),
    facts={
        "licence": "none stated by the authors; the copy shunk031/COCOA says CC BY 4.0",
        "download": "github.com/Wakeupbuddy/amodalAPI",
    },
)
