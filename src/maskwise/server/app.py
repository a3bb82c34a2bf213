"""The HTTP application of `maskwise serve`: its routes and how errors are answered.

| route | |
|---|---|
| `POST /v1/predict` | a request as `harness.wire_format` describes it; the image is sent whole, as `png` |
| `GET /healthz` | status, and which model is served |
| `GET /docs`, `/openapi.json` | documentation for readers and for tools |

Errors are JSON, `{"error": "..."}`. A server for this machine alone refuses requests that name another host, and those
that a page in a browser could send without permission (another content type than JSON).
"""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse

import maskwise
from maskwise.harness import wire_format
from maskwise.server.openapi import DESCRIPTION, PREDICT_OPERATION, documentation_page, openapi_document
from maskwise.server.service import PredictionService, RequestRejectedError, error_response


class AllowedHosts:
    """Middleware that rejects requests for other hosts: a page from elsewhere must not reach this machine."""

    def __init__(self, app: Callable[..., Any], hosts: frozenset[str]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, or answer it with 421."""
        if scope["type"] == "http":
            names = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
            if len(names) != 1 or _host_name(names[0]) not in self.hosts:
                response = error_response(421, "the request names another host than this server")
                await response(scope, receive, send)
                return
        await self.app(scope, receive, send)


def make_app(service: PredictionService, hosts: frozenset[str] | None = None) -> FastAPI:
    """The application. hosts: the names a request may use for this server, None for any."""
    app = FastAPI(
        title="maskwise", version=maskwise.__version__, description=DESCRIPTION, docs_url=None, redoc_url=None
    )
    if hosts is not None:
        app.add_middleware(AllowedHosts, hosts=hosts)

    @app.post(wire_format.PREDICT, **PREDICT_OPERATION)
    async def predict(request: Request) -> Response:
        """Ask questions about one image, which is encoded once for all of them."""
        return await service.predict(request)

    @app.get(wire_format.HEALTH)
    async def healthz(request: Request) -> Response:
        """Status of the server, and which model it serves."""
        return service.health(request)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(documentation_page(app))

    async def reject(_request: Request, error: Any) -> Response:
        return error_response(error.status, str(error), headers=error.headers)

    async def reject_route(_request: Request, error: Any) -> Response:
        return error_response(error.status_code, f"{error.detail}: see /docs", headers=error.headers)

    app.add_exception_handler(RequestRejectedError, reject)
    for status in (404, 405):
        app.add_exception_handler(status, reject_route)
    app.openapi = lambda: openapi_document(app)  # type: ignore[method-assign]
    return app


def _host_name(header: str) -> str | None:
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None
