"""What every route shares: rejected requests, errors as JSON, and bodies read within their limits."""

import asyncio
from typing import Any, TypeVar

import msgspec
from fastapi import Request, Response
from fastapi.responses import JSONResponse
from starlette.requests import ClientDisconnect

from maskwise.errors import MaskwiseError

BODY_SECONDS = 60.0
"""How long a body may take to arrive."""

JSON_BYTES = 2**20
"""The largest JSON body of a route that expects no image."""

T = TypeVar("T")


class RequestRejectedError(MaskwiseError):
    """A request that is not answered: status, message, headers."""

    def __init__(
        self, status: int, message: str, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers


def error_response(
    status: int,
    message: str,
    *,
    id: str | None = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """An error as JSON: `{"error": "..."}`, with the request's id where it is known."""
    content = {"error": message} if id is None else {"id": id, "error": message}
    return JSONResponse(content, status, headers)


def json_response(content: Any, status: int = 200) -> Response:
    """Records, dicts and lists as JSON, masks as COCO RLE."""
    return Response(msgspec.json.encode(content), status, media_type="application/json")


def check_json_type(request: Request) -> None:
    """Reject content types that a page of another site can send without permission."""
    if (
        request.headers.get("content-type", "").partition(";")[0].strip().lower()
        != "application/json"
    ):
        raise RequestRejectedError(
            415, "expected a body of content type application/json"
        )


async def read_body(
    request: Request, limit: int, seconds: float = BODY_SECONDS
) -> bytes:
    """The body, rejected as soon as it is known to be too large or too slow."""
    too_large = RequestRejectedError(413, f"the body is larger than {limit} bytes")
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > limit:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise too_large
    except ClientDisconnect:
        raise RequestRejectedError(400, "the body did not arrive") from None
    except TimeoutError:
        raise RequestRejectedError(
            408, f"the body took longer than {seconds:g} seconds"
        ) from None
    return bytes(body)


def decode_json(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """A record from a body; RequestRejectedError says what is invalid."""
    try:
        return decoder.decode(body)
    except (
        msgspec.DecodeError,
        UnicodeDecodeError,
        RecursionError,
        MaskwiseError,
    ) as error:
        raise RequestRejectedError(400, f"invalid request: {error}") from None


async def read_json(
    request: Request, decoder: msgspec.json.Decoder[T], limit: int = JSON_BYTES
) -> T:
    """A record from the body of a request that is declared as JSON."""
    check_json_type(request)
    return decode_json(await read_body(request, limit), decoder)
