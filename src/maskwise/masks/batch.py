"""A batch of masks as columns: one buffer of run-length strings, where each begins and ends, and its size."""

import functools
import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from maskwise.arrays import BoolArray, Int32Array, Int64Array, UInt8Array
from maskwise.arrow import arrow_to_numpy
from maskwise.errors import MaskError
from maskwise.masks.dense import expect_binary, order_planes, to_planes
from maskwise.masks.display import plane_to_png
from maskwise.masks.integers import (
    check_size,
    to_int32_rows,
    to_int64,
    to_integer,
    to_sizes,
)
from maskwise.masks.kernel import AND, MINUS, OR, XOR, Batch, Strings, kernel
from maskwise.masks.mask import Mask
from maskwise.masks.polygons import (
    count_offsets,
    draw_objects,
    draw_polygons,
    geometry_polygons,
    is_geometry,
    to_floats,
)

T = TypeVar("T")

SHOWN_MASKS = 12
SHOWN_SIDE = 96
"""How many masks a notebook shows, and the longer side of each."""

MAX_DENSE_BYTES = 2**32
"""The most `to_dense` allocates at once."""

ARROW_TYPE = pa.struct(
    [("size", pa.list_(pa.int32(), 2)), ("counts", pa.large_binary())]
)
"""A column of masks in Arrow: its buffers are the batch's own."""


