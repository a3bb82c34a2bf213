"""The scores of a run on the terminal."""

import textwrap
from collections.abc import Mapping

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from maskwise.console import make_console
from maskwise.protocols.intervals import MIN_IMAGES, NOT_DEFINED, TOO_FEW_IMAGES
from maskwise.report.metric_labels import HEADLINE_METRICS, metric_label
from maskwise.report.protocol_order import (
    OFFICIAL,
    describe_questions,
    leading_protocols,
    order_protocols,
    protocol_note,
    protocol_role,
    states_mask_types,
)
from maskwise.runs import Run
from maskwise.runs.schema import MetricValue, ProtocolScores
from maskwise.runs.tables import MAIN_METRICS

NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"


def print_scores(
    run: Run, *, all_protocols: bool = False, show_all: bool = False
) -> None:
    """Print the official protocol and `strict`: gIoU, cIoU, headline metrics, and questions without a score.

    all_protocols: every protocol of the run; show_all: also every metric.
    """
    console = make_console(highlight=False)
    if all_protocols or show_all:
        names = order_protocols(run)
    else:
        names = leading_protocols(run)
    console.print(_main_table(run, names))
    for name in names:
        metrics = _other_metrics(run, name, show_all=show_all)
        if metrics:
            console.print(_wrap(name, metrics, console.width), soft_wrap=True)
    for name in names:
        _print_reasons(console, name, run.scores.protocols[name])
        if protocol_note(run, name):
            console.print(f"[yellow]{name}:[/] {protocol_note(run, name)}")
    for name in names:
        if run.scores.protocols[name].cite:
            console.print(
                f"[dim]to quote: {escape(run.scores.protocols[name].cite)}[/]"
            )
    _print_omissions(
        console, run, hidden=len(run.scores.protocols) - len(names), show_all=show_all
    )


def _main_table(run: Run, names: list[str]) -> Table:
    if run.info.dataset.images < MIN_IMAGES:
        intervals = f"without intervals ({TOO_FEW_IMAGES})"
    else:
        level = f"{100 * run.info.intervals.level:g} %"
        intervals = f"with {level} intervals over images"
    caption = f"percent {intervals}; {describe_questions(run)}"
    table = Table(
        box=None, padding=(0, 2, 0, 0), caption=caption, caption_justify="left"
    )
    table.add_column("protocol", no_wrap=True)
    for name in ("gIoU", "cIoU", "scored", "counted\nas zero", "left\nout"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in names:
        scores = run.scores.protocols[name]
        role = protocol_role(run, name)
        counts = scores.counts
        counted_as_zero = counts.failed + counts.missing
        table.add_row(
            f"{name} ({role})" if role == OFFICIAL else name,
            *(_percent(scores.metrics[key]) for key in MAIN_METRICS),
            f"{counts.scored:,}",
            f"{counted_as_zero:,}",
            f"{counts.excluded:,}",
        )
    return table


def _other_metrics(run: Run, name: str, *, show_all: bool) -> Mapping[str, MetricValue]:
    """The metrics beside gIoU and cIoU that are defined and not fixed by the protocol."""
    metrics = {
        key: metric
        for key, metric in run.scores.protocols[name].metrics.items()
        if key not in MAIN_METRICS and metric.value is not None and not metric.gated
    }
    if show_all:
        return metrics
    headline_keys = [key for key in HEADLINE_METRICS if key in metrics]
    # A model that never states a mask type would seem to fail at something it does not attempt.
    if not states_mask_types(run) and "mask_type_accuracy" in headline_keys:
        headline_keys.remove("mask_type_accuracy")
    return {key: metrics[key] for key in headline_keys}


def _wrap(name: str, metrics: Mapping[str, MetricValue], width: int) -> str:
    """The metrics of a protocol as markup, in lines of the terminal's width; a metric is never broken."""
    parts = []
    for key, metric in metrics.items():
        part = f"{metric_label(key).label} {_percent(metric)}"
        parts.append(part.replace(" ", NO_BREAK_SPACE))
    text = f"{name}: " + " · ".join(parts)
    lines = textwrap.fill(text, width, subsequent_indent="  ", break_on_hyphens=False)
    # Only now the name becomes bold: markup would count as characters of the line.
    return f"[bold]{name}[/]" + escape(lines)[len(name) :]


def _percent(metric: MetricValue) -> str:
    """Percent with the interval, a plain number for counts, - where undefined."""
    if metric.method == NOT_DEFINED:
        return "not defined"
    if metric.value is None:
        return "-"
    if metric.unit == "fraction":
        scale = 100
        digits = 1
    else:
        scale = 1
        digits = 2
    value = f"{scale * metric.value:.{digits}f}"
    if metric.low is None or metric.high is None:
        return value
    low = f"{scale * metric.low:.{digits}f}"
    high = f"{scale * metric.high:.{digits}f}"
    return f"{value} [{low}, {high}]"


def _print_reasons(console: Console, name: str, scores: ProtocolScores) -> None:
    """Why questions have no score under a protocol."""
    reasons = [f"{count:,} {reason}" for reason, count in scores.counts.reasons.items()]
    if reasons:
        console.print(
            f"[yellow]{name}, without a score:[/] {escape('; '.join(reasons))}"
        )


def _print_omissions(
    console: Console, run: Run, *, hidden: int, show_all: bool
) -> None:
    for name, reason in run.scores.skipped.items():
        if show_all or name in (run.info.dataset.protocol, "strict"):
            console.print(f"[yellow]{name} was skipped:[/] {escape(reason)}")
    unknown = run.scores.predictions.unknown
    if unknown:
        console.print(
            f"[yellow]{unknown:,} predictions are for samples that the dataset does not have[/]"
        )
    if not show_all:
        others = ""
        if hidden:
            noun = "protocol" if hidden == 1 else "protocols"
            others = f"{hidden} other {noun} and "
        console.print(f"[dim]{others}all metrics: --all, or the report[/]")
