"""How the body of a request is read: within its limits of bytes and time, and straight into the record of the route.

The framework calls the guards of a route (tokens) before it reads the body, and gives the body to the parameter `data`
of the route. It would decode the JSON to plain objects first and convert them leniently ("3" for 3);
`BoundedRequest` decodes them once, strictly, to the record that `data` is declared as.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from litestar import Request
from litestar.exceptions import InternalServerException
from litestar.exceptions.http_exceptions import RequestEntityTooLarge

from maskwise.errors import MaskwiseError
from maskwise.server.limits import BODY_SECONDS, RETRY_SECONDS
from maskwise.server.responses import RequestRejectedError

INVALID_STATUS = "invalid_status"
"""Option of a route: the status for JSON with an invalid field, 400 unless given."""


class BoundedRequest(Request[Any, Any, Any]):
    """A request whose body is rejected as soon as it is known to be too large, too slow or of another type."""

    async def body(self) -> bytes:
        """The body; RequestRejectedError says what is wrong with it."""
        if self._record() is not bytes:
            self._check_json_type()
        seconds: float = self.app.state.get("body_seconds", BODY_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                return await super().body()
        except RequestEntityTooLarge:
            limit = self.route_handler.resolve_request_max_body_size()
            message = f"the body is larger than {limit} bytes"
            raise RequestRejectedError(413, message) from None
        except InternalServerException:
            # The framework's name for a client that leaves before its body is complete.
            raise RequestRejectedError(400, "the body did not arrive") from None
        except TimeoutError:
            message = f"the body took longer than {seconds:g} seconds"
            raise RequestRejectedError(408, message) from None

    async def json(self) -> Any:
        """The record that the route takes as `data`; bytes where it takes bytes."""
        record = self._record()
        body = await self.body()
        if record is bytes:
            return body
        try:
            return msgspec.json.decode(body, type=record)
        except (msgspec.ValidationError, MaskwiseError) as error:
            status = self.route_handler.opt.get(INVALID_STATUS, 400)
            raise RequestRejectedError(status, f"invalid request: {error}") from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RequestRejectedError(400, f"invalid request: {error}") from None

    async def is_disconnected(self) -> bool:
        """Whether the client has closed the connection. Only to be asked after the body was read."""
        try:
            async with asyncio.timeout(0):
                message = await self.receive()
        except TimeoutError:
            return False
        return message["type"] == "http.disconnect"

    def _record(self) -> Any:
        return self.route_handler.parsed_fn_signature.parameters["data"].annotation

    def _check_json_type(self) -> None:
        """Reject content types that a page of another site can send without permission."""
        content_type = self.headers.get("content-type", "")
        kind = content_type.partition(";")[0].strip().lower()
        if kind != "application/json":
            raise RequestRejectedError(
                415, "expected a body of content type application/json"
            )


class ConcurrencyLimit:
    """Middleware of routes with large bodies: at most `limit` requests at once, so that memory is bounded.

    wait: further requests wait for their turn; otherwise they are rejected with 503.
    """

    def __init__(self, app: Callable[..., Any], limit: int, *, wait: bool) -> None:
        self.app = app
        self.wait = wait
        self._places = asyncio.Semaphore(limit)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on when there is a place for it."""
        if not self.wait and self._places.locked():
            headers = {"Retry-After": str(RETRY_SECONDS)}
            raise RequestRejectedError(503, "too many requests are waiting", headers)
        async with self._places:
            await self.app(scope, receive, send)
