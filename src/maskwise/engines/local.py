"""The local engine: one worker in this process, while a thread loads the next items."""

import contextlib
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from maskwise.engines.job import EngineWorker

Item = TypeVar("Item")
Result = TypeVar("Result")

PREFETCH = 4
"""Items that are loaded before the worker needs them: enough to hide a slow image among
fast ones, few enough to hold them decoded in memory."""


def run_in_process(
    worker: EngineWorker[Item, Result], items: Iterable[Item]
) -> Generator[Result, None, None]:
    """Do items one after the other; the package lists what an engine guarantees."""
    with contextlib.closing(_load_ahead(worker, items)) as loaded_items:
        yield from worker.run_all(loaded_items)


def _load_ahead(
    worker: EngineWorker[Item, Result], items: Iterable[Item]
) -> Generator[Any, None, None]:
    """What the worker loads for each item, in order."""
    # While the worker does a batch, the next one is loaded.
    prefetch = max(PREFETCH, worker.batch_size)
    loading: deque[Future[Any]] = deque()
    pool = ThreadPoolExecutor(1, "loading")
    try:
        for item in items:
            loading.append(pool.submit(worker.load, item))
            if len(loading) > prefetch:
                yield loading.popleft().result()
        while loading:
            yield loading.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
