"""Read records through a field mapping: which field is the image, the question, the answer, a mask.

A mask is a list of polygons, a COCO RLE, either of them as JSON text, the path of a PNG, or the bytes of a PNG (an
image column). Nothing is guessed: if the first record lacks a field that the mapping names, that is an error that lists
the fields found; in a later record it is a diagnostic.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from maskwise.errors import FormatError, ImageError, MaskError
from maskwise.formats.annotation_format import AnnotatedImages
from maskwise.formats.annotations import (
    ImageAnnotation,
    QuestionAnnotation,
    decode_annotations,
)
from maskwise.formats.answer_phrases import parse_answer
from maskwise.formats.diagnostics import Diagnostics
from maskwise.formats.file_layout import Size
from maskwise.formats.mask_images import read_mask_image
from maskwise.formats.read_context import ReadContext, locate_image
from maskwise.formats.record_files import FileRecord, read_records
from maskwise.formats.region_collector import RegionCollector
from maskwise.images import MAX_PIXELS, image_size, resolve_inside
from maskwise.masks import Mask
from maskwise.schema import Answer, ImageInfo, MaskType
from maskwise.yaml_files import read_yaml

Fields = dict[str, Any]
"""A record, decoded."""

MISMATCH = "record does not fit the mapping"


class TargetFieldMapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Fields of a target: `mask`, of the type the question asks for, or `visible` and `amodal`."""

    mask: str | None = None
    visible: str | None = None
    amodal: str | None = None
    name: str | None = None


class FieldMapping(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True
):
    """Fields of a record; dots reach into nested values."""

    image: str
    question: str
    target: TargetFieldMapping
    records: str | None = None
    id: str | None = None
    height: str | None = None
    width: str | None = None
    answer: str | None = None
    seg_token: str | None = None
    mask_type: str | None = None
    mask_types: dict[str, MaskType] = {}
    default_mask_type: MaskType = "visible"
    targets: str | None = None
    tags: dict[str, str] = {}


class MappingMismatchError(Exception):
    """A record that does not fit the mapping."""


MappedImage = tuple[str, bytes | None]
"""The image of a record: a path, or the hash of encoded bytes and these bytes."""


def read_mapped(context: ReadContext, default: Path) -> AnnotatedImages:
    """Images with their questions, read through the user's mapping or the default one."""
    path = context.mapping or default
    mapping = read_yaml(path, FieldMapping)
    records = list(read_records(context, mapping.records))
    for record in records[:1]:
        _check_first(context, record, mapping, path=path)
    by_image = _group_by_image(context, records, mapping)
    annotations = _image_annotations(context, by_image, mapping)
    about = {"file": context.file, "mapping": path.name}
    return AnnotatedImages(
        len(by_image), decode_annotations(annotations, context.diagnostics), about
    )


def _check_first(
    context: ReadContext, record: FileRecord, mapping: FieldMapping, *, path: Path
) -> None:
    quiet = msgspec.structs.replace(context, diagnostics=Diagnostics())
    try:
        _to_image(record, mapping)
        _to_question(quiet, record, mapping, regions=RegionCollector(), size=None)
    except MappingMismatchError as error:
        raise FormatError(
            f"{context.annotations}, {record.position} does not fit the mapping {path}: {error}; the record has: "
            f"{', '.join(sorted(record.fields))}. Copy the mapping, change it and pass it with --mapping"
        ) from None


def _group_by_image(
    context: ReadContext, records: list[FileRecord], mapping: FieldMapping
) -> dict[str, tuple[MappedImage, list[FileRecord]]]:
    """Records by their image, images in order of first appearance."""
    by_image: dict[str, tuple[MappedImage, list[FileRecord]]] = {}
    for record in records:
        try:
            image = _to_image(record, mapping)
        except MappingMismatchError as error:
            context.skip(
                MISMATCH, record.position, expected="an image", found=str(error)
            )
            continue
        name, _ = image
        by_image.setdefault(name, (image, []))[1].append(record)
    return by_image


