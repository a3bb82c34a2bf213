"""Risk against coverage: what a model's mistakes would be if it answered only the questions it is most sure of.

Questions are sorted by confidence, the surest first. Coverage is the share of questions answered, risk 1 minus their
gIoU (El-Yaniv and Wiener, JMLR 2010). A model that leaves out what it cannot do has a short curve, not a better score.
"""

import numpy as np

from maskwise.arrays import BoolArray, Float64Array
from maskwise.protocols.metrics import SCORED, Scores
from maskwise.protocols.prediction_columns import PredictionColumns

MAX_POINTS = 50


def question_confidence(predictions: PredictionColumns) -> Float64Array:
    """The confidence in each prediction, float64 [samples]: the lowest score of its regions, 1 without regions."""
    confidence = np.ones(len(predictions))
    np.minimum.at(confidence, predictions.sample, predictions.score)
    return confidence


def risk_coverage(
    scores: Scores, confidence: Float64Array
) -> list[tuple[float, float, float]]:
    """Points (confidence, coverage, risk), the surest questions first; at most MAX_POINTS.

    confidence: float64 [samples]. Coverage is the share of all questions: failed, missing and excluded ones
    are never answered, so the curve of a run with such questions ends below 1. Questions of equal
    confidence are answered together. Empty where all have the same confidence, as without scores.
    """
    giou = scores.metrics["giou"]
    is_answered: BoolArray = (scores.statuses.status == SCORED) & (giou.denominator > 0)
    rows = np.flatnonzero(is_answered)
    if not len(rows) or confidence[rows].min() == confidence[rows].max():
        return []
    order = rows[np.argsort(-confidence[rows], kind="stable")]
    sorted_confidence = confidence[order]
    answered = np.arange(1, len(order) + 1)
    value = np.cumsum(giou.numerator[order]) / np.cumsum(giou.denominator[order])
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
