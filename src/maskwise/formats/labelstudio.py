"""Label Studio tasks with brush annotations: write, edit in Label Studio, export as JSON, and read again.

    tasks.json          one task per image; import it into a project
    label_config.xml    the labelling configuration of that project
    images/NAME         the images

Every mask is a brush region (`type` "brushlabels", `format` "rle"): `from_name` is `visible` or `amodal`, its label is
the name of the region. Image URLs are `/data/local-files/?d=images/NAME`: start Label Studio with
LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true and LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT set to this folder. `data` of a
task also holds the questions to read, and under `maskwise` what brush regions have no fields for. A brush region that
was added in Label Studio becomes a new region; if one was removed, its mask is unknown.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit
from xml.sax.saxutils import quoteattr

import msgspec

from maskwise.errors import MaskError
from maskwise.formats.annotation_format import AnnotatedImages, AnnotationFormat
from maskwise.formats.annotations import (
    AnnotatedImage,
    ImageAnnotation,
    RegionAnnotation,
    decode_annotations,
)
from maskwise.formats.brush_rle import decode_brush, encode_brush
from maskwise.formats.exported_dataset import (
    DatasetFields,
    ImageFields,
    RegionEntry,
    check_version,
    export_images,
    name_records,
    to_builtins,
    to_dataset_fields,
    to_image_fields,
    without_masks,
    write_image,
)
from maskwise.formats.file_layout import FileLayout, Size
from maskwise.formats.json_files import read_json
from maskwise.formats.read_context import ReadContext, locate_image
from maskwise.masks import Mask
from maskwise.schema import Region
from maskwise.store import Dataset
from maskwise.store.atomic import atomic_write

TASKS = "tasks.json"
CONFIG = "label_config.xml"
URL = "/data/local-files/?d=images/"
UNNAMED = "region"
"""The label of a region without a name."""

Json = dict[str, Any]


class BrushValue(msgspec.Struct, frozen=True, kw_only=True):
    """The value of a brush region."""

    rle: list[int]
    brushlabels: list[str] = []


class BrushResult(msgspec.Struct, frozen=True, kw_only=True):
    """A brush region of an annotation."""

    id: str
    from_name: str
    original_width: int
    original_height: int
    value: BrushValue


class TaskAnnotation(msgspec.Struct, frozen=True, kw_only=True):
    """One person's annotation of a task."""

    result: list[msgspec.Raw] = []
    was_cancelled: bool = False
    lead_time: float | None = None
    """Seconds that a person worked on it; None where nobody did."""


class TaskFields(ImageFields, frozen=True, kw_only=True):
    """What brush regions have no fields for. Masks are given by the ids of their brush regions."""

    dataset: DatasetFields


class TaskData(msgspec.Struct, frozen=True, kw_only=True):
    """The data of a task."""

    image: str
    maskwise: TaskFields


class LabelStudioTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task."""

    data: TaskData
    annotations: list[TaskAnnotation] = []


def write(dataset: Dataset, folder: Path, *, with_images: bool) -> None:
    """Write the tasks, the labelling configuration and the images."""
    fields = to_dataset_fields(dataset)
    tasks = []
    names = dict[str, None]()
    for file_name, exported in export_images(dataset, with_images=with_images):
        write_image(folder / "images" / file_name, exported.data)
        tasks.append(_to_task(file_name, exported, fields))
        names |= dict.fromkeys(region.name or UNNAMED for region in exported.regions)
    with atomic_write(folder / TASKS) as file:
        file.write(msgspec.json.encode(tasks))
    with atomic_write(folder / CONFIG) as file:
        file.write(_label_config(list(names) or [UNNAMED]).encode())


def _to_task(file_name: str, exported: AnnotatedImage, fields: DatasetFields) -> Json:
    results: list[Json] = []
    regions = [
        _to_entry(region, number, results)
        for number, region in enumerate(exported.regions)
    ]
    own = TaskFields(dataset=fields, **to_image_fields(exported, regions))
    data = {
        "image": URL + quote(file_name),
        "questions": "\n".join(sample.question for sample in exported.samples),
        "maskwise": to_builtins(own),
    }
    return {"data": data, "annotations": [{"result": results}]}


def _to_entry(region: Region, number: int, results: list[Json]) -> RegionEntry:
    """A region; its brush regions are appended to `results`."""
    ids = {}
    for kind, mask in (("visible", region.visible), ("amodal", region.amodal)):
        if mask is not None:
            ids[kind] = f"{kind}-{number}"
            results.append(_to_result(ids[kind], kind, mask, region.name or UNNAMED))
    return RegionEntry(region=without_masks(region), **ids)


def _to_result(id: str, kind: str, mask: Mask, label: str) -> Json:
    height, width = mask.size
    return {
        "id": id,
        "type": "brushlabels",
        "from_name": kind,
        "to_name": "image",
        "origin": "manual",
        "original_width": width,
        "original_height": height,
        "image_rotation": 0,
        "value": {"format": "rle", "rle": encode_brush(mask), "brushlabels": [label]},
    }


def _label_config(names: list[str]) -> str:
    labels = "".join(f"    <Label value={quoteattr(name)}/>\n" for name in names)
    brushes = "".join(
        f'  <BrushLabels name="{kind}" toName="image">\n{labels}  </BrushLabels>\n'
        for kind in ("visible", "amodal")
    )
    header = '  <Image name="image" value="$image" zoom="true"/>\n  <Text name="questions" value="$questions"/>\n'
    return f"<View>\n{header}{brushes}</View>\n"


def read(context: ReadContext) -> AnnotatedImages:
    """Images with their regions and samples, from tasks or from an export of Label Studio (JSON)."""
    tasks = read_json(context.annotations, list[msgspec.Raw])
    about: dict[str, str] = {}
    if tasks:
        first = (
            msgspec.json.decode(tasks[0], type=LabelStudioTask)
            if _is_task(tasks[0])
            else None
        )
        about = first.data.maskwise.dataset.about if first is not None else {}
    annotations = decode_annotations(
        _image_annotations(context, tasks), context.diagnostics, exact=True
    )
    return AnnotatedImages(len(tasks), annotations, about)


def _is_task(raw: msgspec.Raw) -> bool:
    try:
        msgspec.json.decode(raw, type=LabelStudioTask)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def _image_annotations(
    context: ReadContext, tasks: list[msgspec.Raw]
) -> Iterator[ImageAnnotation]:
    for number, raw in enumerate(tasks):
        record = f"[{number}]"
        task = context.decode(raw, LabelStudioTask, record=record)
        if task is None:
            continue
        fields = task.data.maskwise
        check_version(fields.dataset, context.annotations)
        size = (fields.height, fields.width)
        image = locate_image(
            context,
            _file_name(task.data.image),
            size,
            id=fields.id,
            record=record,
            license=fields.license,
            attribution=fields.attribution,
        )
        if image is not None:
            results = dict(_results(context, task, record, size=size))
            regions = tuple(_region_annotations(fields, results, record))
            questions = name_records(fields.samples)
            yield ImageAnnotation(image, context.file, regions, questions)


def _file_name(url: str) -> str:
    """The file below the image folder that a URL of a task names."""
    parts = urlsplit(url)
    path = parse_qs(parts.query).get("d", [parts.path])[0]
    return re.sub(r"^/?(.*/)?images/", "", path)


def _results(
    context: ReadContext, task: LabelStudioTask, record: str, *, size: Size
) -> Iterator[tuple[str, tuple[BrushResult, Mask]]]:
    """The brush regions of the last annotation that was not cancelled, by id."""
    annotation = next(
        (item for item in reversed(task.annotations) if not item.was_cancelled),
        TaskAnnotation(),
    )
    for number, raw in enumerate(annotation.result):
        where = f"{record}, result[{number}]"
        brush = context.decode(raw, BrushResult, record=where)
        if brush is None:
            continue
        try:
            if (brush.original_height, brush.original_width) != size:
                raise MaskError(
                    f"a brush of {brush.original_height, brush.original_width} in an image of {size}"
                )
            yield brush.id, (brush, decode_brush(brush.value.rle, size))
        except MaskError as error:
            context.skip(
                "invalid mask", where, expected="a brush region", found=str(error)
            )


def _region_annotations(
    fields: TaskFields, results: dict[str, tuple[BrushResult, Mask]], record: str
) -> Iterator[RegionAnnotation]:
    used: set[str] = set()
    for item in fields.regions:
        masks = {
            kind: results[id][1]
            for kind, id in (("visible", item.visible), ("amodal", item.amodal))
            if id is not None and id in results
        }
        used |= {id for id in (item.visible, item.amodal) if id is not None}
        where = f"{record}, region {item.region.id}"
        yield msgspec.structs.replace(
            item.region,
            record=where,
            visible=masks.get("visible"),
            amodal=masks.get("amodal"),
        )
    for id, (result, mask) in results.items():
        if id not in used:
            name = next(iter(result.value.brushlabels), "")
            amodal = result.from_name == "amodal"
            visible, whole = (None, mask) if amodal else (mask, None)
            yield RegionAnnotation(
                id, name, f"{record}, result {id}", visible=visible, amodal=whole
            )


LABELSTUDIO = AnnotationFormat(
    name="labelstudio",
    title="Label Studio: tasks with brush annotations, written by `maskwise write labelstudio` or exported from there",
    layout=FileLayout(
        annotations=(TASKS,),
        images=("images",),
        notes="an export of Label Studio (JSON) is read by naming the file.",
    ),
    read=read,
    write=write,
)
