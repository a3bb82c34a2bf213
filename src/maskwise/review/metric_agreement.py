"""Which metrics agree with people: of the judgments that prefer a run, how many does a metric prefer the same way."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Literal

import msgspec
import numpy as np

from maskwise.arrays import Float64Array, Int64Array
from maskwise.harness.metric_values import estimate_value
from maskwise.protocols import MetricTerms
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.intervals import estimate
from maskwise.report.metric_labels import metric_label
from maskwise.review.judged_runs import JudgedRuns
from maskwise.review.judgments import Judgment
from maskwise.runs.schema import MetricValue

SHARES = {"left": 1.0, "right": 0.0, "tie": 0.5, "bad": 0.5}
"""What a verdict counts for the run on the left side."""


FEW = 0.5
"""A metric that is defined for less than this share of the judgments is about other questions, and listed last."""


class MetricAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """A metric beside people. agreement: of the judgments that prefer a run, those in which the metric prefers it, too
    (0.5 where it is equal). correlation: Spearman's, of the metric and people's ratings, or of both differences.
    """

    protocol: str
    metric: str
    judgments: int
    agreement: MetricValue | None
    correlation: float | None


class RunPreference(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison of two runs on a question. share: 1 where a is preferred, 0.5 for a tie."""

    row: int
    a: int
    b: int
    share: float


def compute_metric_agreements(
    runs: JudgedRuns, judgments: Sequence[Judgment]
) -> list[MetricAgreement]:
    """Every metric of every protocol that all runs have, the one that agrees best with people first."""
    preferences = [
        RunPreference(
            row=judgment.row,
            a=judgment.left,
            b=judgment.right,
            share=SHARES[judgment.verdict],
        )
        for judgment in judgments
        if judgment.right is not None
    ]
    ratings: dict[tuple[int, int], list[float]] = defaultdict(list)
    for judgment in judgments:
        if judgment.right is None:
            ratings[judgment.row, judgment.left].append(mean_rating(judgment))
    means = {key: statistics.fmean(values) for key, values in ratings.items()}
    preferences += _preferences(means, len(runs.names))
    agreements = []
    for protocol, metric in _shared_metrics(runs):
        values = _metric_values(runs, protocol, metric)
        judged, agreement = _agreement(values, preferences, runs.images)
        correlation = _correlation(values, preferences, means)
        if agreement is not None or correlation is not None:
            line = MetricAgreement(
                protocol=protocol,
                metric=metric,
                judgments=judged,
                agreement=agreement,
                correlation=correlation,
            )
            agreements.append(line)
    most = max((line.judgments for line in agreements), default=0)
    return sorted(agreements, key=lambda line: _order(line, most))


def _order(line: MetricAgreement, most: int) -> tuple[bool, float, float, str]:
    """The highest agreement first, then the highest correlation; metrics of few of the judgments come last."""
    agreement = None if line.agreement is None else line.agreement.value
    is_rare = line.judgments < FEW * most
    name = f"{line.protocol} {line.metric}"
    return is_rare, -(agreement or 0.0), -(line.correlation or 0.0), name


def _preferences(
    means: Mapping[tuple[int, int], float], runs: int
) -> list[RunPreference]:
    """What ratings of two runs on one question say about them."""
    preferences = []
    rows = sorted({row for row, _ in means})
    for row in rows:
        for a, b in combinations(range(runs), 2):
            if (row, a) in means and (row, b) in means:
                sign = float(np.sign(means[row, a] - means[row, b]))
                share = 0.5 + 0.5 * sign
                preferences.append(RunPreference(row=row, a=a, b=b, share=share))
    return preferences


def _shared_metrics(runs: JudgedRuns) -> list[tuple[str, str]]:
    names = [
        {(protocol, name) for protocol in run for name in run.metrics(protocol)}
        for run in runs.runs
    ]
    return sorted(set.intersection(*names))


