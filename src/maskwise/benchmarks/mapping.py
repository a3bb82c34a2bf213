"""Records of no published format, read as a declared mapping says: which field is the question, the image, a mask.

Files are JSON, JSON lines or Parquet. Masks are polygons or COCO run lengths. Nothing is guessed: a field that the
mapping names and the first record lacks is an error that names the mapping and the fields found; in a later record it
is a problem.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from maskwise.benchmarks.targets import Targets, parse_answer
from maskwise.errors import ImageError, SourceError
from maskwise.formats.draft import Draft, Question, finish
from maskwise.formats.layout import Place, locate_image
from maskwise.formats.problems import Problems
from maskwise.formats.records import decode_json, decode_record, read_text, read_yaml
from maskwise.formats.source import Reading
from maskwise.images import MAX_PIXELS, image_size
from maskwise.schema import Answer, ImageInfo, MaskType

Fields = dict[str, Any]
"""A record, decoded."""


class TargetMapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Fields of a target: `mask`, of the type asked for, or `visible` and `amodal`."""

    mask: str | None = None
    visible: str | None = None
    amodal: str | None = None
    name: str | None = None


class Mapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Fields of a record; dots reach inside."""

    image: str
    question: str
    target: TargetMapping
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


class Misfit(Exception):
    """A record that does not fit the mapping."""


class Record(NamedTuple):
    """A record and its place in the file."""

    name: str
    fields: Fields


class ImageFile(NamedTuple):
    """An image as records name it: a path, or bytes known by their hash."""

    name: str
    data: bytes | None = None


def read_mapped(place: Place, default: Path) -> Reading:
    """Images with their questions, as the user's mapping or the default one says."""
    path = place.mapping or default
    mapping = read_yaml(path, Mapping)
    records = list(_records(place, mapping))
    for record in records[:1]:
        _check_first(place, record, mapping, path=path)
    by_image = _by_image(place, records, mapping)
    return Reading(len(by_image), finish(_drafts(place, by_image, mapping), place.problems))


def _check_first(place: Place, record: Record, mapping: Mapping, *, path: Path) -> None:
    try:
        _to_image(record, mapping)
        _to_question(msgspec.structs.replace(place, problems=Problems()), record, mapping, targets=Targets())
    except Misfit as error:
        raise SourceError(
            f"{place.annotations}, {record.name} does not fit the mapping {path}: {error}; the record has: "
            f"{', '.join(sorted(record.fields))}. Copy the mapping, change it and pass it with --mapping"
        ) from None


def _by_image(
    place: Place, records: list[Record], mapping: Mapping
) -> dict[str, tuple[ImageFile, list[Record]]]:
    """Records by the image they are about, images in order of first appearance."""
    by_image: dict[str, tuple[ImageFile, list[Record]]] = {}
    for record in records:
        try:
            image = _to_image(record, mapping)
        except Misfit as error:
            place.skip(
                "record that does not fit the mapping", record.name, expected="an image", found=str(error)
            )
            continue
        by_image.setdefault(image.name, (image, []))[1].append(record)
    return by_image


def _drafts(
    place: Place, by_image: dict[str, tuple[ImageFile, list[Record]]], mapping: Mapping
) -> Iterator[Draft]:
    for file, records in by_image.values():
        image = _locate(place, file, records[0], mapping=mapping)
        if image is None:
            continue
        targets, questions = Targets(), []
        for record in records:
            try:
                questions.append(_to_question(place, record, mapping, targets=targets))
            except Misfit as error:
                reason = "record that does not fit the mapping"
                place.skip(reason, record.name, expected="what the mapping names", found=str(error))
        yield Draft(image, place.file, targets.outlines, tuple(questions), data=file.data)


def _locate(place: Place, file: ImageFile, record: Record, *, mapping: Mapping) -> ImageInfo | None:
    size = None
    if mapping.height is not None and mapping.width is not None:
        height, width = _pick(record.fields, mapping.height), _pick(record.fields, mapping.width)
        if type(height) is not int or type(width) is not int:
            place.skip("absurd image size", record.name, expected="whole numbers", found=(height, width))
            return None
        size = (height, width)
    if file.data is None:
        return locate_image(place, file.name, size, id=file.name, record=record.name)
    try:
        width, height = image_size(file.data)
    except ImageError as error:
        place.skip("image that cannot be read", record.name, expected="an image", found=str(error))
        return None
    if height * width > MAX_PIXELS or (size is not None and size != (height, width)):
        found = f"height and width {height, width}"
        place.skip("image of another size", record.name, expected=f"{size or MAX_PIXELS}", found=found)
        return None
    return ImageInfo(id=file.name, width=width, height=height)


def _to_image(record: Record, mapping: Mapping) -> ImageFile:
    value = _pick(record.fields, mapping.image)
    if isinstance(value, str) and value:
        return ImageFile(value)
    data = value.get("bytes") if isinstance(value, dict) else value
    if isinstance(data, bytes) and data:
        return ImageFile(hashlib.sha256(data).hexdigest()[:16], data)
    raise Misfit(f"field {mapping.image!r} is a {type(value).__name__}, not a path or bytes")


