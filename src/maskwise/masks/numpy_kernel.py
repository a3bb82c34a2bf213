"""The mask functions in numpy, for machines where the C kernel could not be built. `Kernel` describes them.

The pixels of a batch are numbered along one line: mask after mask, and column by column within a mask. Positions of
runs and spans then increase over the whole batch, and one array operation processes many masks. Large batches are
processed in slices of bounded size.

Drawing and writing follow pycocotools bit by bit without calling it: pycocotools does not check its input, and
allocates too few bytes for the strings of very large frames.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from maskwise.arrays import BoolArray, Float64Array, Int32Array, Int64Array, UInt8Array
from maskwise.errors import MaskError
from maskwise.masks.integers import MAX_PIXELS
from maskwise.masks.kernel import (
    AND,
    BEYOND_1,
    BEYOND_255,
    MINUS,
    OR,
    Batch,
    Strings,
)

MAX_CHARACTERS = 7
"""Characters of one value: 35 bits are enough for a run of the largest frame and its sign."""

MAX_COORDINATE = 2.0**26
"""The largest coordinate of a polygon; five times as much still fits the 32 bits that pycocotools draws with."""

MAX_PIECES = 2**26
"""The most parts of columns or edges in one slice: half a gigabyte per int64 column."""

MAX_DRAWN = 2**28
"""The most pixels of one mask that boundary and components decode."""

SLICE = 2**20
"""Weight of one slice of a batch: its bytes, and MASK_WEIGHT for every mask. A slice of a
megabyte bounds the memory of the int64 columns, and is long enough for numpy."""

MASK_WEIGHT = 2**12
"""The share of a mask without bytes: a slice never has more than 256 masks."""


class Runs(NamedTuple):
    """Checked masks. length: all runs, mask after mask; end: int64 [n], the position after the last run of each."""

    length: Int64Array
    end: Int64Array
    size: Int32Array

    def inside(self) -> BoolArray:
        """Whether each run is foreground: the first run of a mask is background."""
        odd: BoolArray = _ranks(self.end) & 1 == 1
        return odd


class Spans(NamedTuple):
    """Foreground runs: first pixel and end (exclusive) on the line of all pixels, and the sizes of the frames."""

    start: Int64Array
    stop: Int64Array
    size: Int32Array

    def owner(self) -> Int64Array:
        """The mask that each span belongs to."""
        frame_end = np.cumsum(_pixels(self.size))
        owner = np.searchsorted(frame_end, self.start, side="right")
        return owner.astype(np.int64)

    def local(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Owners, and starts and stops relative to the first pixel of the owner."""
        owner = self.owner()
        base = _frame_starts(self.size)[owner]
        return owner, self.start - base, self.stop - base


class Pieces(NamedTuple):
    """Spans cut at column borders: owner, column, first row and end row (exclusive) of each."""

    owner: Int64Array
    column: Int64Array
    top: Int64Array
    bottom: Int64Array


# -- one mask ------------------------------------------------------------------------------------------------------


def check(counts: str, height: int, width: int) -> int:
    mask = _parse_single(counts, height, width)
    (area,) = _areas(mask).tolist()
    return int(area)


def pair(a: str, b: str, height: int, width: int) -> tuple[int, int, int]:
    runs_a = _parse_single(a, height, width)
    runs_b = _parse_single(b, height, width)
    intersection = _area_within(runs_a, _spans(runs_b))
    area_a = _areas(runs_a)
    area_b = _areas(runs_b)
    return int(intersection[0]), int(area_a[0]), int(area_b[0])


def _parse_single(counts: str, height: int, width: int) -> Runs:
    """The runs of one mask; its MaskError names no item, because there is only one."""
    data = np.frombuffer(counts.encode("utf-8", "surrogatepass"), np.uint8)
    start = np.zeros(1, np.int64)
    stop = np.array([len(data)], np.int64)
    try:
        size = _check_sizes(np.array([[height, width]], np.int64))
        return _parse((data, start, stop, size))
    except MaskError as error:
        raise MaskError(error.message) from None


# -- measuring -----------------------------------------------------------------------------------------------------


def measure(a: Batch, areas: Int64Array, boxes: Int64Array) -> None:
    for rows, runs in _parsed(a):
        areas[rows] = _areas(runs)
        boxes[rows] = _boxes(_spans(runs))


def pair_areas(a: Batch, b: Batch, out: Int64Array) -> None:
    _same_sizes(a, b)
    for rows in _slices(_weights(a) + _weights(b)):
        runs_a = _parse(_rows(a, rows), rows.start)
        runs_b = _parse(_rows(b, rows), rows.start)
        out[rows, 0] = _area_within(runs_a, _spans(runs_b))
        out[rows, 1] = _areas(runs_a)
        out[rows, 2] = _areas(runs_b)


def pairwise(a: Batch, b: Batch, out: Int64Array) -> None:
    sizes_a = a[3].tolist()
    sizes_b = np.unique(b[3], axis=0).tolist()
    for item, size in enumerate(sizes_a):
        for other_size in sizes_b:
            if size != other_size:
                raise MaskError(
                    f"sizes differ: {tuple(size)} and {tuple(other_size)}", item
                )
    # b is parsed once and kept; a is parsed slice by slice.
    slices_b = list(_parsed(b))
    for rows, runs_a in _parsed(a):
        for item in range(rows.start, rows.stop):
            mask = _take(runs_a, item - rows.start)
            for columns, runs_b in slices_b:
                out[item, columns] = _area_within(mask, _spans(runs_b), every=True)


