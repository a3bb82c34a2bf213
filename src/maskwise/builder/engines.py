"""Where the per-image work of a build is done: in this process, in several, or on Ray. The result is the same."""

import importlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Literal, TypeVar

from maskwise.errors import MaskwiseError, UnknownNameError

T = TypeVar("T")

BuildEngine = Literal["local", "ray"]
ENGINES: tuple[BuildEngine, ...] = ("local", "ray")

CHUNK = 16
"""Images that a worker handles at a time."""

RAY = "maskwise.builder.ray_engine"


@dataclass(frozen=True)
class EngineOptions:
    """workers: processes, or Ray tasks at a time. ray_address: of a cluster; None starts a Ray on this machine."""

    engine: BuildEngine = "local"
    workers: int = 1
    ray_address: str | None = None

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise UnknownNameError("engine", self.engine, ENGINES)


def map_images(
    function: Callable[[Sequence[int]], list[T]],
    rows: Sequence[int],
    options: EngineOptions,
) -> Iterator[T]:
    """One result per image row, in order. function: takes some rows, and must be importable by other processes."""
    chunks = [rows[first : first + CHUNK] for first in range(0, len(rows), CHUNK)]
    if options.engine == "ray":
        yield from _map_on_ray(function, chunks, options)
    elif options.workers == 1:
        for chunk in chunks:
            yield from function(chunk)
    else:
        with ProcessPoolExecutor(options.workers) as pool:
            try:
                for results in pool.map(function, chunks):
                    yield from results
            finally:
                pool.shutdown(cancel_futures=True)


def _map_on_ray(
    function: Callable[[Sequence[int]], list[T]],
    chunks: Sequence[Sequence[int]],
    options: EngineOptions,
) -> Iterator[T]:
    try:
        module = importlib.import_module(RAY)
    except ImportError as error:
        raise MaskwiseError(
            f"--engine ray needs {error.name}: pip install 'maskwise[ray]'"
        ) from None
    for results in module.map_on_ray(function, chunks, options):
        yield from results
