"""The leaderboard on the terminal."""

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from maskwise.console import make_console
from maskwise.report.formatting import format_interval, format_metric, format_value
from maskwise.report.leaderboard import (
    Leaderboard,
    LeaderboardRow,
    LeaderboardTable,
)


def print_leaderboard(board: Leaderboard) -> None:
    """Print the official and the recommended table of every set of questions; the first one where there are none."""
    console = make_console()
    for dataset in board.datasets:
        console.print(
            f"[bold]{escape(dataset.dataset)}[/bold], {dataset.samples:,} questions about {dataset.images:,} images"
        )
        shown = [table for table in dataset.tables if table.role] or dataset.tables[:1]
        for table in shown:
            console.print()
            console.print(_board(table))
            if table.detectable is not None:
                points = format_value(table.detectable)
                console.print(
                    f"Two such runs have to differ by about {points} points of gIoU to be told apart (power 0.8).",
                    style="dim",
                )
        hidden = [table.protocol for table in dataset.tables if table not in shown]
        if hidden:
            console.print(
                f"Also scored under {', '.join(hidden)}: --json or --out site.",
                style="dim",
            )
    console.print(
        "Rank: what paired tests of all runs allow (Holm). Each table has a rule of its own: values of two tables "
        "cannot be compared.",
        style="dim",
    )


def _board(table: LeaderboardTable) -> Table:
    title = f"{table.protocol} ({table.role})" if table.role else table.protocol
    board = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    board.add_column(Text(title), min_width=20)
    for name in ("rank", "gIoU", "interval", "cIoU", "scored"):
        board.add_column(name, justify="right", no_wrap=True)
    for row in table.rows:
        board.add_row(*_cells(row))
        for tag in row.tags:
            board.add_row(Text(f"  {tag}", style="yellow"))
    return board


def _cells(row: LeaderboardRow) -> list[Text | str]:
    name = row.model if row.run == row.model else f"{row.model} ({row.run})"
    ranks = ""
    if row.ranks is not None:
        first, last = row.ranks
        ranks = str(first) if first == last else f"{first}-{last}"
    giou = row.giou
    ciou = format_metric(row.metrics["ciou"]) if "ciou" in row.metrics else ""
    scored = f"{row.counts.scored:,} of {row.counts.samples:,}"
    return [
        Text(name),
        ranks,
        format_metric(giou),
        format_interval(giou),
        ciou,
        scored,
    ]
