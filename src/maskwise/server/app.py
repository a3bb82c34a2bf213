"""`maskwise serve`: one model behind HTTP, for programs.

| route | |
|---|---|
| `POST /v1/predict` | a request as `harness.exchange` describes it; the image comes whole, as `png` |
| `GET /healthz` | that it lives, and which model it has |
| `GET /docs`, `/openapi.json` | the same for readers and for tools |

Everything that comes in is bounded before it is taken: bytes of the body, pixels before they are decoded, questions and
their length, requests that wait. Requests are answered one at a time. Errors are JSON, `{"error": "..."}`.

Listening to this machine alone, requests that name another host are refused, and so are those a page in a browser could
send without asking (another content type than JSON). Listening to others needs a token.
"""

import asyncio
import contextlib
import hashlib
import hmac
import ipaddress
import logging
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from html import escape
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.requests import ClientDisconnect

import maskwise
from maskwise.errors import MaskwiseError
from maskwise.harness import wire_format
from maskwise.harness.predictor import Predictor
from maskwise.images import open_image
from maskwise.runs.schema import ModelInfo
from maskwise.schema import Prediction

LOG = logging.getLogger(__name__)
LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
MAX_CONNECTIONS = 64
RETRY_SECONDS = 1
GRACE_SECONDS = 5
"""How long the server waits for running requests when it stops."""


@dataclass(frozen=True)
class Limits:
    """What a request may be. waiting: requests taken at once, of which one is being answered."""

    body_bytes: int = 2**26
    body_seconds: float = 60.0
    pixels: int = 50_000_000
    questions: int = 64
    question_characters: int = 2000
    waiting: int = 8


class Refusal(Exception):
    """A request that is not answered, and why."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers


class Service:
    """A model, its limits and its queue."""

    def __init__(self, model: Predictor, facts: ModelInfo, token: str | None, limits: Limits) -> None:
        self.model, self.facts, self.token, self.limits = model, facts, token, limits
        self._known = {"model": facts.name, "weights_hash": facts.weights_hash, "config": facts.config}
        digest = hashlib.sha256(msgspec.json.encode(self._known, order="sorted")).hexdigest()
        self._mark = {wire_format.MODEL_HEADER: digest[:32]}
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._turn, self._taken = asyncio.Lock(), 0

    async def answer(self, request: Request) -> Response:
        """The response to a request that has passed every check."""
        self.check_token(request)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refusal(415, "expected a body of content type application/json")
        with self._place():
            asked = self._decode(await self._body(request))
            async with self._turn:
                if await request.is_disconnected():
                    raise Refusal(400, "the client has disconnected")
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._worker, self._predict, asked)

    def health(self, request: Request) -> Response:
        """That it lives; which model it has is for those with the token, where there is one."""
        try:
            self.check_token(request)
        except Refusal:
            return JSONResponse({"status": "ok"})
        return JSONResponse(
            {"status": "ok", **self._known, "maskwise": maskwise.__version__}, headers=self._mark
        )

    def check_token(self, request: Request) -> None:
        """Refuse a request without the token, where there is one."""
        if self.token is None:
            return
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token.encode()):
            raise Refusal(
                401, "expected the header Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"}
            )

    def close(self) -> None:
        """Wait for the request being answered, and end the model."""
        self._worker.shutdown(cancel_futures=True)
        if hasattr(self.model, "close"):
            self.model.close()

    @contextlib.contextmanager
    def _place(self) -> Iterator[None]:
        if self._taken >= self.limits.waiting:
            raise Refusal(503, "too many requests are waiting", {"Retry-After": str(RETRY_SECONDS)})
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1

    async def _body(self, request: Request) -> bytes:
        """The body, refused as soon as it is known to be too large or too slow."""
        limit = self.limits.body_bytes
        too_large = Refusal(413, f"the body is larger than {limit} bytes")
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > limit:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > limit:
                        raise too_large
        except ClientDisconnect:
            raise Refusal(400, "the body did not arrive") from None
        except TimeoutError:
            raise Refusal(408, f"the body took longer than {self.limits.body_seconds:g} seconds") from None
        return bytes(body)

    def _decode(self, body: bytes) -> wire_format.Request:
        limits = self.limits
        try:
            asked = _REQUESTS.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, MaskwiseError) as error:
            raise Refusal(400, f"the request is not as expected: {error}") from None
        if asked.image.png is None:
            raise Refusal(400, 'no files are read here: send the image itself, as "png"')
        if not 1 <= len(asked.questions) <= limits.questions:
            raise Refusal(422, f"{len(asked.questions)} questions; expected 1 to {limits.questions}")
        if any(len(question) > limits.question_characters for question in asked.questions):
            raise Refusal(422, f"a question has more than {limits.question_characters} characters")
        return asked

    def _predict(self, asked: wire_format.Request) -> Response:
        assert asked.image.png is not None
        try:
            image = open_image(asked.image.png, max_pixels=self.limits.pixels)
        except MaskwiseError as error:
            return _error(422, str(error), id=asked.id)
        try:
            found = self.model.predict(image, asked.questions)
            if len(found) != len(asked.questions):
                wrong = f"{len(found)} predictions for {len(asked.questions)} questions"
                return _error(500, wrong, id=asked.id)
            body = wire_format.encode_response(asked.id, found)
            return Response(body, headers=self._mark, media_type="application/json")
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever a model raises fails this request only
            LOG.exception("the model failed on request %r", asked.id)
            # The text may contain paths and settings of this machine: it stays in the log.
            return _error(500, f"the model failed with {type(error).__name__}", id=asked.id)


class HostGuard:
    """Refuses requests that name a host which is not in the list: a foreign page must not reach this machine."""

    def __init__(self, app: Callable[..., Any], hosts: frozenset[str]) -> None:
        self.app, self.hosts = app, hosts

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, or answer it with 421."""
        if scope["type"] == "http":
            names = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
            if len(names) != 1 or _host_name(names[0]) not in self.hosts:
                await _error(421, "the request names another host than this server")(scope, receive, send)
                return
        await self.app(scope, receive, send)


