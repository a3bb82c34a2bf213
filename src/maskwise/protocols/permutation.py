"""Permutation test of the difference of two ratios of sums over the same images, with the interval that it implies.

Runs A and B are ratios R = Y / X of sums over images. Under the null hypothesis that the runs are exchangeable, the
results of any image may be swapped between them. The statistic is

    D = sum(z_i),  z_i = 2 ((y_Bi - R x_Bi) - (y_Ai - R x_Ai)) / (X_A + X_B),  R = (Y_A + Y_B) / (X_A + X_B).

R and X_A + X_B do not change when an image is swapped, so a swap changes the sign of z_i and nothing else. D has the
sign of R_B - R_A, and is R_B - R_A where X_A = X_B. The test is exact for exchangeable runs of any distribution
(Fisher, The Design of Experiments, 1935); a run with a few very large images needs no estimate of a variance.

Interval. The hypothesis R_B - R_A = d is tested by subtracting d x_Bi from y_Bi. Then z_i = p_i - d q_i with q_i >= 0,
so a sum over random signs, P - d Q, is at least as large as the observed one for all d between two points: the
differences R_B - R_A measured on the swapped images alone and on the others alone. These points contain the observed
difference. The p-value of d therefore falls to both sides, and the ends of the interval are order statistics of the
points: the interval excludes 0 exactly where p < 1 - level.

The signs come from a generator with a fixed seed: the same runs give the same digits.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from maskwise.arrays import Float64Array, Int8Array

DRAWS = 9_999
"""Random swaps; the observed assignment is the 10,000th. The smallest p-value is 0.0001: 400 adjusted differences (a
full comparison page) can still be significant. The standard error of a p-value of 0.05 is 0.002."""
SEED = 20250701
BLOCK_CELLS = 2**22
"""Signs drawn at once, times images: 4 MB as int8, 32 MB as float64."""
CACHED_IMAGES = 1000
"""Signs of up to this many images are kept (10 MB): slices of one page ask for the same numbers again."""
ROUNDING = 1e-11
"""Relative size of a difference below which it is the rounding of sums."""


@dataclass(frozen=True)
class PermutationTests:
    """The test of each of m metrics, float64 [m] each; low, high: ends of the interval, infinite where unbounded."""

    p_value: Float64Array
    low: Float64Array
    high: Float64Array


def permutation_tests(
    a: tuple[Float64Array, Float64Array],
    b: tuple[Float64Array, Float64Array],
    level: float,
) -> PermutationTests:
    """Test m metrics of two runs over the same n images.

    a, b: numerators and denominators of each image, float64 [n, m] each, denominators not negative with a positive sum.
    Metrics share the random swaps. n = 0 gives p = 1 and an unbounded interval.
    """
    difference, slope = _terms(a, b)
    observed_difference = difference.sum(0)
    observed_slope = slope.sum(0)
    columns = np.concatenate([difference, slope], 1)
    sums = np.concatenate([signs @ columns for signs in _sign_blocks(len(columns))])
    metrics = difference.shape[1]
    swapped = _crossing(
        observed_difference - sums[:, :metrics], observed_slope - sums[:, metrics:]
    )
    kept = _crossing(
        observed_difference + sums[:, :metrics], observed_slope + sums[:, metrics:]
    )
    # A sum of rounded terms that should be 0 decides whether 0 is inside: it is set to 0.
    size = np.abs(difference).sum(0)
    for points in (swapped, kept):
        points[np.abs(points) <= ROUNDING * size] = 0.0
    is_unbounded = np.isnan(swapped) | np.isnan(kept)
    lowest = np.where(is_unbounded, -np.inf, np.minimum(swapped, kept))
    highest = np.where(is_unbounded, np.inf, np.maximum(swapped, kept))
    contains_zero = (lowest <= 0) & (highest >= 0)
    p_value = (1 + contains_zero.sum(0)) / (DRAWS + 1)
    # The interval has all differences with a p-value of at least 1 - level.
    rank = round((1 - level) * (DRAWS + 1)) - 1
    low = np.partition(lowest, rank - 1, axis=0)[rank - 1]
    high = np.partition(highest, DRAWS - rank, axis=0)[DRAWS - rank]
    return PermutationTests(p_value, low, high)


def _terms(
    a: tuple[Float64Array, Float64Array], b: tuple[Float64Array, Float64Array]
) -> tuple[Float64Array, Float64Array]:
    """p_i and q_i of the module's text, float64 [n, m] each."""
    numerator_a, denominator_a = a
    numerator_b, denominator_b = b
    total_a = denominator_a.sum(0)
    total_b = denominator_b.sum(0)
    total = total_a + total_b
    ratio = (numerator_a.sum(0) + numerator_b.sum(0)) / total
    residual_a = numerator_a - ratio * denominator_a
    residual_b = numerator_b - ratio * denominator_b
    difference = 2 * (residual_b - residual_a) / total
    share_a = total_a / total
    share_b = total_b / total
    slope = 2 * (share_a * denominator_b + share_b * denominator_a) / total
    return difference, slope


def _crossing(difference: Float64Array, slope: Float64Array) -> Float64Array:
    """The d at which difference = d slope; NaN where no image is left on one side."""
    largest = np.abs(slope).max(0, initial=0.0)
    has_slope = slope > ROUNDING * largest
    points = np.full(difference.shape, np.nan)
    np.divide(difference, slope, out=points, where=has_slope)
    return points


def _sign_blocks(images: int) -> Iterator[Float64Array]:
    """DRAWS rows of random signs, float64 [rows, images], block after block."""
    if images <= CACHED_IMAGES:
        signs = _all_signs(images)
        block = max(1, BLOCK_CELLS // max(images, 1))
        for start in range(0, DRAWS, block):
            yield signs[start : start + block].astype(np.float64)
        return
    generator = np.random.default_rng(SEED)
    block = max(1, BLOCK_CELLS // images)
    for start in range(0, DRAWS, block):
        rows = min(block, DRAWS - start)
        yield _draw_signs(generator, rows, images).astype(np.float64)


@lru_cache(maxsize=8)
def _all_signs(images: int) -> Int8Array:
    return _draw_signs(np.random.default_rng(SEED), DRAWS, images)


def _draw_signs(generator: np.random.Generator, rows: int, images: int) -> Int8Array:
    bits = generator.integers(0, 2, (rows, images), np.int8)
    signs: Int8Array = 2 * bits - np.int8(1)
    return signs
