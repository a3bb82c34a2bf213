"""Progress on standard error: a bar in terminals and notebooks, lines in logs.

    with make_progress() as bars:
        bar = bars.add_task("predicting", total=100, failed=0)
        bars.update(bar, advance=1)

Where there is no terminal, such as in the log of a scheduler, a line is printed at least
every LINE_SECONDS:

    maskwise: predicting: 120 of 600, 3 failed, 4.1/s, 1:57 left
"""

import datetime
import importlib.util
import sys
import threading
from typing import Any

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from maskwise.console import make_console
from maskwise.terminal import safe_text

LINE_SECONDS = 30.0
"""Time between two lines of a log: often enough to see that the work goes on, seldom
enough for a log of days (2,880 lines per day)."""

SPEED_SECONDS = 300.0
"""Time over which the speed is measured. Lines come every 30 s, so the 30 s that bars use
would hold too few steps of a slow model."""


def make_progress(
    *columns: ProgressColumn, quiet: bool = False, transient: bool = True
) -> Progress:
    """Bars or lines on standard error, used in a `with` block. quiet: nothing is shown.

    columns: of a bar; by default counts and the time that remains. transient: bars
    disappear when they are done. Tasks may have a field `failed`, how many items failed.
    """
    console = make_console(stderr=True)
    shown_columns = columns or (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    # rich draws bars in notebooks with the help of ipywidgets.
    has_widgets = importlib.util.find_spec("ipywidgets") is not None
    if quiet:
        return Progress(*shown_columns, console=console, disable=True)
    if console.is_terminal or (console.is_jupyter and has_widgets):
        return Progress(*shown_columns, console=console, transient=transient)
    return ProgressLines(console=console, disable=True)


class ProgressLines(Progress):
    """Progress without bars: a thread prints a line per unfinished task.

    The thread also prints while one item takes long, so that a reader of the log sees
    that the process lives.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, speed_estimate_period=SPEED_SECONDS)
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to print."""
        self._ended.clear()
        self._thread = threading.Thread(
            target=self._print_until_ended, daemon=True, name="progress"
        )
        self._thread.start()

    def stop(self) -> None:
        """Print no more lines."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _print_until_ended(self) -> None:
        while not self._ended.wait(LINE_SECONDS):
            for task in self.tasks:
                if not task.finished:
                    line = safe_text(describe_task(task))
                    print(f"maskwise: {line}", file=sys.stderr, flush=True)


def describe_task(task: Task) -> str:
    """How far a task is, on one line; time so far where its length is unknown."""
    if task.total is None:
        elapsed = datetime.timedelta(seconds=int(task.elapsed or 0))
        return f"{task.description}: {elapsed} so far"
    parts = [f"{task.completed:,.0f} of {task.total:,.0f}"]
    if task.fields.get("failed"):
        parts.append(f"{task.fields['failed']:,} failed")
    if task.speed:
        parts.append(format_rate(task.speed))
    if task.time_remaining is not None:
        parts.append(f"{datetime.timedelta(seconds=int(task.time_remaining))} left")
    return f"{task.description}: {', '.join(parts)}"


def format_rate(speed: float) -> str:
    """Items per second, or per minute for slow ones."""
    if speed >= 1.0:
        return f"{speed:.1f}/s"
    return f"{60 * speed:.1f}/min"


class RateColumn(ProgressColumn):
    """Items per second."""

    def render(self, task: Task) -> Text:
        """The speed; nothing before it is known."""
        rate = format_rate(task.speed) if task.speed else ""
        return Text(rate, style="progress.data.speed")


class FailureColumn(ProgressColumn):
    """How many items failed, if any."""

    def render(self, task: Task) -> Text:
        """The count; nothing if none failed."""
        failed = task.fields["failed"]
        return Text(f"{failed:,} failed" if failed else "", style="yellow")
