"""Rank the samples of a dataset by how doubtful their truth is.

    result = audit("mmr_val", runs=["runs/a", "runs/b"])
    result.doubtful[0].doubts[0].message

`maskwise audit` and `maskwise.audit` are this function. Every check gives doubts with a strength from 0 to 1. A check
that doubts much of a dataset says little about a sample of it (a style of annotation, not a mistake), so its doubts are
weighted by the share of samples that it does not doubt. A sample is as doubtful as if its doubts were independent:
1 - (1 - a)(1 - b)...
"""

import os
from collections.abc import Iterable, Sequence
from math import prod

import numpy as np

from maskwise.auditing.doubts import (
    CHECKS,
    FORMAT,
    Audit,
    CheckSummary,
    Doubt,
    DoubtfulSample,
)
from maskwise.auditing.mask_checks import RowDoubt, check_masks
from maskwise.auditing.run_checks import check_against_runs
from maskwise.auditing.text_checks import check_texts
from maskwise.datasets import load_dataset
from maskwise.errors import ProtocolError
from maskwise.protocols import GroundTruth, PredictionColumns
from maskwise.protocols.prediction_columns import PREDICTED
from maskwise.report.run_data import RunPaths, load_predictions
from maskwise.runs import Run, load_run
from maskwise.store import Dataset

FEWEST_RUNS = 2
"""One run that differs from the truth is more often wrong than the truth is."""


def audit(
    data: str | os.PathLike[str] | Dataset,
    *,
    runs: Sequence[str | os.PathLike[str] | Run] = (),
) -> Audit:
    """Rank the samples of a dataset by how doubtful their truth is.

    data: as for `load_dataset`. runs: two or more runs of good models on this dataset, or on an earlier version of it:
    predictions are found by sample id. They also see what no rule can.

    Example: audit("world").doubtful[0].doubts[0].message
    """
    if 0 < len(runs) < FEWEST_RUNS:
        raise ProtocolError(
            "an audit needs two runs or none: one run that differs from the truth is more often wrong than the truth is"
        )
    dataset = load_dataset(data)
    opened = [load_run(run) for run in runs]
    predictions = [load_predictions(run, RunPaths(), dataset) for run in opened]
    return audit_dataset(
        dataset, predictions, run_names=[run.location for run in opened]
    )


def audit_dataset(
    dataset: Dataset,
    predictions: Sequence[PredictionColumns] = (),
    *,
    run_names: Sequence[str] = (),
) -> Audit:
    """Audit an open dataset. predictions: of several runs, in its order."""
    truth = GroundTruth.from_dataset(dataset)
    doubts: list[RowDoubt] = [*check_masks(truth), *check_texts(dataset)]
    if predictions:
        doubts += check_against_runs(truth, predictions)
    checks = _summarize_checks(doubts, len(dataset))
    by_row: dict[int, list[Doubt]] = {}
    for row, doubt in doubts:
        by_row.setdefault(row, []).append(doubt)
    doubtful = []
    for row, row_doubts in by_row.items():
        strongest = _strongest_by_check(row_doubts)
        weighted = {
            name: checks[name].weight * doubt.strength
            for name, doubt in strongest.items()
        }
        order = sorted(weighted, key=lambda name: -weighted[name])
        doubtful.append(
            DoubtfulSample(
                sample=dataset.samples.id[row],
                image=dataset.images.id[dataset.samples.image[row]],
                question=dataset.samples.question[row],
                strength=1.0 - prod(1.0 - value for value in weighted.values()),
                doubts=[strongest[name] for name in order],
            )
        )
    doubtful.sort(key=lambda item: -item.strength)
    return Audit(
        format=FORMAT,
        dataset=dataset.name,
        samples=len(dataset),
        runs=list(run_names),
        checks=checks,
        doubtful=doubtful,
        answered=_count_answered(predictions) if predictions else None,
    )


def _count_answered(runs: Sequence[PredictionColumns]) -> int:
    """Samples that every run answered: on others the runs have no doubts."""
    answered = np.logical_and.reduce([run.state == PREDICTED for run in runs])
    return int(np.count_nonzero(answered))


def _summarize_checks(
    doubts: Iterable[RowDoubt], samples: int
) -> dict[str, CheckSummary]:
    """How often each check doubts, each doubt counted by its strength, and the weight that follows."""
    strongest: dict[str, dict[int, float]] = {name: {} for name in CHECKS}
    for row, doubt in doubts:
        before = strongest[doubt.check].get(row, 0.0)
        strongest[doubt.check][row] = max(before, doubt.strength)
    summaries = {}
    for name, by_row in strongest.items():
        share = sum(by_row.values()) / max(samples, 1)
        summaries[name] = CheckSummary(samples=len(by_row), weight=1.0 - share)
    return summaries


def _strongest_by_check(doubts: Iterable[Doubt]) -> dict[str, Doubt]:
    """Of each check the strongest doubt."""
    strongest: dict[str, Doubt] = {}
    for doubt in doubts:
        known = strongest.get(doubt.check)
        if known is None or doubt.strength > known.strength:
            strongest[doubt.check] = doubt
    return strongest