class Masks:
    """Many masks, of one frame or of several.

    `data`: uint8 bytes of COCO compressed strings; `start`, `stop`: int64 [n], the bytes of each mask; `size`: int32
    [n, 2], heights and widths. Selecting copies no mask bytes. The strings are checked where they are used: any
    operation on a malformed mask raises MaskError naming it; `check()` checks all of them. `np.asarray(masks)` is
    `masks.to_dense()`.
    """

    __slots__ = ("data", "size", "start", "stop")

    def __init__(
        self, data: UInt8Array, start: Int64Array, stop: Int64Array, size: Int32Array
    ) -> None:
        for name, column, dtype in (
            ("data", data, "u1"),
            ("start", start, "i8"),
            ("stop", stop, "i8"),
            ("size", size, "i4"),
        ):
            if not isinstance(column, np.ndarray) or column.dtype != dtype:
                raise MaskError(f"{name} must be an array of {np.dtype(dtype)}")
        if not (len(start) == len(stop) == len(size)) or size.shape[1:] != (2,):
            raise MaskError(
                f"columns differ: {len(start)} starts, {len(stop)} stops, sizes {size.shape}"
            )
        self.data = data
        self.start = start
        self.stop = stop
        self.size = size

    # -- reading ---------------------------------------------------------------------------------------------------

    @classmethod
    def from_strings(
        cls, counts: Sequence[str] | Sequence[bytes], sizes: ArrayLike
    ) -> "Masks":
        """From COCO compressed strings and (n, 2) heights and widths (or one pair for all)."""
        size = to_sizes(sizes, len(counts))
        joined = _join(counts)
        lengths = np.fromiter(map(len, counts), np.int64, len(counts))
        stop = np.cumsum(lengths)
        return cls(np.frombuffer(joined, np.uint8), stop - lengths, stop, size)

    @classmethod
    def from_masks(cls, masks: Sequence[Mask]) -> "Masks":
        """From single masks."""
        for item, mask in enumerate(masks):
            if not isinstance(mask, Mask):
                raise MaskError(f"expected a Mask, got {type(mask).__name__}", item)
        return cls.from_strings(
            [mask.counts for mask in masks], [mask.size for mask in masks]
        )

    @classmethod
    def from_rles(cls, rles: Sequence[Mapping[str, Any]]) -> "Masks":
        """From COCO dicts `{"size": [h, w], "counts": str, bytes or list of runs}`, also mixed."""
        for item, rle in enumerate(rles):
            if not isinstance(rle, Mapping) or "size" not in rle or "counts" not in rle:
                raise MaskError("a run-length mask needs size and counts", item)

        def read(rows: slice) -> "Masks":
            counts = [rle["counts"] for rle in rles[rows]]
            sizes = [rle["size"] for rle in rles[rows]]
            if not isinstance(counts[0], str | bytes):
                return cls.from_runs(counts, sizes)
            texts = [
                text
                if isinstance(text, bytes)
                else text.encode("utf-8", "surrogatepass")
                for text in counts
            ]
            return cls.from_strings(texts, sizes)

        kinds = itertools.groupby(
            isinstance(rle["counts"], str | bytes) for rle in rles
        )
        bounds = np.cumsum([0] + [len(list(group)) for _, group in kinds]).tolist()
        return cls.concat(
            [_run(read, slice(*ends)) for ends in itertools.pairwise(bounds)]
        )

    @classmethod
    def from_runs(cls, runs: Sequence[ArrayLike], sizes: ArrayLike) -> "Masks":
        """From run lengths (COCO uncompressed counts): column-major, background first."""
        size = to_sizes(sizes, len(runs))
        arrays = [_to_runs(run, item) for item, run in enumerate(runs)]
        flat = np.concatenate(arrays) if arrays else np.zeros(0, np.int64)
        return cls._made(kernel.from_runs(flat, count_offsets(arrays), size), size)

    @classmethod
    def from_polygons(cls, polygons: Sequence[Any], sizes: ArrayLike) -> "Masks":
        """One mask per object: the union of its polygons `[x, y, x, y, ...]`, bit by bit as pycocotools draws them.

        An object is a list of polygons, or a shapely (or GeoJSON) Polygon or MultiPolygon with its holes. An odd last
        coordinate is ignored. An object none of whose polygons has three points is refused.
        """
        size = to_sizes(sizes, len(polygons))
        objects = [
            geometry_polygons(parts) if is_geometry(parts) else parts
            for parts in polygons
        ]
        return cls._made(draw_objects(objects, size), size)

    @classmethod
    def draw_polygons(cls, polygons: Sequence[ArrayLike], sizes: ArrayLike) -> "Masks":
        """One mask per polygon `[x, y, x, y, ...]`, bit by bit as pycocotools draws it."""
        size = to_sizes(sizes, len(polygons))
        return cls._made(draw_polygons(polygons, size), size)

    @classmethod
    def from_boxes(cls, boxes: ArrayLike, sizes: ArrayLike) -> "Masks":
        """From boxes (n, 4) of x, y, width, height, drawn as pycocotools draws them."""
        flat = to_floats(boxes, None)
        if len(flat) % 4:
            raise MaskError(
                f"expected boxes (n, 4) of x, y, width, height, got {len(flat)} numbers"
            )
        x, y, width, height = flat.reshape(-1, 4).T
        corners = np.stack(
            [x, y, x, y + height, x + width, y + height, x + width, y], 1
        )
        return cls.draw_polygons(list(corners), sizes)

    @classmethod
    def from_dense(
        cls, planes: Any, *, threshold: float | None = None, threads: int = 1
    ) -> "Masks":
        """From an array (n, height, width): numpy, torch or nested lists. Both memory layouts of planes are fast.

        Bools, or integers 0 and 1 or 0 and 255. Floats need a threshold; what lies above it is inside.
        """
        array = to_planes(planes, 3, threshold=threshold)
        count, height, width = array.shape
        check_size(height, width)
        ordered, column_major = order_planes(array)
        size = to_sizes((height, width), count)

        def encode(rows: slice) -> tuple["Masks", int]:
            data, stop, beyond = kernel.encode(
                ordered[rows], height, width, column_major
            )
            return cls._made((data, stop), size[rows]), beyond

        parts = _map_rows(encode, count, threads) if count else []
        expect_binary(array, functools.reduce(operator.or_, (p[1] for p in parts), 0))
        return cls.concat([masks for masks, _ in parts]) if parts else cls.none()

    @classmethod
    def from_arrow(cls, column: "pa.Array[Any] | pa.ChunkedArray[Any]") -> "Masks":
        """From an Arrow column of ARROW_TYPE, sharing its memory if it is one chunk.

        A null becomes an empty string of size 0 x 0. The validity of the column tells which rows were null.
        """
        if isinstance(column, pa.ChunkedArray):
            return cls.concat([cls.from_arrow(chunk) for chunk in column.chunks])
        if column.type != ARROW_TYPE:
            try:
                column = column.cast(ARROW_TYPE)
            except pa.ArrowException:
                raise MaskError(
                    f"expected a column of {ARROW_TYPE}, got {column.type}"
                ) from None
        if len(column) == 0:
            return cls.none()
        counts = column.field("counts")
        size = column.field("size")
        _, offsets, values = counts.buffers()
        ends = np.frombuffer(offsets, np.int64)[
            counts.offset : counts.offset + len(counts) + 1
        ]
        data = (
            np.frombuffer(values, np.uint8)
            if values is not None
            else np.zeros(0, np.uint8)
        )
        flat = np.frombuffer(size.values.buffers()[1], np.int32)
        first = 2 * size.offset + size.values.offset
        sizes = flat[first : first + 2 * len(size)].reshape(-1, 2)
        if not (column.null_count or counts.null_count or size.null_count):
            return cls(data, ends[:-1], ends[1:], sizes)
        valid = arrow_to_numpy(
            pc.and_(column.is_valid(), pc.and_(counts.is_valid(), size.is_valid()))
        )
        return cls(
            data,
            ends[:-1],
            np.where(valid, ends[1:], ends[:-1]),
            np.where(valid[:, None], sizes, 0),
        )

    @classmethod
    def none(cls) -> "Masks":
        """The batch of no masks."""
        ends = np.zeros(0, np.int64)
        return cls(np.zeros(0, np.uint8), ends, ends, np.zeros((0, 2), np.int32))

    @classmethod
    def empty(cls, sizes: ArrayLike) -> "Masks":
        """Masks with no pixel, of the given (n, 2) sizes."""
        size = to_sizes(sizes, np.size(sizes) // 2)
        return cls.none().merge(np.zeros(len(size) + 1, np.int64), size)

    @classmethod
    def concat(cls, batches: Sequence["Masks"]) -> "Masks":
        """Several batches as one. Only the bytes of their masks are copied, not whole buffers."""
        if len(batches) == 1:
            return batches[0]
        if not batches:
            return cls.none()
        batches = [batch._lean() for batch in batches]
        base = np.cumsum([0] + [len(batch.data) for batch in batches])
        return cls(
            np.concatenate([batch.data for batch in batches]),
            np.concatenate(
                [batch.start + first for batch, first in zip(batches, base)]
            ),
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
            return Mask(
                (height, width), self.string(int(index)).decode("ascii", "replace")
            )
        if not isinstance(index, slice):
            chosen = np.asarray(index)
            index = chosen if chosen.dtype == np.bool_ else to_int64(chosen, "indices")
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
        kinds = np.unique(self.size, axis=0).tolist()
        sizes = (
            f"{kinds[0][0]}x{kinds[0][1]}" if len(kinds) == 1 else f"{len(kinds)} sizes"
        )
        return f"Masks({len(self)} masks, {sizes}, {int((self.stop - self.start).sum())} bytes)"

    def _repr_png_(self) -> bytes:
        """For notebooks: the first masks in a row, white on black."""
        shown = [mask._shrunk(SHOWN_SIDE).to_dense() for mask in self[:SHOWN_MASKS]]
        strip = np.zeros((SHOWN_SIDE, max(1, len(shown)) * (SHOWN_SIDE + 4)), np.bool_)
        for item, plane in enumerate(shown):
            left = item * (SHOWN_SIDE + 4)
            strip[: plane.shape[0], left : left + plane.shape[1]] = plane
        return plane_to_png(strip)

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
        return [
            {"size": size, "counts": counts.decode("ascii", "replace")}
            for size, counts in pairs
        ]

    def to_polygons(self) -> list[list[list[float]]]:
        """COCO polygons of each mask, as `Mask.to_polygons`."""
        return [mask.to_polygons() for mask in self]

    def to_shapely(self) -> list[Any]:
        """A shapely MultiPolygon of each mask, as `Mask.to_shapely`."""
        return [mask.to_shapely() for mask in self]

    def __array__(
        self, dtype: Any = None, copy: bool | None = None
    ) -> np.ndarray[Any, Any]:
        """For numpy: the dense planes."""
        planes = self.to_dense()
        return planes if dtype is None else planes.astype(dtype)

    def to_runs(self) -> list[NDArray[np.uint32]]:
        """Run lengths of each mask."""
        data, ends = kernel.runs(self._batch())
        return (
            np.split(np.frombuffer(data, np.uint32), np.frombuffer(ends, np.int64)[:-1])
            if len(self)
            else []
        )

    def to_dense(self, *, threads: int = 1) -> BoolArray:
        """A bool array (n, height, width), each plane column-major in memory. All masks must have one size."""
        if not len(self):
            return np.zeros((0, 0, 0), np.bool_)
        height, width = self.size[0].tolist()
        if (self.size != self.size[0]).any():
            raise MaskError(
                "to_dense needs masks of one size; group them or resize them first"
            )
        check_size(height, width)
        if len(self) * height * width > MAX_DENSE_BYTES:
            raise MaskError(
                f"{len(self)} planes of {height} x {width} exceed {MAX_DENSE_BYTES} bytes; decode fewer"
            )
        out = np.empty((len(self), width, height), np.uint8)
        self._each_row(
            lambda rows: kernel.decode(self[rows]._batch(), out[rows]), threads
        )
        return out.view(np.bool_).transpose(0, 2, 1)

    def to_arrow(self) -> "pa.Array[Any]":
        """An Arrow column of ARROW_TYPE, sharing the memory of this batch if its strings are adjacent."""
        packed = self if self._side_by_side() else self._packed()
        ends = (
            np.append(packed.start[:1], packed.stop)
            if len(packed)
            else np.zeros(1, np.int64)
        )
        size = np.ascontiguousarray(packed.size)
        counts = pa.Array.from_buffers(
            pa.large_binary(),
            len(packed),
            [None, pa.py_buffer(ends), pa.py_buffer(packed.data)],
        )
        flat = pa.Array.from_buffers(
            pa.int32(), 2 * len(packed), [None, pa.py_buffer(size)]
        )
        return pa.StructArray.from_arrays(
            [pa.FixedSizeListArray.from_arrays(flat, 2), counts],
            fields=list(ARROW_TYPE),
        )

    # -- measuring -------------------------------------------------------------------------------------------------

    def check(self, *, threads: int = 1) -> None:
        """Check every mask; MaskError names the first malformed one."""
        self._measure(threads)

    def measure(self, *, threads: int = 1) -> tuple[Int64Array, Int64Array]:
        """Areas and boxes as `area` and `box` return them, in one pass."""
        return self._measure(threads)

    def area(self, *, threads: int = 1) -> Int64Array:
        """Pixels inside, int64 [n]."""
        return self._measure(threads)[0]

    def box(self, *, threads: int = 1) -> Int64Array:
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
        self,
        offsets: ArrayLike,
        sizes: ArrayLike | None = None,
        *,
        intersect: bool = False,
    ) -> "Masks":
        """Union (or intersection) of each group self[offsets[g]:offsets[g + 1]].

        offsets: int64 [groups + 1], rising. sizes: (groups, 2), needed only where a group may be empty; an empty
        group gives an empty mask.
        """
        bounds = to_int64(offsets, "group offsets")
        if (
            bounds.ndim != 1
            or not len(bounds)
            or bounds[0] < 0
            or bounds[-1] > len(self)
            or (np.diff(bounds) < 0).any()
        ):
            raise MaskError(f"group offsets must rise within 0 and {len(self)}")
        if sizes is not None:
            size = to_sizes(sizes, len(bounds) - 1)
        elif (np.diff(bounds) == 0).any():
            raise MaskError("a group is empty: pass sizes to say how large its mask is")
        else:
            size = np.ascontiguousarray(self.size[bounds[:-1]])
        return self._made(
            kernel.merge(AND if intersect else OR, self._batch(), bounds, size), size
        )

    def inside(self, other: "Masks") -> BoolArray:
        """Whether every pixel of self[i] is in other[i] (is visible inside amodal?), bool [n]."""
        out = np.empty((len(self), 3), np.int64)
        kernel.pair_areas(self._batch(), _expect_masks(other)._batch(), out)
        return np.equal(out[:, 0], out[:, 1])

    def boundary(self, distance: ArrayLike) -> "Masks":
        """The band within `distance` pixels (one, or [n]) of the contour, as boundary-iou-api cuts it."""
        reach = to_int32_rows(distance, (len(self),), "boundary distances", low=0)
        return self._made(kernel.boundary(self._batch(), reach), self.size)

    # -- geometry --------------------------------------------------------------------------------------------------

    def crop(self, boxes: ArrayLike) -> "Masks":
        """The window x, y, width, height (one, or (n, 4)) of each mask; outside the frame is background."""
        windows = to_int32_rows(boxes, (len(self), 4), "windows x, y, width, height")
        size = to_sizes(windows[:, [3, 2]], len(self))
        return self._made(kernel.window(self._batch(), windows), size)

    def shift(self, right: int, down: int) -> "Masks":
        """Moved within the frame; pixels that leave it are lost."""
        origin = [
            -to_integer(right, "the shift to the right"),
            -to_integer(down, "the shift down"),
        ]
        return self.crop(
            np.concatenate([np.tile(origin, (len(self), 1)), self.size[:, ::-1]], 1)
        )

    def flip(self, *, vertical: bool = False) -> "Masks":
        """Mirrored left-right, or top-bottom if vertical."""
        return self._made(kernel.flip(self._batch(), not vertical), self.size)

    def resize(self, sizes: ArrayLike) -> "Masks":
        """To (height, width), one or (n, 2): nearest neighbour by pixel centers, as Pillow's NEAREST."""
        size = to_sizes(sizes, len(self))
        return self._made(kernel.resize(self._batch(), size), size)

    def components(self, *, connectivity: int = 8) -> tuple["Masks", Int64Array]:
        """Connected components, ordered by mask and then by first pixel in column order, and their owners [k]."""
        if connectivity not in (4, 8):
            raise MaskError(f"connectivity must be 4 or 8, not {connectivity}")
        data, stop, owner = kernel.components(self._batch(), int(connectivity))
        owners = np.frombuffer(owner, np.int64)
        return self._made((data, stop), self.size[owners]), owners

    # -- inside ----------------------------------------------------------------------------------------------------

    @classmethod
    def _made(cls, strings: Strings, size: Int32Array) -> "Masks":
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

    def _measure(self, threads: int) -> tuple[Int64Array, Int64Array]:
        areas = np.empty(len(self), np.int64)
        boxes = np.empty((len(self), 4), np.int64)
        self._each_row(
            lambda rows: kernel.measure(self[rows]._batch(), areas[rows], boxes[rows]),
            threads,
        )
        return areas, boxes

    def _combine(self, operation: int, other: "Masks") -> "Masks":
        if not isinstance(other, Masks):
            return NotImplemented
        return self._made(
            kernel.combine(operation, self._batch(), other._batch()), self.size
        )

    def _each_row(self, work: Callable[[slice], None], threads: int) -> None:
        _map_rows(work, len(self), threads)

    def _side_by_side(self) -> bool:
        return bool((self.start[1:] == self.stop[:-1]).all())

    def _packed(self) -> "Masks":
        return Masks.from_strings(self.to_strings(), self.size)

    def _lean(self) -> "Masks":
        """Without bytes that belong to no mask, if these are more than half."""
        return (
            self
            if 2 * int((self.stop - self.start).sum()) >= len(self.data)
            else self._packed()
        )


def _map_rows(work: Callable[[slice], T], count: int, threads: int) -> list[T]:
    """Run work on slices of the rows, in parallel if threads > 1; an error names the row of the whole batch."""
    parallel = min(to_integer(threads, "threads", low=1), count)
    if parallel <= 1:
        return [_run(work, slice(0, count))]
    bounds = np.linspace(0, count, parallel + 1).astype(int).tolist()
    parts = [slice(first, last) for first, last in itertools.pairwise(bounds)]
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(lambda rows: _run(work, rows), parts))


