"""The layout of a dataset folder: manifest, table schemas, and how a folder is created.

A folder is written beside its final path and then moved there. The manifest is written last, so its presence means that
the folder is complete.
"""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from maskwise import __version__
from maskwise.arrays import UInt8Array
from maskwise.errors import DISK_ERRORS, StoreError
from maskwise.masks.batch import ARROW_TYPE
from maskwise.store.atomic import PARTIAL, atomic_write, sync_folder
from maskwise.store.lock import locked

SCHEMA_VERSION = 2
"""Raised when a folder of an older version can no longer be read; columns that may be absent are in ADDED."""

MANIFEST = "manifest.json"
MAX_MANIFEST_BYTES = 2**24
"""The largest manifest that is read: 16 MB, where real ones have kilobytes."""

IGNORED_PIXELS = "ignored_pixels"
MERGED = "merged into the targets"
"""Key and value of `about` in the manifest of a copy that turned ignored pixels into target pixels."""

MaskKind = Literal["visible", "amodal", "overlap"]
MASK_KINDS: tuple[MaskKind, ...] = get_args(MaskKind)

_PHRASE = pa.struct(
    [("start", pa.int32()), ("stop", pa.int32()), ("regions", pa.list_(pa.int32()))]
)
_TURN = pa.struct([("question", pa.string()), ("answer", pa.string())])
TABLES: dict[str, pa.Schema] = {
    "images": pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("path", pa.string()),
            pa.field("width", pa.int32(), nullable=False),
            pa.field("height", pa.int32(), nullable=False),
            pa.field("data", pa.large_binary()),
            pa.field("license", pa.string()),
            pa.field("attribution", pa.string()),
        ]
    ),
    "regions": pa.schema(
        [
            pa.field("image", pa.int32(), nullable=False),
            pa.field("id", pa.string(), nullable=False),
            pa.field("name", pa.string(), nullable=False),
            pa.field("part_of", pa.int32()),
            pa.field("order", pa.int32()),
            pa.field("crowd", pa.bool_(), nullable=False),
            *(pa.field(kind, ARROW_TYPE) for kind in MASK_KINDS),
        ]
    ),
    "samples": pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("image", pa.int32(), nullable=False),
            pa.field("question", pa.string(), nullable=False),
            pa.field("mask_type", pa.string(), nullable=False),
            pa.field("targets", pa.list_(pa.int32()), nullable=False),
            pa.field("answer", pa.string()),
            pa.field("phrases", pa.list_(_PHRASE), nullable=False),
            pa.field("ignore", ARROW_TYPE),
            pa.field("tags", pa.map_(pa.string(), pa.string()), nullable=False),
            pa.field("other_targets", pa.list_(pa.list_(pa.int32()))),
            pa.field("turns", pa.list_(_TURN)),
        ]
    ),
}
"""The columns of each table. `part_of` and `targets` are rows of regions, `image` is a row of images. The
`regions` of a phrase are positions among the targets of the sample. `other_targets` holds one list of regions per
further annotator, and null where there is none; `turns` the earlier questions of a dialogue, in the same way.
"""

ADDED = ("license", "attribution", "other_targets", "turns")
"""Columns that older folders do not have."""


