"""The interface of a provider's API, and its clients by name."""

from collections.abc import Mapping
from typing import Protocol

from maskwise.errors import MaskwiseError
from maskwise.registry import WRITERS
from maskwise.writers.request import Completion, CompletionRequest


class WriterError(MaskwiseError):
    """A provider that cannot be reached, refuses the key, or does not know the model: repeating later continues."""


class BusyError(WriterError):
    """A provider that did not take a request: nothing is paid, and it may be sent again.

    wait: seconds after which the provider wants to be asked, if it said so. general: the provider cannot be reached or
    has too much to do, so that no other request would fare better.
    """

    def __init__(
        self, message: str, *, wait: float | None = None, general: bool = False
    ) -> None:
        super().__init__(message)
        self.wait = wait
        self.general = general


class LostReplyError(WriterError):
    """A reply that never came, broke off or cannot be read. The request may have been paid for."""


class Client(Protocol):
    """One model of one provider. Calls may come from several threads.

    `complete` sends a request once. It returns a completion for anything that concerns this request alone (refused,
    truncated, invalid), raises BusyError or LostReplyError where sending it again may help, and another WriterError
    for anything that would fail for every request.
    """

    provider: str
    model: str
    has_batches: bool

    def close(self) -> None:
        """Close the connections."""

    def complete(self, request: CompletionRequest) -> Completion:
        """Send one request and wait for its completion."""

    def submit(self, requests: Mapping[str, CompletionRequest], label: str) -> str:
        """Send requests, by key, as one batch; returns the batch's id."""

    def find_batch(
        self, label: str, *, keys: frozenset[str], since: float
    ) -> str | None:
        """The id of the batch that was submitted with this label after time `since`, if the provider has it."""

    def collect(self, batch: str) -> dict[str, Completion] | None:
        """The completions of a batch by key; None while it is running. Requests that expired are left out."""


def open_client(
    name: str,
    *,
    model: str,
    base_url: str | None = None,
    max_retries: int = 6,
    needs_key: bool = True,
) -> Client:
    """The client of a provider, by name or as `package.module:class`.

    Keys come from the environment as the provider's SDK expects them. max_retries: of calls about batches; how often a
    single request is sent again is said by `SendLimits`.
    needs_key: raise WriterError if there is no key; False for a client that sends nothing.
    """
    factory = WRITERS.load(name, object)
    if not callable(factory):
        raise WriterError(
            f"writer {name!r}: expected a class that implements maskwise.writers.Client, "
            f"found an object of type {type(factory).__name__}"
        )
    client: Client = factory(
        model=model, base_url=base_url, max_retries=max_retries, needs_key=needs_key
    )
    return client
