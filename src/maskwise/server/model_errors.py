"""What a client is told where a model did not answer. What the model raised is logged and not sent."""

import hashlib
import logging

from maskwise.errors import ImageError, MaskwiseError
from maskwise.server.limits import RETRY_SECONDS
from maskwise.server.model_process import (
    ModelEndingError,
    ModelFailureError,
    ModelTimeoutError,
)
from maskwise.server.responses import RequestRejectedError
from maskwise.terminal import safe_text

_log = logging.getLogger("maskwise.server")


def to_rejection(
    error: MaskwiseError, *, id: str | None = None
) -> RequestRejectedError:
    """The response to a request that the model did not answer. id: of the request, where it has one."""
    if isinstance(error, ImageError):
        return RequestRejectedError(422, str(error), id=id)
    if isinstance(error, ModelEndingError):
        headers = {"Retry-After": str(RETRY_SECONDS)}
        return RequestRejectedError(503, str(error), headers, id=id)
    if isinstance(error, ModelTimeoutError):
        _log.error("%s", error)
        return RequestRejectedError(504, str(error), id=id)
    if not isinstance(error, ModelFailureError):
        error = ModelFailureError("the model failed", str(error))
    return RequestRejectedError(500, _log_failure(error), id=id)


def _log_failure(error: ModelFailureError) -> str:
    """Log what a model raised, and return a message without it: it can hold paths and data of this machine.

    The number follows from the details, so that the same failure has the same number.
    """
    details = error.details.encode(errors="replace")
    number = hashlib.blake2b(details, digest_size=4).hexdigest()
    _log.error("failure %s: %s", number, safe_text(error.details))
    return f"{error}; the server's log has the details as failure {number}"
