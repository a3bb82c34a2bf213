"""How the SDKs of providers use HTTP: keys go to one host only, and replies are bounded.

The SDKs follow redirects, and httpx removes only the header `Authorization` when the host changes: `x-api-key` would
follow. So redirects are refused. They also read whole replies into memory, decompressed, from any endpoint.
"""

from collections.abc import Iterator
from typing import Any

from maskwise.writers.client import LostReplyError

REPLY_BYTES = 2**24
"""Of one completion: an answer has kilobytes."""

BATCH_BYTES = 2**29
"""Of the results of a batch: 100,000 answers have about 200 MB."""

READ_SECONDS = 7200.0
CONNECT_SECONDS = 5.0
"""Time limits of a connection: enough for a slow model of one's own, whose requests `SendLimits.timeout` bounds."""

STREAM_CLASS = "SyncByteStream"
"""The class of httpx for bodies of replies."""

COMPLETION_PATHS = ("/messages", "/chat/completions")


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
