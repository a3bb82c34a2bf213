"""Files of records without a published format: JSON, JSON lines, CSV and Parquet, one dict per record."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from maskwise.errors import FormatError, MaskError
from maskwise.formats.json_files import decode_json, read_text
from maskwise.formats.matrix_columns import decode_matrix, is_matrix_type
from maskwise.formats.read_context import ReadContext

MAX_CELL = 2**27
"""The longest CSV cell read, in characters."""


class FileRecord(NamedTuple):
    """A record, decoded, and its position in the file."""

    position: str
    fields: dict[str, Any]


def read_records(context: ReadContext, records: str | None) -> Iterator[FileRecord]:
    """The records of a file, by its suffix: .json, .jsonl, .csv or .parquet.

    records: the field that holds the list, in a JSON file that is not itself a list. Records that cannot be decoded
    are skipped with a diagnostic; a file that cannot be read is a FormatError.
    """
    suffix = context.annotations.suffix.lower()
    if suffix == ".parquet":
        yield from _read_parquet(context)
    elif suffix == ".csv":
        yield from _read_csv(context)
    else:
        yield from _read_json(context, records, lines=suffix == ".jsonl")


def _read_json(
    context: ReadContext, records: str | None, *, lines: bool
) -> Iterator[FileRecord]:
    text = read_text(context.annotations)
    raws = (
        text.splitlines() if lines else _find_list(text, context.annotations, records)
    )
    for number, raw in enumerate(raws):
        if lines and not bytes(raw).strip():
            continue
        position = f"line {number + 1}" if lines else f"[{number}]"
        fields = context.decode(raw, dict[str, Any], record=position)
        if fields is not None:
            yield FileRecord(position, fields)


def _find_list(text: bytes, path: Path, records: str | None) -> list[msgspec.Raw]:
    raw = msgspec.Raw(text)
    for key in records.split(".") if records else ():
        inside = decode_json(raw, dict[str, msgspec.Raw], path)
        if key not in inside:
            fields = ", ".join(sorted(inside))
            raise FormatError(
                f"{path} has no field {records!r}, which the mapping asks for; "
                f"it has: {fields}"
            )
        raw = inside[key]
    return decode_json(raw, list[msgspec.Raw], path)


def _read_csv(context: ReadContext) -> Iterator[FileRecord]:
    path = context.annotations
    try:
        text = read_text(path).decode()
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{path} is not UTF-8: invalid byte at offset {error.start}"
        ) from None
    limit = csv.field_size_limit(MAX_CELL)
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        for fields in reader:
            if None in fields or None in fields.values():
                context.skip(
                    "row of another length",
                    f"line {reader.line_num}",
                    expected=f"{len(reader.fieldnames or ())} cells",
                    found="another number of cells",
                )
            else:
                yield FileRecord(f"line {reader.line_num}", fields)
    except csv.Error as error:
        raise FormatError(f"{path}, line {reader.line_num}: not CSV: {error}") from None
    finally:
        csv.field_size_limit(limit)


def _read_parquet(context: ReadContext) -> Iterator[FileRecord]:
    path = context.annotations
    shards = []
    if "-of-" in path.name:
        shards = sorted(path.parent.glob(f"{context.split}-*.parquet"))
    number = 0
    for shard in shards or [path]:
        for row in _read_rows(shard):
            yield FileRecord(f"row {number}", row)
            number += 1


def _read_rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        file = pq.ParquetFile(path)
        _refuse_matrices(path, file)
        for batch in file.iter_batches(batch_size=256):
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise FormatError(f"{path} is not a valid Parquet file: {error}") from None


def _refuse_matrices(path: Path, file: pq.ParquetFile) -> None:
    """FormatError for a column of masks as matrices: as Python lists they would fill the memory, and a matrix of
    integers looks like polygons.
    """
    names = [field.name for field in file.schema_arrow if is_matrix_type(field.type)]
    for name in names:
        first = next(file.iter_batches(batch_size=1, columns=[name]), None)
        if first is None or not len(first):
            continue
        try:
            decode_matrix(first.column(0), 0)
        except MaskError:
            # Integers that are not all 0 or 1 are coordinates.
            continue
        raise FormatError(
            f"{path}: column {name!r} holds masks as matrices; read the file with `maskwise read hub-matrices`"
        )
