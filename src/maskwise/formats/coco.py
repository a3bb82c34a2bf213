"""COCO and LVIS instances: one annotation per object, its visible mask as polygons or RLE.

The amodal datasets use the same file format; their readers differ only in the fields of an annotation and use
`read_instances` too.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import TypeVar

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
from maskwise.formats.coco_export import read_written_coco, write
from maskwise.formats.coco_file import (
    CocoAnnotation,
    CocoEntry,
    CocoFile,
    CocoImage,
    CocoInstance,
    Id,
    find_license,
    read_licenses,
)
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.json_files import read_json
from maskwise.formats.read_context import ReadContext, locate_image
from maskwise.schema import ImageInfo

E = TypeVar("E", bound=CocoEntry)
A = TypeVar("A", bound=CocoAnnotation)


def read(context: ReadContext) -> AnnotatedImages:
    """Images with their objects; all records of a file that `write_dataset` wrote."""
    file = read_json(context.annotations, CocoFile)
    if file.maskwise is not None:
        return read_written_coco(context, file)
    return read_coco_file(context, file, CocoInstance, to_region=to_region)


def to_region(annotation: CocoInstance, name: str, record: str) -> RegionAnnotation:
    """An object with its visible mask."""
    return RegionAnnotation(
        str(annotation.id),
        name,
        record,
        visible=annotation.segmentation,
        crowd=bool(annotation.iscrowd),
    )


def read_instances(
    context: ReadContext,
    kind: type[A],
    to_region: Callable[[A, str, str], RegionAnnotation],
) -> AnnotatedImages:
    """Read a file of `images`, `annotations` of the given kind and `categories`.

    to_region(annotation, category name, record) gives the region.
    """
    return read_coco_file(
        context, read_json(context.annotations, CocoFile), kind, to_region=to_region
    )


def read_coco_file(
    context: ReadContext,
    file: CocoFile,
    kind: type[A],
    *,
    to_region: Callable[[A, str, str], RegionAnnotation],
) -> AnnotatedImages:
    """As `read_instances`, for a file that was read before."""
    annotations = _image_annotations(context, file, kind, to_region=to_region)
    return AnnotatedImages(
        len(file.images), decode_annotations(annotations, context.diagnostics)
    )


def read_images(
    context: ReadContext, records: list[msgspec.Raw]
) -> dict[Id, CocoImage]:
    """The images by id; duplicate ids are skipped."""
    images: dict[Id, CocoImage] = {}
    for position, raw in enumerate(records):
        record = f"images[{position}]"
        image = context.decode(raw, CocoImage, record=record)
        if image is not None and image.id in images:
            context.skip(
                "duplicate image id", record, expected="a unique id", found=image.id
            )
        elif image is not None:
            images[image.id] = image
    return images


def locate_coco_image(
    context: ReadContext,
    entry: CocoImage,
    *,
    id: str,
    record: str,
    licenses: dict[Id, str | None],
) -> ImageInfo | None:
    """As `locate_image`, with the license and the page of the photo."""
    return locate_image(
        context,
        entry.name,
        (entry.height, entry.width),
        id=id,
        record=record,
        license=find_license(licenses, entry.license),
        attribution=entry.credit,
    )


def read_entries(
    context: ReadContext,
    records: list[msgspec.Raw],
    kind: type[E],
    *,
    images: dict[Id, CocoImage],
) -> Iterator[E]:
    """The annotations; those of an unknown image and duplicate ids are skipped."""
    seen: set[Id] = set()
    for position, raw in enumerate(records):
        record = f"annotations[{position}]"
        entry = context.decode(raw, kind, record=record)
        if entry is None:
            continue
        if entry.image_id not in images:
            context.skip(
                "annotation of an unknown image",
                record,
                expected="one of images",
                found=entry.image_id,
            )
        elif entry.id in seen:
            context.skip(
                "duplicate annotation id",
                record,
                expected="a unique id",
                found=entry.id,
            )
        else:
            seen.add(entry.id)
            yield entry


def _image_annotations(
    context: ReadContext,
    file: CocoFile,
    kind: type[A],
    *,
    to_region: Callable[[A, str, str], RegionAnnotation],
) -> Iterator[ImageAnnotation]:
    names = {category.id: category.name for category in file.categories}
    images = read_images(context, file.images)
    licenses = read_licenses(file.licenses)
    annotations: dict[Id, list[A]] = defaultdict(list)
    for annotation in read_entries(context, file.annotations, kind, images=images):
        annotations[annotation.image_id].append(annotation)
    for entry in images.values():
        image = locate_coco_image(
            context,
            entry,
            id=str(entry.id),
            record=f"image {entry.id}",
            licenses=licenses,
        )
        if image is not None:
            regions = (
                to_region(
                    annotation,
                    _name(context, annotation, names),
                    f"annotation {annotation.id}",
                )
                for annotation in annotations[entry.id]
            )
            yield ImageAnnotation(image, context.file, tuple(regions))


def _name(
    context: ReadContext, annotation: CocoAnnotation, names: dict[Id, str]
) -> str:
    if annotation.category_id not in names:
        record = f"annotation {annotation.id}"
        found = annotation.category_id
        context.warn(
            "unknown category", record, expected="an id of categories", found=found
        )
    return names.get(annotation.category_id, "")


COCO = AnnotationFormat(
    name="coco",
    title="COCO and LVIS instances: visible masks",
    layout=FileLayout(
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
    write=write,
    published=(
        PublishedCount("train2017", "images", 118_287, "cocodataset.org"),
        PublishedCount("val2017", "images", 5_000, "cocodataset.org"),
    ),
    facts={
        "license": "annotations CC BY 4.0; each photo under its own Flickr license",
        "download": "cocodataset.org, lvisdataset.org",
    },
)
