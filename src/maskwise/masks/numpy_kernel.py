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
from maskwise.masks.kernel import AND, MINUS, OR, XOR, Batch, Strings

MAX_CHARACTERS = 7
"""Characters of one value: 35 bits are enough for a run of the largest frame and its sign."""

MAX_COORDINATE = 2.0**26
"""The largest coordinate of a polygon; five times as much still fits the 32 bits that pycocotools draws with."""

MAX_PIECES = 2**26
"""The most parts of columns or edges in one slice."""

MAX_DRAWN = 2**28
"""The most pixels of one mask that boundary and components decode."""

SLICE = 2**20
"""Weight of one slice of a batch: its bytes, and MASK_WEIGHT for every mask."""

MASK_WEIGHT = 2**12


class Runs(NamedTuple):
    """Checked masks. length: all runs, mask after mask; end: int64 [n], the position after the last run of each."""

    length: Int64Array
    end: Int64Array
    size: Int32Array

    def inside(self) -> BoolArray:
        """Whether each run is foreground."""
        odd: BoolArray = _ranks(self.end) & 1 == 1
        return odd


class Spans(NamedTuple):
    """Foreground runs: first pixel and end (exclusive) on the line of all pixels, and the sizes of the frames."""

    start: Int64Array
    stop: Int64Array
    size: Int32Array

    def owner(self) -> Int64Array:
        """The mask that each span belongs to."""
        return np.searchsorted(
            np.cumsum(_pixels(self.size)), self.start, side="right"
        ).astype(np.int64)

    def local(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Owners, and starts and stops relative to the first pixel of the owner."""
        owner = self.owner()
        base = _starts(np.cumsum(_pixels(self.size)))[owner]
        return owner, self.start - base, self.stop - base


class Pieces(NamedTuple):
    """Spans cut at column borders: owner, column, first row and end row (exclusive) of each."""

    owner: Int64Array
    column: Int64Array
    top: Int64Array
    bottom: Int64Array


# -- one mask ------------------------------------------------------------------------------------------------------


def check(counts: str, height: int, width: int) -> int:
    return int(_areas(_parse_alone(counts, height, width))[0])


def pair(a: str, b: str, height: int, width: int) -> tuple[int, int, int]:
    runs_a = _parse_alone(a, height, width)
    runs_b = _parse_alone(b, height, width)
    together = _area_within(runs_a, _spans(runs_b))
    return int(together[0]), int(_areas(runs_a)[0]), int(_areas(runs_b)[0])


def _parse_alone(counts: str, height: int, width: int) -> Runs:
    data = np.frombuffer(counts.encode("utf-8", "surrogatepass"), np.uint8)
    try:
        size = _check_sizes(np.array([[height, width]], np.int64))
        return _parse(
            (data, np.zeros(1, np.int64), np.array([len(data)], np.int64), size)
        )
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
    for item, size in enumerate(a[3].tolist()):
        for other in np.unique(b[3], axis=0).tolist():
            if size != other:
                raise MaskError(f"sizes differ: {tuple(size)} and {tuple(other)}", item)
    columns = list(_parsed(b))
    for rows, runs in _parsed(a):
        for item in range(rows.start, rows.stop):
            one = _take(runs, item - rows.start)
            for others, runs_b in columns:
                out[item, others] = _area_within(one, _spans(runs_b), every=True)


def boundary_areas(a: Batch, b: Batch, distance: Int32Array, out: Int64Array) -> None:
    _same_sizes(a, b)
    pair_areas(
        _batch(boundary(a, distance), a[3]), _batch(boundary(b, distance), b[3]), out
    )


# -- sets ----------------------------------------------------------------------------------------------------------


def combine(operation: int, a: Batch, b: Batch) -> Strings:
    _same_sizes(a, b)
    made = []
    for rows in _slices(_weights(a) + _weights(b)):
        runs_a = _parse(_rows(a, rows), rows.start)
        runs_b = _parse(_rows(b, rows), rows.start)
        layers = [_spans(runs_a), _spans(runs_b)]
        made.append(_write(_fold(operation, layers, np.full(len(runs_a.end), 2))))
    return _join(made)


def merge(operation: int, a: Batch, offsets: Int64Array, sizes: Int32Array) -> Strings:
    _check_offsets(offsets, len(a[1]), len(sizes))
    members = np.diff(offsets)
    group = np.repeat(np.arange(len(sizes)), members)
    size = _check_sizes(sizes)
    _refuse_sizes(a[3][offsets[0] : offsets[-1]], size[group], int(offsets[0]))
    ends = np.concatenate([[0], np.cumsum(_weights(a))])
    made = []
    for rows in _slices(ends[offsets[1:]] - ends[offsets[:-1]] + MASK_WEIGHT):
        first = int(offsets[rows.start])
        last = int(offsets[rows.stop])
        spans = _spans(_parse(_rows(a, slice(first, last)), first))
        owner, start, stop = spans.local()
        leader = np.isin(owner + first, offsets[:-1])
        base = _starts(np.cumsum(_pixels(size[rows])))[
            group[first - offsets[0] :][owner] - rows.start
        ]
        layers = [
            Spans((base + start)[pick], (base + stop)[pick], size[rows])
            for pick in (leader, ~leader)
        ]
        made.append(_write(_fold(operation, layers, members[rows])))
    return _join(made)


def _fold(operation: int, layers: list[Spans], members: Int64Array) -> Spans:
    """Where the first mask of each group (first layer) and its other masks (second layer) satisfy the operation."""
    lead, rest = layers
    pixels = _pixels(lead.size)
    frames = _starts(np.cumsum(pixels))[pixels > 0]
    others = 2**32 if operation == MINUS else 1
    steps = [
        (lead.start, 1),
        (lead.stop, -1),
        (rest.start, others),
        (rest.stop, -others),
        (frames, 0),
    ]
    position = np.concatenate([at for at, _ in steps])
    weight = np.repeat([weight for _, weight in steps], [len(at) for at, _ in steps])
    order = np.argsort(position, kind="stable")
    position = position[order]
    height = np.cumsum(weight[order])
    final = np.append(position[1:] != position[:-1], True)[: len(position)]
    position = position[final]
    height = height[final]
    if operation == AND:
        group = np.searchsorted(np.cumsum(pixels), position, side="right")
        kept = (height > 0) & (height == np.append(members, 0)[group])
    else:
        kept = {OR: height > 0, MINUS: height == 1, XOR: height & 1 == 1}[operation]
    following = np.append(position[1:], position[-1:])
    return Spans(position[kept], following[kept], lead.size)


# -- runs, polygons, planes ----------------------------------------------------------------------------------------


def runs(a: Batch) -> Strings:
    parts = [runs for _, runs in _parsed(a)]
    ends = np.cumsum([0] + [len(part.length) for part in parts])
    stop = [part.end + first for part, first in zip(parts, ends)]
    data = b"".join(part.length.astype(np.uint32).tobytes() for part in parts)
    return data, b"".join(end.astype(np.int64).tobytes() for end in stop)


def from_runs(runs: Int64Array, offsets: Int64Array, sizes: Int32Array) -> Strings:
    _check_offsets(offsets, len(runs), len(sizes))
    size = _check_sizes(sizes)
    made = []
    for rows in _slices(8 * np.diff(offsets) + MASK_WEIGHT):
        first = offsets[rows.start]
        last = offsets[rows.stop]
        end = offsets[rows.start + 1 : rows.stop + 1] - first
        made.append(
            _compress(_check_runs(Runs(runs[first:last], end, size[rows]), rows.start))
        )
    return _join(made)


def coordinates(polygons: list[list[float] | Float64Array]) -> Strings:
    """See Kernel.coordinates."""
    flat = []
    for item, polygon in enumerate(polygons):
        try:
            xy = np.asarray(polygon, np.float64)
        except (ValueError, TypeError, OverflowError):
            raise MaskError(
                "coordinates must be a flat list of numbers", item
            ) from None
        if xy.ndim != 1:
            raise MaskError("coordinates must be a flat list of numbers", item)
        flat.append(xy[: len(xy) // 2 * 2])
    offsets = np.cumsum([0, *map(len, flat)], dtype=np.int64) // 2
    return np.concatenate([np.zeros(0), *flat]).tobytes(), offsets.tobytes()


def from_polygons(xy: Float64Array, offsets: Int64Array, sizes: Int32Array) -> Strings:
    _check_offsets(offsets, len(xy) // 2, len(sizes))
    size = _check_sizes(sizes)
    empty = np.flatnonzero(np.diff(offsets) == 0)
    points = xy[2 * offsets[0] : 2 * offsets[-1]].reshape(-1, 2)
    wrong = np.flatnonzero(~(np.abs(points) <= MAX_COORDINATE).all(1))
    owner = np.repeat(np.arange(len(size)), np.diff(offsets))
    if len(wrong) and not (len(empty) and empty[0] < owner[wrong[0]]):
        item = int(owner[wrong[0]])
        raise MaskError("polygon coordinates must be finite and within 2^26 of 0", item)
    if len(empty):
        raise MaskError("polygon without points", int(empty[0]))
    following = np.arange(1, len(points) + 1)
    following[offsets[1:] - offsets[0] - 1] = offsets[:-1] - offsets[0]
    edges = _edges(points, following, size[owner, 1])
    crossings = np.bincount(owner, edges.crossings, len(size)).astype(np.int64)
    if (crossings > MAX_PIECES).any():
        raise MaskError(
            "polygon crosses too many columns", int((crossings > MAX_PIECES).argmax())
        )
    made = []
    for rows in _slices(16 * crossings + MASK_WEIGHT):
        picked = slice(
            int(offsets[rows.start] - offsets[0]), int(offsets[rows.stop] - offsets[0])
        )
        some = Edges(*(column[picked] for column in edges))
        made.append(_write(_fill(some, owner[picked] - rows.start, size[rows])))
    return _join(made)


def encode(dense: UInt8Array, height: int, width: int, column_major: bool) -> Strings:
    shape = (width, height) if column_major else (height, width)
    planes = dense.reshape(-1, *shape) if height * width else dense
    size = _check_sizes(np.broadcast_to(np.array([height, width]), (len(planes), 2)))
    made = []
    for item, plane in enumerate(planes):
        start, stop = _stretches(plane if column_major else plane.T)
        made.append(_write(Spans(start, stop, size[item : item + 1])))
    return _join(made)


def decode(a: Batch, out: UInt8Array) -> None:
    size = _check_sizes(a[3])
    _refuse_sizes(size, np.broadcast_to(size[:1], size.shape), 0)
    if _pixels(size).sum() != out.size:
        raise ValueError(
            f"expected {_pixels(size).sum()} bytes to fill, got {out.size}"
        )
    planes = out.reshape(len(size), -1) if len(size) else out
    for rows, runs in _parsed(a):
        for item in range(rows.start, rows.stop):
            one = _take(runs, item - rows.start)
            planes[item] = np.repeat(one.inside().view(np.uint8), one.length)


# -- geometry ------------------------------------------------------------------------------------------------------


def window(a: Batch, boxes: Int32Array) -> Strings:
    box = boxes.astype(np.int64)
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
        old = a[3][rows][pieces.owner].T.astype(np.int64)
        new = size[rows][pieces.owner].T.astype(np.int64)
        top, bottom = (
            _first_reading(edge, old[0], new[0]) for edge in (pieces.top, pieces.bottom)
        )
        left, right = (
            _first_reading(pieces.column + side, old[1], new[1]) for side in (0, 1)
        )
        count = np.where(top < bottom, right - left, 0)
        _refuse_pieces(count, pieces.owner, rows)
        owner, top, bottom = (
            np.repeat(column, count) for column in (pieces.owner, top, bottom)
        )
        return Pieces(owner, _ranges(left, count), top, bottom)

    return _move(a, size, scale)


def _first_reading(edge: Int64Array, old: Int64Array, new: Int64Array) -> Int64Array:
    """The first output index whose source, floor((i + 0.5) * old / new), is not before the edge."""
    return -((old - 2 * new * edge) // (2 * old))


def _move(
    a: Batch, size: Int32Array, work: Callable[[Pieces, slice], Pieces]
) -> Strings:
    """New masks in frames of the given size, from the column pieces that `work` returns for those of a."""
    if len(size) != len(a[1]):
        raise MaskError(f"{len(size)} new frames for {len(a[1])} masks")
    made = []
    for rows, runs in _parsed(a):
        owner, column, top, bottom = work(_pieces(_spans(runs), rows), rows)
        pixels = _pixels(size[rows])
        base = _starts(np.cumsum(pixels))[owner] + column * size[rows][owner, 0]
        made.append(_write(Spans(base + top, base + bottom, size[rows])))
    return _join(made)


def _pieces(spans: Spans, rows: slice) -> Pieces:
    owner, start, stop = spans.local()
    height = spans.size[owner, 0].astype(np.int64)
    left = start // height
    right = (stop - 1) // height
    count = right - left + 1
    _refuse_pieces(count, owner, rows)
    column = _ranges(left, count)
    owner = np.repeat(owner, count)
    height, start, stop = (np.repeat(each, count) for each in (height, start, stop))
    top = np.maximum(start - column * height, 0)
    bottom = np.minimum(stop - column * height, height)
    return Pieces(owner, column, top, bottom)


def _refuse_pieces(count: Int64Array, owner: Int64Array, rows: slice) -> None:
    if count.sum() > MAX_PIECES:
        widest = int(owner[count.argmax()])
        raise MaskError(
            f"too many columns to move one by one: {int(count.sum())}",
            rows.start + widest,
        )


# -- planes of single masks ----------------------------------------------------------------------------------------


def boundary(a: Batch, distance: Int32Array) -> Strings:
    if len(distance) != len(a[1]):
        raise MaskError(f"{len(distance)} distances for {len(a[1])} masks")
    if (distance < 0).any():
        raise MaskError("distance is negative", int((distance < 0).argmax()))
    made = []
    for item, spans, box in _boxed(a):
        x, y, width, height = box
        plane = _draw(spans, box, item)
        side = 2 * int(distance[item]) + 1
        if side <= min(width, height):
            part = plane[:, y : y + height]
            kept = ndimage.minimum_filter1d(part, side, 0, mode="constant", cval=0)
            part -= ndimage.minimum_filter1d(kept, side, 1, mode="constant", cval=0)
        start, stop = _stretches(plane)
        base = x * int(spans.size[0, 0])
        made.append(_write(Spans(start + base, stop + base, spans.size)))
    return _join(made)


def components(a: Batch, connectivity: int) -> tuple[bytes, bytes, bytes]:
    if connectivity not in (4, 8):
        raise MaskError(f"connectivity must be 4 or 8, not {connectivity}")
    around = ndimage.generate_binary_structure(2, 1 if connectivity == 4 else 2)
    made = []
    owners = []
    for item, spans, box in _boxed(a):
        labels = ndimage.label(_draw(spans, box, item), around)[0].ravel()
        start, stop = _stretches(labels)
        names, first, which = np.unique(
            labels[start], return_index=True, return_inverse=True
        )
        place = np.empty(len(names), np.int64)
        place[np.argsort(first)] = np.arange(len(names))
        size = np.repeat(spans.size, len(names), axis=0)
        base = place[which] * int(_pixels(spans.size)[0]) + box[0] * int(
            spans.size[0, 0]
        )
        made.append(_write(Spans(start + base, stop + base, size)))
        owners += [item] * len(names)
    return *_join([part for part in made if part[1]]), np.array(
        owners, np.int64
    ).tobytes()


def _boxed(a: Batch) -> Iterator[tuple[int, Spans, list[int]]]:
    """Position, spans and box of each mask."""
    for rows, runs in _parsed(a):
        for item in range(rows.start, rows.stop):
            spans = _spans(_take(runs, item - rows.start))
            yield item, spans, _boxes(spans)[0].tolist()


def _draw(spans: Spans, box: list[int], item: int) -> UInt8Array:
    """The whole columns of the box: uint8 (box width, frame height) of 0 and 1."""
    height = int(spans.size[0, 0])
    first = box[0] * int(spans.size[0, 0])
    if box[2] * height > MAX_DRAWN:
        raise MaskError(
            f"{box[2]} columns of {height} pixels are too many to draw", item
        )
    change = np.zeros(box[2] * height + 1, np.int8)
    change[spans.start - first] = 1
    change[spans.stop - first] -= 1
    return np.cumsum(change[:-1], dtype=np.int8).view(np.uint8).reshape(box[2], height)


def _stretches(plane: NDArray[np.generic]) -> tuple[Int64Array, Int64Array]:
    """Start and end of each run of one nonzero value, in the order of ravel()."""
    flat = plane.ravel()
    bounds = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    bounds = np.concatenate([[0], bounds, [len(flat)]]) if len(flat) else bounds
    start = bounds[:-1]
    stop = bounds[1:]
    kept = flat[start] != 0
    return start[kept], stop[kept]


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
    lattice = np.trunc(5.0 * points + 0.5).astype(np.int64)
    here = lattice
    there = lattice[following]
    steps = np.abs(there - here)
    turned = np.where(
        steps[:, 0] >= steps[:, 1], here[:, 0] > there[:, 0], here[:, 1] > there[:, 1]
    )[:, None]
    here, there = np.where(turned, there, here), np.where(turned, here, there)
    left = np.minimum(here[:, 0], there[:, 0])
    right = np.maximum(here[:, 0], there[:, 0])
    first = np.maximum(-((2 - left) // 5), 0)
    last = np.minimum(-((2 - right) // 5), width)
    dx, dy = (there - here).T
    return Edges(here[:, 0], here[:, 1], dx, dy, first, np.maximum(last - first, 0))


def _fill(edges: Edges, owner: Int64Array, size: Int32Array) -> Spans:
    """The spans between crossings; every column is crossed an even number of times."""
    column = _ranges(edges.column, edges.crossings)
    x, y, dx, dy, owner = (
        np.repeat(each, edges.crossings) for each in (*edges[:4], owner)
    )
    row = np.where(np.abs(dx) >= dy, *_crossing_rows(x, y, dx, dy, 5 * column + 2))
    height = size[owner, 0].astype(np.int64)
    row = np.ceil(np.clip((row + 0.5) / 5.0 - 0.5, 0, height)).astype(np.int64)
    position = np.sort(_starts(np.cumsum(_pixels(size)))[owner] + column * height + row)
    start = position[::2]
    stop = position[1::2]
    return Spans(start[start < stop], stop[start < stop], size)


def _crossing_rows(
    x: Int64Array, y: Int64Array, dx: Int64Array, dy: Int64Array, at: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Lattice row in which each edge steps between `at` and `at + 1`, were it flat and were it steep.

    The arithmetic is that of pycocotools, including its rounding: a flat edge advances by one in x per step and
    truncates y; a steep edge advances in y and truncates x.
    """
    slope = dy / np.maximum(np.abs(dx), 1)
    step = at - x
    flat = np.minimum(
        np.trunc(y + slope * step + 0.5), np.trunc(y + slope * (step + 1) + 0.5)
    )
    slope = dx / np.maximum(dy, 1)
    steep = np.abs(dx) < dy
    with np.errstate(divide="ignore", invalid="ignore"):
        step = np.where(steep, np.ceil((at + 0.5 - x) / slope), 0).astype(np.int64)

    def crossed(step: Int64Array) -> BoolArray:
        reached = np.trunc(x + slope * step + 0.5)
        return np.where(dx > 0, reached > at, reached <= at)

    while (late := steep & (step > 0) & crossed(step - 1)).any():
        step = step - late
    while (early := steep & (step < dy) & ~crossed(step)).any():
        step = step + early
    return flat.astype(np.int64), y + step - 1


# -- strings -------------------------------------------------------------------------------------------------------


def _parse(a: Batch, first: int = 0) -> Runs:
    """The runs of the masks of a slice that begins at mask `first`; MaskError for an invalid string."""
    _check_columns(a)
    size = _check_sizes(a[3], first)
    character, end = _characters(a, first)
    more = character & 32 != 0
    final = np.zeros(len(character), np.bool_)
    final[end[end > _starts(end)] - 1] = True
    stop = np.flatnonzero(~more | final) + 1
    begin = _starts(stop)
    place = _ranks(stop)
    problems = {
        "bad character in counts": (character < 0) | (character > 63),
        "value cut off at the end of counts": more & final,
        f"value of more than {MAX_CHARACTERS} characters in counts": place
        >= MAX_CHARACTERS,
    }
    found = [
        (int(bad.argmax()), message) for message, bad in problems.items() if bad.any()
    ]
    if found:
        position, message = min(found)
        item = int(np.searchsorted(end, position, side="right"))
        _parse(_rows(a, slice(0, item)), first)
        raise MaskError(message, first + item)
    value = (
        np.add.reduceat((character & 31) << 5 * place, begin) if len(begin) else begin
    )
    value = value - np.where(character[stop - 1] & 16 != 0, 1 << 5 * (stop - begin), 0)
    value_end = np.searchsorted(stop, end, side="right").astype(np.int64)
    return _check_runs(
        Runs(_undo_differences(value, value_end), value_end, size), first
    )


def _characters(a: Batch, first: int) -> tuple[Int64Array, Int64Array]:
    """All characters minus 48, mask after mask, and the end of each mask among them."""
    data, start, stop, _ = a
    wrong = (start < 0) | (stop < start) | (stop > len(data))
    if wrong.any():
        item = int(wrong.argmax())
        _parse(_rows(a, slice(0, item)), first)
        raise MaskError(
            f"bytes {start[item]} to {stop[item]} are not within {len(data)}",
            first + item,
        )
    return data[_ranges(start, stop - start)].astype(np.int64) - 48, np.cumsum(
        stop - start
    )


def _undo_differences(value: Int64Array, end: Int64Array) -> Int64Array:
    """From the fourth value on, a value is the difference between its run and the run before the previous one."""
    rank = _ranks(end)
    count = end - _starts(end)
    odd = rank & 1 == 1
    chains = []
    for link in (odd, ~odd & (rank > 0)):
        total = np.concatenate([[0], np.cumsum(np.where(link, value, 0))])
        chains.append(total[1:] - np.repeat(total[_starts(end)], count))
    return np.where(odd, chains[0], np.where(rank > 0, chains[1], value))


def _check_runs(runs: Runs, first: int) -> Runs:
    """Refuse runs that do not fill their frames exactly."""
    length, end, size = runs
    pixels = _pixels(size)
    count = end - _starts(end)
    wrong = (length < 0) | (length > np.repeat(pixels, count))
    total = _sums(np.where(wrong, 0, length), end)
    bad = (total != pixels) | (_sums(wrong.astype(np.int64), end) > 0)
    if not bad.any():
        return _name_missing(runs)
    item = int(bad.argmax())
    own = length[end[item] - count[item] : end[item]]
    if (own < 0).any():
        raise MaskError("negative run", first + item)
    if (own > pixels[item]).any() or total[item] > pixels[item]:
        raise MaskError("run goes past the frame", first + item)
    height, width = size[item]
    frame = f"the frame {height} x {width} has {pixels[item]} pixels"
    raise MaskError(f"runs sum to {total[item]}, {frame}", first + item)


def _name_missing(runs: Runs) -> Runs:
    """A frame without pixels may have no runs; it gets one of length 0."""
    missing = runs.end == _starts(runs.end)
    if not missing.any():
        return runs
    return Runs(
        np.insert(runs.length, runs.end[missing], 0),
        runs.end + np.cumsum(missing),
        runs.size,
    )


def _compress(runs: Runs) -> Strings:
    """The strings as pycocotools writes them."""
    length, end, _ = runs
    rank = _ranks(end)
    value = length.copy()
    value[3:] -= np.where(rank[3:] > 2, length[1:-2], 0)
    place = 5 * np.arange(MAX_CHARACTERS)
    magnitude = np.where(value < 0, ~value, value)
    count = 1 + (magnitude[:, None] >= 1 << (place[:-1] + 4)).sum(1)
    used = np.arange(MAX_CHARACTERS) < count[:, None]
    more = np.arange(MAX_CHARACTERS) < count[:, None] - 1
    character = ((value[:, None] >> place) & 31) + 32 * more + 48
    return character[used].astype(np.uint8).tobytes(), _sums(
        count, end
    ).cumsum().astype(np.int64).tobytes()


def _write(spans: Spans) -> Strings:
    """The masks of spans that do not overlap, in any order; adjacent spans are joined."""
    ordered = Spans(np.sort(spans.start), np.sort(spans.stop), spans.size)
    owner = ordered.owner()
    joined = (ordered.start[1:] == ordered.stop[:-1]) & (owner[1:] == owner[:-1])
    opens = np.append(True, ~joined)[: len(owner)]
    closes = np.append(~joined, True)[: len(owner)]
    start = ordered.start[opens]
    stop = ordered.stop[closes]
    owner = owner[opens]
    frame_end = np.cumsum(_pixels(spans.size))
    spans_each = np.bincount(owner, minlength=len(frame_end))
    spans_end = np.cumsum(spans_each)
    before = np.concatenate([[0], stop[:-1]])[: len(stop)]
    gap = start - np.maximum(before, _starts(frame_end)[owner])
    final = np.where(
        spans_each > 0, np.append(stop, 0)[spans_end - 1], _starts(frame_end)
    )
    rest = frame_end - final
    end = np.cumsum(2 * spans_each + ((rest > 0) | (spans_each == 0)))
    at = _starts(end)[owner] + 2 * (np.arange(len(owner)) - _starts(spans_end)[owner])
    length = np.zeros(end[-1] if len(end) else 0, np.int64)
    length[at] = gap
    length[at + 1] = stop - start
    length[end[rest > 0] - 1] = rest[rest > 0]
    return _compress(Runs(length, end, spans.size))


# -- runs and spans ------------------------------------------------------------------------------------------------


def _spans(runs: Runs) -> Spans:
    stop = np.cumsum(runs.length)
    kept = runs.inside() & (runs.length > 0)
    return Spans((stop - runs.length)[kept], stop[kept], runs.size)


def _take(runs: Runs, item: int) -> Runs:
    first = _starts(runs.end)[item]
    last = runs.end[item]
    return Runs(
        runs.length[first:last], np.array([last - first]), runs.size[item : item + 1]
    )


def _areas(runs: Runs) -> Int64Array:
    return _sums(runs.length * runs.inside(), runs.end)


def _area_within(runs: Runs, spans: Spans, every: bool = False) -> Int64Array:
    """Pixels of runs inside the spans of each mask; with `every`, of one mask inside the spans of all masks."""
    owner, start, stop = spans.local()
    if not every:
        start = spans.start
        stop = spans.stop
    end = np.cumsum(runs.length)
    inside = runs.inside()
    area = np.cumsum(runs.length * inside)

    def area_before(position: Int64Array) -> Int64Array:
        run = np.searchsorted(end, position)
        return area[run] - inside[run] * (end[run] - position)

    within = (
        area_before(stop) - area_before(start) if len(end) else np.zeros(0, np.int64)
    )
    return _sums(
        within, np.searchsorted(owner, np.arange(len(spans.size)), side="right")
    )


def _boxes(spans: Spans) -> Int64Array:
    owner, start, stop = spans.local()
    out = np.zeros((len(spans.size), 4), np.int64)
    if not len(owner):
        return out
    height = spans.size[owner, 0].astype(np.int64)
    left = start // height
    right = (stop - 1) // height
    top = np.where(left < right, 0, start % height)
    bottom = np.where(left < right, height - 1, (stop - 1) % height)
    first = np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))
    x = np.minimum.reduceat(left, first)
    y = np.minimum.reduceat(top, first)
    across = np.maximum.reduceat(right, first) + 1 - x
    down = np.maximum.reduceat(bottom, first) + 1 - y
    out[owner[first]] = np.stack([x, y, across, down], 1)
    return out


