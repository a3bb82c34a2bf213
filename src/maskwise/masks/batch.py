"""A batch of masks as columns: one buffer of run-length strings, where each begins and ends, its frame."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from maskwise.errors import MaskError
from maskwise.masks.kernel import (
    AND,
    MAX_PIXELS,
    MINUS,
    OR,
    XOR,
    Batch,
    Bytes,
    Floats,
    Int32s,
    Int64s,
    Strings,
    kernel,
)
from maskwise.masks.mask import Mask, check_size

T = TypeVar("T")

MAX_DENSE_BYTES = 2**32
"""The most `to_dense` allocates at once."""

ARROW_TYPE = pa.struct([("size", pa.list_(pa.int32(), 2)), ("counts", pa.large_binary())])
"""A column of masks in Arrow: its buffers are the batch's own."""


class Masks:
    """Many masks, of one frame or of several.

    `data`: uint8 bytes of COCO compressed strings; `start`, `stop`: int64 [n], the bytes of each mask; `size`: int32
    [n, 2], heights and widths. Selecting copies no mask bytes. The strings are checked where they are used: any
    operation on a malformed mask raises MaskError naming it; `check()` looks at all of them.
    """

    __slots__ = ("data", "size", "start", "stop")

    def __init__(self, data: Bytes, start: Int64s, stop: Int64s, size: Int32s) -> None:
        if not (len(start) == len(stop) == len(size)) or size.shape[1:] != (2,):
            raise MaskError(f"columns differ: {len(start)} starts, {len(stop)} stops, sizes {size.shape}")
        self.data, self.start, self.stop, self.size = data, start, stop, size

    # -- reading ---------------------------------------------------------------------------------------------------

    @classmethod
    def from_strings(cls, counts: Sequence[str] | Sequence[bytes], sizes: ArrayLike) -> "Masks":
        """From COCO compressed strings and (n, 2) heights and widths (or one pair for all)."""
        size = _sizes(sizes, len(counts))
        lengths = np.fromiter(map(len, counts), np.int64, len(counts))
        stop = np.cumsum(lengths)
        return cls(np.frombuffer(_join(counts), np.uint8), stop - lengths, stop, size)

    @classmethod
    def from_masks(cls, masks: Sequence[Mask]) -> "Masks":
        """From single masks."""
        return cls.from_strings([mask.counts for mask in masks], [mask.size for mask in masks])

    @classmethod
    def from_rles(cls, rles: Sequence[Mapping[str, Any]]) -> "Masks":
        """From COCO dicts `{"size": [h, w], "counts": str, bytes or list of runs}`, mixed as they come."""
        for item, rle in enumerate(rles):
            if "size" not in rle or "counts" not in rle:
                raise MaskError("a run-length mask needs size and counts", item)

        def read(rows: slice) -> "Masks":
            counts, sizes = [rle["counts"] for rle in rles[rows]], [rle["size"] for rle in rles[rows]]
            if not isinstance(counts[0], str | bytes):
                return cls.from_runs(counts, sizes)
            texts = [
                text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass") for text in counts
            ]
            return cls.from_strings(texts, sizes)

        kinds = itertools.groupby(isinstance(rle["counts"], str | bytes) for rle in rles)
        bounds = np.cumsum([0] + [len(list(group)) for _, group in kinds]).tolist()
        return cls.concat([_run(read, slice(*ends)) for ends in itertools.pairwise(bounds)])

    @classmethod
    def from_runs(cls, runs: Sequence[ArrayLike], sizes: ArrayLike) -> "Masks":
        """From run lengths (COCO uncompressed counts): column-major, background first."""
        size = _sizes(sizes, len(runs))
        arrays = [_integers(run, item) for item, run in enumerate(runs)]
        offsets = _offsets(arrays)
        return cls._made(kernel.from_runs(_concatenate(arrays, np.int64), offsets, size), size)

    @classmethod
    def from_polygons(cls, polygons: Sequence[Sequence[ArrayLike]], sizes: ArrayLike) -> "Masks":
        """One mask an object: the union of its polygons `[x, y, x, y, ...]`, bit by bit as pycocotools draws them.

        A trailing odd coordinate is ignored. An object none of whose polygons has three points is refused.
        """
        size = _sizes(sizes, len(polygons))
        owner = [item for item, parts in enumerate(polygons) for _ in parts]
        flat = [_polygon(part, item) for item, parts in enumerate(polygons) for part in parts]
        drawable = {item for item, part in zip(owner, flat) if len(part) >= 6}
        for item in owner:
            if item not in drawable:
                raise MaskError("no polygon has three points or more", item)
        try:
            drawn = cls.draw_polygons(flat, size[owner])
        except MaskError as error:
            raise MaskError(error.message, None if error.item is None else owner[error.item]) from None
        return drawn.merge(_offsets(polygons), size)

    @classmethod
    def draw_polygons(cls, polygons: Sequence[ArrayLike], sizes: ArrayLike) -> "Masks":
        """One mask a polygon `[x, y, x, y, ...]`, bit by bit as pycocotools draws it."""
        size = _sizes(sizes, len(polygons))
        xy, offsets = kernel.coordinates([_polygon(part, item) for item, part in enumerate(polygons)])
        return cls._made(
            kernel.from_polygons(np.frombuffer(xy, np.float64), np.frombuffer(offsets, np.int64), size), size
        )

    @classmethod
    def from_boxes(cls, boxes: ArrayLike, sizes: ArrayLike) -> "Masks":
        """From boxes (n, 4) of x, y, width, height, drawn as pycocotools draws them."""
        flat = _floats(boxes, None)
        if len(flat) % 4:
            raise MaskError(f"expected boxes (n, 4) of x, y, width, height, got {len(flat)} numbers")
        x, y, width, height = flat.reshape(-1, 4).T
        corners = np.stack([x, y, x, y + height, x + width, y + height, x + width, y], 1)
        return cls.draw_polygons(list(corners), sizes)

    @classmethod
    def from_dense(cls, planes: NDArray[np.generic], *, threads: int = 1) -> "Masks":
        """From an array (n, height, width): nonzero is inside. Row-major and column-major planes are both fast."""
        if planes.ndim != 3:
            raise MaskError(f"expected an array (n, height, width), got shape {planes.shape}")
        count, height, width = planes.shape
        check_size(height, width)
        array = (
            planes.view(np.uint8) if planes.dtype in (np.bool_, np.uint8) else (planes != 0).view(np.uint8)
        )
        column_major = array.transpose(0, 2, 1).flags.c_contiguous and not array.flags.c_contiguous
        contiguous = array.transpose(0, 2, 1) if column_major else np.ascontiguousarray(array)
        size = _sizes((height, width), count)

        def encode(rows: slice) -> "Masks":
            return cls._made(kernel.encode(contiguous[rows], height, width, column_major), size[rows])

        return cls.concat(_map_rows(encode, count, threads)) if count else cls.none()

    @classmethod
    def from_arrow(cls, column: "pa.Array[Any] | pa.ChunkedArray[Any]") -> "Masks":
        """From an Arrow column of ARROW_TYPE, sharing its memory (a chunked column with one chunk counts as one).

        A null becomes an empty string of size 0 x 0; keep the column's validity beside the batch to tell.
        """
        if isinstance(column, pa.ChunkedArray):
            return cls.concat([cls.from_arrow(chunk) for chunk in column.chunks])
        if column.type != ARROW_TYPE:
            try:
                column = column.cast(ARROW_TYPE)
            except pa.ArrowException:
                raise MaskError(f"expected a column of {ARROW_TYPE}, got {column.type}") from None
        if len(column) == 0:
            return cls.none()
        counts, size = column.field("counts"), column.field("size")
        _, offsets, values = counts.buffers()
        ends = np.frombuffer(offsets, np.int64)[counts.offset : counts.offset + len(counts) + 1]
        data = np.frombuffer(values, np.uint8) if values is not None else np.zeros(0, np.uint8)
        flat = np.frombuffer(size.values.buffers()[1], np.int32)
        first = 2 * size.offset + size.values.offset
        sizes = flat[first : first + 2 * len(size)].reshape(-1, 2)
        if not (column.null_count or counts.null_count or size.null_count):
            return cls(data, ends[:-1], ends[1:], sizes)
        valid = pc.and_(column.is_valid(), pc.and_(counts.is_valid(), size.is_valid())).to_numpy(
            zero_copy_only=False
        )
        return cls(data, ends[:-1], np.where(valid, ends[1:], ends[:-1]), np.where(valid[:, None], sizes, 0))

    @classmethod
    def none(cls) -> "Masks":
        """The batch of no masks."""
        ends = np.zeros(0, np.int64)
        return cls(np.zeros(0, np.uint8), ends, ends, np.zeros((0, 2), np.int32))

    @classmethod
    def empty(cls, sizes: ArrayLike) -> "Masks":
        """Masks with no pixel, of the given (n, 2) sizes."""
        size = _sizes(sizes, np.size(sizes) // 2)
        return cls.none().merge(np.zeros(len(size) + 1, np.int64), size)

    @classmethod
    def concat(cls, batches: Sequence["Masks"]) -> "Masks":
        """Several batches as one. Bytes are copied once, and only those of the masks: a few masks selected from a large
        file bring nothing else along.
        """
        if len(batches) == 1:
            return batches[0]
        if not batches:
            return cls.none()
        batches = [batch._lean() for batch in batches]
        base = np.cumsum([0] + [len(batch.data) for batch in batches])
        return cls(
            np.concatenate([batch.data for batch in batches]),
            np.concatenate([batch.start + first for batch, first in zip(batches, base)]),
            np.concatenate([batch.stop + first for batch, first in zip(batches, base)]),
            np.concatenate([batch.size for batch in batches]),
        )

    # -- selecting -------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.start)

    @overload
    def __getitem__(self, index: int | np.integer[Any]) -> Mask: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | NDArray[Any]) -> "Masks": ...
    def __getitem__(self, index: Any) -> "Mask | Masks":
        if isinstance(index, int | np.integer):
            height, width = self.size[index].tolist()
            return Mask((height, width), self.string(int(index)).decode("ascii", "replace"))
        if not isinstance(index, slice):
            index = np.asarray(index)
            index = index if index.dtype == np.bool_ else index.astype(np.int64)
        return Masks(self.data, self.start[index], self.stop[index], self.size[index])

    def __iter__(self) -> Iterator[Mask]:
        return (self[item] for item in range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Equal frames and equal strings, in order."""
        return (
            isinstance(other, Masks)
            and self.to_strings() == other.to_strings()
            and bool(np.array_equal(self.size, other.size))
        )

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        lean = self._lean()
        return Masks, (lean.data, lean.start, lean.stop, lean.size)

    def __repr__(self) -> str:
        return f"Masks({len(self)} masks, {int((self.stop - self.start).sum())} bytes)"

    # -- writing ---------------------------------------------------------------------------------------------------

    def string(self, item: int) -> bytes:
        """The compressed string of one mask."""
        return self.data[self.start[item] : self.stop[item]].tobytes()

    def to_strings(self) -> list[bytes]:
        """The compressed strings."""
        return [self.string(item) for item in range(len(self))]

    def to_rles(self) -> list[dict[str, Any]]:
        """COCO dicts `{"size": [h, w], "counts": str}`."""
        pairs = zip(self.size.tolist(), self.to_strings())
        return [{"size": size, "counts": counts.decode("ascii", "replace")} for size, counts in pairs]

    def to_runs(self) -> list[NDArray[np.uint32]]:
        """Run lengths of each mask."""
        data, ends = kernel.runs(self._batch())
        return (
            np.split(np.frombuffer(data, np.uint32), np.frombuffer(ends, np.int64)[:-1]) if len(self) else []
        )

    def to_dense(self, *, threads: int = 1) -> NDArray[np.bool_]:
        """A bool array (n, height, width), each plane column-major in memory. All masks must have one size."""
        if not len(self):
            return np.zeros((0, 0, 0), np.bool_)
        height, width = self.size[0].tolist()
        if (self.size != self.size[0]).any():
            raise MaskError("to_dense needs masks of one size; group them or resize them first")
        check_size(height, width)
        if len(self) * height * width > MAX_DENSE_BYTES:
            raise MaskError(
                f"{len(self)} planes of {height} x {width} exceed {MAX_DENSE_BYTES} bytes; decode fewer"
            )
        out = np.empty((len(self), width, height), np.uint8)
        self._each_row(lambda rows: kernel.decode(self[rows]._batch(), out[rows]), threads)
        return out.view(np.bool_).transpose(0, 2, 1)

    def to_arrow(self) -> "pa.Array[Any]":
        """An Arrow column of ARROW_TYPE, sharing this batch's memory where the strings lie side by side."""
        packed = self if self._side_by_side() else self._packed()
        ends = np.append(packed.start[:1], packed.stop) if len(packed) else np.zeros(1, np.int64)
        size = np.ascontiguousarray(packed.size)
        counts = pa.Array.from_buffers(
            pa.large_binary(), len(packed), [None, pa.py_buffer(ends), pa.py_buffer(packed.data)]
        )
        flat = pa.Array.from_buffers(pa.int32(), 2 * len(packed), [None, pa.py_buffer(size)])
        return pa.StructArray.from_arrays(
            [pa.FixedSizeListArray.from_arrays(flat, 2), counts], fields=list(ARROW_TYPE)
        )

    # -- measuring -------------------------------------------------------------------------------------------------

    def check(self, *, threads: int = 1) -> None:
        """Look at every mask; raise MaskError naming the first that is malformed."""
        self._measure(threads)

    def measure(self, *, threads: int = 1) -> tuple[Int64s, Int64s]:
        """Areas and boxes at once: what `area` and `box` give one by one."""
        return self._measure(threads)

    def area(self, *, threads: int = 1) -> Int64s:
        """Pixels inside, int64 [n]."""
        return self._measure(threads)[0]

    def box(self, *, threads: int = 1) -> Int64s:
        """Tight boxes, int64 [n, 4] of x, y, width, height; zeros for an empty mask."""
        return self._measure(threads)[1]

    # -- algebra ---------------------------------------------------------------------------------------------------

    def __and__(self, other: "Masks") -> "Masks":
        return self._combine(AND, other)

    def __or__(self, other: "Masks") -> "Masks":
        return self._combine(OR, other)

    def __sub__(self, other: "Masks") -> "Masks":
        return self._combine(MINUS, other)

    def __xor__(self, other: "Masks") -> "Masks":
        return self._combine(XOR, other)

    def merge(
        self, offsets: ArrayLike, sizes: ArrayLike | None = None, *, intersect: bool = False
    ) -> "Masks":
        """Union (or intersection) of each group self[offsets[g]:offsets[g + 1]].

        offsets: int64 [groups + 1], rising. sizes: (groups, 2), needed only where a group may be empty; an empty
        group gives an empty mask.
        """
        bounds = np.ascontiguousarray(offsets, np.int64)
        if not len(bounds) or bounds[0] < 0 or bounds[-1] > len(self) or (np.diff(bounds) < 0).any():
            raise MaskError(f"group offsets must rise within 0 and {len(self)}")
        if sizes is not None:
            size = _sizes(sizes, len(bounds) - 1)
        elif (np.diff(bounds) == 0).any():
            raise MaskError("a group is empty: pass sizes to say how large its mask is")
        else:
            size = np.ascontiguousarray(self.size[bounds[:-1]])
        return self._made(kernel.merge(AND if intersect else OR, self._batch(), bounds, size), size)

    def inside(self, other: "Masks") -> NDArray[np.bool_]:
        """Whether every pixel of self[i] is in other[i] (is visible inside amodal?), bool [n]."""
        out = np.empty((len(self), 3), np.int64)
        kernel.pair_areas(self._batch(), other._batch(), out)
        return np.equal(out[:, 0], out[:, 1])

    def boundary(self, distance: ArrayLike) -> "Masks":
        """The band within `distance` pixels (one, or [n]) of the contour, as boundary-iou-api cuts it."""
        reach = _int32s(distance, (len(self),), "distances")
        return self._made(kernel.boundary(self._batch(), reach), self.size)

    # -- geometry --------------------------------------------------------------------------------------------------

    def crop(self, boxes: ArrayLike) -> "Masks":
        """The window x, y, width, height (one, or (n, 4)) of each; past the frame is background."""
        windows = _int32s(boxes, (len(self), 4), "windows")
        size = _sizes(windows[:, [3, 2]], len(self))
        return self._made(kernel.window(self._batch(), windows), size)

    def shift(self, right: int, down: int) -> "Masks":
        """Moved within the frame; what leaves it is lost."""
        moved = _int32s([-right, -down], (len(self), 2), "steps")
        return self.crop(np.concatenate([moved, self.size[:, ::-1]], 1))

    def flip(self, *, vertical: bool = False) -> "Masks":
        """Mirrored left-right, or top-bottom if vertical."""
        return self._made(kernel.flip(self._batch(), not vertical), self.size)

    def resize(self, sizes: ArrayLike) -> "Masks":
        """To (height, width), one or (n, 2): nearest neighbour by pixel centres, as Pillow's NEAREST."""
        size = _sizes(sizes, len(self))
        return self._made(kernel.resize(self._batch(), size), size)

    def components(self, *, connectivity: int = 8) -> tuple["Masks", Int64s]:
        """Connected parts of all masks, each mask's in order of first pixel down the columns, and their owners [k]."""
        if connectivity not in (4, 8):
            raise MaskError(f"connectivity must be 4 or 8, not {connectivity}")
        data, stop, owner = kernel.components(self._batch(), connectivity)
        owners = np.frombuffer(owner, np.int64)
        return self._made((data, stop), self.size[owners]), owners

    # -- inside ----------------------------------------------------------------------------------------------------

    @classmethod
    def _made(cls, strings: Strings, size: Int32s) -> "Masks":
        stop = np.frombuffer(strings[1], np.int64)
        start = np.concatenate([[0], stop[:-1]]) if len(stop) else stop
        return cls(np.frombuffer(strings[0], np.uint8), start, stop, size)

    def _batch(self) -> Batch:
        return (
            self.data,
            np.ascontiguousarray(self.start),
            np.ascontiguousarray(self.stop),
            np.ascontiguousarray(self.size),
        )

    def _measure(self, threads: int) -> tuple[Int64s, Int64s]:
        areas, boxes = np.empty(len(self), np.int64), np.empty((len(self), 4), np.int64)
        self._each_row(lambda rows: kernel.measure(self[rows]._batch(), areas[rows], boxes[rows]), threads)
        return areas, boxes

    def _combine(self, operation: int, other: "Masks") -> "Masks":
        return self._made(kernel.combine(operation, self._batch(), other._batch()), self.size)

    def _each_row(self, work: Callable[[slice], None], threads: int) -> None:
        _map_rows(work, len(self), threads)

    def _side_by_side(self) -> bool:
        return bool((self.start[1:] == self.stop[:-1]).all())

    def _packed(self) -> "Masks":
        return Masks.from_strings(self.to_strings(), self.size)

    def _lean(self) -> "Masks":
        """Without bytes that belong to no mask, where these are the most."""
        return self if 2 * int((self.stop - self.start).sum()) >= len(self.data) else self._packed()


def _map_rows(work: Callable[[slice], T], count: int, threads: int) -> list[T]:
    """Run work on slices of the rows, side by side when threads > 1; an error names the row of the whole batch."""
    bounds = np.linspace(0, count, max(1, min(threads, count)) + 1).astype(int).tolist()
    parts = [slice(first, last) for first, last in itertools.pairwise(bounds)]
    if len(parts) == 1:
        return [_run(work, parts[0])]
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(lambda rows: _run(work, rows), parts))


