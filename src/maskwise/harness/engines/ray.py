"""The Ray engine: models in actors, on this machine or on a cluster, driven by Ray Data.

Each actor has a `Worker` of its own, reads the images itself and predicts a few images at a time, as the local engine
does. Predictions return as soon as they are made, in any order; those that are early wait in shards
(`maskwise.harness.engines.shards`). Only this process writes to the run folder, so it does not have to be on a shared
disk. The dataset has to be readable at the same path on every node.

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
from dataclasses import dataclass, field
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
from maskwise.harness.engines.worker import Worker, WorkerConfig
from maskwise.harness.plan import Plan, PlannedImage
from maskwise.runs.environment import available_cores
from maskwise.runs.files import hash_path
from maskwise.schema import Prediction
from maskwise.store.folder import MANIFEST

MAX_BLOCK = 32
"""Images that an actor gets at a time, at most. A worker that dies repeats no more than these."""

BLOCKS_PER_ACTOR = 32
"""Blocks per actor, at least, so that all actors finish at about the same time."""

IMAGES_PER_ROW = 4
"""Images whose predictions are sent size. By count, not by time: Ray assumes that a call that is repeated because its
worker died yields the same rows again, and skips as many as it already has.
"""

MAX_CRASHES = 3
"""How many workers may die at an image before it counts as failed."""

STORE_BYTES = 2**28
"""Size of the object store of a Ray started here; Ray Data stops distributing work before it is full."""

CONNECT_SECONDS = 10.0
"""How long an address is tried."""

QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
"""The output of workers stays in Ray's own logs."""


@dataclass(frozen=True)
class RayOptions:
    """address: of a cluster, None for this machine. actors: how many, None for as many as fit. cpus, gpus: what each
    actor reserves; gpus None reserves one if there are any. working_folder: of the actors.
    """

    address: str | None = None
    actors: int | None = None
    cpus: float = 1.0
    gpus: float | None = None
    working_folder: str = field(default_factory=os.getcwd)


class Fingerprint(NamedTuple):
    """What has to be equal on all nodes: SHA-256 of the dataset's manifest, and the hash of the weights if known."""

    dataset: str
    weights: str | None

    @classmethod
    def of(cls, worker: Worker) -> "Fingerprint":
        """The fingerprint of an open worker."""
        weights = getattr(worker.model, "weights_hash", None)
        return cls(hash_path(worker.dataset.path / MANIFEST), weights)


def make_engine(
    **options: Any,
) -> Callable[..., Generator[list[Prediction], None, None]]:
    """An engine on Ray; options are fields of RayOptions."""
    return functools.partial(run_on_ray, RayOptions(**options))


def run_on_ray(
    options: RayOptions,
    config: WorkerConfig,
    plan: Plan,
    worker: Worker,
    *,
    shards: Path,
) -> Generator[list[Prediction], None, None]:
    """Predict a plan on Ray; the package describes what an engine guarantees. shards: a folder for this plan only."""
    kept = Shards(shards)
    kept.recover(plan, worker.dataset.samples.id)
    rest = [planned for planned in plan if planned.image not in kept]
    with contextlib.ExitStack() as stack:
        arriving: Iterator[tuple[int, bytes]] = iter(())
        if rest:
            fingerprint = Fingerprint.of(worker)
            worker.close()  # it may occupy the memory of a GPU that an actor gets
            stack.enter_context(connected(options))
            stream = _predict_remotely(options, config, rest, fingerprint)
            arriving = stack.enter_context(contextlib.closing(stream))
        for planned in plan:
            yield wait_for(planned, arriving, kept)


def wait_for(
    planned: PlannedImage, arriving: Iterator[tuple[int, bytes]], kept: Shards
) -> list[Prediction]:
    """The predictions for one image; what arrives before them is kept."""
    while planned.image not in kept:
        found = next(arriving, None)
        if found is None:
            raise ModelGoneError("Ray ended before all images were predicted")
        image, line = found
        if image == planned.image:
            return decode_line(line)
        kept.add(image, line)
    return kept.pop(planned.image)


# -- in this process ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def connected(options: RayOptions) -> Iterator[None]:
    """A Ray to use: the one that this process is connected to, the one at an address, or a temporary one."""
    if options.address is not None:
        _check_address(options.address)
    if ray.is_initialized():
        yield
        return
    _silence_ray()
    place = "on this machine" if options.address is None else f"at {options.address}"
    try:
        if options.address is None:
            _start_here(options)
        else:
            _join(options.address)
    except Exception as error:  # Ray raises plain ones when it cannot start
        raise MaskwiseError(f"no Ray {place}: {_one_line(error)}") from error
    try:
        yield
    finally:
        ray.shutdown()


