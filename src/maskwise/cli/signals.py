"""Signals that end `maskwise eval` and `maskwise train`: what is done is kept."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import typer

from maskwise.terminal import echo

SIGNALLED = 128
"""A program that a signal ends has this exit code plus the number of the signal."""


@contextlib.contextmanager
def ending_on_signals(folder: Path) -> Iterator[None]:
    """Let a signal end the program: the run folder keeps what is done, and a message says so."""
    try:
        with _terminated_like_ctrl_c():
            yield
    except KeyboardInterrupt as interrupt:
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
