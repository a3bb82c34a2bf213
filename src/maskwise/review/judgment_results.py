"""What people say about runs: strengths, win rates, ratings, agreement, time, and which metrics agree with people."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations

import msgspec
import numpy as np

from maskwise.arrays import Int64Array
from maskwise.review.agreement import interval_alpha
from maskwise.review.bradley_terry import Comparisons, fit_strengths
from maskwise.review.criteria import CRITERIA
from maskwise.review.judged_runs import JudgedRuns
from maskwise.review.judgments import Judgment
from maskwise.review.metric_agreement import (
    SHARES,
    MetricAgreement,
    compute_metric_agreements,
    mean_rating,
    mean_value,
)
from maskwise.review.records import Mode
from maskwise.review.statistics import AgreementStats
from maskwise.runs.schema import MetricValue

HOUR = 3600.0
"""Seconds."""


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """A run in the eyes of people. win_rate: ties count half. ratings: mean by criterion, `all` over all of them.
    identical: comparisons that were not asked for, because another run predicts the same.
    """

    name: str
    strength: MetricValue | None
    win_rate: MetricValue | None
    wins: int
    losses: int
    ties: int
    bad: int
    identical: int
    ratings: dict[str, MetricValue]


class PairResult(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs, compared. rate: how often a is preferred; ties count half."""

    a: str
    b: str
    wins: int
    losses: int
    ties: int
    bad: int
    rate: MetricValue


class JudgmentResults(msgspec.Struct, frozen=True, kw_only=True):
    """All that people's judgments say. agreement: of reviewers on the same items; alpha: of ratings, by criterion.
    left: how often the left side is preferred, where one is. criteria: how often each decided a comparison.
    """

    mode: Mode
    judgments: int
    questions: int
    reviewers: int
    hours: float
    seconds_median: float | None
    runs: list[RunResult]
    pairs: list[PairResult]
    left: MetricValue | None
    criteria: dict[str, int]
    agreement: AgreementStats
    alpha: dict[str, float | None]
    metrics: list[MetricAgreement]


def compute_judgment_results(
    runs: JudgedRuns,
    judgments: Sequence[Judgment],
    *,
    identical: Sequence[int],
    agreement: AgreementStats,
) -> JudgmentResults:
    """The results of a review of predictions. identical: by run, see RunResult."""
    images = runs.images
    seconds = [
        judgment.seconds for judgment in judgments if judgment.seconds is not None
    ]
    reasons = Counter(code for judgment in judgments for code in judgment.criteria)
    compared = [judgment for judgment in judgments if judgment.right is not None]
    rated = [judgment for judgment in judgments if judgment.right is None]
    return JudgmentResults(
        mode=runs.mode,
        judgments=len(judgments),
        questions=len({judgment.row for judgment in judgments}),
        reviewers=len({judgment.reviewer for judgment in judgments}),
        hours=sum(seconds) / HOUR,
        seconds_median=statistics.median(seconds) if seconds else None,
        runs=_run_results(runs, compared, rated, identical, images),
        pairs=_pair_results(runs, compared, images),
        left=_left_share(compared, images),
        criteria={code: reasons[code] for code in CRITERIA if reasons[code]},
        agreement=agreement,
        alpha=_rating_alpha(rated),
        metrics=compute_metric_agreements(runs, judgments),
    )


# -- runs


def _run_results(
    runs: JudgedRuns,
    compared: Sequence[Judgment],
    rated: Sequence[Judgment],
    identical: Sequence[int],
    images: Int64Array,
) -> list[RunResult]:
    strengths = _strengths(compared, images, len(runs.names))
    results = []
    for number, name in enumerate(runs.names):
        shares = [
            (judgment.row, _share_of(number, judgment))
            for judgment in compared
            if number in (judgment.left, judgment.right)
        ]
        verdicts = Counter(
            _outcome(number, judgment)
            for judgment in compared
            if number in (judgment.left, judgment.right)
        )
        own = [judgment for judgment in rated if judgment.left == number]
        results.append(
            RunResult(
                name=name,
                strength=strengths[number],
                win_rate=mean_value(shares, images) if shares else None,
                wins=verdicts["win"],
                losses=verdicts["loss"],
                ties=verdicts["tie"],
                bad=verdicts["bad"],
                identical=identical[number],
                ratings=_mean_ratings(own, images),
            )
        )
    return results


