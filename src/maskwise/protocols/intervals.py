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

A composite such as cgF1 is a function of several sums. Its influence is its value minus the value without the image,
computed for every image; the interval is a t interval of R, cut at the ends of its range. A value that is no function
of sums over samples, such as average precision, has no interval.

`bench/coverage.py` measures the coverage. docs/benchmarks/intervals.md has the table and says why the bootstrap is not
used.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array, NumberArray
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.metrics import CompositeMetric, MetricTerms

Key = TypeVar("Key")

MIN_IMAGES = 10
"""Fewer images get no interval: no method covers there."""
MAX_ITEMS = 200
"""A proportion counts at most this many items per image; larger numbers are areas."""
PRIOR_CORRELATION = 0.3
PRIOR_IMAGES = 5.0
"""Assumed intra-image correlation of proportions, and the number of images at which the data have the same weight."""

WILSON = "wilson"
JACKKNIFE = "jackknife"
PERMUTATION = "permutation"
"""Of differences only: see `permutation`."""
TOO_FEW_IMAGES = f"fewer than {MIN_IMAGES} images"
NO_VARIATION = "no variation between images"
FIXED = "fixed by the protocol"
NOT_DEFINED = "not defined by this rule"
NOT_A_SUM = "no interval: not a sum over questions"
UNDEFINED_WITHOUT_AN_IMAGE = "undefined without one of the images"


@dataclass(frozen=True, slots=True)
class Interval:
    """Both ends, or None for both. method: WILSON, JACKKNIFE or PERMUTATION; without ends the reason why there are
    none.
    """

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
    if not metric.defined:
        nothing = Estimate(None, Interval(None, None, NOT_DEFINED))
        return [nothing] * len(groups)
    ratios = ratio_of_sums(metric, groups)
    with np.errstate(all="ignore"):
        low, high, method = _interval(metric, groups, ratios, level)
    # A group whose gate is 0 has a value that the protocol fixes.
    gates = np.ones(len(groups))
    if metric.gate is not None:
        gates = groups.add(groups.cells(metric.gate))
    estimates = []
    rows = zip(ratios.ratio.tolist(), low.tolist(), high.tolist(), method)
    for row, gate in zip(rows, gates.tolist()):
        if gate:
            estimates.append(_estimate(*row))
        else:
            fixed = Interval(None, None, FIXED)
            estimates.append(Estimate(metric.empty, fixed))
    return estimates


def estimate_each(
    metrics: Mapping[Key, MetricTerms], groups: ImageGroups, level: float = 0.95
) -> dict[Key, list[Estimate]]:
    """As `estimate`, for several metrics. Those that share all their columns are computed once (`share_columns`).

    Sums of columns are kept in the groups until the last metric that uses them.
    """
    computed: dict[tuple[object, ...], list[Estimate]] = {}
    estimates = {}
    uses_left = Counter(
        id(column) for metric in metrics.values() for column in _columns(metric)
    )
    for name, metric in metrics.items():
        columns = _columns(metric)
        rest = (metric.epsilon, metric.unit, metric.empty, metric.defined)
        key = (len(columns), *map(id, columns), *rest)
        if key not in computed:
            computed[key] = estimate(metric, groups, level)
        estimates[name] = computed[key]
        for column in columns:
            uses_left[id(column)] -= 1
            if not uses_left[id(column)]:
                groups.forget(column)
    return estimates


def _columns(metric: MetricTerms) -> list[NumberArray]:
    """The numerator, the denominator and, where there is one, the gate."""
    gates = [] if metric.gate is None else [metric.gate]
    return [metric.numerator, metric.denominator, *gates]


def estimate_composite(
    metric: CompositeMetric, image_sums: Float64Array, level: float = 0.95
) -> Estimate:
    """The value of a composite over all samples, with its interval. image_sums: as `sum_by_image` gives them."""
    influences = composite_influence(metric, image_sums)
    value = metric.value_of_sums(image_sums.sum(0))
    images = len(influences)
    if value is None or images < MIN_IMAGES:
        return Estimate(value, Interval(None, None, TOO_FEW_IMAGES))
    if np.isnan(influences).any():
        return Estimate(value, Interval(None, None, UNDEFINED_WITHOUT_AN_IMAGE))
    if not influences.any():
        return Estimate(value, Interval(None, None, NO_VARIATION))
    everything = ImageGroups.single(np.arange(images))
    count = np.array([float(images)])
    variance, freedom = jackknife(influences, everything, count, count)
    reach = float(t_quantile(freedom, level)[0] * np.sqrt(variance[0]))
    low = max(value - reach, metric.lowest)
    high = min(value + reach, 1.0)
    return Estimate(value, Interval(low, high, JACKKNIFE))


def composite_influence(
    metric: CompositeMetric, image_sums: Float64Array
) -> Float64Array:
    """The value minus the value without one image, float64 [images]; NaN where that is undefined."""
    total = image_sums.sum(0, keepdims=True)
    with np.errstate(all="ignore"):
        whole = metric.formula(total)
        without_image = metric.formula(total - image_sums)
    influences: Float64Array = whole - without_image
    return influences


