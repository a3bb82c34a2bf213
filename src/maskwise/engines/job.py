"""What a caller hands to an engine: a job that opens workers, and the workers."""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeVar

Result = TypeVar("Result")
Item_contra = TypeVar("Item_contra", contravariant=True)


class EngineWorker(Protocol[Item_contra, Result]):
    """Does items of a job in one process, for example with a model that it has open.

    batch_size: items that it does together, at most; 1 if it does one after the other.
    """

    batch_size: int

    def load(self, item: Item_contra) -> Any:
        """Read what `run` needs. May be called in another thread. Does not raise."""

    def run(self, loaded: Any) -> Result:
        """The result of what `load` returned. A failure of the item is a result too.

        ModelGoneError ends the job.
        """

    def run_all(self, loaded_items: Iterable[Any]) -> Iterator[Result]:
        """What `run` returns for each item, in order. May take several items before it
        returns the first result, to do them together.
        """

    def give_up(self, item: Item_contra, crashes: int) -> Result:
        """The result of an item at which so many processes died."""

    def is_result_of(self, result: Result, item: Item_contra) -> bool:
        """Whether a result of an earlier attempt is one of this item."""

    def close(self) -> None:
        """Release everything; may be called again."""


class Job(Protocol[Item_contra, Result]):
    """Work on items that processes on several machines can do. It has to be picklable."""

    @property
    def name(self) -> str:
        """What its workers open, for messages: `model 'tiny'`."""

    def key(self, item: Item_contra) -> int:
        """A number of the item that is the same in every attempt."""

    def open_worker(self) -> EngineWorker[Item_contra, Result]:
        """Open a worker in any process. MaskwiseError ends the job."""

    def encode(self, result: Result) -> bytes:
        """A result as JSON."""

    def decode(self, content: bytes) -> Result:
        """What `encode` was given. MaskwiseError or msgspec.DecodeError if it is not."""
