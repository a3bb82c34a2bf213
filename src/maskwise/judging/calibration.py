"""How far a judge can be trusted: its verdicts beside those of people, and the estimate that people would reach."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np

from maskwise.arrays import Float64Array, Int64Array
from maskwise.errors import StoreError
from maskwise.harness.metric_values import estimate_value
from maskwise.judging.judge_run import write_judgments
from maskwise.judging.prediction_powered import (
    best_weight,
    estimate_share,
    people_alone,
)
from maskwise.protocols.intervals import estimate_composite, sum_by_image
from maskwise.protocols.metrics import CompositeMetric
from maskwise.runs import Run, load_run
from maskwise.runs.files import hash_path
from maskwise.runs.judgments import (
    CRITERIA,
    Calibration,
    CriterionCalibration,
    Judgments,
    PeopleVerdict,
    read_judgments,
    read_people_verdicts,
)
from maskwise.runs.schema import MetricValue


def calibrate(
    run: "str | os.PathLike[str] | Run",
    verdicts: str | os.PathLike[str],
    judge: str = "offline",
) -> Judgments:
    """Compare a judge of a run with people, and write what they say into its judgments.

    verdicts: JSON lines of `maskwise review` or your own (docs/judging.md). judge: one that has judged the run. The
    answers that people judged have to be drawn at random, or the corrected shares are not those of the run.
    """
    opened = load_run(run)
    judgments = _find_judgments(opened, judge)
    file = Path(verdicts)
    people = _read_people(opened, file, judgments)
    calibration = Calibration(
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        verdicts=hash_path(file),
        reviewers=len({line.reviewer for line in people}),
        questions=len({line.sample for line in people}),
        criteria={
            name: criterion
            for name in CRITERIA
            if (criterion := _calibrate(opened, judgments, people, name)) is not None
        },
    )
    calibrated = msgspec.structs.replace(judgments, calibration=calibration)
    assert opened.folder is not None, "judgments are read from a folder"
    write_judgments(opened.folder, calibrated)
    return calibrated


def _find_judgments(run: Run, judge: str) -> Judgments:
    judgments = {item.info.judge: item for item in read_judgments(run)}
    if judge not in judgments:
        others = f" (there are those of {', '.join(judgments)})" if judgments else ""
        raise StoreError(
            f"{run.location} has no verdicts of {judge!r} on its present predictions{others}; make them with: "
            f"maskwise judge {run.location} --judge {judge}"
        )
    return judgments[judge]


def _read_people(run: Run, path: Path, judgments: Judgments) -> list[PeopleVerdict]:
    """The last verdict of every reviewer on every answer of the run that the judge judged."""
    names = {run.name, run.location}
    judged = {verdict.sample for verdict in judgments.verdicts}
    last: dict[tuple[str, str], PeopleVerdict] = {}
    other_runs = set()
    for line in read_people_verdicts(path):
        if line.run not in names:
            other_runs.add(line.run)
        elif line.sample in judged:
            last[line.sample, line.reviewer] = line
    if not last:
        seen = ", ".join(sorted(other_runs)[:5]) or "none"
        raise StoreError(
            f"{path} has no verdict on an answer of the run {run.name!r} (its runs: {seen}); expected lines with "
            f'"run": "{run.name}" and a sample of it'
        )
    return list(last.values())


def _calibrate(
    run: Run, judgments: Judgments, people: Sequence[PeopleVerdict], criterion: str
) -> CriterionCalibration | None:
    """One criterion; None if people were not asked about it."""
    given: dict[str, list[bool]] = {}
    for line in people:
        value = getattr(line, criterion)
        if value is not None:
            given.setdefault(line.sample, []).append(value)
    if not given:
        return None
    mean_of = {sample: float(np.mean(values)) for sample, values in given.items()}
    said_of = {
        verdict.sample: float(getattr(verdict, criterion))
        for verdict in judgments.verdicts
    }
    rows = [row for row, sample in enumerate(run.ids) if sample in said_of]
    cluster = run.clusters[rows]
    said = np.array([said_of[run.ids[row]] for row in rows])
    found = np.array([mean_of.get(run.ids[row], np.nan) for row in rows])
    level = run.info.intervals.level
    weight = best_weight(said, found, ~np.isnan(found))
    corrected = estimate_share(said, found, cluster, weight=weight, level=level)
    # Where people are evenly split there is no verdict to agree with.
    decided = ~np.isnan(found) & (found != 0.5)
    table = _confusion(said[decided], found[decided])
    total = sum(map(sum, table))
    return CriterionCalibration(
        questions=len(given),
        split=int((found == 0.5).sum()),
        confusion=table,
        agreement=(table[0][0] + table[1][1]) / total if total else None,
        kappa=_kappa(said[decided], found[decided], cluster[decided], level),
        judge=judgments.shares[criterion],
        corrected=estimate_value(corrected),
        people=estimate_value(people_alone(found, cluster, level)),
        weight=weight,
    )


def _confusion(
    said: Float64Array, found: Float64Array
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Questions by the judge (rows) and by the majority of people (columns), no before yes."""
    cells = np.bincount(
        2 * (said > 0.5).astype(np.int64) + (found > 0.5), minlength=4
    ).tolist()
    return (cells[0], cells[1]), (cells[2], cells[3])


def _kappa(
    said: Float64Array, found: Float64Array, cluster: Int64Array, level: float
) -> MetricValue:
    """Cohen's kappa of the judge and the majority of people, with an interval clustered by image."""
    cell = 2 * (said > 0.5).astype(np.int64) + (found > 0.5)
    columns = np.eye(4)[cell]
    metric = CompositeMetric(columns, _kappa_of_counts, lowest=-1.0)
    return estimate_value(
        estimate_composite(metric, sum_by_image(columns, cluster), level)
    )


def _kappa_of_counts(sums: Float64Array) -> Float64Array:
    """Kappa from the four cells of the confusion, float64 [groups, 4]; NaN where both use one value only."""
    total = sums.sum(1)
    observed = (sums[:, 0] + sums[:, 3]) / total
    said_no = (sums[:, 0] + sums[:, 1]) / total
    found_no = (sums[:, 0] + sums[:, 2]) / total
    expected = said_no * found_no + (1 - said_no) * (1 - found_no)
    kappa: Float64Array = (observed - expected) / np.where(
        expected < 1, 1 - expected, np.nan
    )
    return kappa
