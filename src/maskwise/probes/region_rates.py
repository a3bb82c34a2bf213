"""How often a model draws a region where it should draw none, and how bad that is."""

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.probes.severity import grade
from maskwise.protocols import MetricTerms
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.intervals import Estimate, estimate
from maskwise.runs.probe_results import Measure, Severity
from maskwise.schema import Prediction

RATES: tuple[tuple[float, Severity], ...] = (
    (0.05, "low"),
    (0.15, "medium"),
    (0.40, "high"),
)
"""From which share on a finding has this severity; the whole interval has to lie above."""


def has_region(prediction: Prediction | None) -> bool:
    """Whether a prediction has a mask with pixels, and does not say that there is no target."""
    if prediction is None or prediction.no_target:
        return False
    for region in prediction.regions:
        for mask in (region.visible, region.amodal):
            if mask is not None and mask.area:
                return True
    return False


def estimate_rate(hits: BoolArray, counted: BoolArray, images: Int64Array) -> Estimate:
    """The share of hits among what counts, with its interval, clustered by image."""
    return estimate_mean((hits & counted).astype(np.float64), counted, images)


def estimate_mean(
    values: Float64Array, counted: BoolArray, images: Int64Array
) -> Estimate:
    """The mean of the values that count, with its interval, clustered by image."""
    counted_values = np.where(counted, values, 0.0)
    terms = MetricTerms(counted_values, counted.astype(np.float64))
    return estimate(terms, ImageGroups.single(images.astype(np.int64)))[0]


def rate_severity(rate: Estimate) -> Severity:
    """By the lower end of the interval of a rate; `unmeasured` without one, unless it is 0."""
    if rate.value == 0:
        return "none"
    if rate.interval.low is None:
        return "unmeasured"
    return grade(rate.interval.low, RATES)


def rate_measure(name: str, label: str, rate: Estimate, meaning: str) -> Measure:
    """A rate as it is reported."""
    return Measure(
        name=name,
        label=label,
        value=rate.value,
        low=rate.interval.low,
        high=rate.interval.high,
        meaning=meaning,
        method=rate.interval.method,
    )
