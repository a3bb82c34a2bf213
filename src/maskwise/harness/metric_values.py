"""What scores.json says about metrics and statuses, from the scores of a protocol."""

import numpy as np

from maskwise.protocols import Scores
from maskwise.protocols.intervals import Estimate, Interval
from maskwise.protocols.metrics import STATUSES
from maskwise.runs.schema import MetricValue, StatusCounts


def count_statuses(scores: Scores) -> StatusCounts:
    """How many samples are scored, failed, missing and excluded, and why."""
    statuses = scores.statuses
    by_status = np.bincount(statuses.status, minlength=len(STATUSES)).tolist()
    by_reason = np.bincount(statuses.reason, minlength=len(statuses.reasons)).tolist()
    reasons = {
        text: count
        for text, count in zip(statuses.reasons, by_reason)
        if text and count
    }
    return StatusCounts(
        samples=len(scores), **dict(zip(STATUSES, by_status)), reasons=reasons
    )


def estimate_value(estimated: Estimate) -> MetricValue:
    """What scores.json says about a metric that is not a ratio of two sums, or not defined."""
    interval = estimated.interval
    return MetricValue(
        value=estimated.value,
        low=interval.low,
        high=interval.high,
        method=interval.method,
        unit="fraction",
    )


def metric_value(scores: Scores, name: str, interval: Interval) -> MetricValue:
    """What scores.json says about a ratio of two sums."""
    metric = scores.metrics[name]
    if not metric.defined:
        return estimate_value(Estimate(None, interval))
    exact = metric.value()
    gate = None if metric.gate is None else float(metric.gate.sum())
    return MetricValue(
        value=scores.legacy.get(name, exact),
        low=interval.low,
        high=interval.high,
        method=interval.method,
        unit=metric.unit,
        numerator=float(metric.numerator.sum()),
        denominator=float(metric.denominator.sum()),
        epsilon=metric.epsilon,
        exact=exact if name in scores.legacy else None,
        gate=gate,
        empty=None if gate is None else metric.empty,
    )
