"""Errors as every route answers them, `{"error": "..."}` with a status, and as the OpenAPI document describes them."""

import logging
from typing import Any

import msgspec
from litestar import Request, Response
from litestar.exceptions import HTTPException, ValidationException
from litestar.openapi.datastructures import ResponseSpec

from maskwise.errors import MaskwiseError

_log = logging.getLogger("maskwise.server")

DESCRIPTIONS = {
    400: "The request is not valid HTTP, or its body is not valid.",
    401: "The token is missing or wrong.",
    403: "The CSRF header is missing, the role may not do this, or the item belongs to somebody else.",
    404: "What the address or the request names is not here.",
    408: "The headers or the body took too long to arrive.",
    409: "The item belongs to somebody else by now, the id was used before, or there is nothing to undo.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    421: "The request names another host than this server.",
    422: "A field, a mask or an image is invalid, or there are too many questions.",
    500: "The model failed on this request; the server's log has the details.",
    501: "No promptable model is installed.",
    503: "Too many requests are waiting, or the database is busy; try again after Retry-After seconds.",
    504: "The model did not answer in time.",
}
"""What the OpenAPI document says about each status."""


class ErrorMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a request was not answered. id: of the request, where it has one."""

    error: str
    id: str | None = None


class RequestRejectedError(MaskwiseError):
    """A request that is not answered: status, message, headers. id: of the request, where it has one."""

    def __init__(
        self,
        status: int,
        message: str,
        headers: dict[str, str] | None = None,
        *,
        id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        self.id = id


def errors(*statuses: int) -> dict[int, ResponseSpec]:
    """What a route declares about the errors it answers with, beside 400, which any route may answer."""
    specs = {}
    for status in sorted({400, *statuses}):
        specs[status] = ResponseSpec(
            ErrorMessage, generate_examples=False, description=DESCRIPTIONS[status]
        )
    return specs


def error_response(
    status: int,
    message: str,
    *,
    id: str | None = None,
    headers: dict[str, str] | None = None,
) -> Response[ErrorMessage]:
    """An error as JSON."""
    return Response(
        ErrorMessage(error=message, id=id),
        status_code=status,
        headers=headers,
        media_type="application/json",
    )


Connection = Request[Any, Any, Any]


def answer_rejection(
    _request: Connection, error: RequestRejectedError
) -> Response[ErrorMessage]:
    """The response to a request that was rejected on purpose."""
    return error_response(error.status, str(error), id=error.id, headers=error.headers)


def answer_maskwise_error(
    _request: Connection, error: MaskwiseError
) -> Response[ErrorMessage]:
    """The response where something that the request names cannot be read or is invalid."""
    return error_response(422, str(error))


def answer_invalid_parameter(
    _request: Connection, error: ValidationException
) -> Response[ErrorMessage]:
    """The response to an invalid parameter of the address, or to a missing body."""
    details = error.extra if isinstance(error.extra, list) else []
    if not details:
        return error_response(422, error.detail)
    detail = details[0]
    if detail.get("key") == "data":
        return error_response(400, "invalid request: the body is empty")
    source = detail.get("source", "address")
    place = str(getattr(source, "value", source))
    return error_response(422, f"{place} {detail['key']}: {detail['message']}")


def answer_http_error(
    _request: Connection, error: HTTPException
) -> Response[ErrorMessage]:
    """The response to an unknown route or method."""
    headers = dict(error.headers or {})
    return error_response(
        error.status_code, f"{error.detail}: see /docs", headers=headers
    )


def answer_unexpected_error(
    _request: Connection, error: Exception
) -> Response[ErrorMessage]:
    """The response where the server itself fails; what happened is logged and not sent."""
    _log.error("a request failed", exc_info=error)
    return error_response(500, "the server failed on this request; see its log")


ERROR_HANDLERS: dict[int | type[Exception], Any] = {
    RequestRejectedError: answer_rejection,
    MaskwiseError: answer_maskwise_error,
    ValidationException: answer_invalid_parameter,
    HTTPException: answer_http_error,
    Exception: answer_unexpected_error,
}
"""How an application answers each kind of error; a router may say otherwise for its routes."""
