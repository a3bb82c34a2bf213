"""Score runs again on a corrected dataset: what each run has before and after, and whether their order changes.

    result = rescore(["runs/a", "runs/b"], "val_corrected")
    result.runs[0].change.difference

`maskwise rescore` and `maskwise.rescore` are this function. Nothing is predicted again; predictions are found by sample
id. The change is measured on the questions that both versions have.
"""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from maskwise.datasets import load_dataset
from maskwise.errors import ProtocolError, StoreError, UnknownNameError
from maskwise.harness.metric_values import metric_value
from maskwise.harness.scoring import ScoreResult, compute_scores
from maskwise.protocols import MetricTerms
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.significance import compare_metric
from maskwise.registry import PROTOCOLS
from maskwise.report.comparison import MetricChange, to_change
from maskwise.report.run_data import RunPaths, find_predictions, load_ground_truth
from maskwise.runs import Run, load_run
from maskwise.runs.schema import MetricValue
from maskwise.schema import Prediction
from maskwise.store import Dataset

FORMAT = "maskwise rescoring 1"
METRIC = "giou"


class RescoredRun(msgspec.Struct, frozen=True, kw_only=True):
    """The gIoU of a run before and after. change: on the questions of both versions, with interval and p-value.

    rank_before, rank_after: among the runs that were scored again, 1 is the best.
    """

    name: str
    before: MetricValue
    after: MetricValue
    change: MetricChange
    rank_before: int
    rank_after: int


class Rescoring(msgspec.Struct, frozen=True, kw_only=True):
    """Runs on a dataset and on its corrected version.

    questions: before. removed, added: questions of one version only; changed: of both, with another truth or wording;
    None where the dataset of the runs cannot be opened.
    """

    format: str
    dataset: str
    protocol: str
    questions: int
    removed: int
    added: int
    changed: int | None
    level: float
    runs: list[RescoredRun]

    def __repr__(self) -> str:
        return f"Rescoring({len(self.runs)} runs on {self.dataset!r}, {self.removed} questions removed)"


def rescore(
    runs: "str | os.PathLike[str] | Run | Sequence[str | os.PathLike[str] | Run]",
    data: str | os.PathLike[str] | Dataset,
    *,
    protocol: str | None = None,
    threads: int = 1,
) -> Rescoring:
    """Score runs again on a corrected version of their dataset, and compare.

    data: the corrected dataset, as for `load_dataset`. protocol: `strict` if None, and the first one of a run without.

    Example: rescore("runs/tiny", "val_corrected").runs[0].change.difference
    """
    given = [runs] if isinstance(runs, str | os.PathLike | Run) else list(runs)
    if not given:
        raise ProtocolError("there is no run to score again")
    opened = [load_run(run) for run in given]
    dataset = load_dataset(data)
    first = opened[0]
    for run in opened[1:]:
        if run.ids != first.ids:
            raise ProtocolError(
                f"{first.location} and {run.location} are not on the same questions: rescore them one by one"
            )
    name = first.main_protocol(protocol)
    if name not in PROTOCOLS.names():
        # The files of a run name its rules: what they call `package.module:function` is not imported.
        raise UnknownNameError(
            "protocol", name, PROTOCOLS.names(), where=str(first.location)
        )
    results = [_score_again(run, dataset, name, threads) for run in opened]
    before = [run.scores.protocols[name].metrics[METRIC] for run in opened]
    after = [
        metric_value(result.scores[name], METRIC, result.intervals[name, METRIC])
        for result in results
    ]
    ranks = [_ranks([value.value for value in values]) for values in (before, after)]
    rescored = [
        RescoredRun(
            name=run.name,
            before=before[place],
            after=after[place],
            change=_change(run, results[place], name),
            rank_before=ranks[0][place],
            rank_after=ranks[1][place],
        )
        for place, run in enumerate(opened)
    ]
    ids = set(dataset.samples.id)
    return Rescoring(
        format=FORMAT,
        dataset=dataset.name,
        protocol=name,
        questions=len(first.ids),
        removed=sum(id not in ids for id in first.ids),
        added=len(ids.difference(first.ids)),
        changed=_count_changed(first, dataset),
        level=first.info.intervals.level,
        runs=rescored,
    )


def _score_again(
    run: Run, dataset: Dataset, protocol: str, threads: int
) -> ScoreResult:
    info = run.predictions_info
    predictions: Path | Sequence[Prediction]
    if run.predictions is not None:
        predictions = run.predictions
    else:
        predictions = find_predictions(run, RunPaths())
    return compute_scores(
        predictions,
        dataset,
        [protocol],
        options={protocol: run.scores.protocols[protocol].options},
        format=None if run.predictions is not None else info.format,
        read_options=info.options,
        interval_options=run.info.intervals,
        threads=threads,
    )


def _change(run: Run, result: ScoreResult, protocol: str) -> MetricChange:
    """The difference on the questions that both versions have."""
    row_after = {id: row for row, id in enumerate(result.truth.ids)}
    rows = [row for row, id in enumerate(run.ids) if id in row_after]
    places = [row_after[run.ids[row]] for row in rows]
    before = run.metrics(protocol)[METRIC]
    after = result.scores[protocol].metrics[METRIC]
    shared_before = MetricTerms(before.numerator[rows], before.denominator[rows])
    shared_after = MetricTerms(after.numerator[places], after.denominator[places])
    images = ImageGroups.single(run.clusters[rows])
    level = run.info.intervals.level
    (comparison,) = compare_metric(shared_before, shared_after, images, level)
    return to_change(comparison, "fraction")


def _count_changed(run: Run, dataset: Dataset) -> int | None:
    """Questions of both versions with another question, mask type or truth."""
    try:
        before = load_ground_truth(run, RunPaths())
    except (StoreError, OSError):
        return None
    changed = 0
    for sample in before:
        row = dataset.samples.row.get(sample.id)
        if row is None:
            continue
        other = dataset[row]
        facts = [
            (item.question, item.mask_type, item.targets, item.ignore)
            for item in (sample, other)
        ]
        changed += facts[0] != facts[1]
    return changed


def _ranks(values: Sequence[float | None]) -> list[int]:
    """1 for the highest value; equal ones share a rank."""
    known = [-1.0 if value is None else value for value in values]
    return [1 + sum(other > value for other in known) for value in known]
