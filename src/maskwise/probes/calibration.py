"""Calibration: is a stated confidence the share of cases in which it is right?

Confidences are put into bins. In each bin the gap is the mean of outcome minus confidence, tested
against 0 with images as the unit; p-values are adjusted for the number of bins (Holm). The error
that is graded is the mean gap over the bins with a gap beyond chance: a calibrated model has gaps by
chance, too, and the usual expected calibration error never is 0.
"""

from dataclasses import dataclass

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.protocols import MetricTerms
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.intervals import (
    MIN_IMAGES,
    jackknife,
    ratio_of_sums,
    t_p_value,
)
from maskwise.protocols.significance import adjust_by_holm

BINS = 10
SIGNIFICANT = 0.05 / 3
"""Three kinds of confidence are tested, so that a calibrated model is flagged in at most 5 % of cases."""


@dataclass(frozen=True)
class CalibrationBinTest:
    """One bin: cases, mean confidence, share that is right, adjusted p of no gap (None: too few
    images).
    """

    count: int
    confidence: float
    right: float
    p: float | None

    @property
    def significant(self) -> bool:
        """Whether the gap is no chance."""
        return self.p is not None and self.p < SIGNIFICANT


@dataclass(frozen=True)
class CalibrationTest:
    """Calibration of one kind of confidence. bins: those that are not empty."""

    name: str
    bins: list[CalibrationBinTest]

    @property
    def cases(self) -> int:
        """How many confidences there are."""
        return sum(item.count for item in self.bins)

    @property
    def expected_error(self) -> float:
        """The mean gap over all cases (Naeini et al., AAAI 2015)."""
        gaps = sum(item.count * abs(item.right - item.confidence) for item in self.bins)
        return gaps / max(1, self.cases)

    @property
    def certain_error(self) -> float:
        """The mean gap over all cases, counting gaps beyond chance only."""
        gaps = 0.0
        for item in self.bins:
            if item.significant:
                gaps += item.count * abs(item.right - item.confidence)
        return gaps / max(1, self.cases)

    @property
    def is_overconfident(self) -> bool:
        """Whether confidences are larger than the share that is right, on the whole."""
        return (
            sum(item.count * (item.confidence - item.right) for item in self.bins) > 0
        )


def check_calibration(
    name: str, confidence: Float64Array, right: BoolArray, cluster: Int64Array
) -> CalibrationTest:
    """The calibration of confidences in [0, 1]. right: outcomes; cluster: the image of each case."""
    number = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    outcome = right.astype(np.float64)
    filled = [code for code in range(BINS) if (number == code).any()]
    p_values = []
    for code in filled:
        rows = number == code
        p_values.append(zero_p_value(outcome[rows] - confidence[rows], cluster[rows]))
    adjusted = adjust_by_holm(p_values)
    bins = []
    for code, p in zip(filled, adjusted):
        rows = number == code
        bins.append(
            CalibrationBinTest(
                count=int(rows.sum()),
                confidence=float(confidence[rows].mean()),
                right=float(outcome[rows].mean()),
                p=p,
            )
        )
    return CalibrationTest(name, bins)


def zero_p_value(values: Float64Array, cluster: Int64Array) -> float | None:
    """The two-sided p-value of a mean of 0, with images as the unit; None with too few images.

    The variance is the one about 0, not about the mean: where all values are alike, as for a
    confidence of 1 that is always right, there is no evidence of a gap.
    """
    groups = ImageGroups.single(cluster)
    terms = MetricTerms(values, np.ones(len(values)))
    ratios = ratio_of_sums(terms, groups)
    if ratios.images[0] < MIN_IMAGES:
        return None
    contributions = groups.cells(values) / len(values)
    if not contributions.any():
        return 1.0
    variance, freedom = jackknife(
        contributions, groups, ratios.images, ratios.effective_images
    )
    return float(t_p_value(ratios.ratio / np.sqrt(variance), freedom)[0])
