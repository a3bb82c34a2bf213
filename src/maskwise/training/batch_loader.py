"""Batches that depend only on their number, prepared ahead, so that an interrupted run can continue exactly."""

from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Batch = TypeVar("Batch")


def load_batches(
    make_batch: Callable[[int], Batch],
    first: int,
    stop: int,
    *,
    process: int = 0,
    processes: int = 1,
    workers: int = 1,
) -> Generator[Batch, None, None]:
    """The batches of steps `first` to `stop` - 1; threads prepare the next `workers` batches while one is in use.

    With several processes, each gets batches of its own: number step * processes + process.
    """
    numbers = [step * processes + process for step in range(first, stop)]
    with ThreadPoolExecutor(workers) as executor:
        pending: deque[Future[Batch]] = deque()
        for number in numbers:
            pending.append(executor.submit(make_batch, number))
            if len(pending) > workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
