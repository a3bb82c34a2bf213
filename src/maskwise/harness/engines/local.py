"""The local engine: one model in this process, the next images loaded by a thread while it works."""

import contextlib
from collections import deque
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from maskwise.harness.engines.worker import ImagePredictions, LoadedImage, Worker, WorkerConfig
from maskwise.harness.plan import Plan

AHEAD = 4
"""How many images are loaded before the model asks for them."""


def run_locally(
    job: WorkerConfig, plan: Plan, worker: Worker, *, shards: Path | None = None
) -> Generator[ImagePredictions, None, None]:
    """Answer a plan image by image; see the package for what an engine guarantees. It needs no shards."""
    with contextlib.closing(_load_ahead(plan, worker)) as images:
        for loaded in images:
            yield worker.answer(loaded)


def _load_ahead(plan: Plan, worker: Worker) -> Generator[LoadedImage, None, None]:
    loading: deque[Future[LoadedImage]] = deque()
    pool = ThreadPoolExecutor(1, "loading")
    try:
        for work in plan:
            loading.append(pool.submit(worker.load, work))
            if len(loading) > AHEAD:
                yield loading.popleft().result()
        while loading:
            yield loading.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
