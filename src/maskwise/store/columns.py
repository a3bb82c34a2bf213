"""The tables of a dataset as numpy arrays and mask batches that share the memory of the file."""

from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from maskwise.arrays import (
    BoolArray,
    Int8Array,
    Int32Array,
    Int64Array,
    NumberArray,
    UInt8Array,
)
from maskwise.arrow import (
    arrow_to_numpy,
    nulls_to_zeros,
    numpy_to_arrow,
    text_to_arrow,
)
from maskwise.errors import StoreError
from maskwise.masks import Masks
from maskwise.schema import MASK_TYPES
from maskwise.store.folder import MaskKind


class MaskColumn(NamedTuple):
    """One mask per row. Where `present` is False the mask is unknown, and its place holds an empty 0 x 0 mask."""

    masks: Masks
    present: BoolArray


class RaggedInts(NamedTuple):
    """One list per row: values[offsets[i]:offsets[i + 1]]. offsets int64 [n + 1] from 0, values int32."""

    offsets: Int64Array
    values: Int32Array


class Codes(NamedTuple):
    """Text as integer codes: row i holds names[codes[i]]. codes int32 [n]; names in order of first appearance."""

    codes: Int32Array
    names: tuple[str | None, ...]


class NullableInts(NamedTuple):
    """Integers, some of them unknown: values int32 [n] are valid where present (bool [n]) is True."""

    values: Int32Array
    present: BoolArray


class _Columns:
    """One table and its columns as arrays. `mapped`: the bytes of the memory-mapped file, if there is one."""

    def __init__(
        self, table: pa.Table, where: Path, mapped: UInt8Array | None = None
    ) -> None:
        self.table = table
        self.where = where
        self.mapped = mapped

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @cached_property
    def id(self) -> list[str]:
        """Identifiers, in row order."""
        return self._texts("id")

    def _texts(self, name: str) -> list[str]:
        texts: list[str] = self.table[name].to_pylist()
        return texts

    def _numbers(self, name: str) -> NumberArray:
        return _joined(
            [arrow_to_numpy(chunk) for chunk in self.table[name].chunks],
            np.int32,
        )

    def _rows(self, name: str, of: str, count: int) -> Int32Array:
        return _check_rows(
            self._numbers(name),
            count,
            f"{self.where}: column {name!r} refers to rows of {of}",
        )

    def _partial(self, name: str) -> NullableInts:
        column = self.table[name]
        filled = [nulls_to_zeros(chunk) for chunk in column.chunks]
        return NullableInts(_joined(filled, np.int32), self._present(name))

    def _present(self, name: str) -> BoolArray:
        chunks = self.table[name].chunks
        return _joined(
            [arrow_to_numpy(chunk.is_valid()) for chunk in chunks],
            np.bool_,
        )

    def _codes(self, column: pa.ChunkedArray) -> Codes:
        if not len(column):
            return Codes(np.zeros(0, np.int32), ())
        encoded = pc.dictionary_encode(column, null_encoding="encode").combine_chunks()
        return Codes(
            arrow_to_numpy(encoded.indices), tuple(encoded.dictionary.to_pylist())
        )

    def _masks(self, name: str) -> MaskColumn:
        """The column as one batch. The chunks of a mapped file are not copied: the data of the batch is the file."""
        try:
            batches = [
                Masks.from_arrow(chunk)
                for chunk in self.table[name].chunks
                if len(chunk)
            ]
        except ValueError as error:
            raise StoreError(
                f"{self.where}: column {name!r} is damaged: {error}"
            ) from error
        present = self._present(name)
        if len(batches) > 1 and self.mapped is not None:
            masks = _over_file(batches, self.mapped)
        else:
            masks = Masks.concat(batches)
            # Parquet does not keep the values under a null.
            masks = Masks(
                masks.data,
                masks.start,
                masks.stop,
                np.where(present[:, None], masks.size, 0),
            )
        return MaskColumn(masks, present)


class ImageColumns(_Columns):
    """The columns of images."""

    @cached_property
    def path(self) -> list[str | None]:
        """Paths below the image root; None where the image is embedded."""
        paths: list[str | None] = self.table["path"].to_pylist()
        return paths

    @cached_property
    def license(self) -> list[str | None]:
        """Licenses; None where the source states none."""
        licenses: list[str | None] = self.table["license"].to_pylist()
        return licenses

    @cached_property
    def attribution(self) -> list[str | None]:
        """Authors or pages to name; None where the source states none."""
        attributions: list[str | None] = self.table["attribution"].to_pylist()
        return attributions

    @cached_property
    def size(self) -> Int32Array:
        """Heights and widths, int32 [p, 2]."""
        return np.stack([self._numbers("height"), self._numbers("width")], 1)

    @cached_property
    def row(self) -> dict[str, int]:
        """Row of each id."""
        return {name: row for row, name in enumerate(self.id)}


