"""The Ray engine: models in actors, on this machine or on a cluster, fed and awaited by Ray Data.

Each actor holds a `Worker` of its own and answers a few images at a time as the local engine does; it reads the
images itself. Answers come back as soon as they are done, in any order; those before their turn lie in
shards (`maskwise.harness.engines.shards`) until it comes. Nothing but this process writes to the run folder, so no disk
has to be shared for it; the dataset has to be readable at the same path on every node.

Ray restarts a worker that dies and repeats its unfinished images. A `CrashCounter` outlives the workers: images that
were unfinished when a worker died are then predicted one by one, and an image at which workers die repeatedly counts as
failed. docs/scale.md shows the commands.
"""

import contextlib
import functools
import logging
import math
import os
import socket
import sys
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import ray
import ray.data

import maskwise
from maskwise.errors import MaskwiseError, ModelError, ModelGoneError, StoreError
from maskwise.harness.engines.crash_counter import CrashCounter
from maskwise.harness.engines.local import run_locally
from maskwise.harness.engines.shards import Shards, decode_line, encode_line
from maskwise.harness.engines.worker import ImagePredictions, Worker, WorkerConfig
from maskwise.harness.plan import Plan, PlannedImage
from maskwise.harness.runs import hash_path
from maskwise.harness.session import usable_threads
from maskwise.store.folder import MANIFEST

TOGETHER = 32
"""Most images given to an actor at a time. A worker that dies repeats no more than these."""

TURNS = 32
"""How often, at least, an actor is given some: so that none has much to do when the others are done."""

SENT = 4
"""Images whose answers travel together. By count, not by time: Ray takes a call that is repeated because its worker
died to give the same rows once more, and leaves out as many as it had.
"""

MAX_DEATHS = 3
"""How many workers may die at an image before it counts as failed."""

STORE_BYTES = 2**28
"""Answers on their way, on a Ray started here; Ray Data stops giving out work before they are more."""

REACH_SECONDS = 10.0
"""How long an address is tried."""

QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
"""What workers print stays in Ray's own logs."""


@dataclass(frozen=True)
class RayOptions:
    """Who works. address: of a cluster, None for this machine; actors: how many, None for as many as there is room for;
    cpus, gpus: what each of them claims; gpus None claims one where there are any.
    """

    address: str | None = None
    actors: int | None = None
    cpus: float = 1.0
    gpus: float | None = None


class Facts(NamedTuple):
    """What has to be the same everywhere: SHA-256 of the dataset's manifest, and of the weights where known."""

    dataset: str
    weights: str | None

    @classmethod
    def of(cls, worker: Worker) -> "Facts":
        """The facts of an open worker."""
        weights = getattr(worker.model, "weights_hash", None)
        return cls(hash_path(worker.dataset.path / MANIFEST), weights)


def make_engine(**options: Any) -> Callable[..., Generator[ImagePredictions, None, None]]:
    """An engine on Ray; options are fields of RayOptions."""
    return functools.partial(run_on_ray, RayOptions(**options))


def run_on_ray(
    crew: RayOptions, job: WorkerConfig, plan: Plan, worker: Worker, *, shards: Path
) -> Generator[ImagePredictions, None, None]:
    """Answer a plan with a crew; see the package for what an engine guarantees. shards: a folder of this plan's own."""
    kept = Shards(shards)
    kept.recall(plan, worker.dataset.samples.id)
    rest = [work for work in plan if work.image not in kept]
    with contextlib.ExitStack() as stack:
        arriving: Iterator[tuple[int, bytes]] = iter(())
        if rest:
            facts = Facts.of(worker)
            worker.close()  # it may hold the memory of a GPU that an actor is given
            stack.enter_context(connected(crew))
            images = job.images.resolve() if job.images else None
            everywhere = replace(job, dataset=job.dataset.resolve(), images=images)
            stream = _answer_anywhere(crew, everywhere, rest, facts)
            arriving = stack.enter_context(contextlib.closing(stream))
        for work in plan:
            yield wait_for(work, arriving, kept)


def wait_for(work: PlannedImage, arriving: Iterator[tuple[int, bytes]], kept: Shards) -> ImagePredictions:
    """The answer to one image; what arrives before it is kept."""
    while work.image not in kept:
        found = next(arriving, None)
        if found is None:
            raise ModelGoneError("Ray ended before all images were answered")
        image, line = found
        if image == work.image:
            return decode_line(line)
        kept.keep(image, line)
    return kept.take(work.image)


