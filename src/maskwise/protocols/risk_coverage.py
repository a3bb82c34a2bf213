"""Risk against coverage: what a model's mistakes would be if it answered only the questions it is most sure of.

Questions are sorted by confidence, the surest first. Coverage is the share of questions answered, risk 1 minus their
gIoU (El-Yaniv and Wiener, JMLR 2010). A model that leaves out what it cannot do has a short curve, not a better score.
"""

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.protocols.metrics import SCORED, Scores
from maskwise.protocols.prediction_columns import PredictionColumns

MAX_POINTS = 50


def question_confidence(predictions: PredictionColumns) -> Float64Array:
    """The confidence in each prediction, float64 [samples]: the lowest score of its regions, 1 without regions."""
    confidence = np.ones(len(predictions))
    np.minimum.at(confidence, predictions.sample, predictions.score)
    return confidence


def surest_first(confidence: Float64Array) -> Int64Array:
    """The rows of questions in the order in which `risk_coverage` answers them, int64 [samples]."""
    return np.argsort(-confidence, kind="stable")


def risk_coverage(
    scores: Scores, confidence: Float64Array, order: Int64Array
) -> list[tuple[float, float, float]]:
    """Points (confidence, coverage, risk), the surest questions first; at most MAX_POINTS.

    confidence: float64 [samples]; order: as `surest_first` gives it. Coverage is the share of all questions: failed,
    missing and excluded ones are never answered, so the curve of a run with such questions ends below 1. Questions of
    equal confidence are answered together. Empty where all have the same confidence, as without scores.
    """
    giou = scores.metrics["giou"]
    is_answered: BoolArray = (scores.statuses.status == SCORED) & (giou.denominator > 0)
    rows = order[is_answered[order]]
    sorted_confidence = confidence[rows]
    if not len(rows) or sorted_confidence[0] == sorted_confidence[-1]:
        return []
    answered = np.arange(1, len(rows) + 1)
    value = np.cumsum(giou.numerator[rows]) / np.cumsum(giou.denominator[rows])
    is_last_of_ties = np.append(sorted_confidence[1:] < sorted_confidence[:-1], True)
    ends = np.flatnonzero(is_last_of_ties)
    places = np.linspace(0, len(ends) - 1, min(MAX_POINTS, len(ends)))
    kept = ends[np.unique(places.round().astype(np.int64))]
    points = []
    for place in kept.tolist():
        coverage = float(answered[place]) / len(scores)
        risk = 1.0 - float(value[place])
        points.append((float(sorted_confidence[place]), coverage, risk))
    return points