class RegionColumns(_Columns):
    """The columns of regions."""

    def __init__(
        self,
        table: pa.Table,
        where: Path,
        mapped: UInt8Array | None,
        *,
        images: ImageColumns,
    ):
        super().__init__(table, where, mapped)
        self._images = images
        self._batches: dict[str, MaskColumn] = {}

    @cached_property
    def image(self) -> Int32Array:
        """Row of the image, int32 [m]."""
        return self._rows("image", "images", len(self._images))

    @cached_property
    def size(self) -> Int32Array:
        """Heights and widths of the image, int32 [m, 2]."""
        return self._images.size[self.image]

    @cached_property
    def name(self) -> Codes:
        """Names."""
        return self._codes(self.table["name"])

    @cached_property
    def part_of(self) -> NullableInts:
        """Row of the region each one is a part of."""
        values, present = self._partial("part_of")
        return NullableInts(
            _check_rows(values, len(self) or 1, f"{self.where}: column 'part_of'"),
            present,
        )

    @cached_property
    def order(self) -> NullableInts:
        """Depth, 1 = front."""
        return self._partial("order")

    @cached_property
    def crowd(self) -> BoolArray:
        """Whether the region is a crowd, bool [m]."""
        return self._numbers("crowd").astype(np.bool_, copy=False)

    @cached_property
    def of_image(self) -> RaggedInts:
        """Region rows of each image row, in row order."""
        rows = np.argsort(self.image, kind="stable").astype(np.int32)
        counts = np.bincount(self.image, minlength=len(self._images))
        return RaggedInts(
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), rows
        )

    def masks(self, kind: MaskKind) -> MaskColumn:
        """The masks of one kind, one per region."""
        if kind not in self._batches:
            self._batches[kind] = self._masks(kind)
        return self._batches[kind]

    def take_masks(self, kind: MaskKind, rows: Int32Array) -> MaskColumn:
        """The masks of one kind in some rows, in the order given.

        Rows that lie close together are read without the others: the batch of a whole table takes 24 bytes per row.
        """
        first = int(rows.min(initial=len(self)))
        stop = int(rows.max(initial=first - 1)) + 1
        if kind in self._batches or 2 * (stop - first) > len(self):
            column = self.masks(kind)
            first = 0
        else:
            table = self.table.slice(first, stop - first)
            column = RegionColumns(
                table, self.where, self.mapped, images=self._images
            ).masks(kind)
        if _is_range(rows, first, len(column.present)):
            return column
        places = rows - first
        return MaskColumn(column.masks[places], column.present[places])


class SampleColumns(_Columns):
    """The columns of samples."""

    def __init__(
        self,
        table: pa.Table,
        where: Path,
        mapped: UInt8Array | None,
        *,
        images: ImageColumns,
        regions: RegionColumns,
    ):
        super().__init__(table, where, mapped)
        self._images = images
        self._regions = regions

    @cached_property
    def question(self) -> list[str]:
        """Questions."""
        return self._texts("question")

    @cached_property
    def image(self) -> Int32Array:
        """Row of the image, int32 [n]."""
        return self._rows("image", "images", len(self._images))

    @cached_property
    def size(self) -> Int32Array:
        """Heights and widths of the image, int32 [n, 2]."""
        return self._images.size[self.image]

    @cached_property
    def mask_type(self) -> Int8Array:
        """Positions in MASK_TYPES, int8 [n]."""
        codes, names = self._codes(self.table["mask_type"])
        unknown = [name for name in names if name not in MASK_TYPES]
        if unknown:
            raise StoreError(
                f"{self.where}: mask_type {unknown[0]!r}; known: {', '.join(MASK_TYPES)}"
            )
        return np.array([MASK_TYPES.index(str(name)) for name in names], np.int8)[codes]

    @cached_property
    def targets(self) -> RaggedInts:
        """Rows of the target regions."""
        offsets, values = _lists(self.table["targets"], self.where)
        return RaggedInts(
            offsets,
            _check_rows(values, len(self._regions), f"{self.where}: column 'targets'"),
        )

    @cached_property
    def other_targets(self) -> list[tuple[BoolArray, RaggedInts]]:
        """The targets of each further annotator: whether a sample has one, bool [n], and rows of regions."""
        column = self.table["other_targets"].combine_chunks()
        lists = column.flatten()
        if lists.null_count:
            raise StoreError(f"{self.where}: column 'other_targets' contains a null")
        offsets, values = _lists(pa.chunked_array([lists]), self.where)
        _check_rows(values, len(self._regions), f"{self.where}: column 'other_targets'")
        counts = nulls_to_zeros(pc.list_value_length(column))
        starts = np.cumsum(counts) - counts
        annotators = []
        for annotator in range(counts.max(initial=0)):
            known = counts > annotator
            # Samples without this annotator take no value: their length is 0.
            place = np.where(known, starts + annotator, 0)
            lengths = np.where(known, np.diff(offsets)[place], 0)
            ends = np.concatenate([[0], np.cumsum(lengths)])
            shift = np.repeat(offsets[place] - ends[:-1], lengths)
            rows = values[np.arange(ends[-1]) + shift]
            annotators.append((known, RaggedInts(ends.astype(np.int64), rows)))
        return annotators

    @cached_property
    def ignore(self) -> MaskColumn:
        """Pixels that no metric counts."""
        return self._masks("ignore")

    @cached_property
    def tag_names(self) -> list[str]:
        """The tags that occur, sorted."""
        keys: set[str] = set()
        for chunk in self.table["tags"].chunks:
            first = chunk.offsets[0].as_py()
            last = chunk.offsets[-1].as_py()
            keys.update(pc.unique(chunk.keys[first:last]).to_pylist())
        return sorted(keys)

    def tag(self, key: str) -> Codes:
        """The values of one tag; None in `names` stands for samples without it."""
        values = [_tag_values(chunk, key) for chunk in self.table["tags"].chunks]
        return self._codes(pa.chunked_array(values, pa.string()))

    @cached_property
    def row(self) -> dict[str, int]:
        """Row of each id."""
        return {name: row for row, name in enumerate(self.id)}


