"""The Ray engine of builds: chunks of images as Ray tasks, on this machine or on a cluster.

The source dataset has to be readable at the same path on every node. Ray repeats the tasks of a worker that dies.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import ray

from maskwise.errors import MaskwiseError
from maskwise.harness.engines.ray import RayOptions, connected

if TYPE_CHECKING:
    from maskwise.builder.engines import EngineOptions

T = TypeVar("T")

AHEAD = 2
"""Tasks per worker that are submitted before the first of them is done."""


def map_on_ray(
    function: Callable[[Sequence[int]], list[T]],
    chunks: Sequence[Sequence[int]],
    options: "EngineOptions",
) -> Iterator[list[T]]:
    """The results of a function for each chunk, in order; a bounded number of chunks is in work."""
    with connected(RayOptions(address=options.ray_address, actors=options.workers)):
        task: Any = ray.remote(num_cpus=1)(_call)
        work = ray.put(function)
        running: deque[Any] = deque()
        waiting = iter(chunks)
        try:
            for chunk in waiting:
                running.append(task.remote(work, chunk))
                if len(running) == AHEAD * options.workers:
                    yield ray.get(running.popleft())
            while running:
                yield ray.get(running.popleft())
        except ray.exceptions.RayError as error:
            raise MaskwiseError(f"Ray stopped: {str(error).splitlines()[0]}") from error


def _call(
    function: Callable[[Sequence[int]], list[T]], chunk: Sequence[int]
) -> list[T]:
    return function(chunk)
