"""The report of a run as one offline HTML page."""

from collections.abc import Sequence
from dataclasses import dataclass

from maskwise.errors import MaskwiseError
from maskwise.protocols.intervals import NOT_DEFINED
from maskwise.report.charts import (
    Axis,
    Chart,
    ChartLine,
    fraction_axis,
    make_bar,
    make_reliability,
    make_risk_curve,
    row_shares,
)
from maskwise.report.explanation_page import report_section
from maskwise.report.formatting import shorten
from maskwise.report.gallery import Gallery, GalleryRun, fill_gallery
from maskwise.report.judgment_view import view_judgments
from maskwise.report.ladder_page import view_ladder
from maskwise.report.metric_labels import (
    HEADLINE_METRICS,
    METRIC_GROUPS,
    metric_label,
    slice_label,
)
from maskwise.report.probe_page import view_findings
from maskwise.report.protocol_order import (
    describe_questions,
    leading_protocols,
    order_protocols,
    protocol_note,
    protocol_role,
    states_mask_types,
)
from maskwise.report.render import render
from maskwise.report.run_data import RunData, RunPaths, load_run_data
from maskwise.report.sample_selection import largest, select_samples
from maskwise.runs import Run
from maskwise.runs.schema import MetricValue, ProtocolScores, SliceGroup
from maskwise.runs.tables import MAIN_METRICS

MAX_SLICINGS = 16
MAX_GROUPS = 12
MAX_REASONS = 10
MAX_NAME = 80


@dataclass(frozen=True)
class ProtocolView:
    """Everything that is shown of one protocol. role: official, recommended or empty."""

    name: str
    role: str
    note: str
    result: ProtocolScores
    description: str
    options: dict[str, str]
    overview: ChartLine
    tiles: list[ChartLine]
    metrics: list[Chart]
    slices: list[Chart]
    fixed: list[str]
    """Labels of metrics whose value the protocol fixes for lack of samples."""
    reasons: list[tuple[str, int]]
    more_reasons: int


def run_to_html(
    run: Run,
    *,
    protocol: str | None = None,
    samples: int = 12,
    paths: RunPaths | None = None,
    data: RunData | None = None,
) -> str:
    """One offline page below 10 MB. protocol: shown first and ranked by; samples: of each kind in the gallery.

    data: what the run was scored on, if it is open already; else it is opened, from `paths` if it was moved.
    """
    main = run.main_protocol(protocol)
    results = run.scores.protocols
    names = order_protocols(run, protocol)
    axis = fraction_axis(
        results[name].metrics[metric] for name in names for metric in MAIN_METRICS
    )
    slices_axis = fraction_axis(
        group.metrics[metric]
        for name in names
        for groups in results[name].slices.values()
        for group in groups
        for metric in MAIN_METRICS
    )
    leading = [
        name for name in names if name == protocol or name in leading_protocols(run)
    ]
    confusion = results[main].confusion if states_mask_types(run) else None
    opened = data or _open_data(run, paths or RunPaths())
    return render(
        "report.html",
        run=run,
        main=main,
        questions=describe_questions(run),
        views=[
            _view(run, name, overview_axis=axis, slices_axis=slices_axis)
            for name in names
        ],
        leading=len(leading),
        overview_axis=axis,
        ladder=None if run.ladder is None else view_ladder(run.ladder),
        probes=[] if run.probes is None else view_findings(run.probes),
        reliability=make_reliability(results[main].calibration),
        risk=make_risk_curve(results[main].risk_coverage),
        confusion=confusion,
        shares=row_shares(confusion) if confusion else [],
        explained=report_section(run, opened) if isinstance(opened, RunData) else None,
        judged=view_judgments(run, opened),
        gallery=_gallery(run, main, samples, opened),
    )


def _open_data(run: Run, paths: RunPaths) -> RunData | str:
    """What the run was scored on, or why it cannot be opened."""
    try:
        return load_run_data(run, paths)
    except MaskwiseError as error:
        return (
            f"{error}. What was moved can be given: "
            "`maskwise report RUN DATASET --predictions FILE`"
        )


def _gallery(run: Run, protocol: str, samples: int, data: RunData | str) -> Gallery:
    """The gallery, or the reason why there is none."""
    if isinstance(data, str):
        return Gallery(problem=data)
    rows = run.rows(protocol)
    selected = select_samples(rows, run.clusters, samples)
    return fill_gallery(selected, [GalleryRun("Prediction", data, rows)])


