"""Progress bars on standard error; standard output may be read by a program."""

from collections.abc import Iterable
from typing import TypeVar

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    track,
)

from maskwise.console import make_console

Item = TypeVar("Item")


def training_progress(shown: bool) -> Progress:
    """The progress bar of the steps of a stage. shown: False in all processes but the first."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=make_console(stderr=True), disable=not shown)


def track_items(items: Iterable[Item], label: str, total: int) -> Iterable[Item]:
    """The items, with a progress bar while they are used up: data that a run prepares before its first step."""
    return track(items, label, total=total, console=make_console(stderr=True))