# -- in this process ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def connected(crew: RayOptions) -> Iterator[None]:
    """A Ray to work on: the one this process has joined already, that of an address, or one started for the while."""
    if crew.address is not None:
        _check_address(crew.address)
    if ray.is_initialized():
        yield
        return
    _hush()
    place = "on this machine" if crew.address is None else f"at {crew.address}"
    try:
        if crew.address is None:
            _start_here(crew)
        else:
            _join(crew.address)
    except Exception as error:  # Ray raises plain ones when it cannot start
        raise MaskwiseError(f"no Ray {place}: {_gist(error)}") from error
    try:
        yield
    finally:
        ray.shutdown()


def _start_here(crew: RayOptions) -> None:
    """Start a Ray of this process' own; it ends with it."""
    ray.init(
        "local",
        num_cpus=max(usable_threads(), math.ceil((crew.actors or 1) * crew.cpus)),
        object_store_memory=STORE_BYTES,
        include_dashboard=False,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(_module_paths())}},
        **QUIET,
    )


def _module_paths() -> Iterator[str]:
    """Where this process finds modules and a fresh one would not: models of other environments must not find ours."""
    for path in dict.fromkeys(os.path.abspath(path) for path in sys.path):
        if not path.startswith((sys.prefix + os.sep, sys.base_prefix + os.sep)):
            yield path


def _join(address: str) -> None:
    """Join a cluster, and bring this maskwise along: the nodes may have another, or none."""
    ray.init(address, runtime_env={"py_modules": [str(Path(maskwise.__file__).parent)]}, **QUIET)


def _hush() -> None:
    """No reports home, nothing on the screen but what the run itself says. Ray's own logs stay in its folder."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    log = logging.getLogger("ray.data")
    log.setLevel(logging.WARNING)
    for handler in log.handlers:
        if handler.name == "console":
            handler.setLevel(logging.CRITICAL)


def _check_address(address: str) -> None:
    """Refuse, before Ray waits for minutes, an address nobody listens at. `auto` is a cluster on this machine."""
    if address.startswith("ray://"):
        raise MaskwiseError(
            f"--ray-address {address}: the run goes on in this process, so it has to be on a node of the cluster: give "
            "the command there (or through `ray job submit`) with --ray-address auto"
        )
    host, sign, port = address.rpartition(":")
    if not sign and address == "auto":
        return
    if not host or not port.isdecimal():
        raise MaskwiseError(f"--ray-address {address}: expected HOST:PORT or auto")
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACH_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise MaskwiseError(
            f"--ray-address {address} cannot be reached: {error}; is the cluster up (`ray status`)?"
        ) from error


def _answer_anywhere(
    crew: RayOptions, job: WorkerConfig, works: Sequence[PlannedImage], facts: Facts
) -> Generator[tuple[int, bytes], None, None]:
    """Rows of images with their answers as lines, in the order they are done."""
    actors, gpus = _size_crew(crew, len(works))
    tally = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(CrashCounter).remote()
    with ray.data.DataContext.current(_set_up_context()):
        images = ray.data.from_blocks(list(_cut(works, actors)))
    answers = images.map_batches(
        PredictActor,
        fn_constructor_kwargs={"job": job, "facts": facts, "tally": tally, "place": os.getcwd()},
        batch_size=None,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=actors, max_tasks_in_flight_per_actor=2),
        num_cpus=crew.cpus,
        num_gpus=gpus,
    )
    batches = answers.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=1)
    try:
        with contextlib.closing(iter(batches)) as arriving:
            for batch in arriving:
                yield from _unpack(batch)
    except ray.exceptions.RayError as error:
        raise ModelGoneError(f"Ray stopped: {_gist(error)}") from error


def _set_up_context() -> Any:
    """Ray Data's settings for these answers: every row is sent at once, and no more than fit the store."""
    context = ray.data.DataContext.get_current().copy()
    context.target_max_block_size = 1
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.execution_no_progress_timeout_s = -1
    context.execution_options.preserve_order = False
    context.execution_options.resource_limits = context.execution_options.resource_limits.copy(
        object_store_memory=STORE_BYTES // 2
    )
    return context