def _run(work: Callable[[slice], T], rows: slice) -> T:
    try:
        return work(rows)
    except MaskError as error:
        raise MaskError(error.message, None if error.item is None else error.item + rows.start) from None


def _sizes(sizes: ArrayLike, count: int) -> Int32s:
    """Heights and widths as int32 [count, 2]; refuses what cannot be a frame."""
    wide = _whole(sizes, (count, 2), "sizes (height, width)")
    height, width = wide[:, 0], wide[:, 1]
    bad = (wide < 0).any(1) | (wide > MAX_PIXELS).any(1)
    bad |= height * np.where(bad, 0, width) > MAX_PIXELS
    if bad.any():
        item = int(bad.argmax())
        raise MaskError(f"size {tuple(wide[item].tolist())} is not within 0 and {MAX_PIXELS} pixels", item)
    return np.ascontiguousarray(wide, np.int32)


def _int32s(values: ArrayLike, shape: tuple[int, ...], what: str) -> Int32s:
    wide = _whole(values, shape, what)
    if (np.abs(wide) > MAX_PIXELS).any():
        raise MaskError(f"{what} must be within {MAX_PIXELS} of 0")
    return np.ascontiguousarray(wide, np.int32)


def _whole(values: ArrayLike, shape: tuple[int, ...] | None, what: str) -> Int64s:
    """Whole numbers as int64, of the shape: one row for all or a row for each."""
    try:
        array = np.asarray(values)
        if array.size and array.dtype.kind not in "iu":
            raise MaskError(f"{what} must be whole numbers, got {array.dtype}")
        wide = array.astype(np.int64)
        return wide if shape is None else np.broadcast_to(wide, shape)
    except ValueError:
        raise MaskError(f"{what} must be whole numbers, {shape or 'in a flat list'}") from None


