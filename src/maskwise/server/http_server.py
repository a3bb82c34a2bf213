"""The listening server: its port, its connection limits, and who may reach it.

A server that other machines can reach needs a token.
"""

import contextlib
import ipaddress
import socket
from typing import NamedTuple

import uvicorn

from maskwise.errors import MaskwiseError
from maskwise.server.app import make_app
from maskwise.server.connections import ConnectionLimits, guard_connections
from maskwise.server.service import PredictionService

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})

SHUTDOWN_SECONDS = 5
"""How long requests being answered can delay the end of the server."""

MAX_HEADER_BYTES = 2**15


class HttpServer(NamedTuple):
    """A server that holds its port and can be run."""

    server: uvicorn.Server
    socket: socket.socket
    address: str

    def run(self) -> None:
        """Answer until interrupted."""
        with contextlib.suppress(KeyboardInterrupt):
            self.server.run(sockets=[self.socket])


def open_server(
    service: PredictionService, host: str, port: int, *, limits: ConnectionLimits | None = None
) -> HttpServer:
    """Take a port, 0 for a free one. Beyond this machine the service needs a token."""
    local = is_local(host)
    if not local and service.token is None:
        raise MaskwiseError(
            f"listening on {host} lets others ask this model, so it needs a token: --token or MASKWISE_TOKEN"
        )
    limits = limits or ConnectionLimits()
    bound = _bind(host, port)
    config = uvicorn.Config(
        make_app(service, LOCAL_NAMES | {host.lower()} if local else None),
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
    return HttpServer(uvicorn.Server(config), bound, f"http://{name}:{bound.getsockname()[1]}")


def is_local(host: str) -> bool:
    """Whether only this machine can reach a server that listens on this host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise MaskwiseError(
            f"cannot listen on {host}, port {port}: {error}; choose others with --host and --port"
        ) from None
