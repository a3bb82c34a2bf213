"""Write a dataset as COCO JSON with amodal fields, and read such a file again without loss.

`annotations[]` has the fields of COCOA-cls: `segmentation` is the amodal mask if it is known and otherwise the visible
one (`segmentation_type` says which), `visible_mask` and `invisible_mask` are there if both masks are known,
`occlude_rate` is the hidden fraction. All masks are compressed RLE. `bbox` and `area` belong to `segmentation`. What
COCO has no fields for is in extra fields: `region` of an annotation, `maskwise_id` of an image, and the sections
`samples` and `maskwise`. Other programs ignore them.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from maskwise.errors import FormatError
from maskwise.formats.annotation_format import AnnotatedImages
from maskwise.formats.annotations import (
    AnnotatedImage,
    ImageAnnotation,
    QuestionAnnotation,
    RegionAnnotation,
    decode_annotations,
)
from maskwise.formats.coco_file import (
    CocoFile,
    CocoImage,
    Id,
    find_license,
    read_licenses,
)
from maskwise.formats.exported_dataset import (
    check_version,
    export_images,
    name_records,
    split_name,
    to_builtins,
    to_dataset_fields,
    to_question,
    without_masks,
    write_image,
)
from maskwise.formats.read_context import ReadContext, locate_image
from maskwise.masks import Mask, Masks
from maskwise.schema import ImageInfo, Region
from maskwise.store import Dataset
from maskwise.store.atomic import atomic_write

Json = dict[str, Any]

MISSING = msgspec.Raw()
"""Stands for a missing `visible_mask`."""


class WrittenInstance(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of `annotations`."""

    image_id: int
    segmentation: msgspec.Raw
    segmentation_type: Literal["visible", "amodal"]
    region: RegionAnnotation
    visible_mask: msgspec.Raw = MISSING


class CocoSample(QuestionAnnotation, frozen=True, kw_only=True):
    """An entry of `samples`."""

    image_id: int


class CocoBuilder:
    """Builds the content of a COCO file image by image."""

    def __init__(self) -> None:
        self.images: list[Json] = []
        self.annotations: list[Json] = []
        self.samples: list[Json] = []
        self.categories: dict[str, int] = {}
        self.licenses: dict[str, int] = {}

    def add(self, file_name: str, exported: AnnotatedImage) -> None:
        """Add an image with its regions and samples."""
        image = exported.image
        number = len(self.images) + 1
        self.images.append(
            {
                "id": number,
                "file_name": file_name,
                "width": image.width,
                "height": image.height,
                "maskwise_id": image.id,
                **self._terms(image),
            }
        )
        for region in exported.regions:
            self.annotations.append(self._annotation(region, number))
        for sample in exported.samples:
            self.samples.append({"image_id": number} | to_builtins(to_question(sample)))

    def content(self, dataset: Dataset) -> Json:
        """The content of the file."""
        return {
            "info": {"description": dataset.name},
            "licenses": [
                {"id": id, "name": name, "url": ""}
                for name, id in self.licenses.items()
            ],
            "images": self.images,
            "annotations": self.annotations,
            "categories": [
                {"id": id, "name": name} for name, id in self.categories.items()
            ],
            "samples": self.samples,
            "maskwise": to_dataset_fields(dataset),
        }

    def _terms(self, image: ImageInfo) -> Json:
        """License and attribution of an image, where they are known."""
        terms: Json = {}
        if image.license is not None:
            terms["license"] = self.licenses.setdefault(
                image.license, len(self.licenses) + 1
            )
        if image.attribution is not None:
            terms["attribution"] = image.attribution
        return terms

    def _annotation(self, region: Region, image: int) -> Json:
        main = region.amodal if region.amodal is not None else region.visible
        assert main is not None
        annotation = {
            "id": len(self.annotations) + 1,
            "image_id": image,
            "category_id": self.categories.setdefault(
                region.name, len(self.categories) + 1
            ),
            **to_segmentation(main),
            "iscrowd": int(region.crowd),
            "segmentation_type": "visible" if region.amodal is None else "amodal",
            "region": to_builtins(without_masks(region)),
        }
        if region.amodal is not None and region.visible is not None:
            hidden = region.amodal - region.visible
            annotation["visible_mask"] = region.visible
            annotation["invisible_mask"] = hidden
            annotation["occlude_rate"] = hidden.area / max(region.amodal.area, 1)
        return annotation


