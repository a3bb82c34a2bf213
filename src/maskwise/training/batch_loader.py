"""Batches that depend only on their number, prepared ahead, so that an interrupted run can continue exactly."""

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Batch = TypeVar("Batch")


def load_batches(
    make_batch: Callable[[int], Batch],
    first: int,
    stop: int,
    *,
    process: int = 0,
    processes: int = 1,
) -> Generator[Batch, None, None]:
    """The batches of steps `first` to `stop` - 1; a thread prepares the next batch while one is in use.

    With several processes, each gets batches of its own: number step * processes + process.
    """
    numbers = [step * processes + process for step in range(first, stop)]
    if not numbers:
        return
    # One thread: batches may share caches that are not safe for two.
    with ThreadPoolExecutor(1) as executor:
        pending = executor.submit(make_batch, numbers[0])
        for number in numbers[1:]:
            batch = pending.result()
            pending = executor.submit(make_batch, number)
            yield batch
        yield pending.result()
