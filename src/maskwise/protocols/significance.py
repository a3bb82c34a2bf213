"""Paired tests between two runs on the same samples, and control of the error over many of them.

Up to MAX_PERMUTED images the p-value and the interval of a difference come from a permutation test over images (see
`permutation`). Above, where the sums of both are close to normal, and where one run rests on less than half of the
other's items or images (a permutation test has little power there), they come from the influence u_i = u_i(B) -
u_i(A) of each image (see `intervals`): a t interval with the jackknife variance and Satterthwaite's degrees of
freedom. Either way the 95 % interval excludes 0 exactly where p < 0.05. It is cut at -1 and 1 where both metrics are
shares of every image (gIoU, cIoU, accuracies), because no difference lies outside.

No p-value and no interval: with fewer than MIN_IMAGES images in either run, or where the variance of either run is
undefined because one image is its whole denominator. Where all images agree on the difference, there is no interval; p
is that of the sign test, and 1 where the difference is 0. A difference that is the rounding of sums is 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from maskwise.arrays import Float64Array
from maskwise.errors import ProtocolError
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.intervals import (
    JACKKNIFE,
    MIN_IMAGES,
    NO_VARIATION,
    PERMUTATION,
    TOO_FEW_IMAGES,
    UNDEFINED_WITHOUT_AN_IMAGE,
    Interval,
    influence,
    is_share,
    jackknife,
    ratio_of_sums,
    t_p_value,
    t_quantile,
)
from maskwise.protocols.metrics import MetricTerms
from maskwise.protocols.permutation import permutation_tests

MAX_PERMUTED = 10_000
"""Images up to which differences are tested by permutation: 25 metrics of 10,000 images take 3 seconds on one core."""
ALIKE = 0.5
"""Share of the larger run's denominator and images that the smaller run needs for a permutation test. With 10 and 20 of
100 images the test calls 0.001 and 0.003 of equal runs different, the t test 0.056 and 0.054; with 50 they have 0.036
and 0.047 (`python -m bench.significance`)."""
ROUNDING = 1e-12
"""Relative size below which a difference or its standard error is the rounding of sums: float64 has 16 digits, and sums
over a million samples lose less than 4 of them."""
POWER_QUANTILES = 1.960 + 0.842
"""Normal quantiles of a two-sided test at 0.05 and of a power of 0.8: their sum times the standard error of a
difference is the smallest difference that such a test finds with that power."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Run B against run A under one metric: both values, the difference b - a with its interval, and the p-value of no
    difference. None where undefined. error: the standard error of the difference (jackknife). images: of the group.
    """

    a: float | None
    b: float | None
    difference: float | None
    interval: Interval
    p_value: float | None
    images: int
    error: float | None = None

    @property
    def detectable(self) -> float | None:
        """The smallest difference of two such runs that a test at 0.05 finds with a power of 0.8; None if unknown."""
        return None if self.error is None else POWER_QUANTILES * self.error


def compare_metric(
    a: MetricTerms, b: MetricTerms, groups: ImageGroups, level: float = 0.95
) -> list[Comparison]:
    """Compare two runs over the same samples in the same order, in each group."""
    return compare_metrics({"": a}, {"": b}, groups, level)[""]


def compare_metrics(
    a: Mapping[str, MetricTerms],
    b: Mapping[str, MetricTerms],
    groups: ImageGroups,
    level: float = 0.95,
) -> dict[str, list[Comparison]]:
    """The metrics that both runs have, over the same samples in the same order: a comparison for each group.

    Metrics are tested together, with the same random swaps of images.
    """
    names = [name for name in a if name in b]
    for name in names:
        if len(a[name].numerator) != len(b[name].numerator):
            raise ProtocolError(
                f"runs of {len(a[name].numerator)} and {len(b[name].numerator)} samples cannot be paired; "
                "score both on one dataset"
            )
    limits = {name: _limits(a[name], b[name], groups) for name in names}
    alike = {name: _are_alike(a[name], b[name], groups) for name in names}
    compared = {name: t_tests(a[name], b[name], groups, level) for name in names}
    for group in range(len(groups)):
        cells = groups.cells_of(group)
        # The t test has found out which differences can be tested at all.
        testable = [
            name
            for name in names
            if alike[name][group] and compared[name][group].interval.low is not None
        ]
        if not testable or cells.stop - cells.start > MAX_PERMUTED:
            continue
        tests = permutation_tests(
            _columns([a[name] for name in testable], groups, cells),
            _columns([b[name] for name in testable], groups, cells),
            level,
        )
        for item, name in enumerate(testable):
            limit = limits[name][group]
            low = max(float(tests.low[item]), -limit)
            high = min(float(tests.high[item]), limit)
            compared[name][group] = replace(
                compared[name][group],
                interval=Interval(low, high, PERMUTATION),
                p_value=float(tests.p_value[item]),
            )
    return compared


def _columns(
    metrics: Sequence[MetricTerms], groups: ImageGroups, cells: slice
) -> tuple[Float64Array, Float64Array]:
    """Numerators and denominators of metrics in the cells of a group, float64 [cells, metrics] each."""
    numerators = [groups.cells(metric.numerator)[cells] for metric in metrics]
    denominators = [groups.cells(metric.denominator)[cells] for metric in metrics]
    return np.stack(numerators, 1), np.stack(denominators, 1)


def _are_alike(a: MetricTerms, b: MetricTerms, groups: ImageGroups) -> list[bool]:
    """Whether, in each group, neither run rests on less than ALIKE of the other's denominator or images."""
    ratios_a = ratio_of_sums(a, groups)
    ratios_b = ratio_of_sums(b, groups)
    alike = np.ones(len(groups), bool)
    for amount_a, amount_b in (
        (ratios_a.denominator, ratios_b.denominator),
        (ratios_a.images, ratios_b.images),
    ):
        alike &= np.minimum(amount_a, amount_b) >= ALIKE * np.maximum(
            amount_a, amount_b
        )
    flags: list[bool] = alike.tolist()
    return flags


