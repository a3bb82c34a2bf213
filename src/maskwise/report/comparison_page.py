"""The comparison of two runs as one offline HTML page."""

from collections.abc import Iterable
from dataclasses import dataclass

from maskwise.errors import MaskwiseError
from maskwise.report.charts import Axis, Bar, difference_axis, make_bar
from maskwise.report.comparison import (
    HEADLINE,
    MetricChange,
    RunComparison,
    RunPair,
    SliceChange,
)
from maskwise.report.formatting import (
    format_difference,
    format_p,
    format_value,
    shorten,
)
from maskwise.report.gallery import Gallery, GalleryRun, fill_gallery
from maskwise.report.metric_labels import METRIC_GROUPS, metric_label, slice_label
from maskwise.report.render import render
from maskwise.report.run_data import RunPaths, load_run_data
from maskwise.report.sample_selection import select_disagreements
from maskwise.runs.schema import MetricValue

MAX_NAME = 80


@dataclass(frozen=True)
class DifferenceLine:
    """One line of a chart of differences. p: as shown; better: whether the difference favours B."""

    name: str
    meaning: str
    change: MetricChange
    bar: Bar | None
    p: float | None
    significant: bool
    better: bool
    samples: int | None = None


@dataclass(frozen=True)
class DifferenceChart:
    """Differences on one axis."""

    title: str
    axis: Axis
    lines: list[DifferenceLine]


def comparison_to_html(
    pair: RunPair,
    comparison: RunComparison,
    *,
    samples: int = 10,
    paths: tuple[RunPaths, RunPaths] | None = None,
) -> str:
    """One offline page below 10 MB. samples: of each kind in the gallery; paths: of run A and of run B."""
    return render(
        "compare.html",
        comparison=comparison,
        names=run_names(pair),
        verdict=describe_difference(comparison.metrics["giou"], comparison.level),
        figures=_figure_charts(comparison),
        slices=_slice_charts(comparison),
        gallery=_gallery(pair, samples, paths or (RunPaths(), RunPaths())),
    )


def run_names(pair: RunPair) -> tuple[str, str]:
    """The names of the runs' folders, shortened."""
    return shorten(pair.a.name, MAX_NAME), shorten(pair.b.name, MAX_NAME)


def describe_difference(giou: MetricChange, level: float) -> str:
    """The difference in gIoU in one sentence. The interval has the sign of the statement."""
    if giou.difference is None:
        return "One of the runs has no gIoU, so there is nothing to compare."
    if giou.difference == 0 and not giou.significant:
        return f"Both runs have the same gIoU, {format_value(giou.a)}."
    better = "B" if giou.difference > 0 else "A"
    points = format_value(abs(giou.difference))
    details = f"p {format_p(giou.p)}" if giou.p is not None else giou.method
    if giou.low is not None and giou.high is not None:
        ends = (giou.low, giou.high) if better == "B" else (-giou.high, -giou.low)
        interval = " to ".join(format_difference(end) for end in ends)
        details = f"{100 * level:g} % interval {interval}, {details}"
    if giou.significant:
        return f"{better} is better by {points} points of gIoU ({details})."
    return f"{better} is ahead by {points} points of gIoU, but chance alone may explain it ({details})."


def _figure_charts(comparison: RunComparison) -> list[DifferenceChart]:
    charts = []
    for group_name in METRIC_GROUPS:
        changes = {
            name: change
            for name, change in comparison.metrics.items()
            if metric_label(name).group == group_name and change.difference is not None
        }
        axis = change_axis(changes.values())
        lines = [
            difference_line(
                label.label, label.meaning, change, axis=axis, better=label.better
            )
            for label, change in (
                (metric_label(name), change) for name, change in changes.items()
            )
        ]
        if lines:
            charts.append(DifferenceChart(group_name, axis, lines))
    return charts


def _slice_charts(comparison: RunComparison) -> list[DifferenceChart]:
    return [
        _slice_chart(slicing, groups) for slicing, groups in comparison.slices.items()
    ]


def _slice_chart(slicing: str, groups: list[SliceChange]) -> DifferenceChart:
    known = [group for group in groups if HEADLINE in group.metrics]
    axis = change_axis([group.metrics[HEADLINE] for group in known])
    lines = [
        difference_line(
            shorten(group.name, MAX_NAME),
            "",
            group.metrics[HEADLINE],
            axis=axis,
            samples=group.samples,
        )
        for group in known
    ]
    return DifferenceChart(shorten(slice_label(slicing), MAX_NAME), axis, lines)


def change_axis(changes: Iterable[MetricChange]) -> Axis:
    """A symmetric axis that holds all differences and their intervals."""
    return difference_axis(
        end
        for change in changes
        if change.unit == "fraction"
        for end in (change.difference, change.low, change.high)
        if end is not None
    )


def difference_line(
    name: str,
    meaning: str,
    change: MetricChange,
    *,
    axis: Axis,
    better: str = "higher",
    samples: int | None = None,
) -> DifferenceLine:
    """A difference on an axis. better: whether `higher` or `lower` values are."""
    sign = 1 if better == "higher" else -1
    return DifferenceLine(
        name,
        meaning,
        change,
        _bar(change, axis),
        p=change.shown_p,
        significant=change.significant,
        better=sign * (change.difference or 0.0) >= 0,
        samples=samples,
    )


def _bar(change: MetricChange, axis: Axis) -> Bar | None:
    if change.unit != "fraction":
        return None
    return make_bar(
        MetricValue(
            value=change.difference, low=change.low, high=change.high, unit="fraction"
        ),
        axis,
    )


def _gallery(pair: RunPair, samples: int, paths: tuple[RunPaths, RunPaths]) -> Gallery:
    """The gallery, or the reason why there is none."""
    try:
        data = [load_run_data(run, path) for run, path in zip((pair.a, pair.b), paths)]
    except MaskwiseError as error:
        return Gallery(problem=str(error))
    rows = [run.rows(pair.protocol) for run in (pair.a, pair.b)]
    picked = select_disagreements(rows[0], rows[1], pair.a.clusters, samples)
    runs = [
        GalleryRun(f"{letter}: {name}", *both)
        for letter, name, both in zip("AB", run_names(pair), zip(data, rows))
    ]
    return fill_gallery(picked, runs)
