"""Limits for connections: time to send a request's headers, time to read a response, connections per client.

uvicorn limits only the idle time after a response (`timeout_keep_alive`) and the number of connections, silent ones
included. A client that opens connections and sends nothing could therefore block every other client.
`GuardedConnection` adds what is missing:

- A connection must send complete headers within `header_seconds`. Otherwise it is closed, with status 408 if it sent a
  part of them.
- A client that does not read its response for `write_seconds` is disconnected.
- A client address has at most `per_client` connections, the server at most `total`. A new connection over the limit
  replaces the one that has been idle longest: of the same client, or of the client with the most connections. Idle is
  a connection without a request that has been silent for `fresh_seconds`: the request of a newer one may be on its way.
  Where no connection is idle, the new one gets status 503 with Retry-After.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from maskwise.server.limits import RETRY_SECONDS

LINGER_SECONDS = 1.0
"""How long a refused connection stays open, so that the client can read why."""

REASONS = {400: "Bad Request", 408: "Request Timeout", 503: "Service Unavailable"}


@dataclass(frozen=True)
class ConnectionLimits:
    """Seconds and numbers of connections; the module's docstring says what each limits."""

    header_seconds: float = 10.0
    idle_seconds: int = 5
    write_seconds: float = 30.0
    fresh_seconds: float = 1.0
    per_client: int = 256
    total: int = 512


class ConnectionTable:
    """The open connections of a server, the one that has been idle longest first."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._open: dict[GuardedConnection, None] = {}

    def admit(self, connection: "GuardedConnection") -> bool:
        """Register a connection; where the limits are reached close an idle one for it. False where none is idle."""
        clients = Counter(known.client_address for known in self._open)
        if clients[connection.client_address] >= self.limits.per_client:
            crowded = connection.client_address
        elif len(self._open) >= self.limits.total:
            crowded = clients.most_common(1)[0][0]
        else:
            crowded = None
        if crowded is not None:
            idle = self._find_idle(crowded)
            if idle is None:
                return False
            self.remove(idle)
            idle.transport.close()
        self._open[connection] = None
        return True

    def _find_idle(self, client: str) -> "GuardedConnection | None":
        """The connection of a client that has been idle longest."""
        oldest = asyncio.get_running_loop().time() - self.limits.fresh_seconds
        for connection in self._open:
            if connection.last_activity > oldest:
                # The others are younger.
                return None
            if connection.client_address == client and not connection.busy:
                return connection
        return None

    def touch(self, connection: "GuardedConnection") -> None:
        """Note that a connection sent something."""
        connection.last_activity = asyncio.get_running_loop().time()
        if connection in self._open:
            # Dictionaries keep the order of insertion: this moves the connection to the end.
            del self._open[connection]
            self._open[connection] = None

    def remove(self, connection: "GuardedConnection") -> None:
        """Forget a connection."""
        self._open.pop(connection, None)


class GuardedConnection(H11Protocol):
    """An HTTP/1.1 connection with the limits of its `table`; `guard_connections` makes the class for a server."""

    table: ClassVar[ConnectionTable]

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._header_timer = _Timer()
        self._write_timer = _Timer()
        self._received = False
        self._refused = False
        self.last_activity = 0.0

    @property
    def client_address(self) -> str:
        """The client's host, empty where the transport does not tell."""
        return self.client[0] if self.client else ""

    @property
    def busy(self) -> bool:
        """Whether a request is being received or answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the first request's headers."""
        super().connection_made(transport)
        self.last_activity = self.loop.time()
        if self.table.admit(self):
            self._start_header_timer()
        else:
            self._refuse(503, "too many connections; try again")

    def data_received(self, data: bytes) -> None:
        """Pass data on; the timer runs from the first byte of a request to the end of its headers."""
        if self._refused:
            return
        self.table.touch(self)
        if not self.busy and not self._header_timer.running:
            self._start_header_timer()
        self._received = True
        super().data_received(data)
        # Busy now means that the headers were complete; bodies have a limit of their own (`requests`).
        if self.busy:
            self._header_timer.cancel()
            self._received = False

    def on_response_complete(self) -> None:
        """The connection is idle from now on, and not since its request came."""
        self.table.touch(self)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self.table.remove(self)
        self._header_timer.cancel()
        self._write_timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client does not read: start the timer of the response."""
        super().pause_writing()
        self._write_timer.start(
            self.loop, self.table.limits.write_seconds, self.transport.abort
        )

    def resume_writing(self) -> None:
        """The client reads again."""
        self._write_timer.cancel()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP, with JSON as every other error."""
        self._refuse(400, msg)

    def _start_header_timer(self) -> None:
        self._header_timer.start(
            self.loop, self.table.limits.header_seconds, self._end_waiting
        )

    def _end_waiting(self) -> None:
        if self._received:
            self._refuse(
                408,
                f"no complete headers within {self.table.limits.header_seconds:g} seconds",
            )
        else:
            self.transport.close()

    def _refuse(self, status: int, message: str) -> None:
        """Send an error outside the application and close the connection a little later."""
        self._refused = True
        self._header_timer.cancel()
        body = json.dumps({"error": message}).encode()
        retry = f"retry-after: {RETRY_SECONDS}\r\n" if status == 503 else ""
        head = (
            f"HTTP/1.1 {status} {REASONS[status]}\r\ncontent-type: application/json\r\n{retry}"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        # It takes no place any more, although it stays open for a moment.
        self.table.remove(self)
        self.loop.call_later(LINGER_SECONDS, self.transport.close)


def guard_connections(limits: ConnectionLimits) -> type[GuardedConnection]:
    """A protocol class for one uvicorn server, with a table of its own."""
    return type(
        "ServerConnection", (GuardedConnection,), {"table": ConnectionTable(limits)}
    )


class _Timer:
    """Calls a function once, unless it is cancelled before."""

    def __init__(self) -> None:
        self._handle: asyncio.TimerHandle | None = None

    @property
    def running(self) -> bool:
        return self._handle is not None

    def start(
        self,
        loop: asyncio.AbstractEventLoop,
        seconds: float,
        call: Callable[[], object],
    ) -> None:
        self.cancel()
        self._handle = loop.call_later(seconds, call)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle = None
