"""COCOA: all regions of an image with amodal masks and depth order; an image may have several annotators.

An entry of `annotations` is one person's annotation of one image. A region's `segmentation` is a single flat polygon
`[x, y, ...]`, its amodal outline. `visible_mask` exists only if the region is occluded; without it the region is fully
visible. `order` is the depth, 1 in front; it may have gaps, and `size` may exceed the number of regions, so positions
in the list are not used. `depth_constraint` ("1-2,1-5": 1 lies over 2) is checked against the orders but not stored.
Regions marked as stuff (`isStuff`: sky, grass) are read like others, or left out with the option `stuff=skip`.

If an image has several annotators, each annotation becomes an image of its own (`image@annotation`) with the same file.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Literal

import msgspec

from maskwise.formats.annotation_format import (
    AnnotatedImages,
    AnnotationFormat,
    PublishedCount,
)
from maskwise.formats.annotations import (
    ImageAnnotation,
    RegionAnnotation,
    decode_annotations,
)
from maskwise.formats.coco import locate_coco_image, read_entries, read_images
from maskwise.formats.coco_file import CocoEntry, read_licenses
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.json_files import read_json
from maskwise.formats.read_context import ReadContext

LOADER = "tests of the COCOA loader shunk031/COCOA"

FULLY_VISIBLE = msgspec.Raw()
"""Stands for a missing `visible_mask`."""


class CocoaFile(msgspec.Struct, frozen=True):
    """A whole file."""

    images: list[msgspec.Raw]
    annotations: list[msgspec.Raw]
    licenses: object = None


class CocoaAnnotation(CocoEntry, frozen=True):
    """One person's annotation of one image."""

    regions: list[msgspec.Raw]
    depth_constraint: str = ""


class CocoaRegion(msgspec.Struct, frozen=True):
    """One region; its amodal outline is one flat polygon."""

    segmentation: list[float]
    name: str
    order: int | None = None
    visible_mask: msgspec.Raw = FULLY_VISIBLE
    isStuff: int | bool = 0


def read(
    context: ReadContext, *, stuff: Literal["keep", "skip"] = "keep"
) -> AnnotatedImages:
    """Annotated images with their regions."""
    file = read_json(context.annotations, CocoaFile)
    annotations = _image_annotations(context, file, with_stuff=stuff == "keep")
    return AnnotatedImages(
        len(file.annotations), decode_annotations(annotations, context.diagnostics)
    )


def _image_annotations(
    context: ReadContext, file: CocoaFile, *, with_stuff: bool
) -> Iterator[ImageAnnotation]:
    images = read_images(context, file.images)
    licenses = read_licenses(file.licenses)
    annotations = list(
        read_entries(context, file.annotations, CocoaAnnotation, images=images)
    )
    annotators = Counter(annotation.image_id for annotation in annotations)
    for annotation in annotations:
        entry = images[annotation.image_id]
        record = f"annotation {annotation.id}"
        # Several people annotated some images: each annotation becomes an image.
        is_only = annotators[entry.id] == 1
        id = str(entry.id) if is_only else f"{entry.id}@{annotation.id}"
        image = locate_coco_image(
            context, entry, id=id, record=record, licenses=licenses
        )
        if image is not None:
            regions = dict(_regions(context, annotation))
            depths = {region.order for region in regions.values()}
            _check_depths(context, annotation, depths)
            region_annotations = (
                _to_region(position, region, record)
                for position, region in regions.items()
                if with_stuff or not region.isStuff
            )
            yield ImageAnnotation(image, context.file, tuple(region_annotations))


def _regions(
    context: ReadContext, annotation: CocoaAnnotation
) -> Iterator[tuple[int, CocoaRegion]]:
    for position, raw in enumerate(annotation.regions):
        record = f"annotation {annotation.id}, regions[{position}]"
        region = context.decode(raw, CocoaRegion, record=record)
        if region is not None:
            yield position, region


def _to_region(position: int, region: CocoaRegion, record: str) -> RegionAnnotation:
    outline = [region.segmentation]
    return RegionAnnotation(
        str(position),
        region.name,
        f"{record}, regions[{position}]",
        visible=outline
        if region.visible_mask is FULLY_VISIBLE
        else region.visible_mask,
        amodal=outline,
        order=region.order,
    )


def _check_depths(
    context: ReadContext, annotation: CocoaAnnotation, orders: set[int | None]
) -> None:
    """Report constraints that are not a pair of orders."""
    for pair in filter(None, annotation.depth_constraint.split(",")):
        match = re.fullmatch(r"\s*(\d{1,9})-(\d{1,9})\s*", pair)
        if match is None or not set(map(int, match.groups())) <= orders:
            record = f"annotation {annotation.id}"
            expected = "two orders of this annotation, as 1-2"
            context.warn(
                "invalid depth constraint", record, expected=expected, found=pair
            )


COCOA = AnnotationFormat(
    name="cocoa",
    title="COCOA: amodal regions of whole scenes with their depth order",
    layout=FileLayout(
        annotations=(
            "annotations/COCO_amodal_{split}2014.json",
            "COCO_amodal_{split}2014.json",
        ),
        images=("{split}2014", "images/{split}2014", "images", "."),
        splits=("train", "val", "test"),
        notes="BSDS_amodal_*.json files have the same format: name the file itself.",
    ),
    read=read,
    published=(
        PublishedCount("train", "images", 2_500, LOADER),
        PublishedCount("val", "images", 1_323, LOADER),
        PublishedCount("test", "images", 1_250, LOADER),
    ),
    facts={
        "license": "none stated by the authors; the copy shunk031/COCOA says CC BY 4.0",
        "download": "github.com/Wakeupbuddy/amodalAPI",
    },
)
