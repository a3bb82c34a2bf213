"""Calibration: is a stated confidence the share of cases in which it is right?

The gap is the mean of outcome minus confidence, over all cases and in bins of confidence. Each is
tested against 0 with images as the unit; p-values are adjusted for their number (Holm). The error
that is graded is that of gaps beyond chance only: a calibrated model has gaps by chance, too, and
the usual expected calibration error never is 0.
"""

from collections.abc import Sequence
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

BINS = 5
"""Few, because each bin needs enough images to be tested."""
SIGNIFICANT = 0.05 / 3
"""Three kinds of confidence are tested, so that a calibrated model is flagged in at most 5 % of cases."""


@dataclass(frozen=True)
class CalibrationGap:
    """Some cases: how many, mean confidence, share that is right, adjusted p of no gap (None: too
    few images).
    """

    count: int
    confidence: float
    right: float
    p: float | None

    @property
    def gap(self) -> float:
        """Positive where confidences are too large."""
        return self.confidence - self.right

    @property
    def significant(self) -> bool:
        """Whether the gap is no chance."""
        return self.p is not None and self.p < SIGNIFICANT


@dataclass(frozen=True)
class CalibrationTest:
    """Calibration of one kind of confidence. overall: of all cases; bins: those that are not empty.
    one_sided: only a confidence that is too large is an error.
    """

    name: str
    overall: CalibrationGap
    bins: list[CalibrationGap]
    one_sided: bool = False

    @property
    def expected_error(self) -> float:
        """The mean gap of bins over all cases (Naeini et al., AAAI 2015)."""
        return self._mean_gap(self.bins)

    @property
    def certain_error(self) -> float:
        """The mean gap over all cases, counting gaps beyond chance only: of all cases, or of bins."""
        errors = []
        for parts in ([self.overall], self.bins):
            counted = [
                part
                for part in parts
                if part.significant and (part.gap > 0 or not self.one_sided)
            ]
            errors.append(self._mean_gap(counted))
        return max(errors)

    def _mean_gap(self, parts: Sequence[CalibrationGap]) -> float:
        gaps = sum(part.count * abs(part.gap) for part in parts)
        return gaps / max(1, self.overall.count)


def check_calibration(
    name: str,
    confidence: Float64Array,
    right: BoolArray,
    cluster: Int64Array,
    *,
    one_sided: bool = False,
) -> CalibrationTest:
    """The calibration of confidences in [0, 1]. right: outcomes; cluster: the image of each case."""
    number = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    parts = [np.ones(len(number), bool)]
    parts += [number == code for code in range(BINS) if (number == code).any()]
    residual = right.astype(np.float64) - confidence
    p_values = [zero_p_value(residual[rows], cluster[rows]) for rows in parts]
    gaps = []
    for rows, p in zip(parts, adjust_by_holm(p_values)):
        gaps.append(
            CalibrationGap(
                count=int(rows.sum()),
                confidence=float(confidence[rows].mean()),
                right=float(right[rows].mean()),
                p=p,
            )
        )
    return CalibrationTest(name, gaps[0], gaps[1:], one_sided=one_sided)


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
