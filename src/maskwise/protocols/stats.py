"""How sure a figure is: intervals clustered by image, and paired tests between two runs.

Questions about one image are not independent, so images are what is drawn, kept or swapped. All work on sums per
image, which is right for means and for ratios of sums (cIoU) alike.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwise.arrays import BoolArray, Float64Array, Int64Array, NumberArray
from maskwise.errors import ProtocolError
from maskwise.protocols.metrics import Key, Metric, share_columns, sums

CHUNK = 64
"""Resamples drawn at once: bounds memory to CHUNK x images numbers a thread."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The ends of an interval; None where fewer than two images have a part in the figure."""

    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Run B against run A under one metric: figures, difference b - a with its interval, and the p-value of no
    difference. None where a figure is undefined.
    """

    a: float | None
    b: float | None
    difference: float | None
    interval: Interval
    p_value: float | None
    images: int


def bootstrap(
    metrics: Mapping[Key, Metric],
    cluster: Int64Array,
    *,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    threads: int = 1,
) -> dict[Key, Interval]:
    """Percentile intervals of figures by resampling images, the same draws for all of them.

    cluster: int64 [samples], the image of each. The seed makes it repeatable.
    """
    count = int(cluster.max(initial=-1)) + 1
    shared = share_columns(metrics)
    columns: dict[int, NumberArray] = {}
    for metric in shared.values():
        for column in (metric.numerator, metric.denominator, metric.gate):
            if column is not None:
                columns[id(column)] = column
    place = {key: item for item, key in enumerate(columns)}
    table = np.stack([np.zeros(count), *(sums(cluster, column, count) for column in columns.values())], 1)[
        :, 1:
    ]
    drawn = _draw(table, resamples, seed, threads=threads, kind=np.float32)
    out = {}
    for name, metric in shared.items():
        top, bottom = place[id(metric.numerator)], place[id(metric.denominator)]
        gate = None if metric.gate is None else drawn[:, place[id(metric.gate)]]
        enough = int(((table[:, top] != 0) | (table[:, bottom] != 0)).sum()) > 1
        ratios = _ratios(metric, drawn[:, top], drawn[:, bottom], gate)
        out[name] = _percentiles(ratios, level) if enough else Interval(None, None)
    return out


class Groups:
    """Samples in groups, images within each: what intervals of slices are made from.

    codes: int [samples], the group of each sample; cluster: int64 [samples], its image; count: number of groups,
    below 65536. A cell is one image in one group.
    """

    def __init__(self, codes: NDArray[np.integer], cluster: Int64Array, count: int) -> None:
        by_image = np.argsort(cluster, kind="stable")
        # Sorting small numbers is quick, and a stable sort keeps the images of a group together.
        self.order = by_image[np.argsort(codes[by_image].astype(np.uint16), kind="stable")]
        group, image = codes[self.order], cluster[self.order]
        new = np.ones(len(group), bool)
        new[1:] = (group[1:] != group[:-1]) | (image[1:] != image[:-1])
        self.starts = np.flatnonzero(new)
        self.group, self.count = group[self.starts].astype(np.int64), count
        self._firsts = np.searchsorted(self.group, np.arange(count + 1))
        self._cells: dict[int, Float64Array] = {}
        self._kept: list[NumberArray] = []
        self._sums: dict[tuple[int, int], tuple[Float64Array, ...]] = {}

    def samples(self) -> Int64Array:
        """Samples of each group."""
        return np.diff(np.append(self.starts, len(self.order))[self._firsts])

    def images(self) -> Int64Array:
        """Images of each group."""
        return np.diff(self._firsts)

    def cells(self, column: NumberArray) -> Float64Array:
        """The sums of a column over each cell; asked again for the same array, they are at hand."""
        if id(column) not in self._cells:
            values = column[self.order]
            total = np.add.reduceat(values, self.starts) if len(values) else values
            self._cells[id(column)] = total.astype(np.float64, copy=False)
            self._kept.append(column)  # so that its id stays its own
        return self._cells[id(column)]

    def _add(self, cells: NumberArray) -> Float64Array:
        """The sums of values of cells over each group."""
        out = np.zeros(self.count)
        some = np.flatnonzero(np.diff(self._firsts))
        if len(some):
            out[some] = np.add.reduceat(cells, self._firsts[some], dtype=np.float64)
        return out

    def _moments(self, y: Float64Array, x: Float64Array) -> tuple[Float64Array, ...]:
        """Sums of y, x, y y, x y, x x and of cells with either, over each group; kept for the next metric like it."""
        key = id(y), id(x)
        if key not in self._sums:
            products = (y, x, y * y, x * y, x * x, (x != 0) | (y != 0))
            self._sums[key] = tuple(self._add(values) for values in products)
        return self._sums[key]

    def figures(self, metric: Metric, level: float = 0.95) -> list[tuple[float | None, Interval]]:
        """The figure of each group and its interval, from its linearised variance over images.

        A ratio R = sum(y) / sum(x) has the variance of sum(y - R x) / sum(x), images being independent (Cochran,
        Sampling Techniques, 3rd ed., 6.4). Quick where there are many groups; kept within 0 and 1 for fractions.
        """
        y, x = self.cells(metric.numerator), self.cells(metric.denominator)
        gate = None if metric.gate is None else self._add(self.cells(metric.gate))
        top, bottom, yy, xy, xx, images = self._moments(y, x)
        value = _ratios(metric, top, bottom, gate)
        ratio = np.nan_to_num(value)
        squares = np.maximum(yy - 2 * ratio * xy + ratio * ratio * xx, 0.0)
        spread = np.sqrt(squares * images / np.maximum(images - 1, 1))
        reach = (
            NormalDist().inv_cdf(0.5 + level / 2)
            * spread
            / np.where(bottom > 0, bottom + metric.epsilon, 1.0)
        )
        low, high = ratio - reach, ratio + reach
        if metric.unit == "fraction":
            low, high = np.maximum(low, np.minimum(0.0, ratio)), np.minimum(high, np.maximum(1.0, ratio))
        rows = zip(value.tolist(), low.tolist(), high.tolist(), (images > 1).tolist())
        nothing = Interval(None, None)
        return [
            (None, nothing) if np.isnan(found) else (found, Interval(lo, hi) if enough else nothing)
            for found, lo, hi, enough in rows
        ]


def compare(a: Metric, b: Metric, cluster: Int64Array, **options: Any) -> Comparison:
    """Two runs under one metric; see `compare_metrics`."""
    return compare_metrics({"metric": a}, {"metric": b}, cluster, **options)["metric"]


def compare_metrics(
    a: Mapping[str, Metric],
    b: Mapping[str, Metric],
    cluster: Int64Array,
    *,
    rows: BoolArray | None = None,
    resamples: int = 1000,
    permutations: int = 2000,
    level: float = 0.95,
    seed: int = 0,
    threads: int = 1,
) -> dict[str, Comparison]:
    """Two runs over the same samples in the same order, under every metric both have: interval of the difference by
    bootstrap over images, p-value by swapping the runs in random images (two-sided, (1 + as extreme) / (1 +
    permutations)). All metrics share the draws and the swaps.

    rows: bool [samples], the slice to compare.
    """
    metrics = [(name, a[name], b[name]) for name in a if name in b]
    if not metrics:
        return {}
    table = _pair_table([(one, other) for _, one, other in metrics], cluster, rows)
    drawn = _draw(table, resamples, seed, threads=threads)
    swapped = _swap(table, permutations, seed, threads=threads)
    out = {}
    for place, (name, one, other) in enumerate(metrics):
        columns = slice(4 * place, 4 * place + 4)
        first, second, difference, p_value = one.value(rows), other.value(rows), None, None
        interval = Interval(None, None)
        if first is not None and second is not None:
            difference = second - first
            if len(table) > 1:
                interval = _percentiles(_differences(one, other, drawn[:, columns]), level)
            p_value = _p_value(one, other, table[:, columns].sum(0), swapped[:, columns])
        out[name] = Comparison(first, second, difference, interval, p_value, len(table))
    return out


def _pair_table(
    pairs: Sequence[tuple[Metric, Metric]], cluster: Int64Array, rows: BoolArray | None
) -> Float64Array:
    """Sums per image, float64 [images, 4 x pairs]: numerator and denominator of run A, then of run B."""
    parts = [part for pair in pairs for metric in pair for part in (metric.numerator, metric.denominator)]
    for part in parts:
        if len(part) != len(cluster):
            raise ProtocolError(f"runs of {len(part)} and {len(cluster)} samples cannot be paired")
    keep = slice(None) if rows is None else rows
    _, image = np.unique(cluster[keep], return_inverse=True)
    count = int(image.max(initial=-1)) + 1
    table = np.zeros((count, len(parts)))
    for place, part in enumerate(parts):
        table[:, place] = sums(image, part[keep], count)
    return table


def _p_value(a: Metric, b: Metric, total: Float64Array, swapped: Float64Array) -> float:
    """Share of random swaps of the two runs, image by image, that make as large a difference as the true one."""
    true = abs(_differences(a, b, total[None])[0])
    extreme = int((np.abs(_differences(a, b, swapped)) >= true - 1e-12).sum())
    return (1 + extreme) / (1 + len(swapped))


def _draw(
    table: Float64Array, resamples: int, seed: int, *, threads: int = 1, kind: type[np.floating] = np.float64
) -> Float64Array:
    """Column sums of `resamples` resamples of the rows: float64 [resamples, columns].

    Every row is taken as often as a Poisson number of mean 1 says, independently of the others: for ratios the same as
    drawing as many rows as there are with replacement, and quicker (Chamandy et al., Estimating uncertainty for massive
    data streams, 2012). Every chunk has its own generator, so the draws do not depend on the number of threads.
    `kind`: the numbers multiplied; float32 costs half and is good to six digits.
    """
    count, blocks, times_of = len(table), _cut_rows(table.astype(kind)), _poisson_table().astype(kind)

    def draw(start: int) -> Float64Array:
        generator = np.random.default_rng([seed, start])
        # Rows of zeros behind the table's last are drawn too: they add nothing.
        shape = (min(CHUNK, resamples - start), blocks.shape[0] * blocks.shape[1])
        times = times_of.take(generator.integers(0, len(times_of), shape, dtype=np.uint16))
        return _multiply(times, blocks)

    starts = range(0, resamples if count else 0, CHUNK)
    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(
            [np.zeros((0 if count else resamples, table.shape[1])), *pool.map(draw, starts)]
        )


def _poisson_table() -> Int64Array:
    """Poisson numbers of mean 1 by their quantiles, int64 [65536]: a random index gives a random number."""
    chances = np.exp(-1.0) / np.cumprod(np.maximum(np.arange(12.0), 1.0))
    return np.searchsorted(np.cumsum(chances), (np.arange(2**16) + 0.5) / 2**16)


def _cut_rows(table: NDArray[np.floating]) -> NDArray[np.floating]:
    """The table in blocks of rows, [blocks, rows, columns], zeros behind the last. A product of CHUNK rows with one
    block is too small for the linear algebra library to start threads of its own, which would fight with ours.
    """
    rows = max(1, 2**18 // (CHUNK * max(table.shape[1], 1)))
    blocks = np.zeros((-(-len(table) // rows), rows, table.shape[1]), table.dtype)
    blocks.reshape(-1, table.shape[1])[: len(table)] = table
    return blocks


def _multiply(weights: NDArray[np.floating], blocks: NDArray[np.floating]) -> Float64Array:
    """Weighted sums of the rows of a table in blocks. weights: [n, blocks x rows], of the blocks' type."""
    cut = weights.reshape(len(weights), blocks.shape[0], blocks.shape[1]).transpose(1, 0, 2)
    total: Float64Array = np.matmul(cut, blocks).sum(0, dtype=np.float64)
    return total


