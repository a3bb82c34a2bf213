"""What `maskwise judge` prints."""

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from maskwise.console import make_console
from maskwise.report.formatting import format_interval, format_metric, format_value
from maskwise.report.judgment_text import (
    CRITERION_LABELS,
    describe_calibration,
    describe_judge,
    describe_pairs,
    describe_verdicts,
)
from maskwise.runs.files import REPORT
from maskwise.runs.judgments import Judgments, Pairs, judgments_path, pairs_path
from maskwise.runs.schema import MetricValue


def print_judgments(judgments: Judgments, folder: Path) -> None:
    """Print the share of every criterion, how many verdicts there are of which origin, and the cost."""
    console = make_console(highlight=False)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("", "share", "interval"):
        table.add_column(title, justify="left" if not title else "right")
    for name, share in judgments.shares.items():
        table.add_row(Text(CRITERION_LABELS[name]), *_cells(share))
    console.print(table)
    _print_lines(
        console, [describe_judge(judgments.info), *describe_verdicts(judgments)]
    )
    _print_place(console, folder, judgments_path(folder, judgments.info.judge))


def print_pairs(pairs: Pairs, folder: Path) -> None:
    """Print how often either run answers better."""
    console = make_console(highlight=False)
    _print_lines(console, [*describe_pairs(pairs), describe_judge(pairs.info)])
    other = Path(pairs.other).name
    _print_place(console, folder, pairs_path(folder, pairs.info.judge, other))


def print_calibration(judgments: Judgments, folder: Path) -> None:
    """Print the judge beside people: agreement, kappa, and the corrected shares."""
    calibration = judgments.calibration
    assert calibration is not None, "the judge was just calibrated"
    console = make_console(highlight=False)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("", "judge", "corrected", "agreement", "kappa", "kappa of people"):
        table.add_column(title, justify="left" if not title else "right")
    for name, criterion in calibration.criteria.items():
        table.add_row(
            Text(CRITERION_LABELS[name]),
            format_metric(criterion.judge),
            " ".join(_cells(criterion.corrected)),
            f"{100 * criterion.agreement:.1f}",
            format_value(criterion.kappa.value, "count"),
            format_value(criterion.people_kappa.value, "count"),
        )
    console.print(table)
    _print_lines(console, [describe_calibration(calibration)])
    _print_place(console, folder, judgments_path(folder, judgments.info.judge))


def _cells(metric: MetricValue) -> list[str]:
    interval = format_interval(metric)
    return [format_metric(metric), f"({interval})" if interval else metric.method]


def _print_lines(console: Console, lines: list[str]) -> None:
    for line in lines:
        console.print(Text(line), soft_wrap=True)


def _print_place(console: Console, folder: Path, path: Path) -> None:
    shown = folder / REPORT
    report = f"; open {shown} in a browser" if shown.exists() else ""
    console.print(Text(f"Written to {path}{report}."), soft_wrap=True)
