"""Jobs on Ray: workers in actors, on this machine or on a cluster, driven by Ray Data.

Each actor opens a worker of its own, which reads its items itself and does a few of
them at a time, as the local engine does. Results return as soon as they are made, in
any order; those that are early wait in shards (`maskwise.engines.shards`). Only this
process writes to the run folder, so that does not have to be on a shared disk. What the
workers read has to be readable at the same path on every node.

Ray restarts a worker that dies and repeats its unfinished items. A `CrashCounter`
outlives the workers: items that were unfinished when a worker died are then done one by
one, and an item at which workers die repeatedly is given up. docs/guides/scale.md shows the
commands.
"""

import contextlib
import logging
import os
import pickle
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import ray
import ray.data

from maskwise.engines.crash_counter import CrashCounter
from maskwise.engines.job import EngineWorker, Job
from maskwise.engines.local import run_in_process
from maskwise.engines.options import EngineOptions
from maskwise.engines.ray_cluster import STORE_BYTES, connected, one_line
from maskwise.engines.shards import Shards
from maskwise.errors import MaskwiseError, ModelGoneError
from maskwise.runs.environment import available_cores

log = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_BLOCK = 32
"""Items that an actor gets at a time, at most. A worker that dies repeats no more than
these."""

BLOCKS_PER_WORKER = 32
"""Blocks per worker, at least, so that all workers finish at about the same time."""

ITEMS_PER_ROW = 4
"""Items whose results are sent together. By count, not by time: Ray assumes that a call
that is repeated because its worker died yields the same rows again, and skips as many
as it already has.
"""

MAX_CRASHES = 3
"""How many workers may die at an item before it is given up: once may be chance, such
as a node that ran out of memory."""


def run_on_ray(
    job: Job[Item, Result],
    items: Sequence[Item],
    options: EngineOptions,
    *,
    worker: EngineWorker[Item, Result],
    shards: Path,
) -> Generator[Result, None, None]:
    """`run_job` on Ray. shards: a folder for these items only."""
    kept = Shards(shards)
    recover_shards(kept, job, items, worker)
    rest = [item for item in items if job.key(item) not in kept]
    log.info("%d of %d items are to be done on Ray", len(rest), len(items))
    with contextlib.ExitStack() as stack:
        arriving: Iterator[tuple[int, bytes]] = iter(())
        if rest:
            worker.close()  # it may occupy the memory of a GPU that an actor gets
            stack.enter_context(connected(options))
            batch_size = worker.batch_size
            stream = _run_remotely(job, rest, options, batch_size=batch_size)
            arriving = stack.enter_context(contextlib.closing(stream))
        for item in items:
            yield job.decode(wait_for(job.key(item), arriving, kept))


def recover_shards(
    shards: Shards,
    job: Job[Item, Result],
    items: Sequence[Item],
    worker: EngineWorker[Item, Result],
) -> None:
    """Use the results of an earlier attempt that are results of these items."""
    if not shards.folder.is_dir():
        return
    item_of_key = {job.key(item): item for item in items}

    def accept(key: int, content: bytes) -> bool:
        if key not in item_of_key:
            return False
        try:
            result = job.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, MaskwiseError):
            return False
        return worker.is_result_of(result, item_of_key[key])

    shards.recover(accept)


def wait_for(key: int, arriving: Iterator[tuple[int, bytes]], kept: Shards) -> bytes:
    """The encoded result of one item; what arrives before it is kept."""
    while key not in kept:
        arrival = next(arriving, None)
        if arrival is None:
            raise ModelGoneError("Ray ended before all items were done")
        arrived_key, result = arrival
        if arrived_key == key:
            return result
        kept.add(arrived_key, result)
    return kept.pop(key)


# -- in this process -------------------------------------------------------------------


def _run_remotely(
    job: Job[Item, Result],
    items: Sequence[Item],
    options: EngineOptions,
    *,
    batch_size: int,
) -> Generator[tuple[int, bytes], None, None]:
    """Keys of items with their encoded results, in the order in which they are made."""
    gpus = _gpus_per_worker(options)
    workers = _count_workers(options, gpus, len(items))
    log.info("%d workers with %g CPUs and %g GPUs each", workers, options.cpus, gpus)
    counter = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(
        CrashCounter
    ).remote()
    with ray.data.DataContext.current(_set_up_context()):
        blocks = ray.data.from_blocks(list(_make_blocks(items, workers, batch_size)))
    results = blocks.map_batches(
        WorkerActor,
        fn_constructor_kwargs={
            "job": job,
            "counter": counter,
            "working_folder": os.getcwd(),
        },
        batch_size=None,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(
            size=workers, max_tasks_in_flight_per_actor=2
        ),
        num_cpus=options.cpus,
        num_gpus=gpus,
    )
    batches = results.iter_batches(
        batch_size=None, batch_format="pyarrow", prefetch_batches=1
    )
    try:
        with contextlib.closing(iter(batches)) as arriving:
            for batch in arriving:
                yield from _unpack(batch)
    except ray.exceptions.RayError as error:
        raise ModelGoneError(f"Ray stopped: {one_line(error)}") from error


def _set_up_context() -> Any:
    """Ray Data's settings: every row is sent at once, and no more rows than fit into
    the store.
    """
    context = ray.data.DataContext.get_current().copy()
    context.target_max_block_size = 1
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.execution_no_progress_timeout_s = -1
    execution = context.execution_options
    execution.preserve_order = False
    # Half of the store: the other half is for blocks that are being consumed.
    execution.resource_limits = execution.resource_limits.copy(
        object_store_memory=STORE_BYTES // 2
    )
    return context


