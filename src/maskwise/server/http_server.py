"""The listening server: its port, its connection limits, and who may reach it.

A server that other machines can reach needs a token.
"""

import asyncio
import contextlib
import ipaddress
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator

import uvicorn

from maskwise.errors import MaskwiseError
from maskwise.server.app import AllowedHosts, AsgiApp
from maskwise.server.connections import ConnectionLimits, guard_connections

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

GRACE_SECONDS = 1.0
"""How long requests being answered go on when the server is told to end; then their work is interrupted."""

SHUTDOWN_SECONDS = 3
"""How long responses can delay the end of the server."""

MAX_HEADER_BYTES = 2**15
"""Browsers send about one kilobyte."""


class InterruptingServer(uvicorn.Server):
    """A server that, when it is told to end, interrupts the work for requests after GRACE_SECONDS.

    So these requests are answered (503) before the connections are closed.
    """

    def __init__(
        self, config: uvicorn.Config, interrupt: Callable[[], None] | None
    ) -> None:
        super().__init__(config)
        self._interrupt = interrupt

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End in order; called once."""
        if self._interrupt is None:
            await super().shutdown(sockets)
            return
        loop = asyncio.get_running_loop()
        timer = loop.call_later(GRACE_SECONDS, self._interrupt)
        await super().shutdown(sockets)
        timer.cancel()


class HttpServer:
    """A server that holds its port and can be run."""

    def __init__(
        self, server: uvicorn.Server, bound: socket.socket, address: str
    ) -> None:
        self.server = server
        self.address = address
        self._socket = bound

    def run(self) -> None:
        """Answer until interrupted by Ctrl-C or SIGTERM."""
        with contextlib.suppress(KeyboardInterrupt), _sigterm_interrupts():
            self.server.run(sockets=[self._socket])


@contextlib.contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """Let SIGTERM raise KeyboardInterrupt. uvicorn sends it again at its end, which would skip what follows."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def open_server(
    app: AsgiApp,
    host: str,
    port: int,
    *,
    has_token: bool,
    allowed_hosts: Iterable[str] = (),
    limits: ConnectionLimits | None = None,
    bound: socket.socket | None = None,
    interrupt: Callable[[], None] | None = None,
) -> HttpServer:
    """Take a port, 0 for a free one. Beyond this machine the application needs tokens.

    has_token: whether every route of the application that shows or changes data asks for a token. allowed_hosts: names
    that a request may use for this server, beside those of this machine; without any a server that others can reach
    accepts every name, as its tokens protect it. bound: what `bind_port` returned, if the port was taken before.
    interrupt: fails what requests wait for; called when the server has been told to end and they go on.
    """
    local = is_local(host)
    if not local and not has_token:
        raise MaskwiseError(
            f"listening on {host} lets others ask this model, so it needs a token: --token or MASKWISE_TOKEN"
        )
    # A page of another site could make its own name point to this machine (DNS rebinding).
    if local or allowed_hosts:
        names = {name.lower() for name in allowed_hosts}
        app = AllowedHosts(app, {*LOCAL_NAMES, host.lower(), *names})
    limits = limits or ConnectionLimits()
    bound = bound or bind_port(host, port)
    config = uvicorn.Config(
        app,
        http=guard_connections(limits),
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=limits.idle_seconds,
        h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    name = f"[{host}]" if ":" in host else host
    address = f"http://{name}:{bound.getsockname()[1]}"
    return HttpServer(InterruptingServer(config, interrupt), bound, address)


def is_local(host: str) -> bool:
    """Whether only this machine can reach a server that listens on this host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def bind_port(host: str, port: int) -> socket.socket:
    """Take a port, 0 for a free one; MaskwiseError if another program has it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise MaskwiseError(
            f"cannot listen on {host}, port {port}: {error}; choose others with --host and --port"
        ) from None