# -- batches -------------------------------------------------------------------------------------------------------


def _parsed(a: Batch) -> Iterator[tuple[slice, Runs]]:
    """The batch in slices of bounded size."""
    _check_columns(a)
    for rows in _slices(_weights(a)):
        yield rows, _parse(_rows(a, rows), rows.start)


def _slices(weights: Int64Array) -> list[slice]:
    full = np.cumsum(weights) // SLICE
    bounds = [0, *(np.flatnonzero(np.diff(full)) + 1).tolist(), len(weights)]
    return [
        slice(first, last) for first, last in itertools.pairwise(bounds) if first < last
    ]


def _weights(a: Batch) -> Int64Array:
    length: Int64Array = np.clip(a[2] - a[1], 0, len(a[0]))
    return length + MASK_WEIGHT


def _rows(a: Batch, rows: slice) -> Batch:
    return a[0], a[1][rows], a[2][rows], a[3][rows]


def _batch(strings: Strings, size: Int32Array) -> Batch:
    stop = np.frombuffer(strings[1], np.int64)
    return np.frombuffer(strings[0], np.uint8), _starts(stop), stop, size


def _join(made: list[Strings]) -> Strings:
    ends = np.cumsum([0] + [len(data) for data, _ in made])
    stops = [
        np.frombuffer(stop, np.int64) + first for (_, stop), first in zip(made, ends)
    ]
    return b"".join(data for data, _ in made), b"".join(
        stop.tobytes() for stop in stops
    )


