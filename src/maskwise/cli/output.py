"""What commands print with: JSON in one form, and progress bars on standard error."""

from typing import Any

import msgspec
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from maskwise.console import make_console
from maskwise.terminal import echo


def print_json(value: Any) -> None:
    """Print records, dicts and lists as indented JSON, in UTF-8."""
    encoded = msgspec.json.encode(value)
    echo(msgspec.json.format(encoded, indent=2).decode())


def make_progress(*columns: ProgressColumn, quiet: bool = False) -> Progress:
    """A progress bar on standard error; by default with counts and the time that remains.

    It disappears when it is done, and is not shown where standard error is not a terminal: a log has messages only.
    """
    console = make_console(stderr=True)
    return Progress(
        *(columns or _counting_columns()),
        console=console,
        transient=True,
        disable=quiet or not console.is_terminal,
    )


def _counting_columns() -> list[ProgressColumn]:
    return [
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    ]
