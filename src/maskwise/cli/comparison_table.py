"""The comparison of two runs on the terminal."""

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from maskwise.console import make_console
from maskwise.report.comparison import MetricChange, RunComparison
from maskwise.report.comparison_page import describe_difference
from maskwise.report.formatting import format_difference, format_p, format_value
from maskwise.report.metric_labels import metric_label, slice_label


def print_comparison(comparison: RunComparison) -> None:
    """Print the metrics of both runs and their differences, overall and by slice."""
    console = make_console()
    console.print(f"[bold]A[/bold] {escape(comparison.a)}")
    console.print(f"[bold]B[/bold] {escape(comparison.b)}")
    console.print(
        f"{escape(comparison.dataset)}, {comparison.samples} questions about {comparison.images} images, "
        f"{comparison.protocol}\n"
    )
    if comparison.notice is not None:
        console.print(comparison.notice + "\n", style="yellow")
    giou = comparison.metrics["giou"]
    console.print(describe_difference(giou, comparison.level) + "\n")
    console.print(_overall_table(comparison))
    if comparison.slices:
        console.print()
        console.print(_slices_table(comparison))
    console.print(
        f"p of gIoU over all questions is of one test. All other p are adjusted for {comparison.family} differences "
        "(Benjamini-Hochberg). Bold: p < 0.05.",
        style="dim",
    )


def _overall_table(comparison: RunComparison) -> Table:
    table = _new_table("metric", comparison)
    for name, change in comparison.metrics.items():
        if change.difference is not None:
            _add_row(table, metric_label(name).label, change)
    return table


def _slices_table(comparison: RunComparison) -> Table:
    table = _new_table("gIoU by slice (questions)", comparison)
    for slicing, groups in comparison.slices.items():
        table.add_section()
        table.add_row(Text(slice_label(slicing), style="dim"))
        for group in groups:
            if "giou" in group.metrics:
                title = f"{group.name} ({group.samples})"
                _add_row(table, title, group.metrics["giou"])
    return table


def _new_table(title: str, comparison: RunComparison) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column(Text(title), min_width=24)
    for name in ("A", "B", "B - A", f"{100 * comparison.level:g} % interval", "p"):
        table.add_column(name, justify="right")
    return table


def _add_row(table: Table, name: str, change: MetricChange) -> None:
    if change.low is None:
        interval = change.method
    else:
        low = format_difference(change.low, change.unit)
        high = format_difference(change.high, change.unit)
        interval = f"{low} to {high}"
    table.add_row(
        Text(name),
        format_value(change.a, change.unit),
        format_value(change.b, change.unit),
        format_difference(change.difference, change.unit),
        interval,
        format_p(change.shown_p),
        style="bold" if change.significant else None,
    )