def _swap(table: Float64Array, permutations: int, seed: int, *, threads: int = 1) -> Float64Array:
    """Column sums of a `_pair_table` after swapping the two runs in random rows: float64 [permutations, columns]."""
    total = table.sum(0)
    change = (
        np.roll(table.reshape(len(table), table.shape[1] // 4, 2, 2), 1, axis=2).reshape(table.shape) - table
    )
    blocks = _cut_rows(change)

    def swap(start: int) -> Float64Array:
        generator = np.random.default_rng([seed, 1, start])
        swaps = np.zeros((min(CHUNK, permutations - start), blocks.shape[0] * blocks.shape[1]))
        swaps[:, : len(table)] = generator.integers(0, 2, (len(swaps), len(table)), dtype=np.int8)
        sums_: Float64Array = total + _multiply(swaps, blocks)
        return sums_

    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(list(pool.map(swap, range(0, permutations, CHUNK))))


def _differences(a: Metric, b: Metric, sums_: Float64Array) -> Float64Array:
    """Figure of B minus that of A for every row of sums, float64 [n]."""
    return _ratios(b, sums_[:, 2], sums_[:, 3]) - _ratios(a, sums_[:, 0], sums_[:, 1])


def _ratios(
    metric: Metric, top: Float64Array, bottom: Float64Array, gate: Float64Array | None = None
) -> Float64Array:
    """The figure of each resample; NaN where a resample has nothing to average."""
    whole = bottom + metric.epsilon
    value: Float64Array = np.divide(top, whole, out=np.full(len(top), np.nan), where=whole > 0)
    if gate is not None:
        value = np.where(gate > 0, value, np.nan if metric.empty is None else metric.empty)
    return value


def _percentiles(values: NDArray[np.float64], level: float) -> Interval:
    known = values[~np.isnan(values)]
    if not len(known):
        return Interval(None, None)
    low, high = np.quantile(known, [0.5 - level / 2, 0.5 + level / 2]).tolist()
    return Interval(low, high)
