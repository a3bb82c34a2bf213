"""A ladder on the terminal."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from maskwise.console import make_console
from maskwise.protocols.intervals import NOT_DEFINED
from maskwise.report.formatting import format_metric
from maskwise.report.ladder_text import (
    NO_SWAP,
    counted_questions,
    describe_ladder_questions,
    describe_left_out,
    describe_others,
    describe_spread,
    describe_swap,
)
from maskwise.runs.ladder import Ladder
from maskwise.runs.schema import MetricValue

SHORT_NOT_DEFINED = "n.d."
"""Stands in cells, where there is no room for the words; the caption explains it."""


def print_ladder(ladder: Ladder) -> None:
    """Print the values of every run under every rule, then papers, left-out questions, spreads and rank swaps."""
    console = make_console(highlight=False)
    console.print(
        f"[bold]{escape(ladder.dataset.name)}[/]: {describe_ladder_questions(ladder)}"
    )
    console.print(_values_table(ladder))
    _print_notes(console, ladder)
    console.print("[bold]comparable with[/]")
    for rule in ladder.rules:
        if rule.comparable_with:
            papers = "; ".join(rule.comparable_with)
            console.print(f"  {rule.name}: {escape(papers)}")
    for run in ladder.runs:
        for sentence in describe_spread(run):
            console.print(f"[bold]{escape(run.name)}[/] {escape(sentence)}")
    for swap in ladder.swaps:
        console.print(
            f"[yellow]the order depends on the rule:[/] {escape(describe_swap(swap))}"
        )
    if len(ladder.runs) > 1 and not ladder.swaps:
        console.print(NO_SWAP)
    for name, reason in ladder.not_applicable.items():
        console.print(f"[dim]{name} does not apply: {escape(reason)}[/]")
    console.print(
        "[dim]Intervals, and the sentence to quote for each rule: --json, or --out ladder.html[/]"
    )


def _values_table(ladder: Ladder) -> Table:
    caption = f"percent; {SHORT_NOT_DEFINED}: {NOT_DEFINED}"
    table = Table(
        box=None, padding=(0, 2, 0, 0), caption=caption, caption_justify="left"
    )
    table.add_column("rule", no_wrap=True)
    for run in ladder.runs:
        label = f"{run.name}\n" if len(ladder.runs) > 1 else ""
        table.add_column(escape(f"{label}gIoU"), justify="right", overflow="fold")
        table.add_column("cIoU", justify="right", no_wrap=True, vertical="bottom")
    table.add_column("counted", justify="right", no_wrap=True)
    for rule in ladder.rules:
        cells = []
        for run in ladder.runs:
            metrics = run.values[rule.name].metrics
            cells += [_cell(metrics["giou"]), _cell(metrics["ciou"])]
        counted = {counted_questions(run.values[rule.name]) for run in ladder.runs}
        texts = [f"{number:,}" for number in sorted(counted)]
        table.add_row(rule.name, *cells, "/".join(texts))
    return table


def _cell(metric: MetricValue) -> str:
    if metric.method == NOT_DEFINED:
        return SHORT_NOT_DEFINED
    return format_metric(metric)


def _print_notes(console: Console, ladder: Ladder) -> None:
    """What stands for gIoU where the rule does not define it, and why questions are left out."""
    for rule in ladder.rules:
        for run in ladder.runs:
            values = run.values[rule.name]
            name = f"{rule.name}, {run.name}" if len(ladder.runs) > 1 else rule.name
            notes = [describe_left_out(values)]
            if values.metrics["giou"].method == NOT_DEFINED:
                notes.append(describe_others(values))
            note = "; ".join(text for text in notes if text)
            if note:
                console.print(f"[dim]{escape(name)}:[/] {escape(note)}")
