"""Why a run loses points, as an offline page: a waterfall, slices and examples; and as a section of a run's report."""

from collections.abc import Sequence
from dataclasses import dataclass

from maskwise.errors import MaskwiseError
from maskwise.report.charts import Axis
from maskwise.report.comparison_page import (
    DifferenceChart,
    change_axis,
    difference_line,
)
from maskwise.report.explanation import (
    EXAMPLES,
    ExplainedGroup,
    ExplainedRun,
    Explanation,
    ExplanationDifference,
    difference_of,
    explain_run,
    worst_questions,
)
from maskwise.report.explanation_text import (
    METHOD,
    describe_explanation,
    fault_label,
)
from maskwise.report.fault_repairs import FAULTS
from maskwise.report.formatting import shorten
from maskwise.report.gallery import Gallery, GalleryRun, fill_gallery
from maskwise.report.lost_points import FAULT_NAMES
from maskwise.report.metric_labels import slice_label
from maskwise.report.render import render
from maskwise.report.run_data import RunData
from maskwise.report.sample_selection import SelectedSample
from maskwise.runs import Run
from maskwise.runs.schema import MetricValue

MAX_NAME = 80
MAX_GROUPS = 12
"""Groups of a slicing that are shown: those with most questions."""
MAX_SLICINGS = 16
MAX_REPORTED = 5000
"""Questions of a run whose report explains them: about a second for every 2,000."""


@dataclass(frozen=True)
class WaterfallStep:
    """One bar of a waterfall. left, width: in percent of the chart; kind: `score`, `lost` or `gained`."""

    label: str
    meaning: str
    left: float
    width: float
    kind: str
    points: MetricValue
    shapley: float | None = None
    questions: int | None = None


@dataclass(frozen=True)
class SliceTable:
    """Groups (rows) and faults (columns) of one slicing: lost points, each with its share of the largest."""

    title: str
    rows: list[tuple[ExplainedGroup, list[tuple[float, float]]]]
    left_out: int


@dataclass(frozen=True)
class ExplanationView:
    """What the templates draw of one explanation. faults: labels of the columns of the tables."""

    sentence: str
    method: str
    axis: Axis
    steps: list[WaterfallStep]
    faults: list[str]
    tables: list[SliceTable]


def explained_run_to_html(explained: ExplainedRun) -> str:
    """One offline page about a run."""
    explanation = explained.explanation
    return render(
        "explain.html",
        explanation=explanation,
        name=shorten(explained.run.name, MAX_NAME),
        view=view_explanation(explanation),
        gallery=_gallery([explained], _select_examples(explained)),
    )


def explained_pair_to_html(a: ExplainedRun, b: ExplainedRun) -> str:
    """One offline page about two runs and the difference of their waterfalls."""
    difference = difference_of(a, b)
    return render(
        "explain_pair.html",
        difference=difference,
        names=[shorten(item.run.name, MAX_NAME) for item in (a, b)],
        views=[view_explanation(item.explanation) for item in (a, b)],
        chart=_difference_chart(difference),
        gallery=_gallery([a, b], _select_changes(a, b)),
    )


def report_section(run: Run, data: RunData) -> ExplanationView | None:
    """The section of a run's report; None for runs without strict scores, and for large ones."""
    if len(run.ids) > MAX_REPORTED:
        return None
    try:
        explained = explain_run(run, data=data, progress=False)
    except MaskwiseError:
        # Not scored under strict, or nothing that strict counts: the report says so itself.
        return None
    return view_explanation(explained.explanation)


def view_explanation(explanation: Explanation) -> ExplanationView:
    """The geometry of a waterfall, and its slices."""
    axis = Axis(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0))
    giou = MetricValue(value=explanation.giou, low=None, high=None, unit="fraction")
    width = axis.place(explanation.giou)
    steps = [WaterfallStep("gIoU", "as predicted", 0.0, width, "score", giou)]
    reached = explanation.giou
    for fault, part in explanation.costly.items():
        before = reached
        reached += part.points.value or 0.0
        left, right = sorted((axis.place(before), axis.place(reached)))
        steps.append(
            WaterfallStep(
                fault_label(fault),
                FAULTS[fault],
                left,
                round(right - left, 2),
                "lost" if reached >= before else "gained",
                part.points,
                part.shapley,
                part.questions,
            )
        )
    return ExplanationView(
        sentence=describe_explanation(explanation),
        method=METHOD,
        axis=axis,
        steps=steps,
        faults=[fault_label(fault) for fault in explanation.costly],
        tables=_slice_tables(explanation),
    )


def _slice_tables(explanation: Explanation) -> list[SliceTable]:
    faults = list(explanation.costly)
    tables = []
    for slicing, groups in list(explanation.slices.items())[:MAX_SLICINGS]:
        ranked = sorted(groups, key=lambda group: -group.samples)[:MAX_GROUPS]
        shown = [group for group in groups if group in ranked]
        highest = max(
            (group.parts[fault] for group in shown for fault in faults), default=0.0
        )
        rows = []
        for group in shown:
            parts = [group.parts[fault] for fault in faults]
            cells = [
                (part, max(0.0, part) / highest if highest > 0 else 0.0)
                for part in parts
            ]
            rows.append((group, cells))
        title = shorten(slice_label(slicing), MAX_NAME)
        tables.append(SliceTable(title, rows, len(groups) - len(shown)))
    return tables


def _difference_chart(difference: ExplanationDifference) -> DifferenceChart:
    """What each fault costs B more than A; less is better."""
    changes = difference.costly
    axis = change_axis(changes.values())
    lines = [
        difference_line(
            fault_label(fault), FAULTS[fault], change, axis=axis, better="lower"
        )
        for fault, change in changes.items()
    ]
    return DifferenceChart("", axis, lines)


def _select_examples(explained: ExplainedRun) -> list[SelectedSample]:
    """The questions that each fault costs most."""
    selected = []
    for fault in explained.explanation.costly:
        column = explained.lost.ordered[:, FAULT_NAMES.index(fault)]
        for row in worst_questions(column, EXAMPLES).tolist():
            selected.append((fault_label(fault), row))
    return selected


def _select_changes(a: ExplainedRun, b: ExplainedRun) -> list[SelectedSample]:
    """The questions where what a fault costs differs most between two runs."""
    selected = []
    change = abs(b.lost.ordered - a.lost.ordered)
    for place, fault in enumerate(FAULT_NAMES):
        for row in worst_questions(change[:, place], EXAMPLES).tolist():
            selected.append((fault_label(fault), row))
    return selected


def _gallery(
    explained: Sequence[ExplainedRun], selected: Sequence[SelectedSample]
) -> Gallery:
    letters = [""] if len(explained) == 1 else ["A: ", "B: "]
    runs = []
    for letter, item in zip(letters, explained, strict=True):
        title = letter + shorten(item.run.name, MAX_NAME)
        runs.append(GalleryRun(title, item.data, item.run.rows("strict")))
    return fill_gallery(selected, runs)