def _polygon(part: ArrayLike, item: int) -> Any:
    """As the kernel takes it: a list of numbers as it is, anything else as a flat float64 array."""
    return part if isinstance(part, list) else _floats(part, item)


def _floats(values: ArrayLike, item: int | None) -> Floats:
    try:
        return np.ravel(np.asarray(values, np.float64))
    except (ValueError, TypeError, OverflowError):
        raise MaskError("coordinates must be a flat list of numbers", item) from None


def _join(counts: Sequence[str] | Sequence[bytes]) -> bytes:
    if not counts or isinstance(counts[0], bytes):
        return b"".join(cast(Sequence[bytes], counts))
    texts = cast(Sequence[str], counts)
    joined = "".join(texts)
    if not joined.isascii():
        item = next(item for item, text in enumerate(texts) if not text.isascii())
        raise MaskError("counts hold a character that is not ASCII", item)
    return joined.encode("ascii")


def _integers(run: ArrayLike, item: int) -> Int64s:
    try:
        wide = _whole(run, None, "run lengths")
        if wide.ndim != 1:
            raise MaskError("run lengths must be a flat list")
        return wide
    except MaskError as error:
        raise MaskError(error.message, item) from None


def _offsets(parts: Iterable[Any]) -> Int64s:
    return np.cumsum([0, *map(len, parts)], dtype=np.int64)


def _concatenate(arrays: Sequence[NDArray[Any]], dtype: type) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype)