def _cluster_resources() -> dict[str, float]:
    resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call,unused-ignore]
    return resources


def _gpus_per_worker(options: EngineOptions) -> float:
    """As asked for, or one if the cluster has any."""
    if options.gpus_per_worker is not None:
        return options.gpus_per_worker
    return 1.0 if _cluster_resources().get("GPU", 0) >= 1 else 0.0


def _count_workers(options: EngineOptions, gpus: float, items: int) -> int:
    """How many workers to start: as asked for, or as many as fit; never more than items."""
    cluster = _cluster_resources()
    cluster_cpus = cluster.get("CPU", 0)
    cluster_gpus = cluster.get("GPU", 0)
    limits = []
    if options.cpus:
        limits.append(cluster_cpus // options.cpus)
    if gpus:
        limits.append(cluster_gpus // gpus)
    capacity = int(min(limits)) if limits else available_cores()
    wanted = options.workers or capacity
    resources = f"the cluster has {cluster_cpus:g} CPUs and {cluster_gpus:g} GPUs"
    if not wanted:
        raise MaskwiseError(
            f"no capacity for a worker with {options.cpus:g} CPUs and {gpus:g} GPUs: "
            f"{resources}"
        )
    if wanted > capacity:
        log.warning(
            "%d workers were asked for and %d fit: %s", wanted, capacity, resources
        )
    return min(wanted, items)


def _make_blocks(
    items: Sequence[Item], workers: int, batch_size: int
) -> Iterator[pa.Table]:
    """Blocks of items, small enough to keep all workers busy until the end, and large
    enough to fill a batch.
    """
    size_for_even_end = len(items) // (BLOCKS_PER_WORKER * workers)
    size = max(batch_size, min(MAX_BLOCK, size_for_even_end))
    for start in range(0, len(items), size):
        pickled = [pickle.dumps(item) for item in items[start : start + size]]
        yield pa.table({"item": pa.array(pickled, pa.large_binary())})


def _unpack(batch: pa.Table) -> Iterator[tuple[int, bytes]]:
    for row in batch.to_pylist():
        yield from zip(row["keys"], row["results"])
        if row["gone"] is not None:
            raise ModelGoneError(row["gone"])


# -- in the actors ---------------------------------------------------------------------


class WorkerActor:
    """An actor: a worker that does blocks of items and returns a few results per row."""

    def __init__(
        self, *, job: Job[Any, Any], counter: Any, working_folder: str
    ) -> None:
        self.job = job
        self.counter = counter
        self.worker: EngineWorker[Any, Any] | None = None
        self.gone: str | None = None
        if Path(working_folder).is_dir():
            # Relative paths in a job are relative to the folder of the command.
            os.chdir(working_folder)
        try:
            self._open()
        except MaskwiseError as error:
            # Ray would start an actor that fails again and again: the next block
            # returns the reason instead.
            self.gone = str(error)

    def __call__(self, block: pa.Table) -> Iterator[pa.Table]:
        """Do one block. A worker that ends the process counts as a crash."""
        items = [pickle.loads(pickled) for pickled in block["item"].to_pylist()]
        results: dict[int, bytes] = {}
        try:
            for item, result in self._run(items):
                results[self.job.key(item)] = self.job.encode(result)
                if len(results) == ITEMS_PER_ROW:
                    yield _row(results)
                    results = {}
            if results:
                yield _row(results)
        except ModelGoneError as error:
            yield _row(results, gone=str(error))
        except SystemExit:
            os._exit(1)

    def _open(self) -> None:
        actor_id = ray.get_runtime_context().get_actor_id()  # the same after a restart
        opening = f"open {actor_id}"
        if self._begin(opening) > MAX_CRASHES:
            raise ModelGoneError(f"workers die while they open {self.job.name}")
        self.worker = self.job.open_worker()
        self._end(opening)

    def _run(self, items: list[Any]) -> Iterator[tuple[Any, Any]]:
        if self.worker is None or self.gone is not None:
            raise ModelGoneError(self.gone or f"{self.job.name} is not open")
        block = f"block {self.job.key(items[0])}"
        if self._begin(block) == 1:
            with contextlib.closing(run_in_process(self.worker, items)) as results:
                yield from zip(items, results)
        else:
            for item in items:
                yield item, self._run_alone(self.worker, item)
        self._end(block)

    def _run_alone(self, worker: EngineWorker[Any, Any], item: Any) -> Any:
        """Do one item of a block at which a worker died, unless workers died at this
        item before.
        """
        task = f"item {self.job.key(item)}"
        if self._begin(task) < MAX_CRASHES:
            result = worker.run(worker.load(item))
            self._end(task)
            return result
        return worker.give_up(item, MAX_CRASHES)

    def _begin(self, task: str) -> int:
        count: int = ray.get(self.counter.begin.remote(task))
        return count

    def _end(self, task: str) -> None:
        # Not awaited: the calls of one process arrive in order, so it is counted before
        # the next start.
        self.counter.end.remote(task)


def _row(results: dict[int, bytes], *, gone: str | None = None) -> pa.Table:
    """Results as one row; gone: why there will be no more."""
    return pa.table(
        {
            "keys": pa.array([list(results)], pa.list_(pa.int64())),
            "results": pa.array([list(results.values())], pa.list_(pa.large_binary())),
            "gone": pa.array([gone], pa.string()),
        }
    )