def sum_by_image(columns: Float64Array, cluster: Int64Array) -> Float64Array:
    """The columns [samples, k] added up by image, float64 [images, k]. cluster: int64 [samples], the image of each.

    Images that add nothing to any sum are left out: they cannot change a value.
    """
    order = np.argsort(cluster, kind="stable")
    starts = np.flatnonzero(np.diff(cluster[order], prepend=-1))
    sums = np.zeros((0, columns.shape[1]))
    if len(starts):
        sums = np.add.reduceat(columns[order], starts, axis=0)
    return np.asarray(sums[(sums != 0).any(1)])


def ratio_of_sums(metric: MetricTerms, groups: ImageGroups) -> Ratios:
    """The metric's ratio in each group, and how many images it rests on."""
    y = groups.cells(metric.numerator)
    x = groups.cells(metric.denominator)
    total = groups.add(x)
    squares = groups.add(x * x)
    divisor = total + metric.epsilon
    ratio = np.full(len(groups), np.nan)
    np.divide(groups.add(y), divisor, out=ratio, where=divisor > 0)
    effective_images = np.zeros(len(groups))
    np.divide(total**2, squares, out=effective_images, where=squares > 0)
    return Ratios(
        images=groups.add((x != 0) | (y != 0)),
        denominator=total,
        ratio=ratio,
        effective_images=effective_images,
    )


def is_share(metric: MetricTerms, groups: ImageGroups) -> BoolArray:
    """Whether every image of a group lies between 0 and 1, bool [groups]."""
    y = groups.cells(metric.numerator)
    x = groups.cells(metric.denominator)
    # The tolerance allows for the rounding of sums.
    is_outside = (y < 0) | (y > x * (1 + 1e-9))
    return np.asarray(groups.add(is_outside) == 0)


def influence(metric: MetricTerms, groups: ImageGroups, ratios: Ratios) -> Float64Array:
    """The ratio of each group minus the ratio without one image, for every cell: float64 [cells]."""
    y = groups.cells(metric.numerator)
    x = groups.cells(metric.denominator)
    rest = ratios.denominator[groups.group] - x
    # An image that is the whole group has no influence that could be computed.
    known_rest = np.where(rest > 0, rest, np.nan)
    residual = y - ratios.ratio[groups.group] * x
    change: Float64Array = residual / known_rest
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
    # The squared coefficient of variation of the squares.
    variation = images * fourth / second**2 - 1
    satterthwaite = 2 * images / np.maximum(variation, 1e-9)
    freedom = np.minimum(satterthwaite, effective - 1)
    # Below 2 degrees of freedom the t distribution has no variance.
    freedom = np.clip(freedom, 2, np.maximum(images - 1, 2))
    variance = second * (images - 1) / images
    return variance, freedom


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
    # A proportion counts items: whole numbers, and not too many per image.
    is_no_count = (np.floor(y) != y) | (np.floor(x) != x) | (x > MAX_ITEMS)
    items = within & (groups.add(is_no_count) == 0)
    # Where all images agree, or the ratio is 0 or 1, the t interval has no width.
    constant = within & ((variance == 0) | (ratios.ratio <= 0) | (ratios.ratio >= 1))
    use_wilson = items | constant

    design_effect = _design_effect(groups, y, x, ratios, variance)
    count = np.where(items, ratios.denominator / design_effect, 0.0)
    count = np.where(constant & ~items, ratios.effective_images, count)
    quantile = t_quantile(ratios.images - 1, level)
    wilson_low, wilson_high = _wilson(ratios.ratio, count, quantile)

    reach = t_quantile(freedom, level) * np.sqrt(variance)
    positive = (groups.add(y < 0) == 0) & (metric.unit == "count")
    t_low, t_high = _t_interval(ratios.ratio, reach, within=within, positive=positive)

    low = np.where(use_wilson, wilson_low, t_low)
    high = np.where(use_wilson, wilson_high, t_high)
    # A share lies between 0 and 1; the ends may pass them by rounding.
    low = np.where(within, np.clip(low, 0.0, 1.0), low)
    high = np.where(within, np.clip(high, 0.0, 1.0), high)
    few = ratios.images < MIN_IMAGES
    is_finite = np.isfinite(low) & np.isfinite(high)
    known = is_finite & ~few & (constant | (variance > 0))
    reason = np.where(few, TOO_FEW_IMAGES, NO_VARIATION)
    used_method = np.where(use_wilson, WILSON, JACKKNIFE)
    method = np.where(known, used_method, reason)
    known_low = np.where(known, low, np.nan)
    known_high = np.where(known, high, np.nan)
    return known_low, known_high, method.tolist()


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
    # The reach on the other scales, by the derivative of the transformation.
    logit_reach = reach / (ratio * (1 - ratio))
    factor = np.exp(reach / ratio)
    odds_against = (1 - ratio) / ratio

    def end(sign: float) -> Float64Array:
        on_logit = 1 / (1 + odds_against * np.exp(-sign * logit_reach))
        on_log = ratio * factor**sign
        return np.select([within, positive], [on_logit, on_log], ratio + sign * reach)

    return end(-1.0), end(1.0)


def _estimate(value: float, low: float, high: float, method: str) -> Estimate:
    if np.isnan(value):
        return Estimate(None, Interval(None, None, TOO_FEW_IMAGES))
    if np.isnan(low):
        return Estimate(value, Interval(None, None, method))
    return Estimate(value, Interval(low, high, method))
