"""ADE20K, the full set of 2021: objects and their parts, visible and amodal.

A JSON beside each image lists its objects. Each has a PNG: 255 where it is visible, 128 where it is occluded, so
above 0 is amodal. `parts.ispartof` is the id of the object a part belongs to, an empty list for a whole object; parts
may have parts. `depth_ordering_rank` is not read: which end is in front differs from image to image.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from maskwise.errors import FormatError, ImageError, MaskError
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
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.json_files import decode_record, read_json
from maskwise.formats.mask_images import read_mask_image
from maskwise.formats.read_context import ReadContext, locate_image
from maskwise.images import check_relative
from maskwise.masks import Masks

README = "github.com/CSAILVision/ADE20K, README"
OCCLUDED = 128
VISIBLE = 255


class AdeParts(msgspec.Struct, frozen=True):
    """How an object relates to others. An empty list means none (the files were written by MATLAB)."""

    ispartof: int | list[int] = []


class AdeObject(msgspec.Struct, frozen=True):
    """One object or part."""

    id: int
    name: str
    instance_mask: str
    parts: AdeParts = AdeParts()

    @property
    def whole(self) -> str | None:
        """Id of the object this one is a part of."""
        parent = self.parts.ispartof
        if isinstance(parent, list):
            return str(parent[0]) if parent else None
        return str(parent)


class AdeAnnotation(msgspec.Struct, frozen=True):
    """What the JSON says of its image."""

    filename: str
    imsize: list[int]
    object: list[msgspec.Raw]


class AdeFile(msgspec.Struct, frozen=True):
    """A JSON file."""

    annotation: AdeAnnotation


def read(context: ReadContext) -> AnnotatedImages:
    """Images with their objects and parts."""
    files = sorted(context.annotations.rglob("*.json"))
    annotations = (
        annotation for file in files for annotation in _image_annotation(context, file)
    )
    return AnnotatedImages(
        len(files), decode_annotations(annotations, context.diagnostics)
    )


def _image_annotation(context: ReadContext, path: Path) -> Iterator[ImageAnnotation]:
    """The annotation of one file; nothing and a diagnostic if it is invalid."""
    file = path.relative_to(context.annotations).as_posix()
    try:
        annotation = read_json(
            path, AdeFile, encodings=("utf-8", "cp1252", "latin-1")
        ).annotation
    except FormatError as error:
        context.skip(
            "fields of another type", file, expected="AdeFile", found=str(error)
        )
        return
    size = (
        (annotation.imsize[0], annotation.imsize[1])
        if len(annotation.imsize) >= 2
        else (0, 0)
    )
    name = f"{path.relative_to(context.annotations).parent.as_posix()}/{annotation.filename}"
    image = locate_image(context, name, size, id=path.stem, record=file)
    if image is not None:
        regions = tuple(_region_annotations(context, annotation, path, size=size))
        yield ImageAnnotation(image, file, regions)


def _region_annotations(
    context: ReadContext,
    annotation: AdeAnnotation,
    path: Path,
    *,
    size: tuple[int, int],
) -> Iterator[RegionAnnotation]:
    for position, raw in enumerate(annotation.object):
        record = f"object[{position}]"
        item = decode_record(
            raw,
            AdeObject,
            diagnostics=context.diagnostics,
            file=path.name,
            record=record,
        )
        if item is None:
            continue
        try:
            check_relative(item.instance_mask)
            grey = read_mask_image(path.parent / item.instance_mask, size)
        except (MaskError, ImageError) as error:
            context.diagnostics.skip(
                "invalid mask",
                file=path.name,
                record=record,
                expected="a PNG",
                found=str(error),
            )
            continue
        visible, amodal = Masks.from_dense(np.stack([grey == VISIBLE, grey > 0]))
        yield RegionAnnotation(
            str(item.id),
            item.name,
            record,
            visible=visible,
            amodal=amodal,
            part_of=item.whole,
        )


ADE20K = AnnotationFormat(
    name="ade20k",
    title="ADE20K (full, 2021): objects and parts with visible and occluded masks",
    layout=FileLayout(
        annotations=(
            "images/ADE/{split}",
            "ADE20K_2021_17_01/images/ADE/{split}",
        ),
        images=("images/ADE/{split}", "ADE20K_2021_17_01/images/ADE/{split}", "."),
        splits=("training", "validation"),
        notes="beside each NAME.jpg: NAME.json and the folder NAME with one PNG per object.",
    ),
    read=read,
    published=(
        PublishedCount("training", "images", 25_574, README),
        PublishedCount("validation", "images", 2_000, README),
        PublishedCount(None, "regions", 707_868 + 193_238, README),
    ),
    facts={
        "license": "research terms of MIT CSAIL",
        "download": "groups.csail.mit.edu/vision/datasets/ADE20K",
    },
)