def boundary_areas(a: Batch, b: Batch, distance: Int32Array, out: Int64Array) -> None:
    _same_sizes(a, b)
    boundary_a = _batch(boundary(a, distance), a[3])
    boundary_b = _batch(boundary(b, distance), b[3])
    pair_areas(boundary_a, boundary_b, out)


# -- sets ----------------------------------------------------------------------------------------------------------


def combine(operation: int, a: Batch, b: Batch) -> Strings:
    _same_sizes(a, b)
    made = []
    for rows in _slices(_weights(a) + _weights(b)):
        runs_a = _parse(_rows(a, rows), rows.start)
        runs_b = _parse(_rows(b, rows), rows.start)
        # Each pair is a group of two masks.
        members = np.full(len(runs_a.end), 2)
        spans = _fold(operation, _spans(runs_a), _spans(runs_b), members)
        made.append(_write(spans))
    return _join(made)


def merge(operation: int, a: Batch, offsets: Int64Array, sizes: Int32Array) -> Strings:
    _check_offsets(offsets, len(a[1]), len(sizes))
    members = np.diff(offsets)
    group = np.repeat(np.arange(len(sizes)), members)
    size = _check_sizes(sizes)
    _refuse_sizes(a[3][offsets[0] : offsets[-1]], size[group], int(offsets[0]))
    weight_before = np.concatenate([[0], np.cumsum(_weights(a))])
    group_weight = weight_before[offsets[1:]] - weight_before[offsets[:-1]]
    made = []
    for rows in _slices(group_weight + MASK_WEIGHT):
        first = int(offsets[rows.start])
        last = int(offsets[rows.stop])
        spans = _spans(_parse(_rows(a, slice(first, last)), first))
        # Move every mask of a group into the frame of the group.
        owner, start, stop = spans.local()
        owner_group = group[first - offsets[0] :][owner] - rows.start
        base = _frame_starts(size[rows])[owner_group]
        start = base + start
        stop = base + stop
        is_first = np.isin(owner + first, offsets[:-1])
        first_masks = Spans(start[is_first], stop[is_first], size[rows])
        other_masks = Spans(start[~is_first], stop[~is_first], size[rows])
        folded = _fold(operation, first_masks, other_masks, members[rows])
        made.append(_write(folded))
    return _join(made)


def _fold(
    operation: int, first_masks: Spans, other_masks: Spans, members: Int64Array
) -> Spans:
    """Where the first mask of each group and its other masks satisfy the operation.

    members: int64 [groups], the number of masks of each group. The masks of all groups
    are swept along the line of pixels: `depth` is the number of masks that cover the
    pixels from one position to the next.
    """
    size = first_masks.size
    pixels = _pixels(size)
    # A position at every frame, so that no kept stretch crosses into the next frame.
    frames = _frame_starts(size)[pixels > 0]
    # For MINUS the other masks count so much that depth 1 means: the first one alone.
    other_weight = 2**32 if operation == MINUS else 1
    changes = [
        (first_masks.start, 1),
        (first_masks.stop, -1),
        (other_masks.start, other_weight),
        (other_masks.stop, -other_weight),
        (frames, 0),
    ]
    position = np.concatenate([positions for positions, _ in changes])
    weight = np.concatenate(
        [np.full(len(positions), value) for positions, value in changes]
    )
    order = np.argsort(position, kind="stable")
    position = position[order]
    depth = np.cumsum(weight[order])
    # Of several changes at one position only the sum counts: keep the last.
    is_last = np.append(position[1:] != position[:-1], True)[: len(position)]
    position = position[is_last]
    depth = depth[is_last]
    if operation == AND:
        group = np.searchsorted(np.cumsum(pixels), position, side="right")
        all_members = np.append(members, 0)[group]
        kept = (depth > 0) & (depth == all_members)
    elif operation == OR:
        kept = depth > 0
    elif operation == MINUS:
        kept = depth == 1
    else:
        kept = depth & 1 == 1
    next_position = np.append(position[1:], position[-1:])
    return Spans(position[kept], next_position[kept], size)


# -- runs, polygons, planes ----------------------------------------------------------------------------------------


def runs(a: Batch) -> Strings:
    slices = [runs for _, runs in _parsed(a)]
    lengths = [part.length.astype(np.uint32).tobytes() for part in slices]
    ends = []
    run_count = 0
    for part in slices:
        ends.append((part.end + run_count).astype(np.int64).tobytes())
        run_count += len(part.length)
    return b"".join(lengths), b"".join(ends)


def from_runs(runs: Int64Array, offsets: Int64Array, sizes: Int32Array) -> Strings:
    _check_offsets(offsets, len(runs), len(sizes))
    size = _check_sizes(sizes)
    made = []
    # A run is an int64: 8 bytes.
    for rows in _slices(8 * np.diff(offsets) + MASK_WEIGHT):
        first = offsets[rows.start]
        last = offsets[rows.stop]
        end = offsets[rows.start + 1 : rows.stop + 1] - first
        unchecked = Runs(runs[first:last], end, size[rows])
        made.append(_compress(_check_runs(unchecked, rows.start)))
    return _join(made)


