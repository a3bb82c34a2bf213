"""What `maskwise train --dry-run` prints: parameters, stages, data and memory."""

from collections.abc import Iterable

from rich.table import Table

from maskwise.console import make_console
from maskwise.terminal import echo
from maskwise.training.dry_run import DryRun


def print_dry_run(plan: DryRun) -> None:
    """Print one table per subject, then the notes."""
    console = make_console()
    console.print(_parameters_table(plan))
    console.print(_stages_table(plan))
    console.print(_sources_table(plan))
    console.print(_memory_table(plan))
    if plan.tokens:
        columns = ["percentile", "tokens"]
        console.print(_table("tokens per sample", columns, plan.tokens.items()))
    # Small models are not trained on GPUs.
    if plan.hours is not None and plan.hours >= 0.1:
        echo(f"time: about {plan.hours:,.1f} hours on one GPU")
    for note in plan.notes:
        echo(note)


def _parameters_table(plan: DryRun) -> Table:
    rows: list[tuple[object, ...]] = [
        (count.module, count.trainable, count.frozen) for count in plan.parameters
    ]
    trainable = sum(count.trainable for count in plan.parameters)
    frozen = sum(count.frozen for count in plan.parameters)
    rows.append(("total", trainable, frozen))
    return _table("parameters", ["module", "trainable", "frozen"], rows)


def _stages_table(plan: DryRun) -> Table:
    columns = ["stage", "steps", "batch size", "trainable parameters"]
    rows = [
        (stage.name, stage.steps, stage.batch_size, stage.trainable)
        for stage in plan.stages
    ]
    return _table("stages", columns, rows)


def _sources_table(plan: DryRun) -> Table:
    columns = ["source", "images", "samples", "samples drawn", "epochs"]
    rows = []
    for source in plan.sources:
        epochs = None if source.epochs is None else f"{source.epochs:.1f}"
        rows.append((source.name, source.images, source.samples, source.drawn, epochs))
    return _table("sources", columns, rows)


def _memory_table(plan: DryRun) -> Table:
    total = sum(plan.memory.values())
    rows = [
        (name, f"{size / 1e9:.2f}")
        for name, size in [*plan.memory.items(), ("total", total)]
    ]
    return _table("memory", ["per GPU, estimated", "GB"], rows)


def _table(title: str, columns: list[str], rows: Iterable[tuple[object, ...]]) -> Table:
    """A table whose first column has names, and the others numbers."""
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    for number, name in enumerate(columns):
        table.add_column(name, justify="right" if number else "left")
    for row in rows:
        table.add_row(*[_cell(value) for value in row])
    return table


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else str(value)