def _size_crew(crew: RayOptions, images: int) -> tuple[int, float]:
    """How many actors there will be, and the GPUs of each."""
    there = ray.cluster_resources()
    gpus = crew.gpus if crew.gpus is not None else float(there.get("GPU", 0) >= 1)
    rooms = [there.get("CPU", 0) // crew.cpus] if crew.cpus else []
    rooms += [there.get("GPU", 0) // gpus] if gpus else []
    room = int(min(rooms)) if rooms else usable_threads()
    wanted = crew.actors or room
    has = f"the cluster has {there.get('CPU', 0):g} CPUs and {there.get('GPU', 0):g} GPUs"
    if not wanted:
        raise MaskwiseError(f"no room for an actor with {crew.cpus:g} CPUs and {gpus:g} GPUs: {has}")
    if wanted > room:
        warnings.warn(f"{wanted} actors were asked for and {room} have room: {has}", stacklevel=2)
    return min(wanted, images), gpus


def _cut(works: Sequence[PlannedImage], actors: int) -> Iterator[pa.Table]:
    """Blocks of images, small enough that all actors have some to the end."""
    together = max(1, min(TOGETHER, len(works) // (TURNS * actors)))
    for start in range(0, len(works), together):
        part = works[start : start + together]
        yield pa.table(
            {
                "image": pa.array([work.image for work in part], pa.int64()),
                "rows": pa.array([work.rows for work in part], pa.list_(pa.int64())),
            }
        )


def _unpack(batch: pa.Table) -> Iterator[tuple[int, bytes]]:
    for row in batch.to_pylist():
        yield from zip(row["images"], row["lines"])
        if row["gone"] is not None:
            raise ModelGoneError(row["gone"])


def _gist(error: BaseException) -> str:
    """One line: the first, or the last of what comes with the traceback of a worker."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1 if isinstance(error, ray.exceptions.RayTaskError) else 0]


# -- in the actors -----------------------------------------------------------------------------------------------------


class PredictActor:
    """What an actor does: a worker that answers blocks of images, the answers a few to a row."""

    def __init__(self, *, job: WorkerConfig, facts: Facts, tally: Any, place: str) -> None:
        self.tally = tally
        self.worker: Worker | None = None
        self.gone: str | None = None
        if Path(place).is_dir():
            # Relative paths in a model's options mean what they mean in the command.
            os.chdir(place)
        try:
            self._open(job, facts)
        except MaskwiseError as error:
            self.gone = str(error)

    def __call__(self, block: pa.Table) -> Iterator[pa.Table]:
        """Answer one block. Where the model ends the process it counts as a death."""
        works = [PlannedImage(row["image"], tuple(row["rows"])) for row in block.to_pylist()]
        lines: dict[int, bytes] = {}
        try:
            for work, answered in self._answer(works):
                lines[work.image] = encode_line(work.image, answered)
                if len(lines) == SENT:
                    yield _row(lines)
                    lines = {}
            if lines:
                yield _row(lines)
        except ModelGoneError as error:
            yield _row(lines, gone=str(error))
        except SystemExit:
            os._exit(1)

    def _open(self, job: WorkerConfig, facts: Facts) -> None:
        opening = f"open {ray.get_runtime_context().get_actor_id()}"  # an actor started again keeps its id
        if self._begin(opening) > MAX_DEATHS:
            raise ModelGoneError(f"workers die while they open model {job.model!r}")
        self.worker = Worker(job)
        here = Facts.of(self.worker)
        if here.dataset != facts.dataset:
            raise StoreError(
                f"{job.dataset} on {socket.gethostname()} is not the dataset it is where the run began"
            )
        if here.weights != facts.weights:
            raise ModelError(
                f"model {job.model!r} on {socket.gethostname()} has weights {here.weights}, not {facts.weights}"
            )
        self._end(opening)

    def _answer(self, works: list[PlannedImage]) -> Iterator[tuple[PlannedImage, ImagePredictions]]:
        if self.worker is None or self.gone is not None:
            raise ModelGoneError(self.gone or "no model")
        block = f"block {works[0].image}"
        if self._begin(block) == 1:
            with contextlib.closing(run_locally(self.worker.job, _plan_of(works), self.worker)) as answers:
                yield from zip(works, answers)
        else:
            for work in works:
                yield work, self._answer_carefully(self.worker, work)
        self._end(block)

    def _answer_carefully(self, worker: Worker, work: PlannedImage) -> ImagePredictions:
        """Answer an image alone, if workers did not die at it before: one death was seen by its whole block."""
        image = f"image {work.image}"
        if self._begin(image) < MAX_DEATHS:
            answered = worker.answer(worker.load(work))
            self._end(image)
            return answered
        return worker.fail(work, f"the model's process died {MAX_DEATHS} times at this image")

    def _begin(self, what: str) -> int:
        count: int = ray.get(self.tally.begin.remote(what))
        return count

    def _end(self, what: str) -> None:
        # Not awaited: calls of one process arrive in order, so it is counted before the next beginning.
        self.tally.end.remote(what)


def _plan_of(works: Sequence[PlannedImage]) -> Plan:
    counts = [len(work.rows) for work in works]
    return Plan(
        np.array([work.image for work in works], np.int64),
        np.array([row for work in works for row in work.rows], np.int64),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
    )


def _row(lines: dict[int, bytes], *, gone: str | None = None) -> pa.Table:
    """Answers on their way, as one row; gone: why there will be no more."""
    return pa.table(
        {
            "images": pa.array([list(lines)], pa.list_(pa.int64())),
            "lines": pa.array([list(lines.values())], pa.list_(pa.large_binary())),
            "gone": pa.array([gone], pa.string()),
        }
    )