def _run(work: Callable[[slice], T], rows: slice) -> T:
    try:
        return work(rows)
    except MaskError as error:
        raise MaskError(
            error.message, None if error.item is None else error.item + rows.start
        ) from None


def _expect_masks(masks: Any) -> Masks:
    if not isinstance(masks, Masks):
        raise MaskError(f"expected Masks, got {type(masks).__name__}")
    return masks


def _join(counts: Sequence[str] | Sequence[bytes]) -> bytes:
    kind = bytes if not counts or isinstance(counts[0], bytes) else str
    for item, text in enumerate(counts):
        if not isinstance(text, kind):
            raise MaskError(
                f"expected counts of type {kind.__name__}, got {type(text).__name__}",
                item,
            )
    if kind is bytes:
        return b"".join(cast(Sequence[bytes], counts))
    texts = cast(Sequence[str], counts)
    joined = "".join(texts)
    if not joined.isascii():
        item = next(item for item, text in enumerate(texts) if not text.isascii())
        raise MaskError("counts hold a character that is not ASCII", item)
    return joined.encode("ascii")


def _to_runs(run: ArrayLike, item: int) -> Int64Array:
    try:
        lengths = to_int64(run, "run lengths", low=-(2**63), high=2**63 - 1)
    except MaskError as error:
        raise MaskError(error.message, item) from None
    if lengths.ndim != 1:
        raise MaskError("run lengths must be a flat list", item)
    return lengths
