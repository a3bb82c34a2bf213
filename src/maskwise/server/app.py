"""The HTTP application: routers put together, and what holds for all of them.

Errors are JSON, `{"error": "..."}`. A server for this machine alone refuses requests that name another host. Every
response has the headers of `security_headers`.

| router | routes |
|---|---|
| `predict_routes` | `POST /v1/predict`, `GET /healthz` |
| `ask_routes` | images, models and questions of the ask page |
| `browse_routes` | datasets and runs |
| `review_routes` | the review page |
| `static_files` | the pages |

A route is a function with declared parameters; the framework (Litestar) validates them, calls the function, encodes
what it returns and describes it all in the OpenAPI document. The function calls the one that does the work.
"""

from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

import msgspec
from litestar import Litestar, Router
from litestar.datastructures import State
from litestar.response.base import ASGIResponse

from maskwise.server.access import AccessTokens
from maskwise.server.limits import BODY_GRACE_SECONDS, BODY_SECONDS, JSON_BYTES
from maskwise.server.metrics import MeasuredRequests, ServerMetrics
from maskwise.server.openapi import HttpRecordSchemas, openapi_config, openapi_json
from maskwise.server.requests import BoundedRequest
from maskwise.server.responses import ERROR_HANDLERS, ErrorMessage
from maskwise.server.security_headers import SecurityHeaders

AsgiApp = Callable[..., Any]
"""An application as servers call it: `await app(scope, receive, send)`."""


def make_app(
    routers: Iterable[Router],
    *,
    access: Any = None,
    body_seconds: float = BODY_SECONDS,
    body_grace_seconds: float = BODY_GRACE_SECONDS,
    metrics: ServerMetrics | None = None,
) -> AsgiApp:
    """The application with these routers.

    access: what the guards of the routes ask for tokens. body_seconds: how long a body may take to arrive;
    body_grace_seconds: how long it may be slower than MIN_BODY_RATE. metrics: counts requests if it is given.
    """
    state = State(
        {
            "access": access or AccessTokens(None),
            "body_seconds": body_seconds,
            "body_grace_seconds": body_grace_seconds,
        }
    )
    app: AsgiApp = Litestar(
        [*routers, openapi_json],
        request_class=BoundedRequest,
        request_max_body_size=JSON_BYTES,
        exception_handlers=ERROR_HANDLERS,
        openapi_config=openapi_config(),
        plugins=[HttpRecordSchemas()],
        state=state,
        # Not from the environment: pages of debugging show the source.
        debug=False,
        logging_config=None,
    )
    # The framework's own middleware does not see requests for unknown routes.
    if metrics is not None:
        app = MeasuredRequests(app, metrics)
    return SecurityHeaders(app)


class AllowedHosts:
    """Wraps an application and rejects requests for other hosts: a page from elsewhere must not reach this machine."""

    def __init__(self, app: AsgiApp, hosts: Iterable[str]) -> None:
        self.app = app
        self.hosts = frozenset(hosts)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, or answer it with 421."""
        if scope["type"] != "http" or self._is_allowed(scope["headers"]):
            await self.app(scope, receive, send)
            return
        message = ErrorMessage(error="the request names another host than this server")
        response = ASGIResponse(
            body=msgspec.json.encode(message),
            status_code=421,
            media_type="application/json",
        )
        await response(scope, receive, send)

    def _is_allowed(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        names = [value.decode("latin-1") for name, value in headers if name == b"host"]
        return len(names) == 1 and _host_name(names[0]) in self.hosts


def _host_name(header: str) -> str | None:
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None