def _start_here(options: RayOptions) -> None:
    """Start a Ray for this process; it ends with the process."""
    ray.init(
        "local",
        num_cpus=max(
            available_cores(), math.ceil((options.actors or 1) * options.cpus)
        ),
        object_store_memory=STORE_BYTES,
        include_dashboard=False,
        runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(_module_paths())}},
        **QUIET,
    )


def _module_paths() -> Iterator[str]:
    """The module paths that a new process would not have, except those of this Python environment."""
    for path in dict.fromkeys(os.path.abspath(path) for path in sys.path):
        if not path.startswith((sys.prefix + os.sep, sys.base_prefix + os.sep)):
            yield path


def _join(address: str) -> None:
    """Connect to a cluster and send this maskwise: the nodes may have another version, or none."""
    ray.init(
        address,
        runtime_env={"py_modules": [str(Path(maskwise.__file__).parent)]},
        **QUIET,
    )


def _silence_ray() -> None:
    """No usage reports, and no output besides that of the run. Ray's own logs stay in its folder."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    log = logging.getLogger("ray.data")
    log.setLevel(logging.WARNING)
    for handler in log.handlers:
        if handler.name == "console":
            handler.setLevel(logging.CRITICAL)


def _check_address(address: str) -> None:
    """Refuse an address at which nothing listens, before Ray waits for minutes. `auto` is a cluster on this machine."""
    if address.startswith("ray://"):
        raise MaskwiseError(
            f"--ray-address {address}: this process writes the run, so it has to be on a node of the cluster: run "
            "the command there (or through `ray job submit`) with --ray-address auto"
        )
    host, sign, port = address.rpartition(":")
    if not sign and address == "auto":
        return
    if not host or not port.isdecimal():
        raise MaskwiseError(f"--ray-address {address}: expected HOST:PORT or auto")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise MaskwiseError(
            f"--ray-address {address} cannot be reached: {error}; is the cluster up (`ray status`)?"
        ) from error


def _predict_remotely(
    options: RayOptions,
    config: WorkerConfig,
    planned: Sequence[PlannedImage],
    fingerprint: Fingerprint,
) -> Generator[tuple[int, bytes], None, None]:
    """Rows of images with their predictions as lines, in the order in which they are made."""
    actors, gpus = _size_pool(options, len(planned))
    counter = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(
        CrashCounter
    ).remote()
    with ray.data.DataContext.current(_set_up_context()):
        images = ray.data.from_blocks(list(_make_blocks(planned, actors)))
    answers = images.map_batches(
        PredictActor,
        fn_constructor_kwargs={
            "config": config,
            "fingerprint": fingerprint,
            "counter": counter,
            "working_folder": options.working_folder,
        },
        batch_size=None,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(
            size=actors, max_tasks_in_flight_per_actor=2
        ),
        num_cpus=options.cpus,
        num_gpus=gpus,
    )
    batches = answers.iter_batches(
        batch_size=None, batch_format="pyarrow", prefetch_batches=1
    )
    try:
        with contextlib.closing(iter(batches)) as arriving:
            for batch in arriving:
                yield from _unpack(batch)
    except ray.exceptions.RayError as error:
        raise ModelGoneError(f"Ray stopped: {_one_line(error)}") from error


def _set_up_context() -> Any:
    """Ray Data's settings: every row is sent at once, and no more rows than fit into the store."""
    context = ray.data.DataContext.get_current().copy()
    context.target_max_block_size = 1
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.execution_no_progress_timeout_s = -1
    context.execution_options.preserve_order = False
    context.execution_options.resource_limits = (
        context.execution_options.resource_limits.copy(
            object_store_memory=STORE_BYTES // 2
        )
    )
    return context


