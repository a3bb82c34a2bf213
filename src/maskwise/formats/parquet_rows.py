"""Rows of Parquet files with embedded images, one at a time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from maskwise.errors import FormatError
from maskwise.formats.read_context import ReadContext

T = TypeVar("T")

READ_BYTES = 2**20
"""How much of a column of a file is read at once: without it the whole column of a row group is held in memory."""

PARQUET_FILES = (
    "data/{split}-*-of-*.parquet",
    "{split}-*-of-*.parquet",
    "{split}.parquet",
)
"""Where hub datasets have the files of a split."""


def open_parquet(context: ReadContext) -> list[pq.ParquetFile]:
    """The files of a split: all shards of the one that was found."""
    path = context.annotations
    paths: list[Path] = []
    if "-of-" in path.name:
        paths = sorted(path.parent.glob(f"{context.split}-*.parquet"))
    try:
        files = [
            pq.ParquetFile(item, buffer_size=READ_BYTES) for item in paths or [path]
        ]
        # Arrow decodes the names of columns when they are asked for: in a damaged file they may be no text.
        for file in files:
            _ = file.schema_arrow.names
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise FormatError(
            f"{context.annotations} is not a valid Parquet file: {error}"
        ) from None
    return files


def check_columns(
    context: ReadContext, file: pq.ParquetFile, names: tuple[str, ...]
) -> None:
    """FormatError if a column is missing."""
    missing = sorted(set(names) - set(file.schema_arrow.names))
    if missing:
        raise FormatError(
            f"{context.annotations}: expected the columns {', '.join(names)}; missing: {', '.join(missing)}; "
            f"found: {', '.join(file.schema_arrow.names)}"
        )


def iterate_batches(
    context: ReadContext, files: list[pq.ParquetFile], columns: list[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Batches of one row each: a matrix of 12 megapixels takes some 100 MB while Parquet decodes it."""
    try:
        for file in files:
            yield from file.iter_batches(batch_size=1, columns=columns)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise FormatError(
            f"{context.annotations} is not a valid Parquet file: {error}"
        ) from None


def decode_fields(
    context: ReadContext, batch: pa.RecordBatch, record: str
) -> dict[str, Any] | None:
    """The only row of a batch; None and a diagnostic if its text cannot be decoded."""
    try:
        fields: dict[str, Any] = batch.to_pylist()[0]
    except UnicodeDecodeError as error:
        context.skip(
            "fields of another type", record, expected="text", found=str(error)
        )
        return None
    return fields


def iterate_rows(
    context: ReadContext, files: list[pq.ParquetFile], kind: type[T]
) -> Iterator[tuple[str, T]]:
    """Rows as records of `kind` with their place; rows of other types are skipped with a diagnostic.

    Only the columns that are fields of `kind` are read. A null takes the default of its field.
    """
    names = [field.name for field in msgspec.structs.fields(kind)]  # type: ignore[arg-type]
    known = [name for name in names if name in files[0].schema_arrow.names]
    for number, batch in enumerate(iterate_batches(context, files, known)):
        record = f"row {number}"
        try:
            values: dict[str, Any] = batch.to_pylist()[0]
            present = {name: item for name, item in values.items() if item is not None}
            yield record, msgspec.convert(present, kind)
        except (msgspec.ValidationError, UnicodeDecodeError, RecursionError) as error:
            context.skip(
                "fields of another type",
                record,
                expected=kind.__name__,
                found=str(error),
            )
