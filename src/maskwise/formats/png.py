"""A folder of PNG masks with an index: the simplest format to use from any program.

index.json                      images, regions and samples; every mask by its path
images/NAME                     the images
masks/ROW/REGION_visible.png    8-bit grey, 0 outside and 255 inside; ROW and REGION are numbers
masks/ROW/REGION_amodal.png
"""

import io
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from PIL import Image

from maskwise.errors import ImageError, MaskError
from maskwise.formats.annotation_format import AnnotatedImages, AnnotationFormat
from maskwise.formats.annotations import (
    AnnotatedImage,
    ImageAnnotation,
    RegionAnnotation,
    decode_annotations,
)
from maskwise.formats.exported_dataset import (
    DatasetFields,
    ImageFields,
    RegionEntry,
    check_version,
    export_images,
    name_records,
    to_dataset_fields,
    to_image_fields,
    without_masks,
    write_image,
)
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.json_files import read_json
from maskwise.formats.mask_images import read_mask_image
from maskwise.formats.read_context import ReadContext, locate_image
from maskwise.images import resolve_inside
from maskwise.masks import Mask
from maskwise.schema import ImageInfo
from maskwise.store import Dataset
from maskwise.store.atomic import atomic_write

INDEX = "index.json"
INSIDE = 255


class PngImage(ImageFields, frozen=True, kw_only=True):
    """An image with its regions and samples. Masks are given by their paths."""

    file_name: str


class PngIndex(msgspec.Struct, frozen=True, kw_only=True):
    """The file `index.json`; images stay bytes until they are decoded one by one."""

    dataset: DatasetFields
    images: list[msgspec.Raw]


def write(dataset: Dataset, folder: Path, *, with_images: bool) -> None:
    """Write images, masks and the index."""
    images = []
    exported_images = export_images(dataset, with_images=with_images)
    for row, (file_name, exported) in enumerate(exported_images):
        write_image(folder / "images" / file_name, exported.data)
        regions = _write_masks(folder, exported, row)
        images.append(
            PngImage(file_name=file_name, **to_image_fields(exported, regions))
        )
    index = {"dataset": to_dataset_fields(dataset), "images": images}
    with atomic_write(folder / INDEX) as file:
        file.write(msgspec.json.encode(index))


def _write_masks(folder: Path, exported: AnnotatedImage, row: int) -> list[RegionEntry]:
    if exported.regions:
        (folder / "masks" / str(row)).mkdir(parents=True)
    regions = []
    for number, region in enumerate(exported.regions):
        paths = {}
        for kind, mask in (("visible", region.visible), ("amodal", region.amodal)):
            if mask is not None:
                paths[kind] = f"masks/{row}/{number}_{kind}.png"
                (folder / paths[kind]).write_bytes(encode_mask(mask))
        regions.append(RegionEntry(region=without_masks(region), **paths))
    return regions


def encode_mask(mask: Mask) -> bytes:
    """A mask as an 8-bit grey PNG, 0 outside and 255 inside."""
    buffer = io.BytesIO()
    Image.fromarray(mask.to_dense().astype(np.uint8) * INSIDE).save(
        buffer, "PNG", compress_level=1
    )
    return buffer.getvalue()


def read(context: ReadContext) -> AnnotatedImages:
    """Images with their regions and samples."""
    index = read_json(context.annotations, PngIndex)
    check_version(index.dataset, context.annotations)
    annotations = decode_annotations(
        _image_annotations(context, index), context.diagnostics, exact=True
    )
    return AnnotatedImages(len(index.images), annotations, index.dataset.about)


def _image_annotations(
    context: ReadContext, index: PngIndex
) -> Iterator[ImageAnnotation]:
    for number, raw in enumerate(index.images):
        record = f"images[{number}]"
        entry = context.decode(raw, PngImage, record=record)
        if entry is None:
            continue
        image = locate_image(
            context,
            entry.file_name,
            (entry.height, entry.width),
            id=entry.id,
            record=record,
            license=entry.license,
            attribution=entry.attribution,
        )
        if image is not None:
            regions = tuple(_region_annotations(context, entry, image))
            questions = name_records(entry.samples)
            yield ImageAnnotation(image, context.file, regions, questions)


def _region_annotations(
    context: ReadContext, entry: PngImage, image: ImageInfo
) -> Iterator[RegionAnnotation]:
    for number, stored in enumerate(entry.regions):
        record = f"image {entry.id}, regions[{number}]"
        try:
            visible, amodal = (
                _read_mask(context, path, image)
                for path in (stored.visible, stored.amodal)
            )
        except (MaskError, ImageError) as error:
            context.skip("invalid mask", record, expected="a PNG", found=str(error))
            continue
        yield msgspec.structs.replace(
            stored.region, record=record, visible=visible, amodal=amodal
        )


def _read_mask(context: ReadContext, path: str | None, image: ImageInfo) -> Mask | None:
    if path is None:
        return None
    file = resolve_inside(context.annotations.parent, path)
    return Mask.from_dense(read_mask_image(file, (image.height, image.width)) == INSIDE)


PNG = AnnotationFormat(
    name="png",
    title="PNG: a folder of PNG masks with an index (index.json), as written by `maskwise write png`",
    layout=FileLayout(annotations=(INDEX,), images=("images",)),
    read=read,
    write=write,
)
