"""Confidence intervals of metrics, overall and by slice, clustered by image.

Questions about one image are not independent, so the image is the unit. A metric is a ratio R = Y / X of sums over
images, Y = sum(y_i), X = sum(x_i). Everything follows from the sums per image. Nothing is random: the interval of a
metric depends on its own columns only.

The variance of R is the delete-one-image jackknife, (n - 1) / n * sum(u_i^2) with the influence
u_i = (y_i - R x_i) / (X - x_i). A few images may dominate a ratio such as cIoU. The variance is then uncertain itself,
and a normal or t(n - 1) quantile is too small. The degrees of freedom are therefore those of Satterthwaite (Biometrics,
1946), 2 n / cv^2 with cv the coefficient of variation of u_i^2, but at most the effective number of images
X^2 / sum(x_i^2) (Kish, Survey Sampling, 1965) minus 1.

The two methods:

    wilson     For proportions: numerator and denominator count items (accuracy, precision, recall). Score interval of
               Wilson (JASA, 1927) with the effective number of items X / deff. The design effect deff is the jackknife
               variance over the binomial one. Where few images differ from the rest, it is mixed with the design
               effect of an intra-image correlation of 0.3. So an interval at 0 or 1 has a width.
    jackknife  For other metrics: t interval of logit R where every image lies between 0 and 1 (gIoU, cIoU), of log R
               for means of counts, of R where values may be negative.

`bench/coverage.py` measures the coverage. docs/intervals.md has the table and says why the bootstrap is not used.
"""

from dataclasses import dataclass

import numpy as np

from maskwise.arrays import BoolArray, Float64Array
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.metrics import MetricTerms

MIN_IMAGES = 10
"""Fewer images get no interval: no method covers there."""
MAX_ITEMS = 200
"""A proportion counts at most this many items per image; larger numbers are areas."""
PRIOR_CORRELATION = 0.3
PRIOR_IMAGES = 5.0
"""Assumed intra-image correlation of proportions, and the number of images at which the data have the same weight."""

WILSON = "wilson"
JACKKNIFE = "jackknife"
TOO_FEW_IMAGES = f"fewer than {MIN_IMAGES} images"
NO_VARIATION = "no variation between images"
FIXED = "fixed by the protocol"


@dataclass(frozen=True, slots=True)
class Interval:
    """Both ends, or None for both. method: WILSON or JACKKNIFE; without ends the reason why there are none."""

    low: float | None
    high: float | None
    method: str


@dataclass(frozen=True, slots=True)
class Estimate:
    """The value of a metric over a group of samples (None: undefined) and its interval."""

    value: float | None
    interval: Interval


@dataclass(frozen=True, slots=True)
class Ratios:
    """A metric over groups of images. Each field is float64 [groups]; ratio is NaN where undefined."""

    images: Float64Array
    """Images with a nonzero numerator or denominator."""
    denominator: Float64Array
    ratio: Float64Array
    effective_images: Float64Array


def estimate(
    metric: MetricTerms, groups: ImageGroups, level: float = 0.95
) -> list[Estimate]:
    """The value of a metric in each group, with its interval."""
    ratios = ratio_of_sums(metric, groups)
    with np.errstate(all="ignore"):
        low, high, method = _interval(metric, groups, ratios, level)
    rows = zip(ratios.ratio.tolist(), low.tolist(), high.tolist(), method)
    gates = (
        [1.0] * len(groups)
        if metric.gate is None
        else groups.add(groups.cells(metric.gate)).tolist()
    )
    return [
        _estimate(*row) if gate else Estimate(metric.empty, Interval(None, None, FIXED))
        for row, gate in zip(rows, gates)
    ]


def ratio_of_sums(metric: MetricTerms, groups: ImageGroups) -> Ratios:
    """The metric's ratio in each group, and how many images it rests on."""
    y = groups.cells(metric.numerator)
    x = groups.cells(metric.denominator)
    total = groups.add(x)
    squares = groups.add(x * x)
    divisor = total + metric.epsilon
    return Ratios(
        images=groups.add((x != 0) | (y != 0)),
        denominator=total,
        ratio=np.divide(
            groups.add(y), divisor, out=np.full(len(groups), np.nan), where=divisor > 0
        ),
        effective_images=np.divide(
            total**2, squares, out=np.zeros(len(groups)), where=squares > 0
        ),
    )


def is_share(metric: MetricTerms, groups: ImageGroups) -> BoolArray:
    """Whether every image of a group lies between 0 and 1, bool [groups]."""
    y = groups.cells(metric.numerator)
    x = groups.cells(metric.denominator)
    return np.asarray(groups.add((y < 0) | (y > x * (1 + 1e-9))) == 0)


def influence(metric: MetricTerms, groups: ImageGroups, ratios: Ratios) -> Float64Array:
    """The ratio of each group minus the ratio without one image, for every cell: float64 [cells]."""
    y = groups.cells(metric.numerator)
    x = groups.cells(metric.denominator)
    rest = ratios.denominator[groups.group] - x
    change: Float64Array = (y - ratios.ratio[groups.group] * x) / np.where(
        rest > 0, rest, np.nan
    )
    return change


