"""Which ranks the runs of a table may have: every pair is tested on the same questions, with control of all errors.

The ranks of a run lie between 1 + the number of runs that are significantly better and the number of runs minus those
that are significantly worse. P-values of all pairs are adjusted by Holm, so with a chance of 95 % all sets contain the
true rank (Mogstad, Romano, Shaikh and Wilhelm, Review of Economic Studies, 2024).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

import numpy as np

from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.significance import (
    Comparison,
    adjust_by_holm,
    compare_metrics,
)
from maskwise.report.comparison import (
    HEADLINE,
    SIGNIFICANT,
    RunPair,
    comparable_metrics,
    has_targets,
    is_counted,
    shared_samples,
)
from maskwise.runs import Run

MAX_RANKED = 30
"""Runs of a table whose pairs are tested: 435 pairs of 1,000 images take about 10 seconds."""


@dataclass(frozen=True)
class Ranking:
    """Of n runs on the same samples under one protocol.

    ranks: the first and the last rank that each run may have; None with more than MAX_RANKED runs, or where a pair
    cannot be tested. detectable: the smallest difference in gIoU that a test of two such runs finds with a power of
    0.8 (the median over all pairs); None if unknown.
    """

    ranks: list[tuple[int, int]] | None
    detectable: float | None


def rank_runs(runs: Sequence[Run], protocol: str) -> Ranking:
    """Rank runs by gIoU, best first or in any order; each pair on the samples that count for both."""
    if not 2 <= len(runs) <= MAX_RANKED:
        return Ranking(None, None)
    pairs = list(combinations(range(len(runs)), 2))
    compared = [
        compare_pair(runs[first], runs[second], protocol, [HEADLINE])
        for first, second in pairs
    ]
    # A run whose gIoU the protocol fixes, as without any mask under `mmr`, is compared with none.
    if not all(HEADLINE in metrics for metrics in compared):
        return Ranking(None, None)
    comparisons = [metrics[HEADLINE] for metrics in compared]
    detectable = [
        comparison.detectable
        for comparison in comparisons
        if comparison.detectable is not None and comparison.detectable > 0
    ]
    smallest = median(detectable) if detectable else None
    if any(comparison.p_value is None for comparison in comparisons):
        return Ranking(None, smallest)
    adjusted = adjust_by_holm([comparison.p_value for comparison in comparisons])
    better = np.zeros(len(runs), np.int64)
    worse = np.zeros(len(runs), np.int64)
    for (first, second), comparison, p in zip(pairs, comparisons, adjusted):
        if p is None or p >= SIGNIFICANT or comparison.difference is None:
            continue
        winner, loser = (
            (second, first) if comparison.difference > 0 else (first, second)
        )
        better[loser] += 1
        worse[winner] += 1
    ranks = [
        (1 + int(above), len(runs) - int(below)) for above, below in zip(better, worse)
    ]
    return Ranking(ranks, smallest)


def compare_pair(
    a: Run, b: Run, protocol: str, metrics: Sequence[str]
) -> Mapping[str, Comparison]:
    """Some metrics of two runs over all samples that count for both; b minus a."""
    shared = shared_samples(RunPair(a, b, protocol))
    terms = []
    for run in (a, b):
        known = comparable_metrics(run, protocol, shared)
        terms.append({name: known[name] for name in metrics if name in known})
    everything = ImageGroups.single(a.clusters)
    comparisons = compare_metrics(
        terms[0], terms[1], everything, a.info.intervals.level
    )
    return {name: comparison for name, (comparison,) in comparisons.items()}


def count_left_out(runs: Sequence[Run], protocol: str) -> list[int]:
    """For each run, the questions with targets that the protocol leaves out of it and counts for another run."""
    counted = [is_counted(run, protocol) for run in runs]
    by_any = np.logical_or.reduce(counted) & has_targets(runs[0], protocol)
    return [int((by_any & ~own).sum()) for own in counted]