def _metric_values(runs: JudgedRuns, protocol: str, metric: str) -> Float64Array:
    """The metric of every question and run, float64 [questions, runs], more is better; NaN where it is not defined."""
    sign = -1.0 if metric_label(metric).better == "lower" else 1.0
    columns = []
    for run, rows in zip(runs.runs, runs.rows):
        terms = run.metrics(protocol)[metric]
        numerator = terms.numerator[rows].astype(np.float64)
        denominator = terms.denominator[rows].astype(np.float64)
        known = denominator > 0
        value = np.full(len(rows), np.nan)
        value[known] = sign * numerator[known] / denominator[known]
        columns.append(value)
    return np.stack(columns, axis=1)


def _agreement(
    values: Float64Array, preferences: Sequence[RunPreference], images: Int64Array
) -> tuple[int, MetricValue | None]:
    """How many judgments prefer a run where the metric is defined, and the share in which it prefers the same."""
    rows, votes, difference = _differences(values, preferences)
    decided = ~np.isnan(difference) & (votes != 0)
    if not decided.any():
        return 0, None
    same = 0.5 + 0.5 * np.sign(difference[decided]) * votes[decided]
    share = mean_value(zip(rows[decided].tolist(), same.tolist()), images)
    return int(decided.sum()), share


def _correlation(
    values: Float64Array,
    preferences: Sequence[RunPreference],
    means: Mapping[tuple[int, int], float],
) -> float | None:
    """Of the metric and people's ratings; where they compared, of the differences and their votes."""
    if not means:
        _, votes, difference = _differences(values, preferences)
        return spearman(difference, votes)
    places = np.array(list(means), np.int64)
    known = values[places[:, 0], places[:, 1]]
    return spearman(known, np.array(list(means.values())))


def _differences(
    values: Float64Array, preferences: Sequence[RunPreference]
) -> tuple[Int64Array, Float64Array, Float64Array]:
    """Rows of the questions; votes, 1 for a and -1 for b; values of a minus those of b."""
    rows = np.array([preference.row for preference in preferences], np.int64)
    a = np.array([preference.a for preference in preferences], np.int64)
    b = np.array([preference.b for preference in preferences], np.int64)
    shares = np.array([preference.share for preference in preferences], np.float64)
    return rows, 2 * shares - 1, values[rows, a] - values[rows, b]


def spearman(a: Float64Array, b: Float64Array) -> float | None:
    """Spearman's rank correlation, ties by mean ranks, without pairs of which one is NaN; None where not defined."""
    known = ~np.isnan(a) & ~np.isnan(b)
    if not known.any():
        return None
    ranks = [_ranks(column[known]) for column in (a, b)]
    if any(np.ptp(column) == 0 for column in ranks):
        return None
    deviations = [column - column.mean() for column in ranks]
    norms = [float(np.linalg.norm(column)) for column in deviations]
    return float(deviations[0] @ deviations[1]) / (norms[0] * norms[1])


def _ranks(values: Float64Array) -> Float64Array:
    """Ranks from 0; equal values share the mean of theirs."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Float64Array = (last - (counts + 1) / 2)[group]
    return ranks


def mean_rating(judgment: Judgment) -> float:
    """The mean over the criteria that were rated."""
    return statistics.fmean(judgment.ratings.values())


def mean_value(
    values: Iterable[tuple[int, float]],
    images: Int64Array,
    unit: Literal["fraction", "count"] = "fraction",
) -> MetricValue:
    """The mean of values with the rows of their questions, with an interval clustered by image."""
    pairs = list(values)
    rows = np.array([row for row, _ in pairs])
    numbers = np.array([value for _, value in pairs], np.float64)
    terms = MetricTerms(numbers, np.ones(len(pairs)), unit=unit)
    groups = ImageGroups.single(images[rows])
    return msgspec.structs.replace(
        estimate_value(estimate(terms, groups)[0]), unit=unit
    )
