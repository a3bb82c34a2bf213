"""The results of risk probes as one offline HTML page that a person without the field's vocabulary can read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from maskwise.benchmarks import risk_label
from maskwise.errors import MaskwiseError
from maskwise.images import open_image, resolve_inside
from maskwise.report.charts import Axis, Bar, fraction_axis, make_bar
from maskwise.report.formatting import (
    UNDEFINED,
    format_difference,
    format_p,
    format_value,
    shorten,
)
from maskwise.report.gallery import (
    Card,
    CardImage,
    GalleryRun,
    collect_cards,
    make_card,
    make_card_image,
)
from maskwise.report.overlay import PALETTE
from maskwise.report.render import render
from maskwise.report.run_data import RunPaths, load_run_data
from maskwise.runs import Run
from maskwise.runs.probe_results import (
    Cell,
    Measure,
    PlotPoint,
    ProbeExample,
    ProbePlot,
    ProbeResult,
    ProbesFile,
    ProbeTable,
    Severity,
    Unit,
)
from maskwise.runs.schema import MetricValue
from maskwise.store.atomic import atomic_write

PAGE = "probes.html"
PROTOCOL = "strict"
MAX_NAME = 80
MAX_ROWS = 40
"""Rows of a table on the page; probes.json has all of them."""
LINE_WIDTH = 360.0
LINE_HEIGHT = 200.0
"""Of a plot of lines, in the units of its viewBox. Text is 11 units high."""

SEVERITY_LABELS: dict[Severity, str] = {
    "unmeasured": "not measured",
    "none": "no finding",
    "low": "low",
    "medium": "medium",
    "high": "high",
}


@dataclass(frozen=True)
class BarGroup:
    """One name of a plot of bars: a bar with its value for every series; color: of the series."""

    name: str
    bars: list[tuple[Bar | None, str, int]]


@dataclass(frozen=True)
class Line:
    """One series of a plot of lines. points: of an SVG polyline; dots: x, y, low, high, text."""

    name: str
    color: int
    points: str
    dots: list[tuple[float, float, float | None, float | None, str]]


@dataclass(frozen=True)
class ProbePlotView:
    """A plot with its geometry. ticks: place and text; of bars the axis has them."""

    plot: ProbePlot
    axis: Axis
    legend: list[tuple[int, str]]
    groups: list[BarGroup]
    lines: list[Line]
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]


@dataclass(frozen=True)
class ProbeTableView:
    """A table as text. left_out: rows that are in probes.json only."""

    table: ProbeTable
    rows: list[list[str]]
    left_out: int


@dataclass(frozen=True)
class ProbeView:
    """Everything that is shown of one probe. measures: with value and interval as text."""

    result: ProbeResult
    risks: list[tuple[str, str]]
    severity: str
    measures: list[tuple[Measure, str, str]]
    plots: list[ProbePlotView]
    tables: list[ProbeTableView]
    cards: list[Card]


def write_probe_page(folder: Path, probes: ProbesFile, runs: Mapping[str, Run]) -> Path:
    """Write the page into the folder of the probes. runs: the evaluations of examples."""
    page = folder / PAGE
    with atomic_write(page) as file:
        file.write(probes_to_html(probes, runs, folder).encode())
    return page


def probes_to_html(
    probes: ProbesFile, runs: Mapping[str, Run], folder: Path | None = None
) -> str:
    """One offline page below 10 MB. folder: of the images that examples name."""
    gallery = collect_cards(_make_cards(probes, runs, folder))
    views = []
    for result in probes.results:
        cards = [card for card in gallery.cards if card.slices["probe"] == result.name]
        views.append(_view(result, cards))
    return render(
        "probes.html",
        probes=probes,
        views=views,
        gallery=gallery,
        severities=_count_severities(probes),
        labels=SEVERITY_LABELS,
    )


def view_findings(probes: ProbesFile) -> list["ProbeView"]:
    """The findings without examples, for the report of a run."""
    return [_view(result, []) for result in probes.results]


def format_cell(value: Cell, unit: Unit) -> str:
    """A value as the page shows it."""
    if value is None:
        return UNDEFINED
    if isinstance(value, str):
        return value
    if unit == "fraction":
        return format_value(value)
    if unit == "difference":
        return format_difference(value)
    if unit == "p":
        return format_p(value)
    return f"{value:,.0f}" if unit == "count" else f"{value:.2f}"


def _count_severities(probes: ProbesFile) -> dict[Severity, int]:
    """How many results have each severity, the worst first; those that occur."""
    counts: dict[Severity, int] = {}
    for severity in ("high", "medium", "low", "none", "unmeasured"):
        count = sum(result.severity == severity for result in probes.results)
        if count:
            counts[severity] = count
    return counts


def _view(result: ProbeResult, cards: list[Card]) -> ProbeView:
    return ProbeView(
        result=result,
        risks=[(risk, risk_label(risk)) for risk in result.risks],
        severity=SEVERITY_LABELS[result.severity],
        measures=[
            (item, format_cell(item.value, item.unit), _interval(item))
            for item in result.measures
        ],
        plots=[_plot(plot) for plot in result.plots],
        tables=[_table(table) for table in result.tables],
        cards=cards,
    )


def _interval(measure: Measure) -> str:
    if measure.low is None or measure.high is None:
        return ""
    low = format_cell(measure.low, measure.unit)
    high = format_cell(measure.high, measure.unit)
    return f"{low} to {high}"


def _table(table: ProbeTable) -> ProbeTableView:
    rows = []
    for row in table.rows[:MAX_ROWS]:
        texts = [format_cell(cell, unit) for cell, unit in zip(row, table.units)]
        rows.append([shorten(text, 2 * MAX_NAME) for text in texts])
    return ProbeTableView(table, rows, max(0, len(table.rows) - MAX_ROWS))


# -- plots -----------------------------------------------------------------------------


def _plot(plot: ProbePlot) -> ProbePlotView:
    colors = [number % len(PALETTE) for number in range(len(plot.series))]
    points = [point for series in plot.series for point in series.points]
    axis = fraction_axis(map(_to_metric, points))
    is_bars = plot.kind == "bars"
    numbers = [float(point.x) for point in points] if not is_bars else []
    left = min(numbers, default=0.0)
    right = max(numbers, default=1.0)
    if right == left:
        right = left + 1.0
    x_axis = Axis(left, right, (left, (left + right) / 2, right))
    return ProbePlotView(
        plot=plot,
        axis=axis,
        legend=[(color, series.name) for color, series in zip(colors, plot.series)],
        groups=_bar_groups(plot, axis, colors) if is_bars else [],
        lines=[] if is_bars else _lines(plot, x_axis, axis, colors),
        x_ticks=[
            (_across(x_axis, tick), f"{round(tick, 2):g}") for tick in x_axis.ticks
        ],
        y_ticks=[(_down(axis, tick), f"{100 * tick:g}") for tick in axis.ticks],
    )


def _to_metric(point: PlotPoint) -> MetricValue:
    return MetricValue(value=point.y, low=point.low, high=point.high, unit="fraction")


def _bar_groups(plot: ProbePlot, axis: Axis, colors: list[int]) -> list[BarGroup]:
    """Names in the order in which the series have them."""
    names = dict.fromkeys(
        str(point.x) for series in plot.series for point in series.points
    )
    by_series = [
        {str(point.x): point for point in series.points} for series in plot.series
    ]
    groups = []
    for name in names:
        bars = []
        for color, points in zip(colors, by_series):
            point = points.get(name)
            if point is not None:
                metric = _to_metric(point)
                bars.append((make_bar(metric, axis), format_value(point.y), color))
        groups.append(BarGroup(shorten(name, MAX_NAME), bars))
    return groups


def _lines(
    plot: ProbePlot, x_axis: Axis, y_axis: Axis, colors: list[int]
) -> list[Line]:
    lines = []
    for color, series in zip(colors, plot.series):
        dots = []
        for point in series.points:
            if point.y is None:
                continue
            low = None if point.low is None else _down(y_axis, point.low)
            high = None if point.high is None else _down(y_axis, point.high)
            x = _across(x_axis, float(point.x))
            y = _down(y_axis, point.y)
            text = f"{series.name}, {point.x:g}: {format_value(point.y)}"
            dots.append((x, y, low, high, text))
        points = " ".join(f"{dot[0]},{dot[1]}" for dot in dots)
        lines.append(Line(series.name, color, points, dots))
    return lines


def _across(axis: Axis, value: float) -> float:
    return round(axis.place(value) / 100 * LINE_WIDTH, 1)


def _down(axis: Axis, value: float) -> float:
    """The height of a value: y grows downwards."""
    return round((100 - axis.place(value)) / 100 * LINE_HEIGHT, 1)


# -- examples --------------------------------------------------------------------------


def _make_cards(
    probes: ProbesFile, runs: Mapping[str, Run], folder: Path | None
) -> Iterator[Card]:
    """The cards of all examples. Those whose run cannot be opened are left out."""
    opened: dict[str, GalleryRun] = {}
    frames: dict[tuple[str, str | None], CardImage] = {}
    for result in probes.results:
        for example in result.examples:
            try:
                for name in example.runs:
                    if name not in opened:
                        opened[name] = _open_run(name, runs[name])
                shown = [opened[name] for name in example.runs]
                card = _make_card(example, shown, frames, folder)
            except (MaskwiseError, KeyError):
                continue
            yield replace(card, slices={"probe": result.name})


def _open_run(name: str, run: Run) -> GalleryRun:
    title = "Prediction" if name == "base" else f"Prediction: {name}"
    return GalleryRun(title, load_run_data(run, RunPaths()), run.rows(PROTOCOL))


def _make_card(
    example: ProbeExample,
    runs: list[GalleryRun],
    frames: dict[tuple[str, str | None], CardImage],
    folder: Path | None,
) -> Card:
    dataset = runs[0].data.dataset
    row = dataset.samples.row[example.sample]
    sample = dataset[row]
    key = (f"{dataset.path} {sample.image_id}", example.image)
    if key not in frames:
        load = partial(dataset.open_image, sample.image_id)
        if example.image is not None and folder is not None:
            load = partial(open_image, resolve_inside(folder, example.image))
        info = dataset.image(sample.image_id)
        frames[key] = make_card_image(info, load, key=f"p{len(frames)}")
    title = shorten(example.title, MAX_NAME)
    card = make_card(title, row, sample, frame=frames[key], runs=runs)
    if not example.note:
        return card
    *others, last = card.panels
    note = " ".join(text for text in (last.note, example.note) if text)
    return replace(card, panels=(*others, replace(last, note=shorten(note))))