def _tag_values(tags: pa.MapArray, key: str) -> pa.Array:
    """The value of a key in each row, null where it is absent. Ten times faster than pyarrow's map_lookup."""
    offsets = arrow_to_numpy(tags.offsets)
    entries = np.flatnonzero(arrow_to_numpy(pc.equal(tags.keys, text_to_arrow(key))))
    entries = entries[(entries >= offsets[0]) & (entries < offsets[-1])]
    rows = np.searchsorted(offsets, entries, side="right") - 1
    place = np.zeros(len(tags), np.int64)
    missing = np.ones(len(tags), bool)
    place[rows] = entries
    missing[rows] = False
    return tags.items.take(numpy_to_arrow(place, missing))


def _over_file(batches: list[Masks], mapped: UInt8Array) -> Masks:
    """The masks of several chunks as one batch whose data is the mapped file."""
    base = mapped.ctypes.data
    count = sum(len(batch) for batch in batches)
    start = np.empty(count, np.int64)
    stop = np.empty(count, np.int64)
    size = np.empty((count, 2), np.int32)
    first = 0
    for batch in batches:
        rows = slice(first, first + len(batch))
        shift = batch.data.ctypes.data - base if len(batch.data) else 0
        # Written in place: half a million masks are worth two copies less.
        np.add(batch.start, shift, out=start[rows])
        np.add(batch.stop, shift, out=stop[rows])
        size[rows] = batch.size
        first = rows.stop
    return Masks(mapped, start, stop, size)


def _lists(column: pa.ChunkedArray, where: Path) -> RaggedInts:
    ends = [np.zeros(1, np.int64)]
    values = []
    base = 0
    for chunk in column.chunks:
        if chunk.values.null_count:
            raise StoreError(f"{where}: a list contains a null")
        offsets = arrow_to_numpy(chunk.offsets).astype(np.int64)
        values.append(arrow_to_numpy(chunk.values)[offsets[0] : offsets[-1]])
        ends.append(offsets[1:] - offsets[0] + base)
        base = int(ends[-1][-1]) if len(ends[-1]) else base
    return RaggedInts(np.concatenate(ends), _joined(values, np.int32))


def _joined(arrays: list[NumberArray], dtype: type) -> NumberArray:
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype)


def _is_range(rows: Int32Array, first: int, count: int) -> bool:
    """Whether the rows are first, first + 1, ..., `count` of them."""
    return (
        len(rows) == count
        and (not count or int(rows[0]) == first)
        and bool((rows[1:] - rows[:-1] == 1).all())
    )


def _check_rows(rows: Int32Array, count: int, what: str) -> Int32Array:
    if len(rows) and (rows.min() < 0 or rows.max() >= count):
        raise StoreError(
            f"{what}: found rows {rows.min()} to {rows.max()}, expected 0 to {count - 1}"
        )
    return rows
