"""Why a run loses points: the lost strict gIoU by fault, overall and by slice, for one run or for two.

    explanation = explain("runs/tiny")
    explanation.parts["wrong_target"].points.value
    explain("runs/tiny", "runs/mine").parts["wrong_target"].difference

`maskwise explain`, `maskwise.explain` and `run.explain()` are this function. `lost_points` has the method.
"""

import os
from dataclasses import dataclass
from typing import overload

import msgspec
import numpy as np

from maskwise.arrays import Float64Array, Int64Array
from maskwise.errors import ProtocolError
from maskwise.progress_bars import make_progress
from maskwise.protocols import MetricTerms
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.intervals import Estimate, estimate
from maskwise.protocols.significance import adjust_p_values, compare_metrics
from maskwise.report.comparison import MetricChange, pair_runs, to_change
from maskwise.report.fault_repairs import FAULTS
from maskwise.report.lost_points import FAULT_NAMES, LostPoints, find_lost_points
from maskwise.report.run_data import RunData, RunPaths, load_run_data
from maskwise.runs import Run, load_run
from maskwise.runs.schema import MetricValue

FORMAT = "maskwise explanation 1"
DIFFERENCE_FORMAT = "maskwise explanation difference 1"
PROTOCOL = "strict"
EXAMPLES = 3
"""Questions that are named for every fault: those that it cost most."""


ROUNDING = 1e-9
"""A cost below this is the rounding of a difference of two scores."""


class FaultPart(msgspec.Struct, frozen=True, kw_only=True):
    """What one fault costs. points: lost gIoU, in the order of repair; shapley: on average over all orders; questions:
    how many it costs anything; examples: ids of those that it costs most.
    """

    points: MetricValue
    shapley: float
    questions: int
    examples: list[str]


class ExplainedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """One group of a slicing. parts: lost gIoU by fault, in the order of repair."""

    name: str
    samples: int
    giou: float
    parts: dict[str, float]


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The lost gIoU of a run by fault; the parts and `giou` add up to 1.

    samples: the questions that count. order: of the repairs.
    """

    format: str
    run: str
    dataset: str
    samples: int
    images: int
    level: float
    giou: float
    order: list[str]
    parts: dict[str, FaultPart]
    slices: dict[str, list[ExplainedGroup]]

    def __repr__(self) -> str:
        worst = max(self.parts, key=lambda name: self.parts[name].points.value or 0.0)
        return f"Explanation({self.run!r}, giou {self.giou:.3f}, most lost by {worst})"

    @property
    def costly(self) -> dict[str, FaultPart]:
        """The parts of faults that cost any question something."""
        return {name: part for name, part in self.parts.items() if part.questions}


class ExplanationDifference(msgspec.Struct, frozen=True, kw_only=True):
    """Two explanations on the same questions: the differences of their parts add up to minus that of their gIoU.

    parts: what each fault costs A and B, with p-values of a permutation test over images, adjusted for their number.
    """

    format: str
    a: Explanation
    b: Explanation
    parts: dict[str, MetricChange]

    def __repr__(self) -> str:
        return f"ExplanationDifference({self.a!r}, {self.b!r})"

    @property
    def costly(self) -> dict[str, MetricChange]:
        """The parts of faults that cost a question of either run something."""
        names = {**self.a.costly, **self.b.costly}
        return {name: part for name, part in self.parts.items() if name in names}


@dataclass(frozen=True)
class ExplainedRun:
    """A run with what it was scored on and the lost points of every question."""

    run: Run
    data: RunData
    lost: LostPoints
    explanation: Explanation


@overload
def explain(a: str | os.PathLike[str] | Run) -> Explanation: ...
@overload
def explain(
    a: str | os.PathLike[str] | Run, b: str | os.PathLike[str] | Run
) -> ExplanationDifference: ...
def explain(
    a: str | os.PathLike[str] | Run, b: str | os.PathLike[str] | Run | None = None
) -> Explanation | ExplanationDifference:
    """Split the lost strict gIoU of a run into faults; of two runs, also the difference (b - a).

    a, b: runs or their folders, scored under `strict`.

    Example: explain("runs/tiny").parts["wrong_target"].points.value
    """
    if b is None:
        return explain_run(load_run(a)).explanation
    run_a = load_run(a)
    run_b = load_run(b)
    check_same_questions(run_a, run_b)
    return difference_of(explain_run(run_a), explain_run(run_b))


def check_same_questions(a: Run, b: Run) -> None:
    """Raise if two runs cannot be compared under `strict`."""
    pair_runs(a, b, PROTOCOL)


def explain_run(
    run: Run,
    *,
    paths: RunPaths | None = None,
    data: RunData | None = None,
    progress: bool = True,
) -> ExplainedRun:
    """The explanation of a run, with what it rests on.

    data: what the run was scored on, if it is open already; else it is opened, from `paths` if it was moved.
    """
    if PROTOCOL not in run.scores.protocols:
        raise ProtocolError(
            f"{run.location} was not scored under {PROTOCOL}, which is what is explained: score its predictions again "
            f"with --protocol {PROTOCOL}"
        )
    opened = data or load_run_data(run, paths or RunPaths())
    options = run.scores.protocols[PROTOCOL].options
    with make_progress(quiet=not progress) as bars:
        bar = bars.add_task("explaining", total=len(run.ids))
        lost = find_lost_points(
            opened.dataset,
            opened.predictions,
            options,
            on_questions=lambda count: bars.update(bar, advance=count),
        )
    if not lost.counted.any():
        raise ProtocolError(
            f"{run.location}: strict leaves out all questions, so there is nothing to explain"
        )
    return ExplainedRun(run, opened, lost, _summarize(run, lost))


def difference_of(a: ExplainedRun, b: ExplainedRun) -> ExplanationDifference:
    """What each fault costs two runs, and the difference with its interval over images."""
    everything = ImageGroups.single(a.run.clusters)
    level = a.explanation.level
    compared = compare_metrics(_terms(a.lost), _terms(b.lost), everything, level)
    changes = {
        fault: to_change(comparison, "fraction")
        for fault, (comparison,) in compared.items()
    }
    adjusted = adjust_p_values([change.p for change in changes.values()])
    parts = {
        fault: msgspec.structs.replace(change, p_adjusted=p)
        for (fault, change), p in zip(changes.items(), adjusted, strict=True)
    }
    return ExplanationDifference(
        format=DIFFERENCE_FORMAT, a=a.explanation, b=b.explanation, parts=parts
    )


def _terms(lost: LostPoints) -> dict[str, MetricTerms]:
    """What each fault costs as a mean over the questions that count."""
    weight = lost.counted.astype(np.float64)
    return {
        fault: MetricTerms(np.ascontiguousarray(lost.ordered[:, place]), weight)
        for place, fault in enumerate(FAULT_NAMES)
    }


def worst_questions(column: Float64Array, count: int) -> Int64Array:
    """The rows of the questions that a fault costs most, the most expensive first."""
    order = np.argsort(-column, kind="stable")[:count]
    return order[column[order] > ROUNDING]


def _summarize(run: Run, lost: LostPoints) -> Explanation:
    level = run.info.intervals.level
    everything = ImageGroups.single(run.clusters)
    count = int(lost.counted.sum())
    parts = {}
    for place, (fault, terms) in enumerate(_terms(lost).items()):
        (value,) = estimate(terms, everything, level)
        column = lost.ordered[:, place]
        worst = worst_questions(column, EXAMPLES)
        parts[fault] = FaultPart(
            points=_metric(value),
            shapley=float(lost.shapley[:, place].sum()) / count,
            questions=int((np.abs(column) > ROUNDING).sum()),
            examples=[run.ids[row] for row in worst.tolist()],
        )
    return Explanation(
        format=FORMAT,
        run=run.location,
        dataset=run.info.dataset.name,
        samples=count,
        images=len(np.unique(run.clusters[lost.counted])),
        level=level,
        giou=1.0 - float(lost.loss.sum()) / count,
        order=list(FAULTS),
        parts=parts,
        slices=_slices(run, lost),
    )


def _slices(run: Run, lost: LostPoints) -> dict[str, list[ExplainedGroup]]:
    """The groups of every slicing that has more than one."""
    slices = {}
    for slicing, codes in run.rows(PROTOCOL).slices.items():
        groups = []
        for code, name in enumerate(codes.names):
            rows = (codes.codes == code) & lost.counted
            count = int(rows.sum())
            if not count:
                continue
            means = lost.ordered[rows].mean(0).tolist()
            groups.append(
                ExplainedGroup(
                    name=str(name),
                    samples=count,
                    giou=1.0 - float(lost.loss[rows].mean()),
                    parts=dict(zip(FAULT_NAMES, means, strict=True)),
                )
            )
        if len(groups) > 1:
            slices[slicing] = groups
    return slices


def _metric(value: Estimate) -> MetricValue:
    interval = value.interval
    return MetricValue(
        value=value.value,
        low=interval.low,
        high=interval.high,
        unit="fraction",
        method=interval.method,
    )