def _size_pool(options: RayOptions, images: int) -> tuple[int, float]:
    """The number of actors, and the GPUs of each."""
    cluster: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call,unused-ignore]
    gpus = (
        options.gpus if options.gpus is not None else float(cluster.get("GPU", 0) >= 1)
    )
    limits = [cluster.get("CPU", 0) // options.cpus] if options.cpus else []
    limits += [cluster.get("GPU", 0) // gpus] if gpus else []
    capacity = int(min(limits)) if limits else available_cores()
    wanted = options.actors or capacity
    has = f"the cluster has {cluster.get('CPU', 0):g} CPUs and {cluster.get('GPU', 0):g} GPUs"
    if not wanted:
        raise MaskwiseError(
            f"no capacity for an actor with {options.cpus:g} CPUs and {gpus:g} GPUs: {has}"
        )
    if wanted > capacity:
        warnings.warn(
            f"{wanted} actors were asked for and {capacity} fit: {has}", stacklevel=2
        )
    return min(wanted, images), gpus


def _make_blocks(planned: Sequence[PlannedImage], actors: int) -> Iterator[pa.Table]:
    """Blocks of images, small enough to keep all actors busy until the end."""
    size = max(1, min(MAX_BLOCK, len(planned) // (BLOCKS_PER_ACTOR * actors)))
    for start in range(0, len(planned), size):
        part = planned[start : start + size]
        yield pa.table(
            {
                "image": pa.array([one.image for one in part], pa.int64()),
                "rows": pa.array([one.rows for one in part], pa.list_(pa.int64())),
            }
        )


def _unpack(batch: pa.Table) -> Iterator[tuple[int, bytes]]:
    for row in batch.to_pylist():
        yield from zip(row["images"], row["lines"])
        if row["gone"] is not None:
            raise ModelGoneError(row["gone"])


def _one_line(error: BaseException) -> str:
    """One line of an error: the first, or the last one of a worker's traceback."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1 if isinstance(error, ray.exceptions.RayTaskError) else 0]


# -- in the actors -----------------------------------------------------------------------------------------------------


class PredictActor:
    """An actor: a worker that predicts blocks of images and returns a few images per row."""

    def __init__(
        self,
        *,
        config: WorkerConfig,
        fingerprint: Fingerprint,
        counter: Any,
        working_folder: str,
    ) -> None:
        self.counter = counter
        self.worker: Worker | None = None
        self.gone: str | None = None
        if Path(working_folder).is_dir():
            # Relative paths in a model's options are relative to the folder of the command.
            os.chdir(working_folder)
        try:
            self._open(config, fingerprint)
        except MaskwiseError as error:
            self.gone = str(error)

    def __call__(self, block: pa.Table) -> Iterator[pa.Table]:
        """Predict one block. A model that ends the process counts as a crash."""
        planned = [
            PlannedImage(row["image"], tuple(row["rows"])) for row in block.to_pylist()
        ]
        lines: dict[int, bytes] = {}
        try:
            for one, predictions in self._predict(planned):
                lines[one.image] = encode_line(one.image, predictions)
                if len(lines) == IMAGES_PER_ROW:
                    yield _row(lines)
                    lines = {}
            if lines:
                yield _row(lines)
        except ModelGoneError as error:
            yield _row(lines, gone=str(error))
        except SystemExit:
            os._exit(1)

    def _open(self, config: WorkerConfig, fingerprint: Fingerprint) -> None:
        opening = f"open {ray.get_runtime_context().get_actor_id()}"  # a restarted actor keeps its id
        if self._begin(opening) > MAX_CRASHES:
            raise ModelGoneError(f"workers die while they open model {config.model!r}")
        self.worker = Worker(config)
        here = Fingerprint.of(self.worker)
        if here.dataset != fingerprint.dataset:
            raise StoreError(
                f"{config.dataset} on {socket.gethostname()} differs from the dataset where the run was started"
            )
        if here.weights != fingerprint.weights:
            raise ModelError(
                f"model {config.model!r} on {socket.gethostname()} has weights {here.weights}, "
                f"not {fingerprint.weights}"
            )
        self._end(opening)

    def _predict(
        self, planned: list[PlannedImage]
    ) -> Iterator[tuple[PlannedImage, list[Prediction]]]:
        if self.worker is None or self.gone is not None:
            raise ModelGoneError(self.gone or "no model")
        block = f"block {planned[0].image}"
        if self._begin(block) == 1:
            with contextlib.closing(
                run_locally(self.worker.config, _plan_of(planned), self.worker)
            ) as images:
                yield from zip(planned, images)
        else:
            for one in planned:
                yield one, self._predict_alone(self.worker, one)
        self._end(block)

    def _predict_alone(self, worker: Worker, planned: PlannedImage) -> list[Prediction]:
        """Predict one image of a block at which a worker died, unless workers died at this image before."""
        image = f"image {planned.image}"
        if self._begin(image) < MAX_CRASHES:
            predictions = worker.predict(worker.load(planned))
            self._end(image)
            return predictions
        return worker.fail(
            planned, f"the model's process died {MAX_CRASHES} times at this image"
        )

    def _begin(self, task: str) -> int:
        count: int = ray.get(self.counter.begin.remote(task))
        return count

    def _end(self, task: str) -> None:
        # Not awaited: the calls of one process arrive in order, so it is counted before the next start.
        self.counter.end.remote(task)


def _plan_of(planned: Sequence[PlannedImage]) -> Plan:
    counts = [len(one.rows) for one in planned]
    return Plan(
        np.array([one.image for one in planned], np.int64),
        np.array([row for one in planned for row in one.rows], np.int64),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
    )


def _row(lines: dict[int, bytes], *, gone: str | None = None) -> pa.Table:
    """Predictions as one row; gone: why there will be no more."""
    return pa.table(
        {
            "images": pa.array([list(lines)], pa.list_(pa.int64())),
            "lines": pa.array([list(lines.values())], pa.list_(pa.large_binary())),
            "gone": pa.array([gone], pa.string()),
        }
    )
