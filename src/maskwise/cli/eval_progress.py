"""The progress of `maskwise eval`: a bar, and signals that end the program but keep what is done."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from maskwise.cli.output import make_progress
from maskwise.harness.progress import Progress
from maskwise.terminal import echo

SIGNALLED = 128
"""A program that a signal ends has this exit code plus the number of the signal."""


@contextlib.contextmanager
def evaluation_progress(folder: Path, *, quiet: bool) -> Iterator[dict[str, Any]]:
    """A progress bar, as arguments of `evaluate`. A signal ends the program and keeps what is done."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeRemainingColumn(),
        _Failures(),
    )
    with make_progress(*columns, quiet=quiet) as bars, _terminated_like_ctrl_c():
        bar = bars.add_task("opening", total=None, failed=0)

        def show_progress(progress: Progress) -> None:
            bars.update(
                bar,
                completed=progress.done,
                total=progress.total,
                failed=progress.failed,
            )

        def show_stage(stage: str) -> None:
            bars.update(bar, description=stage)

        try:
            yield {"on_progress": show_progress, "on_stage": show_stage}
        except KeyboardInterrupt as interrupt:
            bars.stop()
            echo(
                f"maskwise: stopped; {folder} keeps what is done: repeat the command to continue",
                err=True,
            )
            number = signal.SIGINT
            if isinstance(interrupt, _Terminated):
                number = interrupt.number
            raise typer.Exit(SIGNALLED + number) from None


class _Terminated(KeyboardInterrupt):
    """A signal asked the program to end."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__()
        self.number = number


@contextlib.contextmanager
def _terminated_like_ctrl_c() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP as Ctrl-C is handled: the model is closed, and what is done is kept."""

    def stop(number: int, _frame: object) -> None:
        raise _Terminated(signal.Signals(number))

    # Windows has no SIGHUP; only the main thread may set handlers.
    names = ("SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []
    handlers = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


class _Rate(ProgressColumn):
    """Questions per second."""

    def render(self, task: Task) -> Text:
        speed = f"{task.speed:.1f}/s" if task.speed else ""
        return Text(speed, style="progress.data.speed")


class _Failures(ProgressColumn):
    """How many questions failed, if any."""

    def render(self, task: Task) -> Text:
        failed = task.fields["failed"]
        return Text(f"{failed} failed" if failed else "", style="yellow")
