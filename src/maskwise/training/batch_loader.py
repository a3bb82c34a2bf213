"""Batches that depend only on their number, prepared ahead, so that an interrupted run can continue exactly."""

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def load_batches(
    make_batch: Callable[[int], Any],
    first: int,
    stop: int,
    *,
    process: int = 0,
    processes: int = 1,
) -> Generator[Any, None, None]:
    """The batches of steps `first` to `stop` - 1; a thread prepares the next batch while one is in use.

    With several processes, each gets batches of its own: number step * processes + process.
    """
    with ThreadPoolExecutor(1) as ahead:
        numbers = [step * processes + process for step in range(first, stop)]
        pending = [ahead.submit(make_batch, number) for number in numbers[:1]]
        for number in [*numbers[1:], None]:
            batch = pending.pop().result() if pending else None
            if number is not None:
                pending.append(ahead.submit(make_batch, number))
            if batch is not None:
                yield batch