def _image_annotations(
    context: ReadContext,
    by_image: dict[str, tuple[MappedImage, list[FileRecord]]],
    mapping: FieldMapping,
) -> Iterator[ImageAnnotation]:
    for file, records in by_image.values():
        _, data = file
        image = _locate(context, file, records[0], mapping=mapping)
        if image is None:
            continue
        size = (image.height, image.width)
        regions = RegionCollector()
        questions = []
        for record in records:
            try:
                questions.append(
                    _to_question(context, record, mapping, regions=regions, size=size)
                )
            except MappingMismatchError as error:
                context.skip(
                    MISMATCH,
                    record.position,
                    expected="the fields of the mapping",
                    found=str(error),
                )
        yield ImageAnnotation(
            image, context.file, regions.regions, tuple(questions), data=data
        )


def _locate(
    context: ReadContext,
    file: MappedImage,
    record: FileRecord,
    *,
    mapping: FieldMapping,
) -> ImageInfo | None:
    name, data = file
    try:
        size = _annotated_size(record.fields, mapping)
    except MappingMismatchError as error:
        context.skip(
            "image size out of bounds",
            record.position,
            expected="whole numbers",
            found=str(error),
        )
        return None
    if data is None:
        return locate_image(context, name, size, id=name, record=record.position)
    try:
        width, height = image_size(data)
    except ImageError as error:
        context.skip(
            "unreadable image", record.position, expected="an image", found=str(error)
        )
        return None
    if height * width > MAX_PIXELS or (size is not None and size != (height, width)):
        found = f"height and width {height, width}"
        context.skip(
            "image of another size",
            record.position,
            expected=f"{size or MAX_PIXELS}",
            found=found,
        )
        return None
    return ImageInfo(id=name, width=width, height=height)


def _annotated_size(fields: Fields, mapping: FieldMapping) -> Size | None:
    if mapping.height is None or mapping.width is None:
        return None
    return _whole_number(fields, mapping.height), _whole_number(fields, mapping.width)


def _whole_number(fields: Fields, field: str) -> int:
    value = _pick(fields, field)
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        return int(value)
    if type(value) is not int:
        raise MappingMismatchError(f"field {field!r} is {value!r}")
    return value


def _to_image(record: FileRecord, mapping: FieldMapping) -> MappedImage:
    value = _pick(record.fields, mapping.image)
    if isinstance(value, str) and value:
        return value, None
    data = value.get("bytes") if isinstance(value, dict) else value
    if isinstance(data, bytes) and data:
        return hashlib.sha256(data).hexdigest()[:16], data
    path = value.get("path") if isinstance(value, dict) else None
    if isinstance(path, str) and path:
        return path, None
    raise MappingMismatchError(
        f"field {mapping.image!r} is a {type(value).__name__}, not a path or bytes"
    )


def _to_question(
    context: ReadContext,
    record: FileRecord,
    mapping: FieldMapping,
    *,
    regions: RegionCollector,
    size: Size | None,
) -> QuestionAnnotation:
    """The question of a record; its targets are added to `regions`. Without a size, PNG masks are not opened."""
    fields = record.fields
    mask_type = _mask_type(fields, mapping)
    targets = _list_targets(fields, mapping)
    names = [
        _text(target, mapping.target.name) if mapping.target.name else ""
        for target in targets
    ]
    masks = [
        _target_masks(context, target, mapping, mask_type=mask_type, size=size)
        for target in targets
    ]
    ids = tuple(
        regions.add(name, record.position, **found) for name, found in zip(names, masks)
    )
    answer = _answer(context, record, mapping, names=names) if mapping.answer else None
    tags = {tag: str(_pick(fields, field)) for tag, field in mapping.tags.items()}
    id = str(_pick(fields, mapping.id)) if mapping.id else record.position
    return QuestionAnnotation(
        id,
        _text(fields, mapping.question),
        record.position,
        mask_type=mask_type,
        targets=ids,
        answer=answer,
        tags={"split": context.split} | tags,
    )


