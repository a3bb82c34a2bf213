"""How sure a figure is: intervals clustered by picture, and paired tests between two runs.

Questions about one picture are not independent, so pictures are what is drawn, kept or swapped. All work on sums per
picture, which is right for means and for ratios of sums (cIoU) alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from maskwise.errors import ProtocolError
from maskwise.protocols.metrics import Flags, Floats, Int64s, Metric, Numbers, sums

CHUNK = 64
"""Resamples drawn at once: bounds memory to CHUNK x pictures numbers."""


@dataclass(frozen=True, slots=True)
class Interval:
    """The ends of an interval; None where fewer than two pictures have a part in the figure."""

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
    pictures: int


def bootstrap(
    metrics: Mapping[str, Metric],
    cluster: Int64s,
    *,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> dict[str, Interval]:
    """Percentile intervals of figures by drawing pictures with replacement, the same draws for all of them.

    cluster: int64 [samples], the picture of each. The seed makes it repeatable.
    """
    count = int(cluster.max(initial=-1)) + 1
    columns = _Columns(cluster, count)
    places = {
        name: (
            columns.add(metric.numerator),
            columns.add(metric.denominator),
            None if metric.gate is None else columns.add(metric.gate),
        )
        for name, metric in metrics.items()
    }
    drawn = _draw(columns.table(), resamples, seed)
    out = {}
    for name, (top, bottom, gate) in places.items():
        ratios = _ratios(
            metrics[name], drawn[:, top], drawn[:, bottom], None if gate is None else drawn[:, gate]
        )
        out[name] = _percentiles(ratios, level) if columns.pictures(top, bottom) > 1 else Interval(None, None)
    return out


class Groups:
    """Samples in groups, pictures within each: what intervals of slices are made from.

    codes: int [samples], the group of each sample; cluster: int64 [samples], its picture; count: number of groups.
    """

    def __init__(self, codes: NDArray[np.integer], cluster: Int64s, count: int) -> None:
        width = int(cluster.max(initial=0)) + 1
        keys, self.owner = np.unique(codes.astype(np.int64) * width + cluster, return_inverse=True)
        self.codes, self.count, self.group = codes.astype(np.int64), count, keys // width

    def samples(self) -> Int64s:
        """Samples of each group."""
        return np.bincount(self.codes, minlength=self.count)

    def pictures(self) -> Int64s:
        """Pictures of each group."""
        return np.bincount(self.group, minlength=self.count)

    def figures(self, metric: Metric) -> list[float | None]:
        """The figure of each group."""
        top, bottom = (
            sums(self.codes, column, self.count) for column in (metric.numerator, metric.denominator)
        )
        gate = None if metric.gate is None else sums(self.codes, metric.gate, self.count)
        values = _ratios(metric, top, bottom, gate)
        return [None if np.isnan(value) else float(value) for value in values]

    def intervals(self, metric: Metric, level: float = 0.95) -> list[Interval]:
        """The interval of the figure in each group, from its linearised variance over pictures.

        A ratio R = sum(y) / sum(x) has the variance of sum(y - R x) / sum(x), pictures being independent (Cochran,
        Sampling Techniques, 3rd ed., 6.4). Quick where there are many groups; kept within 0 and 1 for fractions.
        """
        top = sums(self.codes, metric.numerator, self.count)
        bottom = sums(self.codes, metric.denominator, self.count) + metric.epsilon
        ratio = np.divide(top, bottom, out=np.zeros(self.count), where=bottom > 0)
        residual = metric.numerator - ratio[self.codes] * metric.denominator
        per_picture = sums(self.owner, residual, len(self.group))
        part = (metric.denominator != 0) | (metric.numerator != 0)
        pictures = sums(self.group, sums(self.owner, part, len(self.group)) > 0, self.count)
        spread = np.sqrt(
            sums(self.group, per_picture**2, self.count) * pictures / np.maximum(pictures - 1, 1)
        )
        reach = float(ndtri(0.5 + level / 2)) * spread / np.where(bottom > 0, bottom, 1.0)
        low, high = ratio - reach, ratio + reach
        if metric.unit == "fraction":
            low, high = np.maximum(low, np.minimum(0.0, ratio)), np.minimum(high, np.maximum(1.0, ratio))
        known = (pictures > 1) & (bottom > 0)
        ends = zip(low.tolist(), high.tolist(), known.tolist())
        return [Interval(lo, hi) if ok else Interval(None, None) for lo, hi, ok in ends]


def compare(
    a: Metric,
    b: Metric,
    cluster: Int64s,
    *,
    rows: Flags | None = None,
    resamples: int = 1000,
    permutations: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Two runs over the same samples in the same order: interval of the difference by bootstrap over pictures, p-value
    by swapping the runs in random pictures (two-sided, (1 + as extreme) / (1 + permutations)).

    rows: bool [samples], the slice to compare.
    """
    if len(a.numerator) != len(b.numerator) or len(a.numerator) != len(cluster):
        raise ProtocolError(f"runs of {len(a.numerator)} and {len(b.numerator)} samples cannot be paired")
    keep = slice(None) if rows is None else rows
    _, picture = np.unique(cluster[keep], return_inverse=True)
    count = int(picture.max(initial=-1)) + 1
    table = np.stack(
        [sums(picture, column[keep], count) for run in (a, b) for column in (run.numerator, run.denominator)],
        1,
    )
    first, second = a.value(rows), b.value(rows)
    if first is None or second is None:
        return Comparison(first, second, None, Interval(None, None), None, count)
    drawn = _draw(table, resamples, seed)
    differences = _ratios(b, drawn[:, 2], drawn[:, 3]) - _ratios(a, drawn[:, 0], drawn[:, 1])
    interval = _percentiles(differences, level) if count > 1 else Interval(None, None)
    p_value = _permute(a, b, table, permutations=permutations, seed=seed)
    return Comparison(first, second, second - first, interval, p_value, count)


