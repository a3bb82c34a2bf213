"""What a protocol returns: every metric as a ratio of sums over samples, with each sample's contribution.

The denominator of a mean is a weight, that of a cumulative ratio such as cIoU a union. The metric of any group of
samples, its interval clustered by image and the merge of shards follow from the sums of two columns.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import numpy as np

from maskwise.arrays import (
    BoolArray,
    Float64Array,
    Int8Array,
    Int32Array,
    Int64Array,
    NumberArray,
)
from maskwise.errors import ProtocolError
from maskwise.schema import Score, Status

Key = TypeVar("Key", bound=Hashable)

Join = Callable[[Sequence[NumberArray]], NumberArray]
"""Makes one array of the parts of a column."""

STATUSES: tuple[Status, ...] = ("scored", "failed", "missing", "excluded")
SCORED, FAILED, MISSING, EXCLUDED = range(4)
"""Failed and missing predictions count as zero; excluded samples are in no numerator and no denominator."""


@dataclass(frozen=True, slots=True)
class MetricTerms:
    """One metric: sum(numerator) / (sum(denominator) + epsilon) over any group of samples.

    numerator, denominator: [samples], float64 or int64 (int64 sums are exact). Where a `gate` [samples] is given and
    sums to 0, the value is `empty` (None: undefined); x / 0 is None. defined: False for a metric that the rule does not
    have (`undefined_metric`), whatever the samples are.
    """

    numerator: NumberArray
    denominator: NumberArray
    epsilon: float = 0.0
    unit: Literal["fraction", "count"] = "fraction"
    empty: float | None = None
    gate: NumberArray | None = None
    defined: bool = True

    def value(self, rows: BoolArray | Int64Array | None = None) -> float | None:
        """The value over all samples, or over some."""
        top, bottom, gate = (
            _total(column, rows)
            for column in (self.numerator, self.denominator, self.gate)
        )
        if self.gate is not None and not gate:
            return self.empty
        whole = float(bottom) + self.epsilon
        return float(top) / whole if whole else None


@dataclass(frozen=True)
class CompositeMetric:
    """One metric that is a function of several sums over samples, such as cgF1.

    columns: float64 [samples, k]; formula: from the sums, float64 [groups, k], to values, float64 [groups], NaN where
    undefined. lowest: the least value that is possible; the largest is 1.
    """

    columns: Float64Array
    formula: Callable[[Float64Array], Float64Array]
    lowest: float = 0.0

    def value(self, rows: BoolArray | Int64Array | None = None) -> float | None:
        """The value over all samples, or over some."""
        columns = self.columns if rows is None else self.columns[rows]
        return self.value_of_sums(columns.sum(0))

    def value_of_sums(self, sums: Float64Array) -> float | None:
        """The value of summed columns, float64 [k]; None where it is undefined."""
        value = float(self.formula(sums[None])[0])
        return None if np.isnan(value) else value


@dataclass(frozen=True)
class SampleStatuses:
    """Status of each sample. status: int8 [n] positions in STATUSES; reason: int32 [n] positions in `reasons`, whose
    first entry is the empty string (no reason).
    """

    status: Int8Array
    reason: Int32Array
    reasons: tuple[str, ...]

    @staticmethod
    def concat(
        parts: "Sequence[SampleStatuses]", join: Join = np.concatenate
    ) -> "SampleStatuses":
        """The statuses of several shards, in order."""
        reasons = tuple(
            dict.fromkeys(("", *(reason for part in parts for reason in part.reasons)))
        )
        status = join([part.status for part in parts])
        if all(part.reasons == reasons for part in parts):
            return SampleStatuses(
                status, join([part.reason for part in parts]), reasons
            )
        code = {reason: item for item, reason in enumerate(reasons)}
        recoded = [
            np.array([code[text] for text in part.reasons], np.int32)[part.reason]
            for part in parts
        ]
        return SampleStatuses(status, np.concatenate(recoded), reasons)


@dataclass(frozen=True)
class CountedNotice:
    """How often something happened that a reader has to know of: `3 empty masks beyond the targets ...`."""

    count: int
    singular: str
    rest: str

    @property
    def text(self) -> str:
        """The notice as a sentence."""
        things = (
            f"1 {self.singular}"
            if self.count == 1
            else f"{self.count:,} {self.singular}s"
        )
        return f"{things} {self.rest}"


@dataclass(frozen=True)
class Scores:
    """All samples under one protocol, in the order of the ground truth.

    metrics: at least `giou` (numerator weight x value, denominator weight) and `ciou` (intersection over union).
    legacy: values by running float32 sums, where requested. composites: metrics that are not a ratio of two sums.
    plain: values that are no function of sums at all, such as average precision: they have no interval.
    counted_notices: how often something happened that a reader has to know of.
    """

    protocol: str
    options: Mapping[str, Any]
    statuses: SampleStatuses
    metrics: Mapping[str, MetricTerms]
    legacy: Mapping[str, float] = field(default_factory=dict)
    composites: Mapping[str, CompositeMetric] = field(default_factory=dict)
    plain: Mapping[str, float | None] = field(default_factory=dict)
    confusion: Int64Array | None = None
    """Requested mask types (3 rows) and predicted ones (4 columns), counts; `strict` only."""
    calibration: Float64Array | None = None
    """Confidence and IoU of each counted region, float64 [regions, 2]; `strict` only."""
    counted_notices: "tuple[CountedNotice, ...]" = ()

    def __len__(self) -> int:
        return len(self.statuses.status)

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader has to know before the values."""
        return tuple(notice.text for notice in self.counted_notices if notice.count)

    @property
    def value(self) -> Float64Array:
        """gIoU of each sample, float64 [samples]; meaningful where the status is scored and the weight positive."""
        giou = self.metrics["giou"]
        return np.divide(
            giou.numerator,
            giou.denominator,
            out=np.zeros(len(self)),
            where=giou.denominator > 0,
        )

    def headline(self) -> dict[str, float | None]:
        """Every metric over all samples; the legacy value where requested."""
        values = {
            name: self.legacy.get(name, metric.value())
            for name, metric in self.metrics.items()
        }
        values |= {name: metric.value() for name, metric in self.composites.items()}
        return values | dict(self.plain)

    @property
    def names(self) -> list[str]:
        """All metrics, in the order in which they are shown."""
        return [*self.metrics, *self.composites, *self.plain]

    def rows(self, samples: Sequence[str]) -> list[Score]:
        """One record per sample, given the samples' ids."""
        giou = self.metrics["giou"]
        ciou = self.metrics["ciou"]
        value = self.value
        statuses = self.statuses
        return [
            Score(
                sample=sample,
                protocol=self.protocol,
                status=STATUSES[statuses.status[item]],
                value=float(value[item]) if statuses.status[item] == SCORED else None,
                weight=float(giou.denominator[item]),
                intersection=int(ciou.numerator[item]),
                union=int(ciou.denominator[item]),
                reason=statuses.reasons[statuses.reason[item]] or None,
            )
            for item, sample in enumerate(samples)
        ]