def to_segmentation(mask: Mask) -> Json:
    """The fields `segmentation`, `area` and `bbox` of a mask."""
    areas, boxes = Masks.from_masks([mask]).measure()
    return {"segmentation": mask, "area": int(areas[0]), "bbox": boxes[0].tolist()}


def write(dataset: Dataset, folder: Path, *, with_images: bool) -> None:
    """Write `annotations/instances_SPLIT.json` and the folder `images`."""
    path = folder / "annotations" / f"instances_{split_name(dataset)}.json"
    write_coco(dataset, path, folder / "images", with_images=with_images)


def write_coco(
    dataset: Dataset, path: Path, images: Path, *, with_images: bool
) -> None:
    """Write the COCO file `path`, and the image files below `images`."""
    builder = CocoBuilder()
    for file_name, exported in export_images(dataset, with_images=with_images):
        write_image(images / file_name, exported.data)
        builder.add(file_name, exported)
    write_json(path, builder.content(dataset))


def write_json(path: Path, content: Any) -> None:
    """Write JSON atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(msgspec.json.encode(content))


def read_written_coco(context: ReadContext, file: CocoFile) -> AnnotatedImages:
    """Images with their regions and samples, equal to those that were written.

    FormatError for a file that maskwise did not write.
    """
    if file.maskwise is None:
        raise FormatError(
            f"{context.annotations} was not written by maskwise: it has no section "
            "`maskwise`; `maskwise read coco` reads other COCO files"
        )
    check_version(file.maskwise, context.annotations)
    annotations = decode_annotations(
        _image_annotations(context, file), context.diagnostics, exact=True
    )
    return AnnotatedImages(len(file.images), annotations, file.maskwise.about)


def _image_annotations(
    context: ReadContext, file: CocoFile
) -> Iterator[ImageAnnotation]:
    regions: dict[Id, list[RegionAnnotation]] = defaultdict(list)
    for record, annotation in _decode(
        context, file.annotations, WrittenInstance, "annotations"
    ):
        regions[annotation.image_id].append(_to_region(annotation, record))
    samples: dict[Id, list[QuestionAnnotation]] = defaultdict(list)
    for _, sample in _decode(context, file.samples, CocoSample, "samples"):
        samples[sample.image_id].append(sample)
    licenses = read_licenses(file.licenses)
    for record, entry in _decode(context, file.images, CocoImage, "images"):
        image = locate_image(
            context,
            entry.name,
            (entry.height, entry.width),
            id=entry.maskwise_id or str(entry.id),
            record=record,
            license=find_license(licenses, entry.license),
            attribution=entry.credit,
        )
        if image is not None:
            questions = name_records(samples[entry.id])
            yield ImageAnnotation(
                image, context.file, tuple(regions[entry.id]), questions
            )


def _to_region(annotation: WrittenInstance, record: str) -> RegionAnnotation:
    amodal = (
        annotation.segmentation if annotation.segmentation_type == "amodal" else None
    )
    known = annotation.visible_mask if annotation.visible_mask is not MISSING else None
    visible = known if amodal is not None else annotation.segmentation
    return msgspec.structs.replace(
        annotation.region, record=record, visible=visible, amodal=amodal
    )


def _decode(
    context: ReadContext, raws: list[msgspec.Raw], kind: type[Any], section: str
) -> Iterator[tuple[str, Any]]:
    """The entries of a section with their positions; invalid ones are skipped."""
    for number, raw in enumerate(raws):
        record = f"{section}[{number}]"
        entry = context.decode(raw, kind, record=record)
        if entry is not None:
            yield record, entry
