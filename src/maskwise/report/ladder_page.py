"""A ladder as one offline HTML page, and as a section of a run's report: a plot and a table of all rules."""

from dataclasses import dataclass

from maskwise.protocols.intervals import NOT_DEFINED
from maskwise.report.charts import Axis, fraction_axis
from maskwise.report.ladder_text import (
    NO_SWAP,
    counted_questions,
    describe_ladder_questions,
    describe_left_out,
    describe_others,
    describe_spread,
    describe_swap,
)
from maskwise.report.metric_labels import metric_label
from maskwise.report.overlay import PALETTE
from maskwise.report.render import render
from maskwise.runs.ladder import Ladder, LadderRule, LadderValues
from maskwise.runs.tables import MAIN_METRICS

RUN_HEIGHT = 9.0
ROW_GAP = 9.0
"""Of the plot, in the units of its viewBox: of each run of a rule, and between rules. Text is 11 units high."""
LABEL_WIDTH = 150.0
PANEL_WIDTH = 270.0
PANEL_GAP = 24.0
TOP = 26.0
"""Space for the name of the metric and the ticks."""


@dataclass(frozen=True)
class Dot:
    """A value in the plot: its place, the ends of its interval, the color of its run, and a text for the pointer."""

    x: float
    y: float
    low: float | None
    high: float | None
    color: int
    text: str


@dataclass(frozen=True)
class Panel:
    """One metric of the plot. left: where it begins; ticks: places and texts."""

    title: str
    left: float
    ticks: list[tuple[float, str]]
    dots: list[Dot]


@dataclass(frozen=True)
class Plot:
    """Rules by metric: a dot for every run. labels: the rules with the height of their rows."""

    width: float
    height: float
    labels: list[tuple[float, str]]
    panels: list[Panel]


@dataclass(frozen=True)
class LadderRow:
    """A rule and, for every run, its values, the questions it counts and why it leaves others out."""

    rule: LadderRule
    values: list[LadderValues]
    counted: list[int]
    left_out: list[str]
    others: list[str]
    """The metrics that stand for gIoU where the rule does not define it."""


@dataclass(frozen=True)
class LadderView:
    """Everything that is shown of a ladder. legend: the color and the name of every run."""

    ladder: Ladder
    questions: str
    plot: Plot
    legend: list[tuple[int, str]]
    rows: list[LadderRow]
    spreads: list[tuple[str, list[str]]]
    swaps: list[str]
    no_swap: str


def ladder_to_html(ladder: Ladder) -> str:
    """One offline page."""
    return render("ladder.html", view=view_ladder(ladder))


def view_ladder(ladder: Ladder) -> LadderView:
    """What the templates draw."""
    rows = []
    for rule in ladder.rules:
        values = [run.values[rule.name] for run in ladder.runs]
        rows.append(
            LadderRow(
                rule=rule,
                values=values,
                counted=[counted_questions(item) for item in values],
                left_out=[describe_left_out(item) for item in values],
                others=[_instead_of_giou(item) for item in values],
            )
        )
    colors = [number % len(PALETTE) for number in range(len(ladder.runs))]
    return LadderView(
        ladder=ladder,
        questions=describe_ladder_questions(ladder),
        plot=_plot(ladder, colors),
        legend=[(color, run.name) for color, run in zip(colors, ladder.runs)],
        rows=rows,
        spreads=[(run.name, describe_spread(run)) for run in ladder.runs],
        swaps=[describe_swap(swap) for swap in ladder.swaps],
        no_swap=NO_SWAP if len(ladder.runs) > 1 and not ladder.swaps else "",
    )


def _instead_of_giou(values: LadderValues) -> str:
    """The headline metrics of a rule that does not define gIoU; empty for others."""
    if values.metrics["giou"].method != NOT_DEFINED:
        return ""
    return describe_others(values)


def _plot(ladder: Ladder, colors: list[int]) -> Plot:
    """The rules that define gIoU, from top to bottom."""
    shown = [
        rule
        for rule in ladder.rules
        if any(
            run.values[rule.name].metrics["giou"].value is not None
            for run in ladder.runs
        )
    ]
    row_height = RUN_HEIGHT * len(ladder.runs) + ROW_GAP
    middles = [TOP + row_height * (number + 0.5) for number in range(len(shown))]
    labels = [(middle, rule.name) for middle, rule in zip(middles, shown)]
    panels = []
    for place, metric in enumerate(MAIN_METRICS):
        left = LABEL_WIDTH + place * (PANEL_WIDTH + PANEL_GAP)
        panels.append(_panel(ladder, shown, metric, left=left, colors=colors))
    width = LABEL_WIDTH + len(panels) * (PANEL_WIDTH + PANEL_GAP)
    return Plot(width, TOP + row_height * len(shown) + 4, labels, panels)


def _panel(
    ladder: Ladder,
    rules: list[LadderRule],
    metric: str,
    *,
    left: float,
    colors: list[int],
) -> Panel:
    axis = fraction_axis(
        run.values[rule.name].metrics[metric] for run in ladder.runs for rule in rules
    )
    dots = []
    row_height = RUN_HEIGHT * len(ladder.runs) + ROW_GAP
    for number, rule in enumerate(rules):
        top = TOP + row_height * number + ROW_GAP / 2
        for place, (color, run) in enumerate(zip(colors, ladder.runs)):
            value = run.values[rule.name].metrics[metric]
            if value.value is None:
                continue
            dots.append(
                Dot(
                    x=_place(axis, value.value, left),
                    y=top + RUN_HEIGHT * (place + 0.5),
                    low=None if value.low is None else _place(axis, value.low, left),
                    high=None if value.high is None else _place(axis, value.high, left),
                    color=color,
                    text=f"{run.name}, {rule.name}: {100 * value.value:.1f}",
                )
            )
    ticks = [(_place(axis, tick, left), f"{100 * tick:g}") for tick in axis.ticks]
    return Panel(metric_label(metric).label, left, ticks, dots)


def _place(axis: Axis, value: float, left: float) -> float:
    return round(left + axis.place(value) / 100 * PANEL_WIDTH, 1)