def coordinates(polygons: list[list[float] | Float64Array]) -> Strings:
    """See Kernel.coordinates. An odd last coordinate is left out."""
    point_lists = []
    for item, polygon in enumerate(polygons):
        try:
            xy = np.asarray(polygon, np.float64)
        except (ValueError, TypeError, OverflowError):
            raise MaskError(
                "coordinates must be a flat list of numbers", item
            ) from None
        if xy.ndim != 1:
            raise MaskError("coordinates must be a flat list of numbers", item)
        even_length = len(xy) // 2 * 2
        point_lists.append(xy[:even_length])
    lengths = [len(xy) for xy in point_lists]
    offsets = np.cumsum([0, *lengths], dtype=np.int64) // 2
    # The empty array makes an empty list of polygons float64 as well.
    data = np.concatenate([np.zeros(0), *point_lists])
    return data.tobytes(), offsets.tobytes()


def from_polygons(xy: Float64Array, offsets: Int64Array, sizes: Int32Array) -> Strings:
    _check_offsets(offsets, len(xy) // 2, len(sizes))
    size = _check_sizes(sizes)
    first_point = offsets[0]
    points = xy[2 * first_point : 2 * offsets[-1]].reshape(-1, 2)
    owner = np.repeat(np.arange(len(size)), np.diff(offsets))
    _check_polygons(points, owner, np.diff(offsets))

    # The point after each point; after the last one of a polygon comes its first.
    following = np.arange(1, len(points) + 1)
    last_points = offsets[1:] - first_point - 1
    following[last_points] = offsets[:-1] - first_point
    edges = _edges(points, following, size[owner, 1])
    crossings = np.bincount(owner, edges.crossings, len(size)).astype(np.int64)
    too_many = crossings > MAX_PIECES
    if too_many.any():
        raise MaskError("polygon crosses too many columns", int(too_many.argmax()))
    made = []
    # A crossing needs a row and a position: 16 bytes.
    for rows in _slices(16 * crossings + MASK_WEIGHT):
        first = int(offsets[rows.start] - first_point)
        last = int(offsets[rows.stop] - first_point)
        slice_edges = Edges(*(column[first:last] for column in edges))
        slice_owner = owner[first:last] - rows.start
        made.append(_write(_fill(slice_edges, slice_owner, size[rows])))
    return _join(made)


def _check_polygons(
    points: Float64Array, owner: Int64Array, point_counts: Int64Array
) -> None:
    """Refuse the first polygon that has no points or an unusable coordinate."""
    empty = np.flatnonzero(point_counts == 0)
    # Written so that NaN is refused: it is not <= anything.
    is_usable = (np.abs(points) <= MAX_COORDINATE).all(1)
    unusable_owner = owner[~is_usable]
    first_empty = int(empty[0]) if len(empty) else None
    first_unusable = int(unusable_owner[0]) if len(unusable_owner) else None
    if first_unusable is not None and (
        first_empty is None or first_unusable <= first_empty
    ):
        raise MaskError(
            "polygon coordinates must be finite and within 2^26 of 0", first_unusable
        )
    if first_empty is not None:
        raise MaskError("polygon without points", first_empty)


def encode(
    dense: UInt8Array, height: int, width: int, column_major: bool
) -> tuple[bytes, bytes, int]:
    shape = (width, height) if column_major else (height, width)
    # Frames without pixels cannot be counted by reshape.
    planes = dense.reshape(-1, *shape) if height * width else dense
    frame = np.array([height, width])
    size = _check_sizes(np.broadcast_to(frame, (len(planes), 2)))
    made = []
    for item, plane in enumerate(planes):
        columns_first = plane if column_major else plane.T
        start, stop = _stretches(columns_first)
        made.append(_write(Spans(start, stop, size[item : item + 1])))
    data, stops = _join(made)
    beyond_1 = bool((dense > 1).any())
    beyond_255 = bool(((dense != 0) & (dense != 255)).any())
    return data, stops, BEYOND_1 * beyond_1 + BEYOND_255 * beyond_255


def decode(a: Batch, out: UInt8Array) -> None:
    size = _check_sizes(a[3])
    _refuse_sizes(size, np.broadcast_to(size[:1], size.shape), 0)
    pixel_count = _pixels(size).sum()
    if pixel_count != out.size:
        raise ValueError(f"expected {pixel_count} bytes to fill, got {out.size}")
    planes = out.reshape(len(size), -1) if len(size) else out
    for rows, runs in _parsed(a):
        for item in range(rows.start, rows.stop):
            mask = _take(runs, item - rows.start)
            planes[item] = np.repeat(mask.inside().view(np.uint8), mask.length)


# -- geometry ------------------------------------------------------------------------------------------------------


def window(a: Batch, boxes: Int32Array) -> Strings:
    box = boxes.astype(np.int64)
    # A box is x, y, width, height; a size is height, width.
    size = _check_sizes(box[:, [3, 2]])

    def cut(pieces: Pieces, rows: slice) -> Pieces:
        x, y, width, height = box[rows][pieces.owner].T
        column = pieces.column - x
        top = np.clip(pieces.top - y, 0, height)
        bottom = np.clip(pieces.bottom - y, 0, height)
        kept = (column >= 0) & (column < width) & (top < bottom)
        return Pieces(pieces.owner[kept], column[kept], top[kept], bottom[kept])

    return _move(a, size, cut)


def flip(a: Batch, horizontal: bool) -> Strings:
    def mirror(pieces: Pieces, rows: slice) -> Pieces:
        owner, column, top, bottom = pieces
        height, width = a[3][rows][owner].T.astype(np.int64)
        if horizontal:
            return Pieces(owner, width - 1 - column, top, bottom)
        return Pieces(owner, column, height - bottom, height - top)

    return _move(a, a[3], mirror)


def resize(a: Batch, sizes: Int32Array) -> Strings:
    size = _check_sizes(sizes)

    def scale(pieces: Pieces, rows: slice) -> Pieces:
        old_height, old_width = a[3][rows][pieces.owner].T.astype(np.int64)
        new_height, new_width = size[rows][pieces.owner].T.astype(np.int64)
        top = _first_reading(pieces.top, old_height, new_height)
        bottom = _first_reading(pieces.bottom, old_height, new_height)
        left = _first_reading(pieces.column, old_width, new_width)
        right = _first_reading(pieces.column + 1, old_width, new_width)
        # A piece is repeated in every output column that reads its column.
        count = np.where(top < bottom, right - left, 0)
        _refuse_pieces(count, pieces.owner, rows)
        return Pieces(
            np.repeat(pieces.owner, count),
            _ranges(left, count),
            np.repeat(top, count),
            np.repeat(bottom, count),
        )

    return _move(a, size, scale)


def _first_reading(edge: Int64Array, old: Int64Array, new: Int64Array) -> Int64Array:
    """The first output index whose source, floor((i + 0.5) * old / new), is not before the edge."""
    return -((old - 2 * new * edge) // (2 * old))


def _move(
    a: Batch, size: Int32Array, work: Callable[[Pieces, slice], Pieces]
) -> Strings:
    """New masks in frames of the given size, from the column pieces that `work` returns for those of a."""
    mask_count = len(a[1])
    if len(size) != mask_count:
        raise MaskError(f"{len(size)} new frames for {mask_count} masks")
    made = []
    for rows, runs in _parsed(a):
        owner, column, top, bottom = work(_pieces(_spans(runs), rows), rows)
        new_size = size[rows]
        new_height = new_size[owner, 0]
        column_start = _frame_starts(new_size)[owner] + column * new_height
        spans = Spans(column_start + top, column_start + bottom, new_size)
        made.append(_write(spans))
    return _join(made)


def _pieces(spans: Spans, rows: slice) -> Pieces:
    """The spans cut at column borders."""
    owner, start, stop = spans.local()
    height = spans.size[owner, 0].astype(np.int64)
    first_column = start // height
    last_column = (stop - 1) // height
    count = last_column - first_column + 1
    _refuse_pieces(count, owner, rows)
    column = _ranges(first_column, count)
    height = np.repeat(height, count)
    column_start = column * height
    top = np.maximum(np.repeat(start, count) - column_start, 0)
    bottom = np.minimum(np.repeat(stop, count) - column_start, height)
    return Pieces(np.repeat(owner, count), column, top, bottom)


def _refuse_pieces(count: Int64Array, owner: Int64Array, rows: slice) -> None:
    """Refuse masks whose pieces would not fit into memory."""
    total = int(count.sum())
    if total > MAX_PIECES:
        widest = int(owner[count.argmax()])
        raise MaskError(
            f"too many columns to move one by one: {total}", rows.start + widest
        )


# -- planes of single masks ----------------------------------------------------------------------------------------


def boundary(a: Batch, distance: Int32Array) -> Strings:
    mask_count = len(a[1])
    if len(distance) != mask_count:
        raise MaskError(f"{len(distance)} distances for {mask_count} masks")
    is_negative = distance < 0
    if is_negative.any():
        raise MaskError("distance is negative", int(is_negative.argmax()))
    made = []
    for item, spans, box in _boxed(a):
        x, y, width, height = box
        plane = _draw(spans, box, item)
        side = 2 * int(distance[item]) + 1
        # A square larger than the box erodes everything: all of the mask is boundary.
        if side <= min(width, height):
            inside_box = plane[:, y : y + height]
            # A square minimum is a minimum along each axis.
            eroded = ndimage.minimum_filter1d(
                inside_box, side, 0, mode="constant", cval=0
            )
            eroded = ndimage.minimum_filter1d(eroded, side, 1, mode="constant", cval=0)
            inside_box -= eroded
        start, stop = _stretches(plane)
        frame_height = int(spans.size[0, 0])
        base = x * frame_height
        made.append(_write(Spans(start + base, stop + base, spans.size)))
    return _join(made)


def components(a: Batch, connectivity: int) -> tuple[bytes, bytes, bytes]:
    if connectivity not in (4, 8):
        raise MaskError(f"connectivity must be 4 or 8, not {connectivity}")
    neighbors = ndimage.generate_binary_structure(2, 1 if connectivity == 4 else 2)
    made = []
    owners = []
    for item, spans, box in _boxed(a):
        labels = ndimage.label(_draw(spans, box, item), neighbors)[0].ravel()
        start, stop = _stretches(labels)
        names, first, which = np.unique(
            labels[start], return_index=True, return_inverse=True
        )
        # Components are numbered by their first pixel, whatever labels scipy gave them.
        rank = np.empty(len(names), np.int64)
        rank[np.argsort(first)] = np.arange(len(names))
        # Each component gets a frame of its own.
        size = np.repeat(spans.size, len(names), axis=0)
        frame_pixels = int(_pixels(spans.size)[0])
        frame_height = int(spans.size[0, 0])
        base = rank[which] * frame_pixels + box[0] * frame_height
        made.append(_write(Spans(start + base, stop + base, size)))
        owners += [item] * len(names)
    data, stops = _join([strings for strings in made if strings[1]])
    return data, stops, np.array(owners, np.int64).tobytes()


def _boxed(a: Batch) -> Iterator[tuple[int, Spans, list[int]]]:
    """Position, spans and box of each mask."""
    for rows, runs in _parsed(a):
        for item in range(rows.start, rows.stop):
            spans = _spans(_take(runs, item - rows.start))
            yield item, spans, _boxes(spans)[0].tolist()


def _draw(spans: Spans, box: list[int], item: int) -> UInt8Array:
    """The whole columns of the box: uint8 (box width, frame height) of 0 and 1."""
    x, _, width, _ = box
    height = int(spans.size[0, 0])
    first_pixel = x * height
    if width * height > MAX_DRAWN:
        raise MaskError(
            f"{width} columns of {height} pixels are too many to draw", item
        )
    # +1 where a span begins and -1 after its end: the running sum is the plane.
    change = np.zeros(width * height + 1, np.int8)
    change[spans.start - first_pixel] = 1
    change[spans.stop - first_pixel] -= 1
    plane = np.cumsum(change[:-1], dtype=np.int8).view(np.uint8)
    return plane.reshape(width, height)


def _stretches(plane: NDArray[np.generic]) -> tuple[Int64Array, Int64Array]:
    """Start and end of each run of one nonzero value, in the order of ravel()."""
    flat = plane.ravel()
    bounds = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    if len(flat):
        bounds = np.concatenate([[0], bounds, [len(flat)]])
    start = bounds[:-1]
    stop = bounds[1:]
    is_foreground = flat[start] != 0
    return start[is_foreground], stop[is_foreground]


# -- polygons ------------------------------------------------------------------------------------------------------


class Edges(NamedTuple):
    """Polygon edges on the lattice of fifths of a pixel, turned so that the longer axis increases; one row per edge.

    column, crossings: the first column of the frame whose middle the edge crosses, and how many it crosses.
    """

    x: Int64Array
    y: Int64Array
    dx: Int64Array
    dy: Int64Array
    column: Int64Array
    crossings: Int64Array


def _edges(points: Float64Array, following: Int64Array, width: Int32Array) -> Edges:
    """The edges from each point to the following one; width: that of the point's frame."""
    # As in pycocotools: fifths of a pixel, rounded by truncation.
    lattice = np.trunc(5.0 * points + 0.5).astype(np.int64)
    x = lattice[:, 0]
    y = lattice[:, 1]
    next_x = x[following]
    next_y = y[following]
    is_flat = np.abs(next_x - x) >= np.abs(next_y - y)
    is_reversed = np.where(is_flat, x > next_x, y > next_y)
    start_x = np.where(is_reversed, next_x, x)
    start_y = np.where(is_reversed, next_y, y)
    end_x = np.where(is_reversed, x, next_x)
    end_y = np.where(is_reversed, y, next_y)
    left = np.minimum(start_x, end_x)
    right = np.maximum(start_x, end_x)
    # The middle of column c is at 5c + 2: the first c with 5c + 2 >= left, rounded up.
    first_column = np.maximum(-((2 - left) // 5), 0)
    end_column = np.minimum(-((2 - right) // 5), width)
    crossings = np.maximum(end_column - first_column, 0)
    return Edges(
        start_x, start_y, end_x - start_x, end_y - start_y, first_column, crossings
    )


def _fill(edges: Edges, owner: Int64Array, size: Int32Array) -> Spans:
    """The spans between crossings; every column is crossed an even number of times."""
    crossings = edges.crossings
    column = _ranges(edges.column, crossings)
    x = np.repeat(edges.x, crossings)
    y = np.repeat(edges.y, crossings)
    dx = np.repeat(edges.dx, crossings)
    dy = np.repeat(edges.dy, crossings)
    owner = np.repeat(owner, crossings)
    flat_row, steep_row = _crossing_rows(x, y, dx, dy, 5 * column + 2)
    lattice_row = np.where(np.abs(dx) >= dy, flat_row, steep_row)
    height = size[owner, 0].astype(np.int64)
    # From fifths back to pixels, as in pycocotools.
    pixel_row = np.clip((lattice_row + 0.5) / 5.0 - 0.5, 0, height)
    row = np.ceil(pixel_row).astype(np.int64)
    position = np.sort(_frame_starts(size)[owner] + column * height + row)
    start = position[::2]
    stop = position[1::2]
    is_filled = start < stop
    return Spans(start[is_filled], stop[is_filled], size)


def _crossing_rows(
    x: Int64Array, y: Int64Array, dx: Int64Array, dy: Int64Array, at: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Lattice row in which each edge steps between `at` and `at + 1`, were it flat and were it steep.

    The arithmetic is that of pycocotools, including its rounding: a flat edge advances by one in x per step and
    truncates y; a steep edge advances in y and truncates x.
    """
    flat_slope = dy / np.maximum(np.abs(dx), 1)
    flat_step = at - x
    row_before = np.trunc(y + flat_slope * flat_step + 0.5)
    row_after = np.trunc(y + flat_slope * (flat_step + 1) + 0.5)
    flat_row = np.minimum(row_before, row_after).astype(np.int64)

    steep_slope = dx / np.maximum(dy, 1)
    is_steep = np.abs(dx) < dy
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = np.ceil((at + 0.5 - x) / steep_slope)
        step = np.where(is_steep, estimate, 0).astype(np.int64)

    def has_crossed(step: Int64Array) -> BoolArray:
        reached = np.trunc(x + steep_slope * step + 0.5)
        return np.where(dx > 0, reached > at, reached <= at)

    # The division rounds: move the estimate to the first step that has crossed.
    while (is_late := is_steep & (step > 0) & has_crossed(step - 1)).any():
        step = step - is_late
    while (is_early := is_steep & (step < dy) & ~has_crossed(step)).any():
        step = step + is_early
    return flat_row, y + step - 1


# -- strings -------------------------------------------------------------------------------------------------------


def _parse(a: Batch, first: int = 0) -> Runs:
    """The runs of the masks of a slice that begins at mask `first`; MaskError for an invalid string.

    A character holds 5 bits of a value, lowest first, and in bit 32 whether the value
    goes on. Bit 16 of the last character is the sign.
    """
    _check_columns(a)
    size = _check_sizes(a[3], first)
    character, end = _characters(a, first)
    continues = character & 32 != 0
    is_last_of_mask = np.zeros(len(character), np.bool_)
    has_characters = end > _starts(end)
    is_last_of_mask[end[has_characters] - 1] = True
    value_stop = np.flatnonzero(~continues | is_last_of_mask) + 1
    value_start = _starts(value_stop)
    place = _ranks(value_stop)

    too_long = f"value of more than {MAX_CHARACTERS} characters in counts"
    problems = [
        ("bad character in counts", (character < 0) | (character > 63)),
        ("value cut off at the end of counts", continues & is_last_of_mask),
        (too_long, place >= MAX_CHARACTERS),
    ]
    first_problems = [
        (int(is_bad.argmax()), message) for message, is_bad in problems if is_bad.any()
    ]
    if first_problems:
        position, message = min(first_problems)
        item = int(np.searchsorted(end, position, side="right"))
        # An earlier mask may be invalid in another way: it is the one to name.
        _parse(_rows(a, slice(0, item)), first)
        raise MaskError(message, first + item)

    bits = (character & 31) << 5 * place
    value = np.add.reduceat(bits, value_start) if len(value_start) else value_start
    is_negative = character[value_stop - 1] & 16 != 0
    # Two's complement of as many bits as the value has.
    value = value - np.where(is_negative, 1 << 5 * (value_stop - value_start), 0)
    value_end = np.searchsorted(value_stop, end, side="right").astype(np.int64)
    length = _undo_differences(value, value_end)
    return _check_runs(Runs(length, value_end, size), first)


def _characters(a: Batch, first: int) -> tuple[Int64Array, Int64Array]:
    """All characters minus 48, mask after mask, and the end of each mask among them."""
    data, start, stop, _ = a
    wrong = (start < 0) | (stop < start) | (stop > len(data))
    if wrong.any():
        item = int(wrong.argmax())
        # An earlier mask may be invalid in another way: it is the one to name.
        _parse(_rows(a, slice(0, item)), first)
        raise MaskError(
            f"bytes {start[item]} to {stop[item]} are not within {len(data)}",
            first + item,
        )
    byte_count = stop - start
    own_bytes = data[_ranges(start, byte_count)]
    return own_bytes.astype(np.int64) - 48, np.cumsum(byte_count)


def _undo_differences(value: Int64Array, end: Int64Array) -> Int64Array:
    """From the fourth value on, a value is the difference between its run and the run before the previous one.

    So the runs of a mask form two chains of sums: the odd ones, and the even ones
    from the third run on. The first run stands alone.
    """
    rank = _ranks(end)
    count = end - _starts(end)

    def chain_sums(is_link: BoolArray) -> Int64Array:
        total = np.concatenate([[0], np.cumsum(np.where(is_link, value, 0))])
        before_mask = np.repeat(total[_starts(end)], count)
        sums: Int64Array = total[1:] - before_mask
        return sums

    is_odd = rank & 1 == 1
    is_even = ~is_odd & (rank > 0)
    even_or_first = np.where(rank > 0, chain_sums(is_even), value)
    return np.where(is_odd, chain_sums(is_odd), even_or_first)


def _check_runs(runs: Runs, first: int) -> Runs:
    """Refuse runs that do not fill their frames exactly."""
    length, end, size = runs
    pixels = _pixels(size)
    count = end - _starts(end)
    is_wrong = (length < 0) | (length > np.repeat(pixels, count))
    # Wrong lengths are left out of the sum, which they could overflow.
    total = _sums(np.where(is_wrong, 0, length), end)
    wrong_count = _sums(is_wrong.astype(np.int64), end)
    bad = (total != pixels) | (wrong_count > 0)
    if not bad.any():
        return _add_missing_runs(runs)
    item = int(bad.argmax())
    own_lengths = length[end[item] - count[item] : end[item]]
    if (own_lengths < 0).any():
        raise MaskError("negative run", first + item)
    if (own_lengths > pixels[item]).any() or total[item] > pixels[item]:
        raise MaskError("run goes past the frame", first + item)
    height, width = size[item]
    frame = f"the frame {height} x {width} has {pixels[item]} pixels"
    raise MaskError(f"runs sum to {total[item]}, {frame}", first + item)


def _add_missing_runs(runs: Runs) -> Runs:
    """A frame without pixels may have no runs; it gets one of length 0."""
    is_missing = runs.end == _starts(runs.end)
    if not is_missing.any():
        return runs
    length = np.insert(runs.length, runs.end[is_missing], 0)
    end = runs.end + np.cumsum(is_missing)
    return Runs(length, end, runs.size)


def _compress(runs: Runs) -> Strings:
    """The strings as pycocotools writes them; see `_parse` and `_undo_differences`."""
    length, end, _ = runs
    rank = _ranks(end)
    value = length.copy()
    value[3:] -= np.where(rank[3:] > 2, length[1:-2], 0)
    places = np.arange(MAX_CHARACTERS)
    shift = 5 * places
    # A value of k characters has at most 5k - 1 bits beside its sign.
    magnitude = np.where(value < 0, ~value, value)
    needs_next = magnitude[:, None] >= 1 << (shift[:-1] + 4)
    count = 1 + needs_next.sum(1)
    is_used = places < count[:, None]
    continues = places < count[:, None] - 1
    bits = (value[:, None] >> shift) & 31
    character = bits + 32 * continues + 48
    data = character[is_used].astype(np.uint8)
    stop = _sums(count, end).cumsum().astype(np.int64)
    return data.tobytes(), stop.tobytes()


def _write(spans: Spans) -> Strings:
    """The masks of spans that do not overlap, in any order; adjacent spans are joined."""
    start, stop, owner = _join_adjacent(spans)
    frame_end = np.cumsum(_pixels(spans.size))
    frame_start = _starts(frame_end)
    span_count = np.bincount(owner, minlength=len(frame_end))
    span_end = np.cumsum(span_count)

    # Background before each span: since the span before it, or since the frame began.
    previous_stop = np.concatenate([[0], stop[:-1]])[: len(stop)]
    gap = start - np.maximum(previous_stop, frame_start[owner])
    # Background after the last span of each mask; the whole frame if it has none.
    last_stop = np.append(stop, 0)[span_end - 1]
    rest = frame_end - np.where(span_count > 0, last_stop, frame_start)
    has_rest = rest > 0
    # Two runs per span, one for the rest; an empty frame has one run of length 0.
    end = np.cumsum(2 * span_count + (has_rest | (span_count == 0)))
    rank = np.arange(len(owner)) - _starts(span_end)[owner]
    gap_position = _starts(end)[owner] + 2 * rank
    length = np.zeros(end[-1] if len(end) else 0, np.int64)
    length[gap_position] = gap
    length[gap_position + 1] = stop - start
    length[end[has_rest] - 1] = rest[has_rest]
    return _compress(Runs(length, end, spans.size))


def _join_adjacent(spans: Spans) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Starts, stops and owners, ascending; spans of one mask that touch become one."""
    ordered = Spans(np.sort(spans.start), np.sort(spans.stop), spans.size)
    owner = ordered.owner()
    touches = ordered.start[1:] == ordered.stop[:-1]
    is_joined = touches & (owner[1:] == owner[:-1])
    opens = np.append(True, ~is_joined)[: len(owner)]
    closes = np.append(~is_joined, True)[: len(owner)]
    return ordered.start[opens], ordered.stop[closes], owner[opens]


# -- runs and spans ------------------------------------------------------------------------------------------------


def _spans(runs: Runs) -> Spans:
    stop = np.cumsum(runs.length)
    start = stop - runs.length
    kept = runs.inside() & (runs.length > 0)
    return Spans(start[kept], stop[kept], runs.size)


def _take(runs: Runs, item: int) -> Runs:
    """The runs of one mask."""
    first = _starts(runs.end)[item]
    last = runs.end[item]
    length = runs.length[first:last]
    return Runs(length, np.array([last - first]), runs.size[item : item + 1])


def _areas(runs: Runs) -> Int64Array:
    return _sums(runs.length * runs.inside(), runs.end)


def _area_within(runs: Runs, spans: Spans, every: bool = False) -> Int64Array:
    """Pixels of runs inside the spans of each mask; with `every`, of one mask inside the spans of all masks."""
    owner, local_start, local_stop = spans.local()
    start = local_start if every else spans.start
    stop = local_stop if every else spans.stop
    end = np.cumsum(runs.length)
    inside = runs.inside()
    area = np.cumsum(runs.length * inside)

    def area_before(position: Int64Array) -> Int64Array:
        run = np.searchsorted(end, position)
        after_position = inside[run] * (end[run] - position)
        return area[run] - after_position

    within = np.zeros(0, np.int64)
    if len(end):
        within = area_before(stop) - area_before(start)
    masks = np.arange(len(spans.size))
    span_end = np.searchsorted(owner, masks, side="right")
    return _sums(within, span_end)


def _boxes(spans: Spans) -> Int64Array:
    """Boxes [n, 4] as x, y, width, height; 0, 0, 0, 0 for an empty mask."""
    owner, start, stop = spans.local()
    out = np.zeros((len(spans.size), 4), np.int64)
    if not len(owner):
        return out
    height = spans.size[owner, 0].astype(np.int64)
    left = start // height
    right = (stop - 1) // height
    # A span over a column border reaches the bottom of one column and the top of the next.
    is_wide = left < right
    top = np.where(is_wide, 0, start % height)
    bottom = np.where(is_wide, height - 1, (stop - 1) % height)
    is_first = np.append(True, owner[1:] != owner[:-1])
    first = np.flatnonzero(is_first)
    x = np.minimum.reduceat(left, first)
    y = np.minimum.reduceat(top, first)
    box_width = np.maximum.reduceat(right, first) + 1 - x
    box_height = np.maximum.reduceat(bottom, first) + 1 - y
    out[owner[first]] = np.stack([x, y, box_width, box_height], 1)
    return out


# -- batches -------------------------------------------------------------------------------------------------------


def _parsed(a: Batch) -> Iterator[tuple[slice, Runs]]:
    """The batch in slices of bounded size."""
    _check_columns(a)
    for rows in _slices(_weights(a)):
        yield rows, _parse(_rows(a, rows), rows.start)


def _slices(weights: Int64Array) -> list[slice]:
    """Slices of adjacent masks of about SLICE weight each."""
    slice_number = np.cumsum(weights) // SLICE
    borders = (np.flatnonzero(np.diff(slice_number)) + 1).tolist()
    bounds = [0, *borders, len(weights)]
    return [
        slice(first, last) for first, last in itertools.pairwise(bounds) if first < last
    ]


def _weights(a: Batch) -> Int64Array:
    """Bytes and MASK_WEIGHT of each mask; wrong offsets are refused later."""
    data, start, stop, _ = a
    byte_count: Int64Array = np.clip(stop - start, 0, len(data))
    return byte_count + MASK_WEIGHT


def _rows(a: Batch, rows: slice) -> Batch:
    data, start, stop, size = a
    return data, start[rows], stop[rows], size[rows]


def _batch(strings: Strings, size: Int32Array) -> Batch:
    """What a function returned, as the input of another."""
    data_bytes, stop_bytes = strings
    data = np.frombuffer(data_bytes, np.uint8)
    stop = np.frombuffer(stop_bytes, np.int64)
    return data, _starts(stop), stop, size


def _join(made: list[Strings]) -> Strings:
    """The strings of all slices together."""
    parts = []
    stops = []
    byte_count = 0
    for data, stop_bytes in made:
        stop = np.frombuffer(stop_bytes, np.int64) + byte_count
        parts.append(data)
        stops.append(stop.tobytes())
        byte_count += len(data)
    return b"".join(parts), b"".join(stops)


def _pixels(size: Int32Array) -> Int64Array:
    height = size[:, 0].astype(np.int64)
    return height * size[:, 1]


def _frame_starts(size: Int32Array) -> Int64Array:
    """The first pixel of each frame on the line of all pixels."""
    return _starts(np.cumsum(_pixels(size)))


def _starts(end: Int64Array) -> Int64Array:
    """Where each of several adjacent parts begins, given where each ends."""
    return np.concatenate([np.zeros(1, np.int64), end[:-1]])[: len(end)]


def _sums(value: Int64Array, end: Int64Array) -> Int64Array:
    """The sum of each of several adjacent parts, given where each ends."""
    zero = np.zeros(1, np.int64)
    total: Int64Array = np.concatenate([zero, np.cumsum(value)])
    sums: Int64Array = total[end] - total[_starts(end)]
    return sums


def _ranks(end: Int64Array) -> Int64Array:
    """0, 1, ... within each of several adjacent parts."""
    start = _starts(end)
    total = end[-1] if len(end) else 0
    return np.arange(total) - np.repeat(start, end - start)


def _ranges(first: Int64Array, count: Int64Array) -> Int64Array:
    """first[0], first[0] + 1, ... count[0] of them, then those of first[1], and so on."""
    end = np.cumsum(count)
    total = end[-1] if len(end) else 0
    shift = first - _starts(end)
    return np.arange(total) + np.repeat(shift, count)


def _check_columns(a: Batch) -> None:
    _, start, stop, size = a
    if not len(start) == len(stop) == len(size):
        raise MaskError(
            f"columns differ: {len(start)} starts, {len(stop)} stops, {len(size)} sizes"
        )


def _check_sizes(size: NDArray[np.integer], first: int = 0) -> Int32Array:
    """Heights and widths as int32 [n, 2]; MaskError for one that is negative or too large."""
    wide_size = size.astype(np.int64)
    height = wide_size[:, 0]
    width = wide_size[:, 1]
    bad = (height < 0) | (width < 0) | (height > MAX_PIXELS) | (width > MAX_PIXELS)
    # The product of two sizes that are too large could overflow.
    bad |= height * np.where(bad, 0, width) > MAX_PIXELS
    if bad.any():
        item = int(bad.argmax())
        bad_size = tuple(wide_size[item].tolist())
        raise MaskError(
            f"size {bad_size} is not within 0 and {MAX_PIXELS} pixels", first + item
        )
    return wide_size.astype(np.int32)


def _check_offsets(offsets: Int64Array, count: int, groups: int) -> None:
    """Refuse offsets that do not divide `count` items into `groups` groups."""
    if (
        len(offsets) != groups + 1
        or offsets[0] < 0
        or offsets[-1] > count
        or (np.diff(offsets) < 0).any()
    ):
        raise MaskError(f"offsets of {groups} groups must rise within 0 and {count}")


def _same_sizes(a: Batch, b: Batch) -> None:
    _check_columns(a)
    _check_columns(b)
    if len(a[1]) != len(b[1]):
        raise MaskError(f"batches differ: {len(a[1])} and {len(b[1])} masks")
    _refuse_sizes(a[3], b[3], 0)


def _refuse_sizes(a: Int32Array, b: Int32Array, first: int) -> None:
    differ = (a != b).any(1)
    if differ.any():
        item = int(differ.argmax())
        raise MaskError(
            f"sizes differ: {tuple(a[item].tolist())} and {tuple(b[item].tolist())}",
            first + item,
        )