def _limits(a: MetricTerms, b: MetricTerms, groups: ImageGroups) -> list[float]:
    """The largest possible difference in each group: 1 where both metrics are shares of every image."""
    limits: list[float] = np.where(
        is_share(a, groups) & is_share(b, groups), 1.0, np.inf
    ).tolist()
    return limits


def t_tests(
    a: MetricTerms, b: MetricTerms, groups: ImageGroups, level: float = 0.95
) -> list[Comparison]:
    """Compare by the jackknife variance, in each group, whatever the number of images."""
    limits = _limits(a, b, groups)
    ratios_a = ratio_of_sums(a, groups)
    ratios_b = ratio_of_sums(b, groups)
    with np.errstate(all="ignore"):
        influences = influence(b, groups, ratios_b) - influence(a, groups, ratios_a)
        # The run that rests on fewer images decides.
        images = np.minimum(ratios_a.images, ratios_b.images)
        effective = np.minimum(ratios_a.effective_images, ratios_b.effective_images)
        variance, freedom = jackknife(influences, groups, images, effective)
        error = np.sqrt(variance)
        reach = t_quantile(freedom, level) * error
        p_value = t_p_value((ratios_b.ratio - ratios_a.ratio) / error, freedom)
    comparisons = []
    for group, image_count in enumerate(groups.images().tolist()):
        test = _TTest(
            float(ratios_a.ratio[group]),
            float(ratios_b.ratio[group]),
            error=float(error[group]),
            reach=float(reach[group]),
            p_value=float(p_value[group]),
            images=int(images[group]),
        )
        comparisons.append(_comparison(test, limits[group], image_count))
    return comparisons


@dataclass(frozen=True, slots=True)
class _TTest:
    """The t test of one group: both values, standard error of the difference, half the width of its interval, p-value,
    and the images that the smaller run rests on. NaN where undefined.
    """

    a: float
    b: float
    error: float
    reach: float
    p_value: float
    images: int


def _comparison(test: _TTest, limit: float, images: int) -> Comparison:
    """The comparison by a t test. limit: the largest possible difference; images: of the group."""
    a = None if np.isnan(test.a) else test.a
    b = None if np.isnan(test.b) else test.b
    none = Interval(None, None, TOO_FEW_IMAGES)
    if a is None or b is None:
        return Comparison(a, b, None, none, None, images)
    rounding = ROUNDING * max(abs(a), abs(b))
    difference = 0.0 if abs(b - a) <= rounding else b - a
    if test.images < MIN_IMAGES:
        return Comparison(a, b, difference, none, None, images)
    if np.isnan(test.error):
        undefined = Interval(None, None, UNDEFINED_WITHOUT_AN_IMAGE)
        return Comparison(a, b, difference, undefined, None, images)
    if test.error <= rounding:
        constant = Interval(None, None, NO_VARIATION)
        p_value = 0.5 ** (test.images - 1) if difference else 1.0
        return Comparison(a, b, difference, constant, p_value, images, error=0.0)
    low = max(difference - test.reach, -limit)
    high = min(difference + test.reach, limit)
    interval = Interval(low, high, JACKKNIFE)
    return Comparison(
        a, b, difference, interval, test.p_value, images, error=test.error
    )


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


def adjust_by_holm(values: Sequence[float | None]) -> list[float | None]:
    """P-values adjusted for their number by the procedure of Holm (Scandinavian Journal of Statistics, 1979); None
    stays None.

    The chance that any adjusted p of a difference that is not real lies below 0.05 is at most 5 %.
    """
    adjusted: list[float | None] = [None] * len(values)
    known = sorted(
        (value, item) for item, value in enumerate(values) if value is not None
    )
    highest = 0.0
    for rank, (value, item) in enumerate(known):
        highest = max(highest, min(1.0, value * (len(known) - rank)))
        adjusted[item] = highest
    return adjusted
