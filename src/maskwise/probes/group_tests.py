"""Is a metric worse in one group of samples than in the rest? Tests with images as the unit.

The null hypothesis is that the metric does not depend on the group. The statistic is the
difference D between the group and the rest. Under the null hypothesis both have the pooled ratio
R, so the contribution of image i to D is

    u_i = sum over its samples of (y - R x) * (+1 / X_group or -1 / X_rest)

and D^2 is compared with the sum of u_i^2 (a score test with clusters). Taking R from all samples
matters: in a small group whose questions all fail, the variance within the group is 0, and a test
that uses it would call chance a finding (a mixture of both variances flagged up to a third of clean
models that are seldom right). The price is power where a group varies less than the rest: the
interval of D, that of a t test, may then exclude 0 although p does not. `bench/probe_alarms.py`
measures how often a clean model is flagged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from maskwise.arrays import BoolArray, Int64Array
from maskwise.protocols import MetricTerms
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.intervals import (
    MIN_IMAGES,
    Estimate,
    estimate,
    jackknife,
    ratio_of_sums,
    t_p_value,
)
from maskwise.protocols.significance import adjust_by_holm, t_tests
from maskwise.store import Codes

SIGNIFICANT = 0.05
"""Adjusted p-values below this are no chance: of clean models at most 5 % get any finding."""


@dataclass(frozen=True)
class GroupTest:
    """One group against the rest. metric: of which values are; adjusted: p after Holm."""

    metric: str
    facet: str
    group: str
    samples: int
    images: int
    own: Estimate
    rest: float
    difference: float
    low: float | None
    high: float | None
    p: float
    adjusted: float = 1.0

    @property
    def significant(self) -> bool:
        """Whether the difference is no chance, given all tests that were made."""
        return self.adjusted < SIGNIFICANT


def compare_groups(
    name: str,
    terms: MetricTerms,
    cluster: Int64Array,
    facets: Mapping[str, Codes],
    *,
    rows: BoolArray | None = None,
    min_images: int = MIN_IMAGES,
) -> list[GroupTest]:
    """Every group of every facet against the rest, where both have enough images.

    name: of the metric. cluster: int64 [samples], the image of each. rows: bool [samples], the
    samples that count; all if None. The p-values are not adjusted yet.
    """
    counted = np.ones(len(cluster), bool) if rows is None else rows
    tests = []
    for facet, codes in facets.items():
        for code, group in enumerate(codes.names):
            inside = counted & (codes.codes == code)
            outside = counted & (codes.codes != code)
            made = _test_group(terms, cluster, inside, outside, min_images)
            if made is not None:
                named = replace(made, metric=name, facet=facet, group=str(group))
                tests.append(named)
    return tests


def adjust_tests(tests: Sequence[GroupTest]) -> list[GroupTest]:
    """The tests with p-values adjusted for their number by Holm's procedure."""
    adjusted = adjust_by_holm([test.p for test in tests])
    return [
        replace(test, adjusted=1.0 if value is None else value)
        for test, value in zip(tests, adjusted)
    ]


def mask_terms(terms: MetricTerms, rows: BoolArray) -> MetricTerms:
    """The metric over some samples: others add nothing to either sum."""
    numerator = np.where(rows, terms.numerator, 0)
    return replace(
        terms, numerator=numerator, denominator=np.where(rows, terms.denominator, 0)
    )


def _test_group(
    terms: MetricTerms,
    cluster: Int64Array,
    inside: BoolArray,
    outside: BoolArray,
    min_images: int,
) -> GroupTest | None:
    """None where the group or the rest has too few images."""
    own = mask_terms(terms, inside)
    rest = mask_terms(terms, outside)
    everything = ImageGroups.single(cluster)
    own_ratio = ratio_of_sums(own, everything)
    rest_ratio = ratio_of_sums(rest, everything)
    images = int(own_ratio.images[0])
    if min(images, int(rest_ratio.images[0])) < min_images:
        return None
    compared = t_tests(rest, own, everything)[0]
    if compared.difference is None:
        return None
    return GroupTest(
        metric="",
        facet="",
        group="",
        samples=int((own.denominator > 0).sum()),
        images=images,
        own=estimate(own, everything)[0],
        rest=float(rest_ratio.ratio[0]),
        difference=compared.difference,
        low=compared.interval.low,
        high=compared.interval.high,
        p=_score_test(own, rest, everything),
    )


def _score_test(own: MetricTerms, rest: MetricTerms, groups: ImageGroups) -> float:
    """The two-sided p-value of no difference between the two."""
    own_ratio = ratio_of_sums(own, groups)
    rest_ratio = ratio_of_sums(rest, groups)
    own_sum = own_ratio.denominator[0]
    rest_sum = rest_ratio.denominator[0]
    pooled = (own.numerator.sum() + rest.numerator.sum()) / (own_sum + rest_sum)
    own_part = groups.cells(own.numerator) - pooled * groups.cells(own.denominator)
    rest_part = groups.cells(rest.numerator) - pooled * groups.cells(rest.denominator)
    contributions = own_part / own_sum - rest_part / rest_sum
    if not contributions.any():
        return 1.0
    images = np.minimum(own_ratio.images, rest_ratio.images)
    effective = np.minimum(own_ratio.effective_images, rest_ratio.effective_images)
    variance, freedom = jackknife(contributions, groups, images, effective)
    difference = own_ratio.ratio - rest_ratio.ratio
    return float(t_p_value(difference / np.sqrt(variance), freedom)[0])
