"""A folder that FiftyOne imports (dataset type `COCODetectionDataset`), and that maskwise reads again without loss.

    data/NAME              the images
    labels.json            COCO: the visible masks
    labels_amodal.json     COCO: the amodal masks
    dataset.json           everything, as `maskwise write coco` writes it; only maskwise uses it

In FiftyOne:

    coco = {"dataset_type": fo.types.COCODetectionDataset, "label_types": "segmentations"}
    dataset = fo.Dataset.from_dir(folder, label_field="visible", **coco)
    dataset.merge_dir(folder, labels_path="labels_amodal.json", label_field="amodal", **coco)

Empty masks are left out of the two label files. `region_id`, `occlude_rate` and `part_of` become attributes.
"""

from pathlib import Path
from typing import Literal

from maskwise.formats.annotation_format import AnnotatedImages, AnnotationFormat
from maskwise.formats.annotations import AnnotatedImage
from maskwise.formats.coco_export import (
    CocoBuilder,
    Json,
    read_written_coco,
    to_segmentation,
    write_json,
)
from maskwise.formats.coco_file import CocoFile
from maskwise.formats.exported_dataset import export_images, write_image
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.json_files import read_json
from maskwise.formats.read_context import ReadContext
from maskwise.store import Dataset

FILES: dict[Literal["visible", "amodal"], str] = {
    "visible": "labels.json",
    "amodal": "labels_amodal.json",
}
"""The label file of each mask type."""


def write(dataset: Dataset, folder: Path, *, with_images: bool) -> None:
    """Write the images, the two label files and the complete file."""
    builder = CocoBuilder()
    labels: dict[str, list[Json]] = {kind: [] for kind in FILES}
    for file_name, exported in export_images(dataset, with_images=with_images):
        write_image(folder / "data" / file_name, exported.data)
        builder.add(file_name, exported)
        for kind in FILES:
            labels[kind] += _labels(
                builder, exported, kind, first=len(labels[kind]) + 1
            )
    content = builder.content(dataset)
    write_json(folder / "dataset.json", content)
    for kind, name in FILES.items():
        shared = {key: content[key] for key in ("info", "images", "categories")}
        write_json(folder / name, shared | {"annotations": labels[kind]})


def _labels(
    builder: CocoBuilder,
    exported: AnnotatedImage,
    kind: Literal["visible", "amodal"],
    *,
    first: int,
) -> list[Json]:
    """The annotations of the masks of one type of the image added last."""
    labels: list[Json] = []
    for region in exported.regions:
        mask = region.mask(kind)
        if mask is None or not mask.area:
            continue
        label = {
            "id": first + len(labels),
            "image_id": len(builder.images),
            "category_id": builder.categories[region.name],
            **to_segmentation(mask),
            "iscrowd": int(region.crowd),
            "region_id": region.id,
        }
        hidden = region.occluded
        if hidden is not None and region.amodal is not None:
            label["occlude_rate"] = hidden.area / max(region.amodal.area, 1)
        labels.append(
            label if region.part_of is None else label | {"part_of": region.part_of}
        )
    return labels


def read(context: ReadContext) -> AnnotatedImages:
    """Images with their regions and samples, equal to those that were written."""
    return read_written_coco(context, read_json(context.annotations, CocoFile))


FIFTYONE = AnnotationFormat(
    name="fiftyone",
    title="FiftyOne: a folder that FiftyOne imports as COCODetectionDataset, as written by `maskwise write fiftyone`",
    layout=FileLayout(
        annotations=("dataset.json",),
        images=("data",),
        notes="labels that were edited in FiftyOne and exported from it as COCO are read with `maskwise read coco`.",
    ),
    read=read,
    write=write,
)
