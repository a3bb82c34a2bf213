"""What a protocol returns: per sample, its part in every figure. Every figure is a ratio of sums over samples.

A mean has a weight as its denominator, a cumulative ratio such as cIoU a union. So the figure of any group of samples,
its interval clustered by image and the merge of shards all follow from sums of two columns.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from maskwise.errors import ProtocolError
from maskwise.schema import Score, Status

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]
Numbers = NDArray[Any]
"""float64 or int64."""
Flags = NDArray[np.bool_]
Key = TypeVar("Key", bound=Hashable)

STATUSES: tuple[Status, ...] = ("scored", "failed", "unscored")
SCORED, FAILED, UNSCORED = range(3)


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure: sum(numerator) / (sum(denominator) + epsilon) over any group of samples.

    numerator, denominator: [samples], float64 or int64 (int64 sums are exact). Where a `gate` [samples] is given and
    sums to 0, the figure is `empty` (None: undefined); where it would be x / 0, it is None.
    """

    numerator: Numbers
    denominator: Numbers
    epsilon: float = 0.0
    unit: Literal["fraction", "count"] = "fraction"
    empty: float | None = None
    gate: Numbers | None = None

    def value(self, rows: Flags | Int64s | None = None) -> float | None:
        """The figure of all samples, or of some."""
        top, bottom, gate = (_total(column, rows) for column in (self.numerator, self.denominator, self.gate))
        if self.gate is not None and not gate:
            return self.empty
        whole = float(bottom) + self.epsilon
        return float(top) / whole if whole else None


@dataclass(frozen=True)
class Verdicts:
    """Whether each sample was scored. status: int8 [n] into STATUSES; reason: int32 [n] into `reasons`, of which the
    first is the empty string, for none.
    """

    status: NDArray[np.int8]
    reason: NDArray[np.int32]
    reasons: tuple[str, ...]

    @staticmethod
    def concat(parts: "Sequence[Verdicts]") -> "Verdicts":
        """Those of several shards, in order."""
        reasons = tuple(dict.fromkeys(("", *(reason for part in parts for reason in part.reasons))))
        code = {reason: item for item, reason in enumerate(reasons)}
        recoded = [np.array([code[text] for text in part.reasons], np.int32)[part.reason] for part in parts]
        return Verdicts(np.concatenate([part.status for part in parts]), np.concatenate(recoded), reasons)


@dataclass(frozen=True)
class Scores:
    """All samples under one protocol, in the order of the truth.

    metrics: at least `giou` (numerator weight x value, denominator weight) and `ciou` (intersection over union).
    legacy: figures as running float32 sums give them, where they were asked for.
    """

    protocol: str
    options: Mapping[str, Any]
    verdicts: Verdicts
    metrics: Mapping[str, Metric]
    legacy: Mapping[str, float] = field(default_factory=dict)
    confusion: Int64s | None = None
    """Mask types wanted (3 rows) and said (4 columns), counts; `strict` only."""
    calibration: Floats | None = None
    """[bins, 4]: predicted regions, sum of confidences, hits at IoU 0.5, sum of IoU; `strict` only."""

    def __len__(self) -> int:
        return len(self.verdicts.status)

    @property
    def value(self) -> Floats:
        """gIoU of each sample, float64 [samples]; meaningful where the status is scored and the weight positive."""
        giou = self.metrics["giou"]
        return np.divide(
            giou.numerator, giou.denominator, out=np.zeros(len(self)), where=giou.denominator > 0
        )

    def headline(self) -> dict[str, float | None]:
        """Every figure over all samples; the legacy one where it was asked for."""
        return {name: self.legacy.get(name, metric.value()) for name, metric in self.metrics.items()}

    def rows(self, samples: Sequence[str]) -> list[Score]:
        """One record a sample, given the samples' ids."""
        giou, ciou = self.metrics["giou"], self.metrics["ciou"]
        value, verdicts = self.value, self.verdicts
        return [
            Score(
                sample=sample,
                protocol=self.protocol,
                status=STATUSES[verdicts.status[item]],
                value=float(value[item]) if verdicts.status[item] == SCORED else None,
                weight=float(giou.denominator[item]),
                intersection=int(ciou.numerator[item]),
                union=int(ciou.denominator[item]),
                reason=verdicts.reasons[verdicts.reason[item]] or None,
            )
            for item, sample in enumerate(samples)
        ]


def concat(shards: Sequence[Scores]) -> Scores:
    """The scores of several shards as those of the whole, in order. Legacy figures depend on the order of one running
    sum and are dropped.
    """
    first = shards[0]
    if any((shard.protocol, shard.options) != (first.protocol, first.options) for shard in shards):
        raise ProtocolError("shards were scored under different protocols or options; score them again alike")
    return replace(
        first,
        verdicts=Verdicts.concat([shard.verdicts for shard in shards]),
        metrics={name: _concat_metric([shard.metrics[name] for shard in shards]) for name in first.metrics},
        legacy={},
        confusion=_add([shard.confusion for shard in shards]),
        calibration=_add([shard.calibration for shard in shards]),
    )


def share_columns(metrics: Mapping[Key, Metric]) -> dict[Key, Metric]:
    """The same metrics, columns with equal content being one array: what is derived from it is then derived once."""
    by_id: dict[int, Numbers] = {}
    alike: dict[tuple[str, bytes], list[Numbers]] = {}

    def share(column: Numbers) -> Numbers:
        if id(column) not in by_id:
            kin = alike.setdefault((column.dtype.str, column[::1009].tobytes()), [])
            known = next((other for other in kin if np.array_equal(other, column)), None)
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


def sums(groups: Int64s, values: Numbers, count: int) -> Floats:
    """Sum of values in each of `count` groups, float64 [count]."""
    return np.bincount(groups, values, minlength=count).astype(np.float64, copy=False)


def whole_sums(groups: Int64s, values: Int64s, count: int) -> Int64s:
    """As `sums`, of whole numbers below 2**53 in all: exact, int64 [count]."""
    return np.bincount(groups, values, minlength=count).astype(np.int64)


def _concat_metric(metrics: Sequence[Metric]) -> Metric:
    gates = [metric.gate for metric in metrics if metric.gate is not None]
    return replace(
        metrics[0],
        numerator=np.concatenate([metric.numerator for metric in metrics]),
        denominator=np.concatenate([metric.denominator for metric in metrics]),
        gate=np.concatenate(gates) if gates else None,
    )


def _add(tables: Sequence[Any]) -> Any:
    known = [table for table in tables if table is not None]
    return np.sum(known, axis=0) if known else None


def _total(column: Numbers | None, rows: Flags | Int64s | None) -> float | int:
    if column is None:
        return 0
    total: float | int = (column if rows is None else column[rows]).sum().item()
    return total
