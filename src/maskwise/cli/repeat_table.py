"""Repeated evaluations on the terminal."""

from rich.table import Table
from rich.text import Text

from maskwise.console import make_console
from maskwise.harness.repeats import RepeatedMetric, RepeatSummary
from maskwise.report.formatting import format_value
from maskwise.report.metric_labels import metric_label
from maskwise.runs.tables import MAIN_METRICS


def print_repeats(
    summary: RepeatSummary, *, show_all: bool = False, include_repeats: bool = False
) -> None:
    """Print mean, deviation between repeats and interval of gIoU and cIoU, or of all metrics."""
    console = make_console(highlight=False)
    repeats = len(summary.runs)
    what = "the same evaluation"
    if summary.vary:
        listed = ", ".join(str(value) for value in summary.values)
        what = f"{summary.vary} = {listed}"
    console.print(f"{repeats} repeats, {what}")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("", min_width=20)
    interval = "over images and repeats" if include_repeats else "over images"
    for name in (
        "mean",
        f"interval {interval}",
        "between repeats",
        "smallest",
        "largest",
    ):
        table.add_column(name, justify="right")
    for protocol, metrics in summary.protocols.items():
        table.add_row(Text(protocol, style="dim"))
        for name, metric in metrics.items():
            if show_all or name in MAIN_METRICS:
                table.add_row(
                    Text(metric_label(name).label),
                    *_cells(metric, include_repeats=include_repeats),
                )
    console.print(table)
    console.print(
        "Between repeats: the standard deviation. An interval over images alone does not contain it.",
        style="dim",
    )


def _cells(metric: RepeatedMetric, *, include_repeats: bool) -> list[str]:
    low, high = metric.low, metric.high
    if include_repeats:
        low, high = metric.whole_low, metric.whole_high
    interval = ""
    if low is not None:
        interval = (
            f"{format_value(low, metric.unit)} to {format_value(high, metric.unit)}"
        )
    deviation = f"± {format_value(metric.deviation, metric.unit)}"
    # One digit of percent would hide a small deviation.
    if metric.unit == "fraction":
        deviation = f"± {100 * metric.deviation:.2f}"
    return [
        format_value(metric.mean, metric.unit),
        interval,
        deviation,
        format_value(metric.smallest, metric.unit),
        format_value(metric.largest, metric.unit),
    ]
