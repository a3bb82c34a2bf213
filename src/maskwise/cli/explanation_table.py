"""Why points are lost, on the terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from maskwise.console import make_console
from maskwise.report.explanation import Explanation, ExplanationDifference
from maskwise.report.explanation_text import (
    COLUMNS,
    DIFFERENCE_COLUMNS,
    METHOD,
    describe_explanation,
    difference_rows,
    explanation_rows,
)


def print_explanation(explanation: Explanation) -> None:
    """Print the faults of one run with what each costs."""
    console = make_console(highlight=False)
    _print_run(console, "", explanation)
    if explanation.costly:
        console.print(_table(COLUMNS, explanation_rows(explanation)))
        console.print(METHOD, style="dim")


def print_difference(difference: ExplanationDifference) -> None:
    """Print what each fault costs two runs."""
    console = make_console(highlight=False)
    _print_run(console, "A: ", difference.a)
    _print_run(console, "B: ", difference.b)
    if difference.costly:
        console.print(_table(DIFFERENCE_COLUMNS, difference_rows(difference)))
        console.print(METHOD, style="dim")


def _print_run(console: Console, letter: str, explanation: Explanation) -> None:
    console.print(
        f"[bold]{letter}{escape(explanation.run)}[/] on {escape(explanation.dataset)}, {explanation.samples} questions"
    )
    console.print(describe_explanation(explanation))


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """The cells without the last column, the meaning, for which 80 columns have no room."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in head[:-1]:
        table.add_column(title, justify="left" if title == head[0] else "right")
    for cells in rows:
        table.add_row(*map(Text, cells[:-1]))
    return table