def _list_targets(fields: Fields, mapping: FieldMapping) -> list[Fields]:
    """The targets of a record. A record that is its own target has none if all its masks are null or empty text."""
    if mapping.targets is None:
        used = (mapping.target.mask, mapping.target.visible, mapping.target.amodal)
        values = [_pick(fields, field) for field in used if field is not None]
        return [] if all(value is None or value == "" for value in values) else [fields]
    targets = _pick(fields, mapping.targets)
    if isinstance(targets, str):
        targets = _from_json(targets, mapping.targets)
    if not isinstance(targets, list) or not all(
        isinstance(target, dict) for target in targets
    ):
        raise MappingMismatchError(
            f"field {mapping.targets!r} is not a list of targets"
        )
    return targets


def _target_masks(
    context: ReadContext,
    target: Fields,
    mapping: FieldMapping,
    *,
    mask_type: MaskType,
    size: Size | None,
) -> dict[str, object]:
    """The segmentations of a target by mask type."""
    fields = mapping.target
    if fields.mask is None:
        pairs = (("visible", fields.visible), ("amodal", fields.amodal))
        return {
            kind: _segmentation(context, target, field, size=size)
            for kind, field in pairs
            if field is not None
        }
    if mask_type == "both":
        raise MappingMismatchError(
            "a question that wants both masks needs `visible` and `amodal`, not `mask`"
        )
    return {mask_type: _segmentation(context, target, fields.mask, size=size)}


def _segmentation(
    context: ReadContext, target: Fields, field: str, *, size: Size | None
) -> object:
    """A segmentation as JSON would hold it, or the mask of a PNG."""
    value = _pick(target, field)
    if isinstance(value, dict) and isinstance(value.get("counts"), bytes):
        return value | {"counts": value["counts"].decode("ascii", "replace")}
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        return _from_json(value, field)
    if isinstance(value, dict) and "bytes" in value:
        value = value["bytes"] or value.get("path")
    if isinstance(value, str | bytes) and value and size is not None:
        return _png_mask(context, value, field, size=size)
    return value


def _png_mask(
    context: ReadContext, value: str | bytes, field: str, *, size: Size
) -> Mask:
    """The mask of a PNG: 0 is background; 1 or 255 is foreground, and other values are an error."""
    try:
        grey = read_mask_image(
            _find_png(context, value) if isinstance(value, str) else value, size
        )
        return Mask.from_dense(grey)
    except (MaskError, ImageError) as error:
        raise MappingMismatchError(f"field {field!r}: {error}") from None


def _find_png(context: ReadContext, name: str) -> Path:
    """The PNG of a relative path below the image folders or beside the annotation file."""
    if context.images is not None:
        path = context.images.find(name)
        if path is not None:
            return context.images.root / path
    return resolve_inside(context.annotations.parent, name)


def _from_json(text: str, field: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise MappingMismatchError(f"field {field!r} is not JSON: {error}") from None


def _mask_type(fields: Fields, mapping: FieldMapping) -> MaskType:
    if mapping.mask_type is None:
        return mapping.default_mask_type
    value = str(_pick(fields, mapping.mask_type))
    if value not in mapping.mask_types:
        known = ", ".join(mapping.mask_types) or "none"
        raise MappingMismatchError(f"mask type {value!r}; the mapping knows: {known}")
    return mapping.mask_types[value]


def _answer(
    context: ReadContext, record: FileRecord, mapping: FieldMapping, *, names: list[str]
) -> Answer:
    text = _text(record.fields, mapping.answer or "")
    if mapping.seg_token is None:
        return Answer(text=text)
    answer, count = parse_answer(text, mapping.seg_token, names)
    if count != len(names):
        expected = f"{len(names)} {mapping.seg_token}, one per target"
        context.warn(
            "answer does not fit its targets",
            record.position,
            expected=expected,
            found=count,
        )
    return answer


def _text(fields: Fields, field: str) -> str:
    value = _pick(fields, field)
    if not isinstance(value, str):
        raise MappingMismatchError(
            f"field {field!r} is a {type(value).__name__}, not text"
        )
    return value


def _pick(fields: Fields, field: str) -> Any:
    """The value of a field; dots reach into nested values."""
    value: Any = fields
    for key in field.split("."):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise MappingMismatchError(f"no field {field!r}")
    return value