def make_app(service: Service, hosts: frozenset[str] | None = None) -> FastAPI:
    """The application. hosts: the names a request may use for this server, None for any."""
    app = FastAPI(
        title="maskwise", version=maskwise.__version__, description=DESCRIPTION, docs_url=None, redoc_url=None
    )
    if hosts is not None:
        app.add_middleware(HostGuard, hosts=hosts)

    @app.post(wire_format.PREDICT, **_PREDICT_DOCUMENT)
    async def predict(request: Request) -> Response:
        """Ask questions about one image, which is encoded once for all of them."""
        return await service.answer(request)

    @app.get(wire_format.HEALTH)
    async def healthz(request: Request) -> Response:
        """That the server lives, and which model it has."""
        return service.health(request)

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(_page(app))

    async def refuse(_request: Request, error: Any) -> Response:
        return _error(error.status, str(error), headers=error.headers)

    async def refuse_route(_request: Request, error: Any) -> Response:
        return _error(error.status_code, f"{error.detail}: see /docs", headers=error.headers)

    app.add_exception_handler(Refusal, refuse)
    for status in (404, 405):
        app.add_exception_handler(status, refuse_route)
    app.openapi = lambda: _document(app)  # type: ignore[method-assign]
    return app


class Listening(NamedTuple):
    """A server that holds its port and can be run."""

    server: uvicorn.Server
    socket: socket.socket
    address: str

    def run(self) -> None:
        """Answer until interrupted."""
        with contextlib.suppress(KeyboardInterrupt):
            self.server.run(sockets=[self.socket])


def listen(service: Service, host: str, port: int) -> Listening:
    """Take a port, 0 for a free one. Beyond this machine the service needs a token."""
    local = is_local(host)
    if not local and service.token is None:
        raise MaskwiseError(
            f"listening on {host} lets others ask this model, so it needs a token: --token or MASKWISE_TOKEN"
        )
    taken = _take_port(host, port)
    config = uvicorn.Config(
        make_app(service, LOCAL_NAMES | {host.lower()} if local else None),
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    name = f"[{host}]" if ":" in host else host
    return Listening(uvicorn.Server(config), taken, f"http://{name}:{taken.getsockname()[1]}")


def is_local(host: str) -> bool:
    """Whether only this machine can reach a server that listens on this host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _take_port(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise MaskwiseError(
            f"cannot listen on {host}, port {port}: {error}; choose others with --host and --port"
        ) from None


def _host_name(header: str) -> str | None:
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return None


def _error(
    status: int, message: str, *, id: str | None = None, headers: dict[str, str] | None = None
) -> Response:
    content = {"error": message} if id is None else {"id": id, "error": message}
    return JSONResponse(content, status, headers)


def _document(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with the records of the exchange among its schemas."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        found.setdefault("components", {}).setdefault("schemas", {}).update(_schemas())
        app.openapi_schema = found
    return app.openapi_schema


def _page(app: FastAPI) -> str:
    """The routes for readers, on a page that loads nothing."""
    routes = "".join(
        f"<dt><code>{method.upper()} {path}</code></dt><dd>{escape(route['description'])}</dd>"
        for path, methods in app.openapi()["paths"].items()
        for method, route in methods.items()
    )
    return (
        f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>maskwise</title><h1>maskwise {app.version}</h1>'
        f"<p>{escape(app.description)}</p><dl>{routes}</dl>"
        '<p><a href="/openapi.json">openapi.json</a> has every field and status, for readers and for tools.</p></html>'
    )


def _schemas() -> dict[str, Any]:
    """The records of the exchange, as they are over HTTP: a prediction names no sample, an image no file."""
    _, schemas = msgspec.json.schema_components(
        [wire_format.Request, Prediction], ref_template="#/components/schemas/{name}"
    )
    del schemas["Prediction"]["properties"]["sample"], schemas["RequestImage"]["properties"]["path"]
    schemas["Prediction"]["required"].remove("sample")
    schemas["RequestImage"]["required"] = ["png"]
    return schemas | {
        "PredictResponse": {
            "type": "object",
            "required": ["id", "predictions"],
            "properties": {
                "id": {"type": "string"},
                "predictions": {"type": "array", "items": {"$ref": "#/components/schemas/Prediction"}},
            },
        },
        "Error": {
            "type": "object",
            "required": ["error"],
            "properties": {"id": {"type": "string"}, "error": {"type": "string"}},
        },
    }


def _json_of(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}


DESCRIPTION = (
    "Questions about an image in, answers and masks out. Masks are COCO run lengths of the image's size."
)

_PREDICT_DOCUMENT: dict[str, Any] = {
    "openapi_extra": {"requestBody": {"required": True, "content": _json_of("Request")}},
    "responses": {
        200: {"description": "One prediction a question, in order.", "content": _json_of("PredictResponse")},
        **{
            status: {"description": text, "content": _json_of("Error")}
            for status, text in {
                400: "The body is not a request.",
                401: "The token is missing or wrong.",
                408: "The body took too long to arrive.",
                413: "The body is too large.",
                415: "The body is not declared as JSON.",
                421: "The request names another host than this server.",
                422: "The image cannot be opened, or there are too many questions.",
                500: "The model failed on this request.",
                503: "Too many requests are waiting; try again.",
            }.items()
        },
    },
}

_REQUESTS = msgspec.json.Decoder(wire_format.Request)
