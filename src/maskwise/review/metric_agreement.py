"""Which metrics agree with people: of the judgments that prefer a run, how many does a metric prefer the same way."""

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class RunPreferences:
    """n comparisons of two runs, int64 or float64 [n] each. rows: of the questions. votes: 1 for a, -1 for b, 0 for
    neither.
    """

    rows: Int64Array
    a: Int64Array
    b: Int64Array
    votes: Float64Array


def compute_metric_agreements(
    runs: JudgedRuns, judgments: Sequence[Judgment]
) -> list[MetricAgreement]:
    """Every metric of every protocol that all runs have, the one that agrees best with people first."""
    ratings = _mean_ratings(judgments)
    preferences = _preferences(runs, judgments, ratings)
    agreements = []
    for protocol, metric, values in _metric_values(runs):
        judged, agreement = _agreement(values, preferences, runs.images)
        correlation = _correlation(values, preferences, ratings)
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


def _mean_ratings(judgments: Sequence[Judgment]) -> dict[tuple[int, int], float]:
    """The mean rating of each prediction, by row and run."""
    ratings: dict[tuple[int, int], list[float]] = defaultdict(list)
    for judgment in judgments:
        if judgment.right is None:
            ratings[judgment.row, judgment.left].append(mean_rating(judgment))
    return {key: statistics.fmean(values) for key, values in ratings.items()}


def _preferences(
    runs: JudgedRuns,
    judgments: Sequence[Judgment],
    ratings: Mapping[tuple[int, int], float],
) -> RunPreferences:
    """What people prefer: by comparing, or by rating two runs on the same question."""
    votes = [
        (judgment.row, judgment.left, judgment.right, 2 * SHARES[judgment.verdict] - 1)
        for judgment in judgments
        if judgment.right is not None
    ]
    for row in sorted({row for row, _ in ratings}):
        for a, b in combinations(range(len(runs.names)), 2):
            if (row, a) in ratings and (row, b) in ratings:
                vote = float(np.sign(ratings[row, a] - ratings[row, b]))
                votes.append((row, a, b, vote))
    columns = np.array(votes, np.float64).reshape(-1, 4)
    whole = columns[:, :3].astype(np.int64)
    return RunPreferences(whole[:, 0], whole[:, 1], whole[:, 2], columns[:, 3])


def _metric_values(runs: JudgedRuns) -> Iterator[tuple[str, str, Float64Array]]:
    """Protocol, metric, and its value for every question and run, float64 [questions, runs].

    More is better; NaN where it is not defined.
    """
    protocols = set.intersection(*(set(run) for run in runs.runs))
    for protocol in sorted(protocols):
        terms = [run.metrics(protocol) for run in runs.runs]
        for metric in sorted(set.intersection(*(set(known) for known in terms))):
            sign = -1.0 if metric_label(metric).better == "lower" else 1.0
            columns = [
                sign * _values(known[metric], rows)
                for known, rows in zip(terms, runs.rows)
            ]
            yield protocol, metric, np.stack(columns, axis=1)


def _values(terms: MetricTerms, rows: Sequence[int]) -> Float64Array:
    numerator = terms.numerator[rows].astype(np.float64)
    denominator = terms.denominator[rows].astype(np.float64)
    known = denominator > 0
    values = np.full(len(rows), np.nan)
    values[known] = numerator[known] / denominator[known]
    return values


def _agreement(
    values: Float64Array, preferences: RunPreferences, images: Int64Array
) -> tuple[int, MetricValue | None]:
    """How many judgments prefer a run where the metric is defined, and the share in which it prefers the same."""
    votes = preferences.votes
    difference = _differences(values, preferences)
    decided = ~np.isnan(difference) & (votes != 0)
    if not decided.any():
        return 0, None
    same = 0.5 + 0.5 * np.sign(difference[decided]) * votes[decided]
    cluster = images[preferences.rows[decided]]
    return int(decided.sum()), mean_by_image(same, cluster)


def _correlation(
    values: Float64Array,
    preferences: RunPreferences,
    ratings: Mapping[tuple[int, int], float],
) -> float | None:
    """Of the metric and people's ratings; where they compared, of the differences and their votes."""
    if not ratings:
        return spearman(_differences(values, preferences), preferences.votes)
    places = np.array(list(ratings), np.int64)
    known = values[places[:, 0], places[:, 1]]
    return spearman(known, np.array(list(ratings.values())))


def _differences(values: Float64Array, preferences: RunPreferences) -> Float64Array:
    """Values of a minus those of b."""
    rows = preferences.rows
    return values[rows, preferences.a] - values[rows, preferences.b]


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
    values: Sequence[tuple[int, float]],
    images: Int64Array,
    unit: Literal["fraction", "count"] = "fraction",
) -> MetricValue:
    """The mean of values with the rows of their questions, with an interval clustered by image."""
    rows = np.array([row for row, _ in values])
    numbers = np.array([value for _, value in values], np.float64)
    return mean_by_image(numbers, images[rows], unit)


def mean_by_image(
    numbers: Float64Array,
    cluster: Int64Array,
    unit: Literal["fraction", "count"] = "fraction",
) -> MetricValue:
    """The mean of numbers, with an interval clustered by image. cluster: int64, the image of each."""
    terms = MetricTerms(numbers, np.ones(len(numbers)), unit=unit)
    estimated = estimate(terms, ImageGroups.single(cluster))[0]
    return msgspec.structs.replace(estimate_value(estimated), unit=unit)