def _pixels(size: Int32Array) -> Int64Array:
    return size[:, 0].astype(np.int64) * size[:, 1]


def _starts(end: Int64Array) -> Int64Array:
    """Where each of several adjacent parts begins, given where each ends."""
    return np.concatenate([np.zeros(1, np.int64), end[:-1]])[: len(end)]


def _sums(value: Int64Array, end: Int64Array) -> Int64Array:
    total: Int64Array = np.concatenate([np.zeros(1, np.int64), np.cumsum(value)])
    sums: Int64Array = total[end] - total[_starts(end)]
    return sums


def _ranks(end: Int64Array) -> Int64Array:
    """0, 1, ... within each of several adjacent parts."""
    return np.arange(end[-1] if len(end) else 0) - np.repeat(
        _starts(end), end - _starts(end)
    )


def _ranges(first: Int64Array, count: Int64Array) -> Int64Array:
    """first[0], first[0] + 1, ... count[0] of them, then those of first[1], and so on."""
    end = np.cumsum(count)
    return np.arange(end[-1] if len(end) else 0) + np.repeat(
        first - _starts(end), count
    )


def _check_columns(a: Batch) -> None:
    if not len(a[1]) == len(a[2]) == len(a[3]):
        raise MaskError(
            f"columns differ: {len(a[1])} starts, {len(a[2])} stops, {len(a[3])} sizes"
        )


def _check_sizes(size: NDArray[np.integer], first: int = 0) -> Int32Array:
    wide = size.astype(np.int64)
    height = wide[:, 0]
    width = wide[:, 1]
    bad = (height < 0) | (width < 0) | (height > MAX_PIXELS) | (width > MAX_PIXELS)
    bad |= height * np.where(bad, 0, width) > MAX_PIXELS
    if bad.any():
        item = int(bad.argmax())
        raise MaskError(
            f"size {tuple(wide[item].tolist())} is not within 0 and {MAX_PIXELS} pixels",
            first + item,
        )
    return wide.astype(np.int32)


def _check_offsets(offsets: Int64Array, count: int, groups: int) -> None:
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
