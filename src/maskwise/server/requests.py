"""How the body of a request is read: within its limits of bytes and time, and straight into the record of the route.

The framework calls the guards of a route (tokens) before it reads the body, and gives the body to the parameter `data`
of the route. It would decode the JSON to plain objects first and convert them leniently ("3" for 3);
`BoundedRequest` decodes them once, strictly, to the record that `data` is declared as.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
from litestar import Request
from litestar.exceptions import InternalServerException
from litestar.exceptions.http_exceptions import RequestEntityTooLarge

from maskwise.errors import MaskwiseError
from maskwise.server.limits import (
    BODY_GRACE_SECONDS,
    BODY_SECONDS,
    MIN_BODY_RATE,
    RETRY_SECONDS,
)
from maskwise.server.responses import RequestRejectedError

INVALID_STATUS = "invalid_status"
"""Option of a route: the status for JSON with an invalid field, 400 unless given."""


class BoundedRequest(Request[Any, Any, Any]):
    """A request whose body is rejected as soon as it is known to be too large, too slow or of another type."""

    async def body(self) -> bytes:
        """The body; RequestRejectedError says what is wrong with it."""
        if self._record() is not bytes:
            self._check_json_type()
        try:
            return await self._read_body()
        except RequestEntityTooLarge:
            limit = self.route_handler.resolve_request_max_body_size()
            message = f"the body is larger than {limit} bytes"
            raise RequestRejectedError(413, message) from None
        except InternalServerException:
            # The framework's name for a client that leaves before its body is complete.
            raise RequestRejectedError(400, "the body did not arrive") from None

    async def _read_body(self) -> bytes:
        """All of the body; 408 where it takes too long in all, or arrives too slowly."""
        if isinstance(self._body, bytes):
            return self._body
        seconds: float = self.app.state.get("body_seconds", BODY_SECONDS)
        grace: float = self.app.state.get("body_grace_seconds", BODY_GRACE_SECONDS)
        started = asyncio.get_running_loop().time()
        received = 0
        chunks = []
        stream = self.stream()
        while True:
            slowest = grace + received / MIN_BODY_RATE
            try:
                async with asyncio.timeout_at(started + min(seconds, slowest)):
                    chunk = await anext(stream, None)
            except TimeoutError:
                if slowest < seconds:
                    message = f"the body arrives too slowly: fewer than {MIN_BODY_RATE} bytes per second"
                else:
                    message = f"the body took longer than {seconds:g} seconds"
                raise RequestRejectedError(408, message) from None
            if chunk is None:
                break
            chunks.append(chunk)
            received += len(chunk)
        self._body = b"".join(chunks)
        return self._body

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


class LargeBodies:
    """Middleware of routes with large bodies, so that their memory is bounded.

    memory: bytes of bodies at once, of all clients; one client has half of it. A body that arrives slowly counts with
    what has arrived, so that it does not keep others out. limit: requests at once whose body is complete, None for any
    number. What exceeds a limit is rejected with 503.
    """

    def __init__(
        self, app: Callable[..., Any], *, memory: int, limit: int | None = None
    ) -> None:
        self.app = app
        self.memory = memory
        self.limit = limit
        self._bytes: Counter[str] = Counter()
        self._complete = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on; its body is counted until it is answered."""
        client = scope["client"][0] if scope.get("client") else ""
        size = 0
        complete = False

        async def receive_counted() -> Any:
            nonlocal size, complete
            message = await receive()
            if message["type"] == "http.request" and not complete:
                length = len(message.get("body", b""))
                self._check_memory(client, length)
                self._bytes[client] += length
                size += length
                if not message.get("more_body", False):
                    self._check_places()
                    self._complete += 1
                    complete = True
            return message

        try:
            await self.app(scope, receive_counted, send)
        finally:
            self._complete -= complete
            self._bytes[client] -= size
            if not self._bytes[client]:
                del self._bytes[client]

    def _check_memory(self, client: str, length: int) -> None:
        own = self._bytes[client] + length
        total = self._bytes.total() + length
        if own > self.memory // 2 or total > self.memory:
            headers = {"Retry-After": str(RETRY_SECONDS)}
            raise RequestRejectedError(
                503, "too many bytes are being uploaded; try again", headers
            )

    def _check_places(self) -> None:
        if self.limit is not None and self._complete >= self.limit:
            headers = {"Retry-After": str(RETRY_SECONDS)}
            raise RequestRejectedError(503, "too many requests are waiting", headers)