class _Columns:
    """Sums per picture, equal columns kept once."""

    def __init__(self, cluster: Int64s, count: int) -> None:
        self._cluster, self._count = cluster, count
        self._by_id: dict[int, int] = {}
        self._by_bytes: dict[bytes, int] = {}
        self._kept: list[Numbers] = []
        self._columns: list[Floats] = []

    def add(self, column: Numbers) -> int:
        """The place of a column's sums."""
        if id(column) not in self._by_id:
            total = sums(self._cluster, column, self._count)
            place = self._by_bytes.setdefault(total.tobytes(), len(self._columns))
            if place == len(self._columns):
                self._columns.append(total)
            self._by_id[id(column)] = place
            self._kept.append(column)  # so that its id stays its own
        return self._by_id[id(column)]

    def pictures(self, one: int, other: int) -> int:
        """How many pictures have a part in either column."""
        return int(((self._columns[one] != 0) | (self._columns[other] != 0)).sum())

    def table(self) -> Floats:
        return np.stack(self._columns, 1) if self._columns else np.zeros((self._count, 0))


def _draw(table: Floats, resamples: int, seed: int) -> Floats:
    """Column sums of `resamples` draws of as many rows as there are, with replacement: float64 [resamples, columns]."""
    count = len(table)
    generator = np.random.default_rng(seed)
    out = np.empty((resamples, table.shape[1]))
    for start in range(0, resamples if count else 0, CHUNK):
        size = min(CHUNK, resamples - start)
        times = np.empty((size, count))
        for row in times:
            row[:] = np.bincount(generator.integers(0, count, count), minlength=count)
        out[start : start + size] = times @ table
    return out if count else np.zeros_like(out)


def _permute(a: Metric, b: Metric, table: Floats, *, permutations: int, seed: int) -> float:
    """Share of random swaps of the two runs, picture by picture, that make as large a difference as the true one."""
    generator = np.random.default_rng([seed, 1])
    total = table.sum(0)
    change = table[:, 2:] - table[:, :2]
    true = abs(_difference(a, b, total[None])[0])
    extreme = 0
    for start in range(0, permutations, CHUNK):
        size = min(CHUNK, permutations - start)
        swapped = generator.integers(0, 2, (size, len(table)), dtype=np.int8).astype(np.float64) @ change
        sums_ = np.concatenate([total[:2] + swapped, total[2:] - swapped], 1)
        extreme += int((np.abs(_difference(a, b, sums_)) >= true - 1e-12).sum())
    return (1 + extreme) / (1 + permutations)


def _difference(a: Metric, b: Metric, sums_: Floats) -> Floats:
    return _ratios(b, sums_[:, 2], sums_[:, 3]) - _ratios(a, sums_[:, 0], sums_[:, 1])


def _ratios(metric: Metric, top: Floats, bottom: Floats, gate: Floats | None = None) -> Floats:
    """The figure of each resample; NaN where a resample has nothing to average."""
    whole = bottom + metric.epsilon
    value: Floats = np.divide(top, whole, out=np.full(len(top), np.nan), where=whole > 0)
    if gate is not None:
        value = np.where(gate > 0, value, np.nan if metric.empty is None else metric.empty)
    return value


def _percentiles(values: NDArray[np.float64], level: float) -> Interval:
    known = values[~np.isnan(values)]
    if not len(known):
        return Interval(None, None)
    low, high = np.quantile(known, [0.5 - level / 2, 0.5 + level / 2]).tolist()
    return Interval(low, high)
