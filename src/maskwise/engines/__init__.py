"""Engines: where work is done, and by how many workers. The result is always the same.

    options = EngineOptions(engine="ray", workers=8)
    for result in run_job(job, items, options, worker=worker, shards=folder): ...
    for result in map_chunks(function, rows, options): ...
    launch_training(function, settings, options, folder=folder)

An engine knows nothing about models, datasets or recipes: a caller hands it functions.

| what is spread | function | local | ray |
|---|---|---|---|
| a `Job`: workers that are expensive to open, such as a model | `run_job` | `local.py` | `ray_workers.py`: actors |
| a function of some items, without state | `map_chunks` | `chunks.py` | `ray_tasks.py`: tasks |
| processes that train together | `launch_training` | accelerate, torchrun | `ray_training.py`: Ray Train |

`run_job` gets

- a `Job`: everything that is needed to do any part of the work on any machine;
- the items that remain, in order;
- a worker of the job that is open in this process. An engine that works elsewhere opens
  its own workers, and may close this one;
- `shards`: a folder for results that are made before it is their turn. It may exist,
  from an earlier attempt at the same items or more; the caller removes it when all
  items are done.

and returns a generator. It guarantees that

1. it yields one result per item, in the order of the items;
2. an item goes to one worker as a whole;
3. a result depends on the job and the item only: not on the worker, on earlier calls,
   or on timing, provided that the job's workers ensure this;
4. a failing item is a result (`EngineWorker.run` and `give_up` ensure this), never an
   exception. An exception ends the job: ModelGoneError, or a defect of the engine;
5. memory is bounded: it reads a few items ahead, not all of them;
6. it works only while the generator is consumed, plus its read-ahead, and releases
   everything when that is closed.

It writes nothing but shards: only the caller writes results, so an interrupted run
contains complete items and continues with the rest of them.
"""

import importlib
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from maskwise.engines.chunks import CHUNK, map_in_processes, split_into_chunks
from maskwise.engines.job import EngineWorker, Job
from maskwise.engines.local import run_in_process
from maskwise.engines.options import ENGINES, EngineName, EngineOptions
from maskwise.errors import MaskwiseError, MissingDependencyError

__all__ = [
    "ENGINES",
    "EngineName",
    "EngineOptions",
    "EngineWorker",
    "Job",
    "check_engine",
    "launch_training",
    "map_chunks",
    "run_job",
]

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_job(
    job: Job[Item, Result],
    items: Sequence[Item],
    options: EngineOptions,
    *,
    worker: EngineWorker[Item, Result],
    shards: Path,
) -> Generator[Result, None, None]:
    """One result per item, in order; the package lists the arguments and guarantees."""
    if options.engine == "ray":
        run_on_ray = _import_ray("maskwise.engines.ray_workers").run_on_ray
        results: Generator[Result, None, None]
        results = run_on_ray(job, items, options, worker=worker, shards=shards)
        return results
    return run_in_process(worker, items)


def check_engine(options: EngineOptions) -> None:
    """Refuse, before anything is opened, what `run_job` could not do."""
    if options.engine == "ray":
        _import_ray("maskwise.engines.ray_workers")
    elif options.workers not in (None, 1):
        # Several processes on one machine, each with a GPU of its own, belong here and
        # in `run_job`: `job.open_worker` in each, results in order.
        raise MaskwiseError(
            f"the local engine runs one worker, not {options.workers}; use --engine ray"
        )


def map_chunks(
    function: Callable[[Sequence[Item]], list[Result]],
    items: Sequence[Item],
    options: EngineOptions,
    *,
    size: int = CHUNK,
) -> Iterator[Result]:
    """The results of a function, in the order of the items.

    function: takes a few items, at most `size`, and returns one result for each; must be
    picklable, so that other processes can import it.
    """
    chunks = split_into_chunks(items, size)
    if options.engine == "ray":
        map_on_ray = _import_ray("maskwise.engines.ray_tasks").map_on_ray
        mapped = map_on_ray(function, chunks, options)
    else:
        mapped = map_in_processes(function, chunks, options.workers or 1)
    for results in mapped:
        yield from results


def launch_training(
    function: Callable[[dict[str, Any]], None],
    settings: dict[str, Any],
    options: EngineOptions,
    *,
    folder: Path,
    restarts: int = 0,
) -> None:
    """Call a function in every worker of a Ray Train run; they form a process group.

    function: must be picklable. settings: its argument, of plain values. folder: of the
    run, on a disk that all workers share. restarts: how often the workers are started
    again after a failure. MaskwiseError if training fails.
    """
    module = _import_ray("maskwise.engines.ray_training")
    module.train_on_ray(function, settings, options, folder=folder, restarts=restarts)


def _import_ray(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            "--engine ray", str(error.name), extra="ray"
        ) from error
