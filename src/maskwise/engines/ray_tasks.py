"""Functions without state, mapped over chunks of items by Ray tasks.

What the function reads has to be readable at the same path on every node. Ray repeats
the tasks of a worker that dies.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import ray

from maskwise.engines.options import EngineOptions
from maskwise.engines.ray_cluster import connected, one_line
from maskwise.errors import MaskwiseError
from maskwise.runs.environment import available_cores

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 2
"""Tasks per worker that are submitted before the first of them is done: a worker that
finishes has its next chunk already."""


def map_on_ray(
    function: Callable[[Sequence[Item]], list[Result]],
    chunks: Sequence[Sequence[Item]],
    options: EngineOptions,
) -> Iterator[list[Result]]:
    """The results of each chunk, in order; a bounded number of chunks is in work."""
    with connected(options):
        task: Any = ray.remote(
            num_cpus=options.cpus, num_gpus=options.gpus_per_worker or 0
        )(_call)
        remote_function = ray.put(function)
        limit = AHEAD * (options.workers or _capacity(options))
        running: deque[Any] = deque()
        try:
            for chunk in chunks:
                running.append(task.remote(remote_function, chunk))
                if len(running) == limit:
                    yield ray.get(running.popleft())
            while running:
                yield ray.get(running.popleft())
        except ray.exceptions.RayError as error:
            raise MaskwiseError(f"Ray stopped: {one_line(error)}") from error


def _capacity(options: EngineOptions) -> int:
    """Tasks that can run at the same time on the cluster."""
    cluster: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call,unused-ignore]
    if not options.cpus:
        return available_cores()
    return max(1, int(cluster.get("CPU", 0) // options.cpus))


def _call(
    function: Callable[[Sequence[Item]], list[Result]], chunk: Sequence[Item]
) -> list[Result]:
    return function(chunk)
