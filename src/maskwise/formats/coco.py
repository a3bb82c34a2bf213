"""COCO and LVIS instances: one annotation an object, its visible mask as polygons or run lengths.

The same file format carries the amodal sets; their readers differ in the fields of an annotation only and use
`read_instances` too.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Annotated, TypeVar

import msgspec

from maskwise.formats.draft import Draft, Outline, finish
from maskwise.formats.layout import Layout, Place, locate_image
from maskwise.formats.records import decode_record, read_json
from maskwise.formats.source import Published, Reading, Source

Id = int | Annotated[str, msgspec.Meta(min_length=1)]


class CocoImage(msgspec.Struct, frozen=True):
    """An entry of `images`. LVIS v1 gives only the address, from which the file's name follows."""

    id: Id
    width: int
    height: int
    file_name: str | None = None
    coco_url: str | None = None

    @property
    def name(self) -> str:
        """The image's file name."""
        return self.file_name or "/".join(PurePosixPath(self.coco_url or "").parts[-2:])


class Category(msgspec.Struct, frozen=True):
    """An entry of `categories`."""

    id: Id
    name: str


class Entry(msgspec.Struct, frozen=True):
    """What all entries of `annotations` have."""

    id: Id
    image_id: Id


class Annotation(Entry, frozen=True):
    """An annotation of one object."""

    category_id: Id


class Instance(Annotation, frozen=True):
    """An object of COCO or LVIS."""

    segmentation: msgspec.Raw
    iscrowd: int | bool = 0


class Instances(msgspec.Struct, frozen=True):
    """A whole file; its records stay bytes until their turn comes."""

    images: list[msgspec.Raw]
    annotations: list[msgspec.Raw]
    categories: list[Category] = []


E = TypeVar("E", bound=Entry)
A = TypeVar("A", bound=Annotation)


def read(place: Place) -> Reading:
    """Images with their objects."""
    return read_instances(place, Instance, to_outline)


def to_outline(annotation: Instance, name: str, record: str) -> Outline:
    """An object with its visible mask."""
    return Outline(
        str(annotation.id), name, record, visible=annotation.segmentation, crowd=bool(annotation.iscrowd)
    )


def read_instances(place: Place, kind: type[A], to_outline: Callable[[A, str, str], Outline]) -> Reading:
    """Read a file of `images`, `annotations` of the given kind and `categories`.

    to_outline(annotation, category name, record) gives the region.
    """
    return to_reading(place, read_json(place.annotations, Instances), kind, to_outline=to_outline)


def to_reading(
    place: Place, file: Instances, kind: type[A], *, to_outline: Callable[[A, str, str], Outline]
) -> Reading:
    """As `read_instances`, of a file read before."""
    drafts = _drafts(place, file, kind, to_outline=to_outline)
    return Reading(len(file.images), finish(drafts, place.problems))


def read_images(place: Place, records: list[msgspec.Raw]) -> dict[Id, CocoImage]:
    """The images by id; a second one of an id is skipped."""
    images: dict[Id, CocoImage] = {}
    for position, raw in enumerate(records):
        record = f"images[{position}]"
        image = decode_record(raw, CocoImage, problems=place.problems, file=place.file, record=record)
        if image is not None and image.id in images:
            place.skip("duplicate image id", record, expected="one", found=image.id)
        elif image is not None:
            images[image.id] = image
    return images


def read_entries(
    place: Place, records: list[msgspec.Raw], kind: type[E], *, images: dict[Id, CocoImage]
) -> Iterator[E]:
    """The annotations; those of an unknown image, and a second one of an id, are skipped."""
    seen: set[Id] = set()
    for position, raw in enumerate(records):
        record = f"annotations[{position}]"
        entry = decode_record(raw, kind, problems=place.problems, file=place.file, record=record)
        if entry is None:
            continue
        if entry.image_id not in images:
            place.skip(
                "annotation of an unknown image", record, expected="one of images", found=entry.image_id
            )
        elif entry.id in seen:
            place.skip("duplicate annotation id", record, expected="one", found=entry.id)
        else:
            seen.add(entry.id)
            yield entry


def _drafts(
    place: Place, file: Instances, kind: type[A], *, to_outline: Callable[[A, str, str], Outline]
) -> Iterator[Draft]:
    names = {category.id: category.name for category in file.categories}
    images = read_images(place, file.images)
    annotations: dict[Id, list[A]] = defaultdict(list)
    for annotation in read_entries(place, file.annotations, kind, images=images):
        annotations[annotation.image_id].append(annotation)
    for entry in images.values():
        size = (entry.height, entry.width)
        image = locate_image(place, entry.name, size, id=str(entry.id), record=f"image {entry.id}")
        if image is not None:
            outlines = (
                to_outline(annotation, _name(place, annotation, names), f"annotation {annotation.id}")
                for annotation in annotations[entry.id]
            )
            yield Draft(image, place.file, tuple(outlines))


def _name(place: Place, annotation: Annotation, names: dict[Id, str]) -> str:
    if annotation.category_id not in names:
        record, found = f"annotation {annotation.id}", annotation.category_id
        place.keep("unknown category", record, expected="an id of categories", found=found)
    return names.get(annotation.category_id, "")


COCO = Source(
    name="coco",
    title="COCO and LVIS instances: visible masks",
    layout=Layout(
        annotations=(
            "annotations/instances_{split}.json",
            "instances_{split}.json",
            "annotations/lvis_v1_{split}.json",
            "lvis_v1_{split}.json",
            "lvis_v0.5_{split}.json",
        ),
        images=("{split}", "images/{split}", "images", "."),
    ),
    read=read,
    published=(
        Published("train2017", "images", 118_287, "cocodataset.org"),
        Published("val2017", "images", 5_000, "cocodataset.org"),
    ),
    facts={
        "licence": "annotations CC BY 4.0; each photo under its own Flickr licence",
        "download": "cocodataset.org, lvisdataset.org",
    },
)
