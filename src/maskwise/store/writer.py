"""Write a dataset folder in one pass."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

import msgspec
import pyarrow as pa

from maskwise import __version__
from maskwise.errors import RecordError
from maskwise.images import check_relative
from maskwise.masks import Mask, Masks
from maskwise.masks.batch import ARROW_TYPE
from maskwise.schema import ImageInfo, Region, Sample
from maskwise.store.folder import (
    SCHEMA_VERSION,
    TABLES,
    FileFacts,
    Manifest,
    staged,
    write_manifest,
)

FLUSH_ROWS = 16384
FLUSH_BYTES = 2**25
"""Rows of a table are written after this many rows, or this many bytes of masks and images."""


class DatasetWriter:
    """Writes a dataset folder in one pass. Memory holds the ids and one batch of rows.

    Everything is written beside `path` and moved there when the block ends without an error, so a killed writer leaves
    no folder that opens. `image_root`: the folder of images given by path; a relative one is inside the dataset folder,
    and files written below `folder` during the block become part of it. `about`: facts for people (license, source).
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        name: str,
        image_root: str | os.PathLike[str] | None = None,
        about: dict[str, str] | None = None,
        overwrite: bool = False,
    ) -> None:
        self.path = Path(path)
        self.name = name
        self.about = about or {}
        self.image_root = None if image_root is None else os.fspath(image_root)
        self._staging = staged(self.path, overwrite=overwrite)
        self._images: dict[str, tuple[int, ImageInfo]] = {}
        self._regions: dict[str, dict[str, int]] = {}
        self._hashes: list[int] = []
        self._samples: set[str] = set()
        self._masks = 0

    def __enter__(self) -> "DatasetWriter":
        self.folder = self._staging.__enter__()
        self._tables = {
            name: _TableWriter(self.folder / f"{name}.arrow", TABLES[name])
            for name in TABLES
        }
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            files = {
                f"{name}.arrow": table.close() for name, table in self._tables.items()
            }
            if error is None:
                write_manifest(self.folder, self._manifest(files))
        except BaseException as failure:
            self._staging.__exit__(type(failure), failure, failure.__traceback__)
            raise
        self._staging.__exit__(kind, error, trace)

    def add_image(
        self,
        image: ImageInfo,
        regions: Iterable[Region] = (),
        data: bytes | None = None,
    ) -> None:
        """Add an image, its regions and, if given, its encoded bytes (JPEG, PNG, ...)."""
        if image.id in self._images:
            raise RecordError(f"image {image.id!r} was already added")
        if image.path is not None:
            check_relative(image.path)
        own_regions = tuple(regions)
        first = self._tables["regions"].rows
        rows = _number_regions(image, own_regions, {}, first=first)
        row = self._tables["images"].add(
            (
                image.id,
                image.path,
                image.width,
                image.height,
                data,
                image.license,
                image.attribution,
            ),
            len(data or b""),
        )
        self._images[image.id] = (row, image)
        self._regions[image.id] = {}
        self._add_regions(image, own_regions, rows)

    def add_sample(self, sample: Sample) -> None:
        """Add a sample of an image that was already added. Targets that the image does not have yet are added to it."""
        if sample.id in self._samples:
            raise RecordError(f"sample {sample.id!r} was already added")
        if sample.image_id not in self._images:
            raise RecordError(
                f"sample {sample.id!r} asks about image {sample.image_id!r}, which was not added"
            )
        row, image = self._images[sample.image_id]
        known = self._regions[sample.image_id]
        if sample.ignore is not None:
            _check_size(
                image, sample.ignore.size, f"sample {sample.id!r}: its ignore mask"
            )
        new = self._new_targets(sample, known)
        self._add_regions(
            image,
            new,
            _number_regions(image, new, known, first=self._tables["regions"].rows),
        )
        self._samples.add(sample.id)
        self._masks += sample.ignore is not None
        self._tables["samples"].add(
            _sample_row(sample, row, known),
            len(sample.question) + (len(sample.ignore.counts) if sample.ignore else 0),
        )

    def _new_targets(self, sample: Sample, known: dict[str, int]) -> tuple[Region, ...]:
        """The targets that are new; one that was already added must be equal in every field."""
        new: dict[str, Region] = {}
        others = [region for regions in sample.other_targets for region in regions]
        for region in (*sample.targets, *others):
            if region.id in known:
                same = self._hashes[known[region.id]] == hash(region)
            else:
                same = new.setdefault(region.id, region) == region
            if not same:
                raise RecordError(
                    f"sample {sample.id!r}: target {region.id!r} differs from the region of that id in "
                    f"image {sample.image_id!r}"
                )
        return tuple(new.values())

    def _add_regions(
        self, image: ImageInfo, regions: tuple[Region, ...], rows: dict[str, int]
    ) -> None:
        known = self._regions[image.id]
        known.update(rows)
        for region in regions:
            masks = (region.visible, region.amodal, region.overlap)
            parent = None if region.part_of is None else known[region.part_of]
            image_row = self._images[image.id][0]
            self._tables["regions"].add(
                (
                    image_row,
                    region.id,
                    region.name,
                    parent,
                    region.order,
                    region.crowd,
                    *masks,
                ),
                sum(len(mask.counts) for mask in masks if mask is not None),
            )
            self._hashes.append(hash(region))
            self._masks += sum(mask is not None for mask in masks)

    def _manifest(self, files: dict[str, FileFacts]) -> Manifest:
        return Manifest(
            schema_version=SCHEMA_VERSION,
            name=self.name,
            created_by=f"maskwise {__version__}",
            counts={name: table.rows for name, table in self._tables.items()}
            | {"masks": self._masks},
            files=files,
            image_root=self.image_root,
            about=self.about,
        )


