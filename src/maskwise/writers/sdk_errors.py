"""Errors of the providers' SDKs as ours: what stops a run, what may be sent again, what may have been paid for.

The SDKs of Anthropic and OpenAI are made by the same generator, and their errors have the same names.
"""

import contextlib
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from maskwise.writers.client import BusyError, LostReplyError, WriterError

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


@contextlib.contextmanager
def translated_errors(
    provider: str, sdk: ModuleType, base: type[Exception]
) -> Iterator[None]:
    """Raise the errors of an SDK as ours; a context manager, or a decorator of functions.

    provider: its name for people. base: the class of all its errors.
    """
    try:
        yield
    except sdk.APIConnectionError as error:
        raise _describe_connection_error(provider, error) from error
    except sdk.APIStatusError as error:
        raise _describe_status_error(provider, error) from error
    except sdk.APIResponseValidationError as error:
        raise LostReplyError(f"{provider}: an invalid reply: {error}") from error
    except base as error:
        raise WriterError(f"{provider}: {error}") from error
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        # The SDK does not check what a server answers.
        raise LostReplyError(f"{provider}: an invalid reply: {error}") from error


def _describe_redirect(response: Any) -> str | None:
    """What to say of a reply that is a redirect; None for any other."""
    if not 300 <= response.status_code < 400:
        return None
    target = response.headers.get("location", "another address")
    return (
        f"{response.request.url} redirects to {target[:200]!r}; keys are not sent to another address: "
        "give that one, if you trust it"
    )


def _describe_connection_error(provider: str, error: Any) -> WriterError:
    """The error for a connection that failed: before the request was sent, or while its reply was awaited."""
    message = f"{provider}: {error.request.url}: {error} {error.__cause__ or ''}"
    if type(error.__cause__).__name__ in NOT_CONNECTED:
        return BusyError(message, general=True)
    return LostReplyError(message)


def _describe_status_error(provider: str, error: Any) -> WriterError:
    """The error for a reply with a status that is no success."""
    response = error.response
    redirect = _describe_redirect(response)
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
