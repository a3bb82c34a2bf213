"""How the SDKs of providers use HTTP: keys go to one host only, and replies are bounded.

The SDKs follow redirects, and httpx removes only the header `Authorization` when the host changes: `x-api-key` would
follow. So redirects are refused. They also read whole replies into memory, decompressed, from any endpoint.
"""

import contextlib
import re
from collections.abc import Iterator
from typing import Any

from maskwise.writers.client import BusyError, LostReplyError, WriterError

REPLY_BYTES = 2**24
"""Of one completion: an answer has kilobytes."""

BATCH_BYTES = 2**29
"""Of the results of a batch: 100,000 answers have about 200 MB."""

STREAM_CLASS = "SyncByteStream"
"""The class of httpx for bodies of replies."""

COMPLETION_PATHS = ("/messages", "/chat/completions")


BUSY = (408, 409, 425)
"""Statuses, beside those from 500 on, of a request that may be sent again."""

OVERLOADED = (429, 503, 529)
"""Statuses of a provider that takes no request at the moment."""

REJECTED = (400, 413, 422)
"""Statuses of a request that is refused for what it holds: others may be taken."""

NOT_CONNECTED = ("ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol")
"""Errors of httpx before anything was sent."""

STRUCTURED_OUTPUT = re.compile(
    r"response_format|json_schema|output_config|output_format|structured|guided",
    re.IGNORECASE,
)
"""What servers say where they refuse to hold a reply to a schema."""


class ReplyTooLargeError(LostReplyError):
    """A reply that is not read to its end. Some SDKs report it as a failed connection."""


def client_options() -> dict[str, Any]:
    """Arguments of the SDKs' `DefaultHttpxClient`."""
    return {
        "follow_redirects": False,
        # A compressed reply can be a thousand times larger than what arrives.
        "headers": {"Accept-Encoding": "identity"},
        "event_hooks": {"response": [_bound_reply]},
    }


def _bound_reply(response: Any) -> None:
    """Called by httpx when the headers of a reply have arrived."""
    encoding = response.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise ReplyTooLargeError(
            f"the reply is compressed ({encoding}), which was not asked for"
        )
    is_completion = response.request.url.path.endswith(COMPLETION_PATHS)
    limit = REPLY_BYTES if is_completion else BATCH_BYTES
    stream = response.stream
    # httpx takes only its own kind of stream, and some SDKs bring another httpx than we have.
    base = next(kind for kind in type(stream).__mro__ if kind.__name__ == STREAM_CLASS)
    bounded = type("BoundedStream", (_BoundedStream, base), {})
    response.stream = bounded(stream, limit)


class _BoundedStream:
    """The body of a reply, up to a number of bytes."""

    def __init__(self, stream: Any, limit: int) -> None:
        self._stream = stream
        self._limit = limit

    def __iter__(self) -> Iterator[bytes]:
        received = 0
        for chunk in self._stream:
            received += len(chunk)
            if received > self._limit:
                raise ReplyTooLargeError(f"the reply has more than {self._limit} bytes")
            yield chunk

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()


def describe_redirect(response: Any) -> str | None:
    """What to say of a reply that is a redirect; None for any other."""
    if not 300 <= response.status_code < 400:
        return None
    target = response.headers.get("location", "another address")
    return (
        f"{response.request.url} redirects to {target[:200]!r}; keys are not sent to another address: "
        "give that one, if you trust it"
    )


def describe_connection_error(provider: str, error: Any) -> WriterError:
    """The error for a connection that failed: before the request was sent, or while its reply was awaited."""
    message = f"{provider}: {error.request.url}: {error} {error.__cause__ or ''}"
    if type(error.__cause__).__name__ in NOT_CONNECTED:
        return BusyError(message, general=True)
    return LostReplyError(message)


def describe_status_error(provider: str, error: Any) -> WriterError:
    """The error for a reply with a status that is no success."""
    response = error.response
    redirect = describe_redirect(response)
    if redirect is not None:
        return WriterError(f"{provider}: {redirect}")
    status = response.status_code
    message = f"{provider}: {error}"
    if status in BUSY or status in OVERLOADED or status >= 500:
        return BusyError(
            message, wait=_retry_after(response), general=status in OVERLOADED
        )
    return WriterError(message)


def _retry_after(response: Any) -> float | None:
    """The seconds that a provider asks to wait; None if it says nothing that is understood."""
    with contextlib.suppress(ValueError):
        seconds = float(response.headers.get("retry-after", ""))
        if 0.0 <= seconds < float("inf"):
            return seconds
    return None
