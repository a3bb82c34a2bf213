"""The HTTP application: routers put together, and what holds for all of them.

Errors are JSON, `{"error": "..."}`. A server for this machine alone refuses requests that name another host. Every
response has the headers of `security_headers`.

| router | routes |
|---|---|
| `predict_routes` | `POST /v1/predict`, `GET /healthz` |
| `ask_routes` | images, models and questions of the ask page |
| `browse_routes` | datasets and runs |
| `static_files` | the pages |
"""

from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse

import maskwise
from maskwise.server.metrics import ServerMetrics
from maskwise.server.openapi import DESCRIPTION, documentation_page, openapi_document
from maskwise.server.responses import RequestRejectedError, error_response
from maskwise.server.security_headers import SecurityHeaders


class AllowedHosts:
    """Middleware that rejects requests for other hosts: a page from elsewhere must not reach this machine."""

    def __init__(self, app: Callable[..., Any], hosts: frozenset[str]) -> None:
        self.app = app
        self.hosts = hosts

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, or answer it with 421."""
        if scope["type"] == "http":
            names = [
                value.decode("latin-1")
                for name, value in scope["headers"]
                if name == b"host"
            ]
            if len(names) != 1 or _host_name(names[0]) not in self.hosts:
                response = error_response(
                    421, "the request names another host than this server"
                )
                await response(scope, receive, send)
                return
        await self.app(scope, receive, send)


def make_app(
    routers: Iterable[APIRouter], metrics: ServerMetrics | None = None
) -> FastAPI:
    """The application with these routers. metrics: counts requests if it is given."""
    app = FastAPI(
        title="maskwise",
        version=maskwise.__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
    )
    for router in routers:
        app.include_router(router)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(documentation_page(app))

    _add_error_handlers(app)
    if metrics is not None:
        app.add_middleware(metrics.middleware)
    app.add_middleware(SecurityHeaders)
    app.openapi = lambda: openapi_document(app)  # type: ignore[method-assign]
    return app


def allow_hosts(app: FastAPI, hosts: Iterable[str]) -> None:
    """Reject requests that name another host than these."""
    app.add_middleware(AllowedHosts, hosts=frozenset(hosts))


def _add_error_handlers(app: FastAPI) -> None:
    async def reject(_request: Request, error: Any) -> Response:
        return error_response(error.status, str(error), headers=error.headers)

    async def reject_route(_request: Request, error: Any) -> Response:
        return error_response(
            error.status_code, f"{error.detail}: see /docs", headers=error.headers
        )

    async def reject_parameters(_request: Request, error: Any) -> Response:
        found = error.errors()[0]
        place = " ".join(str(part) for part in found["loc"])
        return error_response(422, f"{place}: {found['msg']}")

    app.add_exception_handler(RequestRejectedError, reject)
    app.add_exception_handler(RequestValidationError, reject_parameters)
    for status in (404, 405):
        app.add_exception_handler(status, reject_route)


def _host_name(header: str) -> str | None:
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None
