"""Paired tests between two runs on the same samples, and control of the error over many of them.

The difference of two ratios has the influence u_i = u_i(B) - u_i(A) for each image (see `intervals`). Its interval is a
t interval with the jackknife variance and Satterthwaite's degrees of freedom, and its p-value comes from the same t
distribution: the 95 % interval excludes 0 exactly where p < 0.05. It is cut at -1 and 1 where both metrics are shares
of every image (gIoU, cIoU, accuracies), because no difference lies outside. Where all images agree on the difference,
there is no interval; p is that of the sign test, and 1 where the difference is 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from maskwise.errors import ProtocolError
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.intervals import (
    JACKKNIFE,
    MIN_IMAGES,
    NO_VARIATION,
    TOO_FEW_IMAGES,
    Interval,
    influence,
    is_share,
    jackknife,
    ratio_of_sums,
    t_p_value,
    t_quantile,
)
from maskwise.protocols.metrics import MetricTerms


@dataclass(frozen=True, slots=True)
class Comparison:
    """Run B against run A under one metric: both values, the difference b - a with its interval, and the p-value of no
    difference. None where undefined; the p-value is None as well where there is no interval.
    """

    a: float | None
    b: float | None
    difference: float | None
    interval: Interval
    p_value: float | None
    images: int


def compare_metric(
    a: MetricTerms, b: MetricTerms, groups: ImageGroups, level: float = 0.95
) -> list[Comparison]:
    """Compare two runs over the same samples in the same order, in each group."""
    if len(a.numerator) != len(b.numerator):
        raise ProtocolError(
            f"runs of {len(a.numerator)} and {len(b.numerator)} samples cannot be paired; score both on one dataset"
        )
    ratios = [ratio_of_sums(metric, groups) for metric in (a, b)]
    with np.errstate(all="ignore"):
        influence_a, influence_b = (
            influence(metric, groups, ratio) for metric, ratio in zip((a, b), ratios)
        )
        images = np.maximum(ratios[0].images, ratios[1].images)
        effective = np.minimum(ratios[0].effective_images, ratios[1].effective_images)
        variance, freedom = jackknife(
            influence_b - influence_a, groups, images, effective
        )
        error = np.sqrt(variance)
        reach = t_quantile(freedom, level) * error
        p_value = t_p_value((ratios[1].ratio - ratios[0].ratio) / error, freedom)
    limit = np.where(is_share(a, groups) & is_share(b, groups), 1.0, np.inf)
    tests = zip(
        reach.tolist(), limit.tolist(), p_value.tolist(), images.tolist(), strict=True
    )
    return [
        _comparison(a_value, b_value, test, int(count))
        for a_value, b_value, test, count in zip(
            ratios[0].ratio.tolist(),
            ratios[1].ratio.tolist(),
            tests,
            groups.images(),
            strict=True,
        )
    ]


def _comparison(
    a: float, b: float, test: tuple[float, float, float, float], images: int
) -> Comparison:
    """test: half the width of the interval, largest possible difference, p-value, number of images that count."""
    reach, limit, p_value, used = test
    first, second = (None if np.isnan(value) else value for value in (a, b))
    difference = None if first is None or second is None else second - first
    interval = Interval(None, None, TOO_FEW_IMAGES)
    p = None
    if difference is not None and used >= MIN_IMAGES:
        if reach > 0:
            low = max(difference - reach, -limit)
            high = min(difference + reach, limit)
            interval = Interval(low, high, JACKKNIFE)
            p = p_value
        else:
            interval = Interval(None, None, NO_VARIATION)
            p = 0.5 ** (used - 1) if difference else 1.0
    return Comparison(first, second, difference, interval, p, images)


def adjust_p_values(values: Sequence[float | None]) -> list[float | None]:
    """P-values adjusted for their number by the procedure of Benjamini and Hochberg (JRSS B, 1995); None stays None.

    Of the differences with an adjusted p below 0.05, at most 5 % are expected to be due to chance. Where no difference
    is real, the chance of any such difference is at most 5 %.
    """
    adjusted: list[float | None] = [None] * len(values)
    known = sorted(
        (value, item) for item, value in enumerate(values) if value is not None
    )
    lowest = 1.0
    for rank in range(len(known), 0, -1):
        value, item = known[rank - 1]
        lowest = min(lowest, value * len(known) / rank)
        adjusted[item] = lowest
    return adjusted