class _TableWriter:
    """An Arrow IPC file written in batches of rows. `close` returns its size and sha256."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.rows = 0
        self._schema = schema
        self._pending: list[tuple[Any, ...]] = []
        self._weight = 0
        self._file = _HashedFile(path)
        self._writer = pa.ipc.new_file(pa.PythonFile(self._file, "w"), schema)

    def add(self, row: tuple[Any, ...], weight: int) -> int:
        """Add a row of about `weight` bytes, in the order of the schema; returns its number."""
        self._pending.append(row)
        self._weight += weight
        self.rows += 1
        if len(self._pending) >= FLUSH_ROWS or self._weight >= FLUSH_BYTES:
            self._flush()
        return self.rows - 1

    def close(self) -> FileFacts:
        """Write the remaining rows."""
        try:
            self._flush()
            self._writer.close()
        finally:
            self._file.close()
        return FileFacts(self._file.size, self._file.digest.hexdigest())

    def _flush(self) -> None:
        if self._pending:
            columns = [
                _masks_to_arrow(values)
                if field.type == ARROW_TYPE
                else pa.array(values, field.type)
                for field, values in zip(self._schema, zip(*self._pending))
            ]
            self._writer.write_batch(pa.record_batch(columns, schema=self._schema))
            self._pending = []
            self._weight = 0


class _HashedFile:
    """A file written from front to back and hashed while writing."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "wb")  # noqa: SIM115
        self.digest = hashlib.sha256()
        self.size = 0

    def write(self, data: Any) -> int:
        self.digest.update(data)
        self.size += self._file.write(data)
        return len(data)

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        if not self._file.closed:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()

    @property
    def closed(self) -> bool:
        return self._file.closed


def _number_regions(
    image: ImageInfo, regions: tuple[Region, ...], known: dict[str, int], *, first: int
) -> dict[str, int]:
    """Check ids, sizes and parents of new regions, and give each its row."""
    rows: dict[str, int] = {}
    for region in regions:
        if region.id in known or region.id in rows:
            raise RecordError(
                f"image {image.id!r}: region {region.id!r} was already added"
            )
        _check_size(image, region.size, f"region {region.id!r}")
        rows[region.id] = first + len(rows)
    parents = {
        region.id: region.part_of for region in regions if region.part_of is not None
    }
    for child, parent in parents.items():
        if parent not in rows and parent not in known:
            raise RecordError(
                f"image {image.id!r}: region {child!r} is a part of {parent!r}, which is unknown"
            )
        if child in _ancestors(child, parents):
            raise RecordError(
                f"image {image.id!r}: region {child!r} is indirectly a part of itself"
            )
    return rows


def _ancestors(region: str, parents: dict[str, str]) -> set[str]:
    ancestors: set[str] = set()
    # An ancestor that was seen before closes a circle.
    while region in parents and parents[region] not in ancestors:
        region = parents[region]
        ancestors.add(region)
    return ancestors


def _check_size(image: ImageInfo, size: tuple[int, int], what: str) -> None:
    if size != (image.height, image.width):
        raise RecordError(
            f"{what} has height and width {size}, but image {image.id!r} has {(image.height, image.width)}"
        )


def _sample_row(
    sample: Sample, image: int, region_rows: dict[str, int]
) -> tuple[Any, ...]:
    """The values of the columns. region_rows: the row of each region of the image."""
    targets = [region_rows[region.id] for region in sample.targets]
    other_targets = [
        [region_rows[region.id] for region in regions]
        for regions in sample.other_targets
    ]
    answer = sample.answer
    phrases = (
        [msgspec.structs.asdict(phrase) for phrase in answer.phrases] if answer else []
    )
    text = answer.text if answer else None
    tags = list(sample.tags.items())
    return (
        sample.id,
        image,
        sample.question,
        sample.mask_type,
        targets,
        text,
        phrases,
        sample.ignore,
        tags,
        other_targets or None,
        [msgspec.structs.asdict(turn) for turn in sample.turns] or None,
    )


def _masks_to_arrow(masks: tuple[Mask | None, ...]) -> pa.Array:
    batch = Masks.from_strings(
        [mask.counts if mask else "" for mask in masks],
        [mask.size if mask else (0, 0) for mask in masks],
    ).to_arrow()
    missing = pa.array([mask is None for mask in masks])
    return pa.StructArray.from_arrays(
        [batch.field(0), batch.field(1)], fields=list(ARROW_TYPE), mask=missing
    )
