"""How far a training run is, told to whoever shows it: the command line has bars.

    with reporting(show):
        trainer.train(config, folder)

`show(label, done, total, note)` is called after every step or item. Without `reporting`
nothing is shown.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Item = TypeVar("Item")

OnProgress = Callable[[str, int, int, str], None]
"""Called with what is done (a stage, or what is prepared), how much of it, of how much, and a note such as the loss."""

# A context variable rather than an argument of every function between the command line
# and the loop: trainers of other packages need not pass it on.
_on_progress: ContextVar[OnProgress | None] = ContextVar("on_progress", default=None)


@contextmanager
def reporting(on_progress: OnProgress) -> Iterator[None]:
    """Call `on_progress` while the block runs."""
    token = _on_progress.set(on_progress)
    try:
        yield
    finally:
        _on_progress.reset(token)


def report(label: str, done: int, total: int, note: str = "") -> None:
    """Say that `done` of `total` are done. note: what else is worth showing."""
    on_progress = _on_progress.get()
    if on_progress is not None:
        on_progress(label, done, total, note)


def track_items(items: Iterable[Item], label: str, total: int) -> Iterator[Item]:
    """The items, reported while they are used up: data that a run prepares before its
    first step.
    """
    report(label, 0, total)
    for number, item in enumerate(items, 1):
        yield item
        report(label, number, total)