class FileFacts(msgspec.Struct, frozen=True):
    """Size and hash of a file in the manifest."""

    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of `manifest.json`. `image_root` is absolute, relative to the dataset folder, or None."""

    schema_version: int
    name: str
    created_by: str
    counts: dict[str, int]
    files: dict[str, FileFacts]
    image_root: str | None = None
    about: dict[str, str] = {}


FileStamp = tuple[int, int, int]
"""Inode, size and time of the last change."""


def read_manifest(folder: str | os.PathLike[str]) -> Manifest:
    """Read the manifest of a dataset folder and check its schema version."""
    path = Path(folder) / MANIFEST
    if not path.is_file():
        if not Path(folder).is_dir():
            raise StoreError(f"{folder} does not exist: no {MANIFEST}")
        raise StoreError(
            f"{folder} is not finished or not a dataset: it has no {MANIFEST}. Published files become a dataset by "
            f"`maskwise read FORMAT {folder} --out DATASET`; `maskwise ls benchmarks` and `ls formats` list the formats"
        )
    if path.stat().st_size > MAX_MANIFEST_BYTES:
        raise StoreError(
            f"{path} has {path.stat().st_size} bytes, more than the limit of {MAX_MANIFEST_BYTES}"
        )
    text = path.read_bytes()
    try:
        version = msgspec.json.decode(text, type=dict[str, Any]).get("schema_version")
        if version != SCHEMA_VERSION:
            raise StoreError(
                f"{path} has schema version {version}; maskwise {__version__} reads {SCHEMA_VERSION}"
            )
        return msgspec.json.decode(text, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StoreError(f"{path} is not a manifest: {error}") from None


def check_files(folder: Path, manifest: Manifest) -> str:
    """Check that the tables exist with the sizes of the manifest; returns their suffix."""
    suffix = next(
        (end for end in (".arrow", ".parquet") if f"images{end}" in manifest.files),
        None,
    )
    if suffix is None or set(manifest.files) != {f"{name}{suffix}" for name in TABLES}:
        raise StoreError(
            f"{folder / MANIFEST} lists {sorted(manifest.files)}, not the tables {sorted(TABLES)}"
        )
    for name, facts in manifest.files.items():
        path = folder / name
        if not path.is_file():
            raise StoreError(f"{path} is missing")
        if path.stat().st_size != facts.bytes:
            raise StoreError(
                f"{path} has {path.stat().st_size} bytes; the manifest says {facts.bytes}"
            )
    return suffix


def stamp_files(folder: Path, manifest: Manifest) -> dict[str, FileStamp]:
    """What tells without reading whether the manifest and the tables of a folder are still the same files."""
    stamps = {}
    for name in (MANIFEST, *manifest.files):
        stat = (folder / name).stat()
        stamps[name] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    return stamps


def check_hash(path: Path, facts: FileFacts) -> None:
    """Raise StoreError unless the file has the SHA-256 of the manifest."""
    sha256 = file_facts(path).sha256
    if sha256 != facts.sha256:
        raise StoreError(
            f"{path} changed after it was written: its sha256 is {sha256}, the manifest says {facts.sha256}"
        )


def open_table(path: Path, schema: pa.Schema) -> tuple[pa.Table, UInt8Array | None]:
    """The table, and for an Arrow file its memory-mapped bytes."""
    try:
        if path.suffix == ".parquet":
            parquet = _complete(pq.read_table(path), schema)
            return parquet.cast(schema).combine_chunks(), None
        with pa.memory_map(str(path)) as file:
            buffer = file.read_buffer()
        table = _complete(pa.ipc.open_file(buffer).read_all(), schema)
        if not table.schema.equals(schema):
            raise StoreError(
                f"{path} does not have the columns {', '.join(schema.names)} and their types"
            )
        identity = _identify(path)
        if identity not in _CHECKED:
            _check_table(table, path)
            _CHECKED.add(identity)
        return table, np.frombuffer(buffer, np.uint8)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        # Arrow decodes the names of columns when they are asked for: in a damaged file they may be no text.
        raise StoreError(f"{path} is not a table of a dataset: {error}") from error


_CHECKED: set[tuple[str, int, int, int]] = set()
"""Files whose content this process has checked. Reading all offsets and texts again takes half of the time of opening a
large dataset; a file that was replaced or written to has another identity.
"""


def _identify(path: Path) -> tuple[str, int, int, int]:
    """Path, inode, size and time of the last change of a file."""
    facts = path.stat()
    return str(path.absolute()), facts.st_ino, facts.st_size, facts.st_mtime_ns


def _complete(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with empty columns for those that were added to the schema after it was written."""
    if table.schema.names == schema.names[: len(table.schema)]:
        for field in list(schema)[len(table.schema) :]:
            if field.name in ADDED:
                table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table


def _check_table(table: pa.Table, path: Path) -> None:
    """Refuse offsets outside their buffers, invalid text, and nulls in columns that must not have them.

    Arrow reads wherever the offsets point, so this check comes before any other access.
    """
    table.validate(full=True)
    for field, column in zip(table.schema, table.columns):
        if not field.nullable and column.null_count:
            raise StoreError(
                f"{path}: column {field.name!r} has {column.null_count} nulls"
            )


@contextlib.contextmanager
def staged(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """A folder beside `path` to write to. It is moved to `path` when the block ends, and removed if the block raises.

    What a killed writer left behind is cleared; a folder that is still being written is refused.
    """
    _check_free(path, overwrite)
    folder = path.with_name(f".{path.name}{PARTIAL}")
    with _disk_errors(path):
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder, f"{path} is being written by another process"):
            _clear(folder)
            try:
                yield folder
                _check_free(path, overwrite)
                _replace_folder(folder, path)
            finally:
                shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    """A full disk or a folder that cannot be written as StoreError with the name of the folder."""
    try:
        yield
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        raise StoreError(
            f"{path} cannot be written: {os.strerror(error.errno)}; make room or choose another place. "
            "No part of it was left behind"
        ) from error


def refuse_source_folder(out: Path, sources: Iterable[Path]) -> None:
    """StoreError if a result would replace or enclose a dataset it is made from, or lie inside it."""
    target = out.resolve()
    for source in sources:
        folder = source.resolve()
        if target == folder or folder in target.parents or target in folder.parents:
            raise StoreError(
                f"--out {out} and the dataset {source} it is made from are the same folder, or one is inside the "
                "other; choose another folder"
            )


def _clear(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _check_free(path: Path, overwrite: bool) -> None:
    """Refuse to replace anything, except a dataset if the caller allows it."""
    occupied = path.exists() and not (path.is_dir() and not any(path.iterdir()))
    if occupied and not (overwrite and (path / MANIFEST).is_file()):
        whole = (path / MANIFEST).is_file()
        hint = (
            "remove it, or overwrite it (--overwrite)"
            if whole
            else "choose another folder"
        )
        raise StoreError(f"{path} exists already: {hint}")


def _replace_folder(new: Path, path: Path) -> None:
    old = path.with_name(f".{path.name}.old")
    if path.exists():
        path.rename(old)
    new.rename(path)
    sync_folder(path.parent)
    shutil.rmtree(old, ignore_errors=True)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write `manifest.json`, as the last file of a dataset."""
    text = msgspec.json.format(
        msgspec.json.encode(manifest, order="deterministic"), indent=2
    )
    with atomic_write(folder / MANIFEST) as file:
        file.write(text + b"\n")


def file_facts(path: Path) -> FileFacts:
    """Size and SHA-256 of a file."""
    with open(path, "rb") as file:
        return FileFacts(
            path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()
        )
