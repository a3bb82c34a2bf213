"""Bradley-Terry strengths of runs from comparisons, with intervals clustered by image.

A run of strength a is preferred to one of strength b with probability 1 / (1 + exp(b - a)) (Bradley and Terry,
Biometrika, 1952). A tie counts as half a win of either. Strengths have the mean 0. Every pair of runs that was compared
counts one tie more than it has: without it, a run that always wins would be infinitely strong.

Two questions about one image, and two judgments of one question, are not independent. So the variance is the sandwich
over images: inverse of the information, times the sum of squared scores of the images, times the inverse. Quantiles are
those of t with one degree of freedom less than there are images.
"""

from dataclasses import dataclass

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.protocols.intervals import MIN_IMAGES, sum_by_image, t_quantile

PRIOR_TIES = 1.0
"""Ties that every compared pair is given in addition."""

MAX_STEPS = 100
"""Of Newton's method, which needs about six."""

TOLERANCE = 1e-9
"""The last step: far below any interval."""


@dataclass(frozen=True)
class Comparisons:
    """m comparisons. first, second: int64 [m], the runs. share: float64 [m], 1 where the first was preferred, 0.5 for a
    tie. cluster: int64 [m], the image.
    """

    first: Int64Array
    second: Int64Array
    share: Float64Array
    cluster: Int64Array


@dataclass(frozen=True)
class Strengths:
    """Of n runs, float64 [n] each. value is NaN where comparisons do not connect all runs; low and high also where
    there are too few images.
    """

    value: Float64Array
    low: Float64Array
    high: Float64Array


def fit_strengths(made: Comparisons, runs: int, level: float = 0.95) -> Strengths:
    """The strengths of runs. runs: how many there are."""
    unknown = np.full(runs, np.nan)
    wins = np.zeros((runs, runs))
    np.add.at(wins, (made.first, made.second), made.share)
    np.add.at(wins, (made.second, made.first), 1 - made.share)
    compared = wins + wins.T > 0
    if not _is_connected(compared):
        return Strengths(unknown, unknown, unknown)
    wins += PRIOR_TIES / 2 * compared
    strengths = np.zeros(runs)
    for _ in range(MAX_STEPS):
        expected = _probabilities(strengths)
        surprise = wins - (wins + wins.T) * expected
        step = _inverse_information(wins, expected) @ surprise.sum(1)
        step -= step.mean()
        # A full step may overshoot where the likelihood is flat; it is concave, so a shorter one rises.
        while _likelihood(strengths + step, wins) < _likelihood(strengths, wins):
            step = step / 2
        strengths = strengths + step
        if np.abs(step).max() < TOLERANCE:
            break
    images = len(np.unique(made.cluster))
    if images < MIN_IMAGES:
        return Strengths(strengths, unknown, unknown)
    quantile = t_quantile(np.array([images - 1.0]), level)[0]
    reach = quantile * _deviations(made, strengths, wins)
    return Strengths(strengths, strengths - reach, strengths + reach)


def _deviations(
    made: Comparisons, strengths: Float64Array, wins: Float64Array
) -> Float64Array:
    """The standard error of each strength, float64 [n]."""
    expected = _probabilities(strengths)
    surprise = made.share - expected[made.first, made.second]
    rows = np.arange(len(surprise))
    scores = np.zeros((len(surprise), len(strengths)))
    scores[rows, made.first] = surprise
    scores[rows, made.second] = -surprise
    _, image = np.unique(made.cluster, return_inverse=True)
    by_image = sum_by_image(scores, image)
    images = len(by_image)
    inverse = _inverse_information(wins, expected)
    influences = by_image @ inverse
    variance = (influences**2).sum(0) * images / (images - 1)
    deviation: Float64Array = np.sqrt(variance)
    return deviation


def _probabilities(strengths: Float64Array) -> Float64Array:
    """How probably the run of a row is preferred to that of a column, float64 [n, n]."""
    probabilities: Float64Array = 1 / (1 + np.exp(strengths[None] - strengths[:, None]))
    return probabilities


def _likelihood(strengths: Float64Array, wins: Float64Array) -> float:
    """The logarithm of the likelihood."""
    differences = strengths[None] - strengths[:, None]
    return float(-(wins * np.logaddexp(0, differences)).sum())


def _inverse_information(wins: Float64Array, expected: Float64Array) -> Float64Array:
    """The inverse of the information matrix among strengths with the mean 0, float64 [n, n]."""
    weight = (wins + wins.T) * expected * (1 - expected)
    np.fill_diagonal(weight, 0.0)
    information = np.diag(weight.sum(1)) - weight
    # Adding the same to all strengths changes nothing: this direction gets the scale of the others, and is taken out.
    mean = np.full_like(weight, 1 / len(weight))
    scale = np.trace(information) / len(weight)
    inverse: Float64Array = np.linalg.inv(information + scale * mean) - mean / scale
    return inverse


def _is_connected(compared: BoolArray) -> bool:
    """Whether a chain of comparisons leads from the first run to every other."""
    reached = {0}
    waiting = [0]
    while waiting:
        for run in np.flatnonzero(compared[waiting.pop()]).tolist():
            if run not in reached:
                reached.add(run)
                waiting.append(run)
    return len(reached) == len(compared)
