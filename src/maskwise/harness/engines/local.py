"""The local engine: one model in this process, while a thread loads the next images."""

import contextlib
from collections import deque
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from maskwise.harness.engines.worker import LoadedImage, Worker, WorkerConfig
from maskwise.harness.plan import Plan
from maskwise.schema import Prediction

PREFETCH = 4
"""How many images are loaded before the model needs them."""


def run_locally(
    config: WorkerConfig, plan: Plan, worker: Worker, *, shards: Path | None = None
) -> Generator[list[Prediction], None, None]:
    """Predict a plan image by image; the package describes what an engine guarantees. It needs no shards."""
    with contextlib.closing(_load_images(plan, worker)) as images:
        for loaded in images:
            yield worker.predict(loaded)


def _load_images(plan: Plan, worker: Worker) -> Generator[LoadedImage, None, None]:
    loading: deque[Future[LoadedImage]] = deque()
    pool = ThreadPoolExecutor(1, "loading")
    try:
        for planned in plan:
            loading.append(pool.submit(worker.load, planned))
            if len(loading) > PREFETCH:
                yield loading.popleft().result()
        while loading:
            yield loading.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