def _view(
    run: Run, name: str, *, overview_axis: Axis, slices_axis: Axis
) -> ProtocolView:
    result = run.scores.protocols[name]
    reasons = sorted(result.counts.reasons.items(), key=lambda item: -item[1])
    slicings = [
        (title, groups)
        for title, groups in result.slices.items()
        if len(groups) > 1 and _has_values(groups)
    ]
    return ProtocolView(
        name=name,
        role=protocol_role(run, name),
        note=protocol_note(run, name),
        result=result,
        description=result.rule[:1].upper() + result.rule[1:] + ".",
        options={
            key: shorten(str(value), MAX_NAME) for key, value in result.options.items()
        },
        overview=_overview_line(name, result, overview_axis),
        tiles=_tiles(run, result),
        metrics=_metric_charts(result),
        slices=[
            _slice_chart(title, groups, slices_axis)
            for title, groups in slicings[:MAX_SLICINGS]
        ],
        fixed=[
            metric_label(key).label
            for key, metric in result.metrics.items()
            if metric.gated
        ],
        reasons=[
            (shorten(reason, 2 * MAX_NAME), count)
            for reason, count in reasons[:MAX_REASONS]
        ],
        more_reasons=max(0, len(reasons) - MAX_REASONS),
    )


def _has_values(groups: Sequence[SliceGroup]) -> bool:
    """Whether any group has gIoU or cIoU: a rule such as `saco` defines neither."""
    values = [group.metrics[name].value for group in groups for name in MAIN_METRICS]
    return any(value is not None for value in values)


def _shown(result: ProtocolScores) -> dict[str, MetricValue]:
    """The metrics that are defined, without those whose value the protocol fixes for lack of samples."""
    return {
        name: metric
        for name, metric in result.metrics.items()
        if metric.value is not None and not metric.gated
    }


def _metric_charts(result: ProtocolScores) -> list[Chart]:
    """One chart for each group of metrics."""
    charts = []
    for group in METRIC_GROUPS:
        metrics = {
            name: metric
            for name, metric in _shown(result).items()
            if metric_label(name).group == group
        }
        axis = fraction_axis(
            metric for metric in metrics.values() if metric.unit == "fraction"
        )
        if metrics:
            charts.append(
                Chart(
                    group,
                    axis,
                    [_line(name, metric, axis) for name, metric in metrics.items()],
                )
            )
    return charts


def _line(name: str, metric: MetricValue, axis: Axis) -> ChartLine:
    label = metric_label(name)
    bar = make_bar(metric, axis) if metric.unit == "fraction" else None
    return ChartLine(label.label, label.meaning, metric, bar)


def _slice_chart(slicing: str, groups: Sequence[SliceGroup], axis: Axis) -> Chart:
    """The groups with most samples, in the order of the slicing."""
    lines = [_group_line(group, axis) for group in largest(groups, MAX_GROUPS)]
    return Chart(
        shorten(slice_label(slicing), MAX_NAME), axis, lines, len(groups) - len(lines)
    )


def _group_line(group: SliceGroup, axis: Axis) -> ChartLine:
    first, second = (group.metrics[name] for name in MAIN_METRICS)
    bars = make_bar(first, axis), make_bar(second, axis)
    return ChartLine(
        shorten(group.name, MAX_NAME),
        "",
        first,
        bars[0],
        second,
        bars[1],
        group.samples,
    )


def _overview_line(name: str, result: ProtocolScores, axis: Axis) -> ChartLine:
    first, second = (result.metrics[metric] for metric in MAIN_METRICS)
    return ChartLine(
        name, "", first, make_bar(first, axis), second, make_bar(second, axis)
    )


def _tiles(run: Run, result: ProtocolScores) -> list[ChartLine]:
    """gIoU, cIoU and the headline metrics."""
    shown = _shown(result)
    for name in MAIN_METRICS:
        # A rule without gIoU or cIoU says so in the place where readers look for them.
        if result.metrics[name].method == NOT_DEFINED:
            shown[name] = result.metrics[name]
    names = [name for name in (*MAIN_METRICS, *HEADLINE_METRICS) if name in shown]
    if not states_mask_types(run):
        names = [name for name in names if name != "mask_type_accuracy"]
    axis = Axis(0.0, 1.0, (0.0, 1.0))
    return [_line(name, shown[name], axis) for name in names]
