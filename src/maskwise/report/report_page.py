"""A run summed up for people: as a page, as Markdown, as JSON."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from maskwise.errors import MaskwiseError
from maskwise.report.charts import Axis, Bar, fraction_axis, make_bar, make_reliability, row_shares
from maskwise.report.gallery import Gallery, GalleryRun, fill_gallery
from maskwise.report.metric_labels import (
    METRIC_GROUPS,
    format_interval,
    format_metric,
    metric_label,
    shorten,
    slice_label,
)
from maskwise.report.render import render
from maskwise.report.run_data import RunPaths, load_run_data
from maskwise.report.sample_selection import largest, select_samples
from maskwise.runs import Run
from maskwise.runs.schema import MetricValue, ProtocolScores, SliceGroup
from maskwise.runs.tables import MAIN_METRICS

MAX_SLICINGS, MAX_GROUPS, MAX_REASONS, MAX_NAME = 16, 12, 10, 80
TILES = (
    "giou",
    "ciou",
    "boundary_iou",
    "f1",
    "mask_type_accuracy",
    "no_target_accuracy",
    "occluded_iou",
    "answer_f1",
)
"""The figures a reader sees first, where they are defined."""


@dataclass(frozen=True)
class Line:
    """One line of a chart: a name, a figure with its bar, and if wanted a second one."""

    name: str
    meaning: str
    figure: MetricValue
    bar: Bar | None
    second: MetricValue | None = None
    second_bar: Bar | None = None
    samples: int | None = None


@dataclass(frozen=True)
class Chart:
    """Lines on one axis. `left_out`: groups not shown."""

    title: str
    axis: Axis
    lines: list[Line]
    left_out: int = 0


@dataclass(frozen=True)
class ProtocolView:
    """All that is shown of one protocol."""

    name: str
    result: ProtocolScores
    rule: str
    options: dict[str, str]
    figures: list[Chart]
    slices: list[Chart]
    reasons: list[tuple[str, int]]
    more_reasons: int


# -- HTML --------------------------------------------------------------------------------------------------------------


def run_to_html(
    run: Run, *, protocol: str | None = None, samples: int = 12, paths: RunPaths | None = None
) -> str:
    """One offline page below 10 MB. protocol: shown first and ranked by; samples: of each kind in the gallery."""
    main = run.main_protocol(protocol)
    results = run.scores.protocols
    confusion = results[main].confusion
    names = [main, *(name for name in results if name != main)]
    overview = fraction_axis(results[name].metrics[metric] for name in names for metric in MAIN_METRICS)
    slices_axis = fraction_axis(
        group.metrics[metric]
        for name in names
        for groups in results[name].slices.values()
        for group in groups
        for metric in MAIN_METRICS
    )
    return render(
        "report.html",
        run=run,
        main=main,
        views=[_view(name, results[name], slices_axis) for name in names],
        overview=Chart("", overview, [_protocol_line(name, results[name], overview) for name in names]),
        tiles=_tiles(results[main]),
        reliability=make_reliability(results[main].calibration),
        confusion=confusion,
        shares=row_shares(confusion) if confusion else [],
        gallery=_gallery(run, main, samples, paths or RunPaths()),
    )


def _gallery(run: Run, protocol: str, samples: int, paths: RunPaths) -> Gallery:
    """The gallery, or why there is none: figures can be read without it."""
    try:
        data = load_run_data(run, paths)
    except MaskwiseError as error:
        return Gallery(problem=str(error))
    rows = run.rows(protocol)
    picked = select_samples(rows, run.clusters, samples)
    return fill_gallery(picked, [GalleryRun("Prediction", data, rows)])


def _view(name: str, result: ProtocolScores, axis: Axis) -> ProtocolView:
    reasons = sorted(result.counts.reasons.items(), key=lambda item: -item[1])
    slicings = [(title, groups) for title, groups in result.slices.items() if len(groups) > 1]
    return ProtocolView(
        name,
        result,
        result.rule[:1].upper() + result.rule[1:] + ".",
        {key: shorten(str(value), MAX_NAME) for key, value in result.options.items()},
        _figure_charts(result),
        [_slice_chart(title, groups, axis) for title, groups in slicings[:MAX_SLICINGS]],
        [(shorten(reason, 2 * MAX_NAME), count) for reason, count in reasons[:MAX_REASONS]],
        max(0, len(reasons) - MAX_REASONS),
    )


def _figure_charts(result: ProtocolScores) -> list[Chart]:
    """All figures that are defined, by theme."""
    charts = []
    for theme in METRIC_GROUPS:
        figures = {
            name: figure
            for name, figure in result.metrics.items()
            if metric_label(name).theme == theme and figure.value is not None
        }
        fractions = fraction_axis(figure for figure in figures.values() if figure.unit == "fraction")
        lines = [_line(name, figure, fractions) for name, figure in figures.items()]
        if lines:
            charts.append(Chart(theme, fractions, lines))
    return charts


def _line(name: str, figure: MetricValue, axis: Axis) -> Line:
    words = metric_label(name)
    bar = make_bar(figure, axis) if figure.unit == "fraction" else None
    return Line(words.label, words.meaning, figure, bar)


def _slice_chart(slicing: str, groups: Sequence[SliceGroup], axis: Axis) -> Chart:
    """The groups with most samples, in the order of the slicing."""
    lines = [_group_line(group, axis) for group in largest(groups, MAX_GROUPS)]
    return Chart(shorten(slice_label(slicing), MAX_NAME), axis, lines, len(groups) - len(lines))


def _group_line(group: SliceGroup, axis: Axis) -> Line:
    first, second = (group.metrics[name] for name in MAIN_METRICS)
    bars = make_bar(first, axis), make_bar(second, axis)
    return Line(shorten(group.name, MAX_NAME), "", first, bars[0], second, bars[1], group.samples)


def _protocol_line(name: str, result: ProtocolScores, axis: Axis) -> Line:
    first, second = (result.metrics[metric] for metric in MAIN_METRICS)
    return Line(name, "", first, make_bar(first, axis), second, make_bar(second, axis))


def _tiles(result: ProtocolScores) -> list[Line]:
    known = {name: figure for name, figure in result.metrics.items() if figure.value is not None}
    names = [name for name in TILES if name in known] or list(known)[: len(TILES)]
    axis = Axis(0.0, 1.0, (0.0, 1.0))
    return [_line(name, known[name], axis) for name in names]


# -- Markdown and JSON -------------------------------------------------------------------------------------------------


def run_to_markdown(run: Run, *, protocol: str | None = None) -> str:
    """Headline figures, protocols, slices of the main protocol and counts, as Markdown tables."""
    main = run.main_protocol(protocol)
    results, facts = run.scores.protocols, run.info
    level = f"{100 * facts.intervals.level:g} %"
    lines = [
        f"# {_plain(facts.dataset.name)}: {_plain(run.model_name)}",
        "",
        *(text for mark in run.notices for text in (f"**{_plain(mark)}**", "")),
        f"Percent, with {level} intervals clustered by image. {facts.dataset.samples} questions, "
        f"{facts.dataset.images} images. maskwise {_plain(facts.maskwise)}.",
        "",
        *_table(
            ("protocol", "gIoU", "cIoU", "scored", "failed", "missing", "excluded", "rule"),
            [(name, *_cells(result), result.rule) for name, result in results.items()],
        ),
        "",
        f"## Figures under {main}",
        "",
        *_table(
            ("figure", "value", "interval", ""),
            [
                (
                    metric_label(name).label,
                    format_metric(figure),
                    format_interval(figure),
                    metric_label(name).meaning,
                )
                for name, figure in results[main].metrics.items()
                if figure.value is not None
            ],
        ),
    ]
    for slicing, groups in list(results[main].slices.items())[:MAX_SLICINGS]:
        if len(groups) > 1:
            lines += [
                "",
                f"## {_plain(slice_label(slicing))}",
                "",
                *_slice_table(largest(groups, MAX_GROUPS)),
            ]
    return "\n".join([*lines, ""])


def _cells(result: ProtocolScores) -> tuple[str, ...]:
    counts = result.counts
    figures = [_with_interval(result.metrics[name]) for name in MAIN_METRICS]
    return (*figures, str(counts.scored), str(counts.failed), str(counts.missing), str(counts.excluded))


def _with_interval(figure: MetricValue) -> str:
    interval = format_interval(figure)
    return f"{format_metric(figure)} ({interval})" if interval else format_metric(figure)


def _slice_table(groups: Sequence[SliceGroup]) -> list[str]:
    rows = [
        (group.name, str(group.samples), *(_with_interval(group.metrics[name]) for name in MAIN_METRICS))
        for group in groups
    ]
    return _table(("group", "questions", "gIoU", "cIoU"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(map(_plain, row)) + " |" for row in rows]
    return ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *lines]


def _plain(text: str) -> str:
    """Text that Markdown takes as it is, on one line."""
    flat = shorten(" ".join(text.split()), 2 * MAX_NAME)
    return "".join("\\" + sign if sign in "\\`*_{}[]<>#|!&~" else sign for sign in flat)


def run_to_summary(run: Run) -> dict[str, Any]:
    """The small JSON form: what was scored, counts and figures of every protocol."""
    facts = run.info
    return {
        "format": "maskwise report 2",
        "run": run.location,
        "dataset": facts.dataset.name,
        "predictions": run.predictions_info.path,
        "model": facts.evaluation and facts.evaluation.inputs.model.name,
        "marks": run.notices,
        "maskwise": facts.maskwise,
        "samples": facts.dataset.samples,
        "images": facts.dataset.images,
        "level": facts.intervals.level,
        "protocols": {name: _summarise(result) for name, result in run.scores.protocols.items()},
    }


def _summarise(result: ProtocolScores) -> dict[str, Any]:
    counts = result.counts
    return {
        "rule": result.rule,
        "options": result.options,
        "counts": {
            name: getattr(counts, name) for name in ("samples", "scored", "failed", "missing", "excluded")
        },
        "metrics": {
            name: {"value": figure.value, "low": figure.low, "high": figure.high, "unit": figure.unit}
            for name, figure in result.metrics.items()
        },
    }
