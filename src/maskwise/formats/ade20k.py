"""ADE20K, the full set of 2021: objects and their parts, visible and amodal.

A JSON beside each image lists its objects. Each has a PNG: 255 where it is visible, 128 where it is occluded, so
above 0 is amodal. `parts.ispartof` is the id of the object a part belongs to, an empty list for a whole object; parts
may have parts. `depth_ordering_rank` is not read: which end is in front differs from image to image.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from maskwise.errors import ImageError, MaskError, SourceError
from maskwise.formats.draft import Draft, Outline, finish
from maskwise.formats.layout import Layout, Place, locate_image
from maskwise.formats.rasters import read_raster
from maskwise.formats.records import decode_record, read_json
from maskwise.formats.source import Published, Reading, Source
from maskwise.images import check_relative
from maskwise.masks import Masks

README = "github.com/CSAILVision/ADE20K, README"
OCCLUDED, VISIBLE = 128, 255


class Parts(msgspec.Struct, frozen=True):
    """How an object relates to others. MATLAB wrote an empty list for "none"."""

    ispartof: int | list[int] = []


class AdeObject(msgspec.Struct, frozen=True):
    """One object or part."""

    id: int
    name: str
    instance_mask: str
    parts: Parts = Parts()

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


def read(place: Place) -> Reading:
    """Images with their objects and parts."""
    files = sorted(place.annotations.rglob("*.json"))
    drafts = (draft for file in files for draft in _draft(place, file))
    return Reading(len(files), finish(drafts, place.problems))


def _draft(place: Place, path: Path) -> Iterator[Draft]:
    """The draft of one file, or none and a problem."""
    file = path.relative_to(place.annotations).as_posix()
    try:
        annotation = read_json(path, AdeFile, encodings=("utf-8", "cp1252", "latin-1")).annotation
    except SourceError as error:
        place.skip("fields of another type", file, expected="AdeFile", found=str(error))
        return
    size = (annotation.imsize[0], annotation.imsize[1]) if len(annotation.imsize) >= 2 else (0, 0)
    name = f"{path.relative_to(place.annotations).parent.as_posix()}/{annotation.filename}"
    image = locate_image(place, name, size, id=path.stem, record=file)
    if image is not None:
        outlines = tuple(_outlines(place, annotation, path, size=size))
        yield Draft(image, file, outlines)


def _outlines(
    place: Place, annotation: AdeAnnotation, path: Path, *, size: tuple[int, int]
) -> Iterator[Outline]:
    for position, raw in enumerate(annotation.object):
        record = f"object[{position}]"
        item = decode_record(raw, AdeObject, problems=place.problems, file=path.name, record=record)
        if item is None:
            continue
        try:
            check_relative(item.instance_mask)
            grey = read_raster(path.parent / item.instance_mask, size)
        except (MaskError, ImageError) as error:
            place.problems.skip(
                "mask that is none", file=path.name, record=record, expected="a PNG", found=str(error)
            )
            continue
        visible, amodal = Masks.from_dense(np.stack([grey == VISIBLE, grey > 0]))
        yield Outline(str(item.id), item.name, record, visible=visible, amodal=amodal, part_of=item.whole)


ADE20K = Source(
    name="ade20k",
    title="ADE20K (full, 2021): objects and parts with visible and occluded masks",
    layout=Layout(
        annotations=(
            "images/ADE/{split}",
            "ADE20K_2021_17_01/images/ADE/{split}",
        ),
        images=("images/ADE/{split}", "ADE20K_2021_17_01/images/ADE/{split}", "."),
        splits=("training", "validation"),
        notes="beside each NAME.jpg: NAME.json and the folder NAME with one PNG an object.",
    ),
    read=read,
    published=(
        Published("training", "images", 25_574, README),
        Published("validation", "images", 2_000, README),
        Published(None, "regions", 707_868 + 193_238, README),
    ),
    facts={
        "licence": "research terms of MIT CSAIL",
        "download": "groups.csail.mit.edu/vision/datasets/ADE20K",
    },
)