def jackknife(
    influences: Float64Array,
    groups: ImageGroups,
    images: Float64Array,
    effective: Float64Array,
) -> tuple[Float64Array, Float64Array]:
    """Variance and degrees of freedom of each group, float64 [groups] each.

    influences: float64 [cells]; images, effective: float64 [groups].
    """
    squares = influences * influences
    second = groups.add(squares)
    fourth = groups.add(squares * squares)
    variation = images * fourth / second**2 - 1
    freedom = np.minimum(2 * images / np.maximum(variation, 1e-9), effective - 1)
    return second * (images - 1) / images, np.clip(
        freedom, 2, np.maximum(images - 1, 2)
    )


def t_quantile(freedom: Float64Array, level: float) -> Float64Array:
    """The two-sided quantile of Student's t distribution at a confidence level."""
    from scipy.special import stdtrit  # noqa: PLC0415

    return np.asarray(stdtrit(freedom, 0.5 + level / 2), np.float64)


def t_p_value(statistic: Float64Array, freedom: Float64Array) -> Float64Array:
    """The two-sided p-value of a t statistic."""
    from scipy.special import stdtr  # noqa: PLC0415

    return np.asarray(2 * stdtr(freedom, -np.abs(statistic)), np.float64)


def _interval(
    metric: MetricTerms, groups: ImageGroups, ratios: Ratios, level: float
) -> tuple[Float64Array, Float64Array, list[str]]:
    """Ends and method of each group; NaN ends where there is no interval, then with the reason as method."""
    y = groups.cells(metric.numerator)
    x = groups.cells(metric.denominator)
    influences = influence(metric, groups, ratios)
    variance, freedom = jackknife(
        influences, groups, ratios.images, ratios.effective_images
    )
    within = is_share(metric, groups)
    items = within & (groups.add((y % 1 != 0) | (x % 1 != 0) | (x > MAX_ITEMS)) == 0)
    constant = within & ((variance == 0) | (ratios.ratio <= 0) | (ratios.ratio >= 1))
    count = np.where(
        items, ratios.denominator / _design_effect(groups, y, x, ratios, variance), 0.0
    )
    count = np.where(constant & ~items, ratios.effective_images, count)
    wilson = _wilson(ratios.ratio, count, t_quantile(ratios.images - 1, level))
    reach = t_quantile(freedom, level) * np.sqrt(variance)
    positive = (groups.add(y < 0) == 0) & (metric.unit == "count")
    other = _t_interval(ratios.ratio, reach, within=within, positive=positive)
    low, high = (np.where(items | constant, *ends) for ends in zip(wilson, other))
    few = ratios.images < MIN_IMAGES
    known = np.isfinite(low) & np.isfinite(high) & ~few & (constant | (variance > 0))
    reason = np.where(few, TOO_FEW_IMAGES, NO_VARIATION)
    method = np.where(known, np.where(items | constant, WILSON, JACKKNIFE), reason)
    return np.where(known, low, np.nan), np.where(known, high, np.nan), method.tolist()


def _design_effect(
    groups: ImageGroups,
    y: Float64Array,
    x: Float64Array,
    ratios: Ratios,
    variance: Float64Array,
) -> Float64Array:
    """Variance over that of independent items, mixed with an assumed one where few images differ from the rest."""
    binomial = ratios.ratio * (1 - ratios.ratio) / ratios.denominator
    measured = np.where(binomial > 0, variance / binomial, 0.0)
    deciding = np.minimum(groups.add(y > 0), groups.add(y < x))
    items_per_image = ratios.denominator / ratios.effective_images
    assumed = 1 + PRIOR_CORRELATION * (items_per_image - 1)
    weight = PRIOR_IMAGES / (deciding + PRIOR_IMAGES)
    mixed = weight * assumed + (1 - weight) * measured
    return np.maximum(np.maximum(mixed, measured), 1.0)


def _wilson(
    ratio: Float64Array, count: Float64Array, quantile: Float64Array
) -> tuple[Float64Array, Float64Array]:
    square = quantile**2 / count
    center = (ratio + square / 2) / (1 + square)
    reach = np.sqrt(ratio * (1 - ratio) * square + square**2 / 4) / (1 + square)
    return np.minimum(center - reach, ratio), np.maximum(center + reach, ratio)


def _t_interval(
    ratio: Float64Array, reach: Float64Array, *, within: BoolArray, positive: BoolArray
) -> tuple[Float64Array, Float64Array]:
    """The interval of the ratio on the scale of logit, log or the ratio itself."""
    odds = reach / (ratio * (1 - ratio))
    factor = np.exp(reach / ratio)
    low, high = (
        np.select(
            [within, positive],
            [
                1 / (1 + (1 - ratio) / ratio * np.exp(-sign * odds)),
                ratio * factor**sign,
            ],
            ratio + sign * reach,
        )
        for sign in (-1.0, 1.0)
    )
    return low, high


def _estimate(value: float, low: float, high: float, method: str) -> Estimate:
    if np.isnan(value):
        return Estimate(None, Interval(None, None, TOO_FEW_IMAGES))
    known = not np.isnan(low)
    return Estimate(
        value, Interval(low if known else None, high if known else None, method)
    )
