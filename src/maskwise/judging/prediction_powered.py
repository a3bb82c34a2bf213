"""Prediction-powered inference: what people would find over all questions, from their verdicts on some of them and a
judge's verdicts on all.

    estimate = weight * mean(judge, the others) + mean(people - weight * judge, those people judged)

The first term uses many verdicts that may be wrong, the second corrects what they get wrong on average, so that the
estimate is right however bad the judge is; a bad judge only makes the interval wider (Angelopoulos, Bates, Fannjiang,
Jordan and Zrnic, Science 2023). The weight is that of least variance (Angelopoulos, Duchi and Zrnic, PPI++, 2023): 0
for a judge that says nothing, which leaves people's verdicts alone. What people judge has to be drawn at random.
"""

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.intervals import (
    MIN_IMAGES,
    TOO_FEW_IMAGES,
    Estimate,
    Interval,
    composite_influence,
    estimate,
    jackknife,
    sum_by_image,
    t_quantile,
)
from maskwise.protocols.metrics import CompositeMetric, MetricTerms

METHOD = "prediction-powered"
"""How reports call the interval."""

PRIOR_ERRORS = 1.0
"""One further question on which people and the judge differ is assumed, in the variance only: where people happen to
agree with all verdicts they saw, the interval must not pretend that they always would. With 0 the coverage falls to
90 % at shares of 95 % (200 verdicts); `tests/judging/test_prediction_powered.py` measures it with 1."""


def best_weight(
    judge: Float64Array, people: Float64Array, labelled: BoolArray
) -> float:
    """The weight of the judge's verdicts with the least variance, between 0 and 1."""
    known = int(labelled.sum())
    rest = len(judge) - known
    variance = float(judge.var())
    if known < 2 or not rest or not variance:
        return 0.0
    covariance = float(np.cov(judge[labelled], people[labelled])[0, 1])
    weight = covariance / (variance * (1 + known / rest))
    return min(max(weight, 0.0), 1.0)


def people_alone(
    people: Float64Array, cluster: Int64Array, level: float = 0.95
) -> Estimate:
    """The share among the questions that people judged (NaN: not judged), with an interval clustered by image."""
    labelled = ~np.isnan(people)
    terms = MetricTerms(np.where(labelled, people, 0.0), labelled.astype(np.int64))
    return estimate(terms, ImageGroups.single(cluster), level)[0]


def estimate_share(
    judge: Float64Array,
    people: Float64Array,
    cluster: Int64Array,
    *,
    weight: float,
    level: float = 0.95,
) -> Estimate:
    """The share that people would find over all questions, with an interval clustered by image.

    judge: float64 [n], a judge's verdicts; people: float64 [n], NaN where no person judged; cluster: int64 [n], the
    image of each question. weight: see `best_weight`; at 0 people's verdicts are alone.
    """
    if not weight:
        return people_alone(people, cluster, level)
    labelled = ~np.isnan(people)
    rest = ~labelled
    said = np.where(labelled, people, 0.0)
    columns = np.stack(
        [judge * rest, rest, said, judge * labelled, labelled], axis=1
    ).astype(np.float64)

    def formula(sums: Float64Array) -> Float64Array:
        judged, others, agreed, judged_too, known = sums.T
        correction = agreed / known - weight * judged_too / known
        corrected: Float64Array = weight * judged / others + correction
        return corrected

    metric = CompositeMetric(columns, formula)
    sums = sum_by_image(columns, cluster)
    value = metric.value_of_sums(sums.sum(0))
    known_images = int((sums[:, 4] > 0).sum())
    if value is None or known_images < MIN_IMAGES:
        return Estimate(value, Interval(None, None, TOO_FEW_IMAGES))
    influences = composite_influence(metric, sums)
    everything = ImageGroups.single(np.arange(len(sums)))
    images = np.array([float(len(sums))])
    # What people judged decides how well the variance is known.
    effective = np.array([float(known_images)])
    variance, freedom = jackknife(influences, everything, images, effective)
    count = float(sums[:, 4].sum())
    prior = PRIOR_ERRORS / (count + PRIOR_ERRORS) / count
    reach = float(t_quantile(freedom, level)[0] * np.sqrt(variance[0] + prior))
    share = min(max(value, 0.0), 1.0)
    low = max(value - reach, 0.0)
    high = min(value + reach, 1.0)
    return Estimate(share, Interval(low, high, METHOD))