def concat(shards: Sequence[Scores], join: Join = np.concatenate) -> Scores:
    """The scores of several shards as those of the whole, in order. Legacy values depend on the order of one running
    sum and are dropped, and so are plain values.

    join: makes one column of its parts. It may return the same array for the same parts, so that columns which metrics
    or protocols share stay shared.
    """
    first = shards[0]
    if any(
        (shard.protocol, shard.options) != (first.protocol, first.options)
        for shard in shards
    ):
        raise ProtocolError(
            "shards were scored under different protocols or options; score them again alike"
        )
    return replace(
        first,
        statuses=SampleStatuses.concat([shard.statuses for shard in shards], join),
        metrics={
            name: _concat_metric([shard.metrics[name] for shard in shards], join)
            for name in first.metrics
        },
        legacy={},
        composites={
            name: replace(
                metric,
                columns=join([shard.composites[name].columns for shard in shards]),
            )
            for name, metric in first.composites.items()
        },
        plain={},
        confusion=_add([shard.confusion for shard in shards]),
        calibration=_concat_known([shard.calibration for shard in shards], join),
        counted_notices=tuple(
            replace(notices[0], count=sum(notice.count for notice in notices))
            for notices in zip(*(shard.counted_notices for shard in shards))
        ),
    )


def share_columns(metrics: Mapping[Key, MetricTerms]) -> dict[Key, MetricTerms]:
    """The same metrics with equal columns replaced by one array, so that derived values are computed once."""
    by_id: dict[int, NumberArray] = {}
    alike: dict[tuple[str, bytes], list[NumberArray]] = {}

    def share(column: NumberArray) -> NumberArray:
        if id(column) not in by_id:
            kin = alike.setdefault((column.dtype.str, column[::1009].tobytes()), [])
            known = next(
                (other for other in kin if np.array_equal(other, column)), None
            )
            if known is None:
                kin.append(column)
            by_id[id(column)] = column if known is None else known
        return by_id[id(column)]

    return {
        key: replace(
            metric,
            numerator=share(metric.numerator),
            denominator=share(metric.denominator),
            gate=None if metric.gate is None else share(metric.gate),
        )
        for key, metric in metrics.items()
    }


def undefined_metric(samples: int) -> MetricTerms:
    """A metric that the rule does not define: its value is None for any group of samples."""
    nothing = np.zeros(samples, np.int64)
    return MetricTerms(nothing, nothing, gate=nothing, defined=False)


def sums(groups: Int64Array, values: NumberArray, count: int) -> Float64Array:
    """Sum of values in each of `count` groups, float64 [count]."""
    return np.bincount(groups, values, minlength=count).astype(np.float64, copy=False)


def int_sums(groups: Int64Array, values: Int64Array, count: int) -> Int64Array:
    """As `sums`, for integers with a total below 2**53: exact, int64 [count]."""
    return np.bincount(groups, values, minlength=count).astype(np.int64)


def _concat_metric(metrics: Sequence[MetricTerms], join: Join) -> MetricTerms:
    gates = [metric.gate for metric in metrics if metric.gate is not None]
    return replace(
        metrics[0],
        numerator=join([metric.numerator for metric in metrics]),
        denominator=join([metric.denominator for metric in metrics]),
        gate=join(gates) if gates else None,
    )


def _concat_known(
    tables: Sequence[Float64Array | None], join: Join
) -> Float64Array | None:
    known = [table for table in tables if table is not None]
    return join(known) if known else None


def _add(tables: Sequence[Any]) -> Any:
    known = [table for table in tables if table is not None]
    return np.sum(known, axis=0) if known else None


def _total(
    column: NumberArray | None, rows: BoolArray | Int64Array | None
) -> float | int:
    if column is None:
        return 0
    total: float | int = (column if rows is None else column[rows]).sum().item()
    return total