def _to_question(place: Place, record: Record, mapping: Mapping, *, targets: Targets) -> Question:
    fields = record.fields
    mask_type = _mask_type(fields, mapping)
    listed = _pick(fields, mapping.targets) if mapping.targets else [fields]
    if not isinstance(listed, list) or not all(isinstance(target, dict) for target in listed):
        raise Misfit(f"field {mapping.targets!r} is not a list of targets")
    names = [_text(target, mapping.target.name) if mapping.target.name else "" for target in listed]
    ids = tuple(
        _add_target(targets, target, name, mapping=mapping, mask_type=mask_type, record=record.name)
        for name, target in zip(names, listed)
    )
    answer = _answer(place, record, mapping, names=names) if mapping.answer else None
    tags = {tag: str(_pick(fields, field)) for tag, field in mapping.tags.items()}
    id = str(_pick(fields, mapping.id)) if mapping.id else record.name
    question = _text(fields, mapping.question)
    return Question(
        id, question, record.name, ids, mask_type, answer=answer, tags={"split": place.split} | tags
    )


def _add_target(
    targets: Targets, target: Fields, name: str, *, mapping: Mapping, mask_type: MaskType, record: str
) -> str:
    fields = mapping.target
    if fields.mask is None:
        masks = {
            kind: _segmentation(target, field)
            for kind, field in (("visible", fields.visible), ("amodal", fields.amodal))
            if field is not None
        }
    elif mask_type == "both":
        raise Misfit("a question that wants both masks needs `visible` and `amodal`, not `mask`")
    else:
        masks = {mask_type: _segmentation(target, fields.mask)}
    return targets.add(name, record, **masks)


def _segmentation(target: Fields, field: str) -> object:
    """A segmentation, as JSON would hold it."""
    value = _pick(target, field)
    if isinstance(value, dict) and isinstance(value.get("counts"), bytes):
        return value | {"counts": value["counts"].decode("ascii", "replace")}
    return value


def _mask_type(fields: Fields, mapping: Mapping) -> MaskType:
    if mapping.mask_type is None:
        return mapping.default_mask_type
    value = str(_pick(fields, mapping.mask_type))
    if value not in mapping.mask_types:
        raise Misfit(f"mask type {value!r}; the mapping knows: {', '.join(mapping.mask_types) or 'none'}")
    return mapping.mask_types[value]


def _answer(place: Place, record: Record, mapping: Mapping, *, names: list[str]) -> Answer:
    text = _text(record.fields, mapping.answer or "")
    if mapping.seg_token is None:
        return Answer(text=text)
    answer, count = parse_answer(text, mapping.seg_token, names)
    if count != len(names):
        expected = f"{len(names)} {mapping.seg_token}, one a target"
        place.keep("answer that does not fit its targets", record.name, expected=expected, found=count)
    return answer


def _text(fields: Fields, field: str) -> str:
    value = _pick(fields, field)
    if not isinstance(value, str):
        raise Misfit(f"field {field!r} is a {type(value).__name__}, not text")
    return value


def _pick(fields: Fields, field: str) -> Any:
    """The value of a field; dots reach inside."""
    value: Any = fields
    for key in field.split("."):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise Misfit(f"no field {field!r}")
    return value


def _records(place: Place, mapping: Mapping) -> Iterator[Record]:
    path = place.annotations
    if path.suffix == ".parquet":
        shards = sorted(path.parent.glob(f"{place.split}-*.parquet")) if "-of-" in path.name else [path]
        rows = enumerate(row for shard in shards for batch in _batches(shard) for row in batch.to_pylist())
        yield from (Record(f"row {number}", row) for number, row in rows)
        return
    text, lines = read_text(path), path.suffix == ".jsonl"
    raws = [line for line in text.splitlines() if line.strip()] if lines else _listed(text, path, mapping)
    for number, raw in enumerate(raws):
        name = f"line {number + 1}" if lines else f"[{number}]"
        fields = decode_record(raw, Fields, problems=place.problems, file=place.file, record=name)
        if fields is not None:
            yield Record(name, fields)


def _listed(text: bytes, path: Path, mapping: Mapping) -> list[msgspec.Raw]:
    raw = msgspec.Raw(text)
    for key in mapping.records.split(".") if mapping.records else ():
        inside = decode_json(raw, dict[str, msgspec.Raw], path)
        if key not in inside:
            found = ", ".join(sorted(inside))
            raise SourceError(
                f"{path} has no field {mapping.records!r}, which the mapping asks for; it has: {found}"
            )
        raw = inside[key]
    return decode_json(raw, list[msgspec.Raw], path)


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    try:
        yield from pq.ParquetFile(path).iter_batches(batch_size=256)
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"{path} is not a Parquet file: {error}") from None
