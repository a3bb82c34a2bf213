"""How far a judge can be trusted: its verdicts beside those of people, and the estimate that people would reach."""

import os
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path

import msgspec
import numpy as np

from maskwise.arrays import Float64Array
from maskwise.errors import StoreError
from maskwise.harness.metric_values import estimate_value
from maskwise.judging.judge_run import update_report, write_judgments
from maskwise.judging.prediction_powered import (
    best_weight,
    estimate_share,
    people_alone,
)
from maskwise.protocols.intervals import (
    Estimate,
    Interval,
    estimate_composite,
    sum_by_image,
)
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

RatedPair = tuple[bool, bool, int]
"""Two verdicts on one answer, and the image of its question."""

NO_PAIRS = "no answer was judged by two people"


def calibrate(
    run: "str | os.PathLike[str] | Run",
    verdicts: str | os.PathLike[str],
    judge: str = "offline",
) -> Judgments:
    """Compare a judge of a run with people, and write what they say into its judgments.

    verdicts: JSON lines of `maskwise review` or your own (docs/guides/judging.md). judge: one that has judged the run.
    The answers that people judged have to be drawn at random, or the corrected shares are not those of the run.
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
    update_report(opened)
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
    reasons: Counter[str] = Counter()
    for line in read_people_verdicts(path):
        if line.run not in names:
            reasons[f"about another run, such as {line.run!r}"] += 1
        elif line.sample not in judged:
            reasons["about a question that the judge has not judged"] += 1
        elif not _has_verdict(line):
            reasons[f"without any of {', '.join(CRITERIA)}"] += 1
        else:
            last[line.sample, line.reviewer] = line
    if not last:
        counts = [f"{count} {reason}" for reason, count in reasons.most_common(3)]
        raise StoreError(
            f"{path} has no verdict that can be compared with the judge's: of its lines, "
            f'{"; ".join(counts) or "there is none"}. Expected lines with "run": "{run.name}", a sample of it and '
            "a criterion. Comparisons of runs have no criterion: begin the review with --mode rate"
        )
    return list(last.values())


def _has_verdict(line: PeopleVerdict) -> bool:
    """Whether a line says anything about a criterion: comparisons of runs do not."""
    return any(getattr(line, name) is not None for name in CRITERIA)


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
    said_of = {
        verdict.sample: bool(getattr(verdict, criterion))
        for verdict in judgments.verdicts
    }
    rows = [row for row, sample in enumerate(run.ids) if sample in said_of]
    cluster = run.clusters[rows]
    judge_said = np.array([float(said_of[run.ids[row]]) for row in rows])
    people_said = np.array([_mean(given.get(run.ids[row])) for row in rows])
    level = run.info.intervals.level
    weight = best_weight(judge_said, people_said, ~np.isnan(people_said))
    corrected = estimate_share(
        judge_said, people_said, cluster, weight=weight, level=level
    )
    image_of = dict(zip(run.ids, run.clusters.tolist()))
    judge_pairs = [
        (said_of[sample], value, image_of[sample])
        for sample, values in given.items()
        for value in values
    ]
    # In both orders, because no person comes first.
    people_pairs = [
        (*pair, image_of[sample])
        for sample, values in given.items()
        for pair in permutations(values, 2)
    ]
    cells = _cells(judge_pairs).sum(0).astype(int).tolist()
    return CriterionCalibration(
        questions=len(given),
        confusion=((cells[0], cells[1]), (cells[2], cells[3])),
        agreement=(cells[0] + cells[3]) / sum(cells),
        kappa=_kappa(judge_pairs, level),
        people_kappa=_kappa(people_pairs, level),
        judge=judgments.shares[criterion],
        corrected=estimate_value(corrected),
        people=estimate_value(people_alone(people_said, cluster, level)),
        weight=weight,
    )


def _mean(values: Sequence[bool] | None) -> float:
    """The mean verdict of people on an answer; NaN where there is none."""
    return float(np.mean(values)) if values else float("nan")


def _cells(pairs: Sequence[RatedPair]) -> Float64Array:
    """The cell of the confusion that each pair is in, float64 [pairs, 4]: no and no, no and yes, yes and no, both."""
    return np.eye(4)[[2 * first + second for first, second, _ in pairs]].reshape(-1, 4)


def _kappa(pairs: Sequence[RatedPair], level: float) -> MetricValue:
    """Cohen's kappa of pairs of verdicts, with an interval clustered by image."""
    if not pairs:
        return estimate_value(Estimate(None, Interval(None, None, NO_PAIRS)))
    columns = _cells(pairs)
    images = np.array([image for _, _, image in pairs], np.int64)
    metric = CompositeMetric(columns, _kappa_of_counts, lowest=-1.0)
    sums = sum_by_image(columns, images)
    return estimate_value(estimate_composite(metric, sums, level))


def _kappa_of_counts(sums: Float64Array) -> Float64Array:
    """Kappa from the four cells of the confusion, float64 [groups, 4]; NaN where both use one value only."""
    total = sums.sum(1)
    observed = (sums[:, 0] + sums[:, 3]) / total
    first_no = (sums[:, 0] + sums[:, 1]) / total
    second_no = (sums[:, 0] + sums[:, 2]) / total
    expected = first_no * second_no + (1 - first_no) * (1 - second_no)
    chance = np.where(expected < 1, 1 - expected, np.nan)
    kappa: Float64Array = (observed - expected) / chance
    return kappa
