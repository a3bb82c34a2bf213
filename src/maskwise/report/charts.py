"""The geometry of charts, in percent of their width; templates/parts.html draws them as SVG."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from maskwise.runs.schema import CalibrationBin, ConfusionMatrix, MetricValue

NICE = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True)
class Axis:
    """A scale from low to high; `ticks` are values on it."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def place(self, value: float) -> float:
        """The position of a value in percent from the left, clipped to the chart."""
        share = (value - self.low) / (self.high - self.low)
        return round(100 * min(1.0, max(0.0, share)), 2)


@dataclass(frozen=True)
class Bar:
    """A bar from zero to its value and, where there is an interval, a whisker from low to high."""

    left: float
    width: float
    end: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class ChartLine:
    """One line of a chart: a name, a metric with its bar, and for slices a second metric."""

    name: str
    meaning: str
    metric: MetricValue
    bar: Bar | None
    second: MetricValue | None = None
    second_bar: Bar | None = None
    samples: int | None = None


@dataclass(frozen=True)
class Chart:
    """Lines on one axis. left_out: number of groups that are not shown."""

    title: str
    axis: Axis
    lines: list[ChartLine]
    left_out: int = 0


def fraction_axis(metrics: Iterable[MetricValue]) -> Axis:
    """From 0 to a round number that no value or interval exceeds; symmetric where a value is negative."""
    known = [
        end
        for metric in metrics
        for end in (metric.value, metric.low, metric.high)
        if end is not None
    ]
    highest = max(known, default=1.0)
    high = next((end for end in NICE if highest <= end), 1.0)
    if min(known, default=0.0) < 0:
        return difference_axis(known)
    return Axis(0.0, high, (0.0, high / 2, high))


def difference_axis(values: Iterable[float]) -> Axis:
    """A symmetric axis to a round number."""
    reach = max((abs(value) for value in values), default=1.0)
    high = next((end for end in (0.01, 0.02, *NICE) if reach <= end), max(1.0, reach))
    return Axis(-high, high, (-high, 0.0, high))


def make_bar(metric: MetricValue, axis: Axis) -> Bar | None:
    """The bar of a metric; None where it is undefined."""
    if metric.value is None:
        return None
    zero = axis.place(0.0)
    end = axis.place(metric.value)
    low = None if metric.low is None else axis.place(metric.low)
    high = None if metric.high is None else axis.place(metric.high)
    return Bar(min(zero, end), round(abs(end - zero), 2), end, low, high)


@dataclass(frozen=True)
class HistogramBar:
    """One bar of a histogram. width: in percent of the largest bar; share: of the total, 0 to 1."""

    name: str
    count: int
    width: float
    share: float


def make_histogram(counts: Mapping[str, int]) -> list[HistogramBar]:
    """The bars of a histogram in the order given; none if nothing was counted."""
    total = sum(counts.values())
    most = max(counts.values(), default=0)
    if not total:
        return []
    return [
        HistogramBar(name, count, round(100 * count / most, 2), count / total)
        for name, count in counts.items()
    ]


@dataclass(frozen=True)
class Reliability:
    """A reliability diagram on a square of 100 x 100 and the expected calibration error.

    columns: x, width, precision, mean confidence, share of the largest bin; all in percent.
    """

    columns: tuple[tuple[float, float, float, float, float], ...]
    bins: tuple[CalibrationBin, ...]
    regions: int
    error: float


def make_reliability(bins: Sequence[CalibrationBin]) -> Reliability | None:
    """The diagram of calibration bins; None where no region was predicted.

    The error is the mean gap between confidence and precision over all predicted regions (Naeini et al., AAAI 2015).
    """
    regions = sum(item.count for item in bins)
    if not regions:
        return None
    most = max(item.count for item in bins)
    columns = tuple(
        (
            round(100 * item.low, 2),
            round(100 * (item.high - item.low), 2),
            round(100 * item.precision, 2),
            round(100 * item.score, 2),
            round(100 * item.count / most, 2),
        )
        for item in bins
    )
    error = (
        sum(item.count * abs(item.score - item.precision) for item in bins) / regions
    )
    return Reliability(columns, tuple(bins), regions, error)


@dataclass(frozen=True)
class RiskCurve:
    """Risk against coverage on a square of 100 x 100.

    line: the points of an SVG path, y downwards; points: confidence, coverage, risk; area: mean risk over the covered
    part.
    """

    line: str
    points: tuple[tuple[float, float, float], ...]
    area: float

    @property
    def last(self) -> tuple[float, float]:
        """Coverage and risk with all answers."""
        return self.points[-1][1:]


def make_risk_curve(
    points: Sequence[tuple[float, float, float]],
) -> RiskCurve | None:
    """The curve of points (confidence, coverage, risk); None with fewer than two."""
    if len(points) < 2:
        return None
    places = [
        f"{100 * coverage:.2f},{100 - 100 * risk:.2f}" for _, coverage, risk in points
    ]
    widths = [points[0][1]]
    widths += [after[1] - before[1] for before, after in pairwise(points)]
    risks = [risk for _, _, risk in points]
    weighted = sum(width * risk for width, risk in zip(widths, risks, strict=True))
    return RiskCurve(" ".join(places), tuple(points), weighted / sum(widths))


def row_shares(confusion: ConfusionMatrix) -> list[list[float | None]]:
    """Each count as a share of its row; None in rows without any."""
    return [
        [count / sum(row) if sum(row) else None for count in row]
        for row in confusion.counts
    ]