def _strengths(
    compared: Sequence[Judgment], images: Int64Array, runs: int
) -> list[MetricValue | None]:
    """Bradley-Terry strengths; None where comparisons do not connect all runs."""
    if not compared:
        return [None] * runs
    rows = np.array([judgment.row for judgment in compared])
    made = Comparisons(
        first=np.array([judgment.left for judgment in compared], np.int64),
        second=np.array([judgment.right for judgment in compared], np.int64),
        share=np.array([SHARES[judgment.verdict] for judgment in compared]),
        cluster=images[rows],
    )
    fitted = fit_strengths(made, runs)
    columns = zip(fitted.value.tolist(), fitted.low.tolist(), fitted.high.tolist())
    return [
        None
        if np.isnan(value)
        else MetricValue(
            value=value,
            low=None if np.isnan(low) else low,
            high=None if np.isnan(high) else high,
            unit="count",
            method="sandwich",
        )
        for value, low, high in columns
    ]


def _share_of(run: int, judgment: Judgment) -> float:
    share = SHARES[judgment.verdict]
    return share if run == judgment.left else 1 - share


def _outcome(run: int, judgment: Judgment) -> str:
    if judgment.verdict in ("tie", "bad"):
        return judgment.verdict
    return "win" if _share_of(run, judgment) == 1 else "loss"


def _pair_results(
    runs: JudgedRuns, compared: Sequence[Judgment], images: Int64Array
) -> list[PairResult]:
    results = []
    for a, b in combinations(range(len(runs.names)), 2):
        own = [
            judgment
            for judgment in compared
            if {judgment.left, judgment.right} == {a, b}
        ]
        if not own:
            continue
        outcomes = Counter(_outcome(a, judgment) for judgment in own)
        shares = [(judgment.row, _share_of(a, judgment)) for judgment in own]
        results.append(
            PairResult(
                a=runs.names[a],
                b=runs.names[b],
                wins=outcomes["win"],
                losses=outcomes["loss"],
                ties=outcomes["tie"],
                bad=outcomes["bad"],
                rate=mean_value(shares, images),
            )
        )
    return results


def _left_share(compared: Sequence[Judgment], images: Int64Array) -> MetricValue | None:
    """How often the left side is preferred: far from a half, people choose a side and not a prediction."""
    shares = [
        (judgment.row, SHARES[judgment.verdict])
        for judgment in compared
        if judgment.verdict in ("left", "right")
    ]
    return mean_value(shares, images) if shares else None


def _mean_ratings(
    rated: Sequence[Judgment], images: Int64Array
) -> dict[str, MetricValue]:
    """Means by criterion, in the order of the criteria; `all` is that of the means of each judgment."""
    ratings: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for judgment in rated:
        for code, value in judgment.ratings.items():
            ratings[code].append((judgment.row, float(value)))
        ratings["all"].append((judgment.row, mean_rating(judgment)))
    return {
        code: mean_value(ratings[code], images, unit="count")
        for code in (*CRITERIA, "all")
        if ratings[code]
    }


def _rating_alpha(rated: Sequence[Judgment]) -> dict[str, float | None]:
    """Krippendorff's alpha of the ratings of each criterion, over the items that two people rated."""
    units: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for judgment in rated:
        for code, value in judgment.ratings.items():
            units[code][judgment.item].append(value)
    return {
        code: interval_alpha(units[code].values()) for code in CRITERIA if units[code]
    }
