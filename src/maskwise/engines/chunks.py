"""Functions without state, mapped over chunks of items by processes of this machine."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

CHUNK = 16
"""Items that a process gets at a time: sending them costs little beside the work, and
all processes finish at about the same time."""


def split_into_chunks(items: Sequence[Item], size: int = CHUNK) -> list[Sequence[Item]]:
    """Consecutive items, `size` at a time; no chunk if there is no item."""
    return [items[first : first + size] for first in range(0, len(items), size)]


def map_in_processes(
    function: Callable[[Sequence[Item]], list[Result]],
    chunks: Sequence[Sequence[Item]],
    workers: int,
) -> Iterator[list[Result]]:
    """The results of each chunk, in order. One worker is this process."""
    if workers == 1:
        for chunk in chunks:
            yield function(chunk)
        return
    with ProcessPoolExecutor(workers) as pool:
        try:
            yield from pool.map(function, chunks)
        finally:
            # Without this an abandoned generator would wait for all chunks.
            pool.shutdown(cancel_futures=True)
