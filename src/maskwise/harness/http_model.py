"""A model behind a server: `--model http://localhost:8000`, the client of `maskwise serve`.

    model = HttpModel("http://localhost:8000")
    model.name, model.weights_hash        # what the server says about its model
    model.predict(image, questions)

`POST /v1/predict` takes a request and returns a response as `wire_format` defines them; `GET /healthz` describes the
model. A request is repeated, with growing pauses, if the server cannot be reached, is busy, or fails itself (429, 5xx).
After some attempts ModelGoneError stops the run, and also if the server has another model than before. An error that
the model reports for a request is final. The token in MASKWISE_TOKEN, if set, is sent with every request and never
recorded.

`timeout` limits a whole exchange, from the request to the last byte of the response, however slowly a server sends.
"""

import contextlib
import http.client
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from PIL import Image

from maskwise.errors import ModelError, ModelGoneError
from maskwise.harness.wire_format import (
    HEALTH,
    MAX_RESPONSE_BYTES,
    MODEL_HEADER,
    PREDICT,
    PredictResponse,
    decode_response,
    encode_request,
    quote,
    response_to_predictions,
)
from maskwise.schema import Prediction

TOKEN = "MASKWISE_TOKEN"
"""The environment variable of the token."""

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
"""Seconds before the second attempt, doubled for each further one, and the longest pause."""

CONNECT_SECONDS = 10.0
HEALTH_SECONDS = 30.0
"""Time to connect, and for the health check, whose response a busy server may delay."""

MODEL_FAILED = (http.HTTPStatus.INTERNAL_SERVER_ERROR, http.HTTPStatus.GATEWAY_TIMEOUT)
"""Statuses of a server whose model failed on a request, or did not answer in time."""

READ_BYTES = 2**16
"""Bytes read at a time, so that a response that is too long is noticed before it is in memory."""


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says about itself; other fields are ignored."""

    status: str
    model: str = ""
    weights_hash: str | None = None
    config: dict[str, Any] = {}


class _Response(NamedTuple):
    """An HTTP response. pause: seconds to wait before the next attempt, if stated. model: identifies the model."""

    status: int
    body: bytes
    pause: float | None
    model: str | None


class HttpModel:
    """A predictor behind HTTP. timeout: seconds per question, None for no limit; tries: attempts per request."""

    def __init__(
        self, address: str, *, timeout: float | None = 120.0, tries: int = 6
    ) -> None:
        if not (timeout is None or timeout > 0) or not tries > 0:
            raise ModelError(
                f"timeout is {timeout} and tries is {tries}; expected numbers above 0"
            )
        self.timeout = timeout
        self.tries = tries
        self.address = address.rstrip("/")
        self._secure, self._host, self._port, self._base = _split_address(self.address)
        health, self._model = self._check_health()
        self.name = health.model or self.address
        self.weights_hash = health.weights_hash
        self.config = {"server": health.config}

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        """One prediction per question. ModelError if this request fails, ModelGoneError if all further ones would."""
        if not questions:
            return []
        id, body = encode_request(image, questions, embed=True)
        seconds = None if self.timeout is None else self.timeout * len(questions)
        response = self._request("POST", PREDICT, body, seconds=seconds)
        if response.status == http.HTTPStatus.OK and response.model != self._model:
            raise ModelGoneError(
                f"{self.address} has another model now than at the first request"
            )
        content = self._to_response(response)
        if content.id != id and response.status == http.HTTPStatus.OK:
            raise ModelError(f"{self.address} responded to another request")
        return response_to_predictions(
            content, len(questions), (image.height, image.width)
        )

    def _check_health(self) -> tuple[Health, str | None]:
        response = self._request("GET", HEALTH, None, seconds=HEALTH_SECONDS)
        if response.status != http.HTTPStatus.OK:
            raise ModelGoneError(
                f"{self.address}{HEALTH} responds with status {response.status}: expected a server such as "
                "`maskwise serve`"
            )
        try:
            return msgspec.json.decode(response.body, type=Health), response.model
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ModelGoneError(
                f"{self.address}{HEALTH} does not describe a model ({error}): {quote(response.body)}"
            ) from None

    def _to_response(self, response: _Response) -> PredictResponse:
        """The decoded body. A refusal is ModelError, or ModelGoneError if every request would be refused."""
        if response.status == http.HTTPStatus.OK:
            return decode_response(response.body)
        reason = _error_of(response.body)
        problem = f"{self.address} refused the request with status {response.status}: {reason}"
        if response.status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN):
            raise ModelGoneError(
                f"{problem}; put its token in the environment variable {TOKEN}"
            )
        if response.status in (
            http.HTTPStatus.NOT_FOUND,
            http.HTTPStatus.METHOD_NOT_ALLOWED,
        ):
            raise ModelGoneError(
                f"{problem}; expected a server such as `maskwise serve`"
            )
        if response.status in MODEL_FAILED:
            return PredictResponse(id="", error=reason)
        raise ModelError(problem)

    def _request(
        self, method: str, path: str, body: bytes | None, *, seconds: float | None
    ) -> _Response:
        """A response, after as many attempts as it takes."""
        pause = FIRST_PAUSE
        problem = ""
        for left in reversed(range(self.tries)):
            wanted = pause
            try:
                response = self._exchange(method, path, body, seconds=seconds)
                if not _is_transient(response):
                    return response
                problem = f"status {response.status}, {_error_of(response.body)}"
                wanted = max(pause, response.pause or 0.0)
            except _DeadlineError:
                raise ModelError(
                    f"{self.address} did not respond within {seconds:g} seconds"
                ) from None
            except (OSError, http.client.HTTPException) as error:
                problem = str(error) or type(error).__name__
            if left:
                time.sleep(min(wanted, LONGEST_PAUSE))
            pause *= 2
        raise ModelGoneError(
            f"{self.address} is given up after {self.tries} attempts: {problem}"
        )

    def _exchange(
        self, method: str, path: str, body: bytes | None, *, seconds: float | None
    ) -> _Response:
        """One request and its response; _DeadlineError if both together take longer than `seconds`."""
        kind = (
            http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        )
        connection = kind(self._host, self._port, timeout=CONNECT_SECONDS)
        try:
            try:
                connection.connect()
            except TimeoutError:
                raise OSError(
                    f"no connection within {CONNECT_SECONDS:g} seconds"
                ) from None
            connection.sock.settimeout(None)
            with _deadline(connection.sock, seconds):
                connection.request(method, self._base + path, body, _headers())
                with connection.getresponse() as response:
                    return _read_response(response)
        finally:
            connection.close()


class _DeadlineError(Exception):
    """An exchange took too long."""


@contextlib.contextmanager
def _deadline(line: socket.socket, seconds: float | None) -> Iterator[None]:
    """Shut a connection down after some seconds; _DeadlineError if that happened.

    A socket's own timeout starts again with every byte: a server that sends slowly, or `100 Continue` without end,
    would never exceed it.
    """
    if seconds is None:
        yield
        return
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        with contextlib.suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, expire)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (OSError, http.client.HTTPException, ValueError):
        if expired.is_set():
            raise _DeadlineError from None
        raise
    finally:
        timer.cancel()
    if expired.is_set():
        raise _DeadlineError


def _split_address(address: str) -> tuple[bool, str, int | None, str]:
    """Whether it is encrypted; host, port, and the path before the routes."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise ModelError(f"{address!r} is not an address: {error}") from None
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.query
        or parts.fragment
    ):
        raise ModelError(
            f"{address!r} is not an address; expected for example http://localhost:8000"
        )
    if parts.username is not None or parts.password is not None:
        raise ModelError(
            f"an address with a password would be recorded; put a token in {TOKEN} instead"
        )
    return parts.scheme == "https", parts.hostname, port, parts.path


def _headers() -> dict[str, str]:
    token = os.environ.get(TOKEN, "").strip()
    accepted = {"Accept": "application/json", "Content-Type": "application/json"}
    return accepted | ({"Authorization": f"Bearer {token}"} if token else {})


def _read_response(response: http.client.HTTPResponse) -> _Response:
    """Status, headers and a body of limited length."""
    body = bytearray()
    while data := response.read1(READ_BYTES):
        body += data
        if len(body) > MAX_RESPONSE_BYTES:
            raise ModelError(f"the response is longer than {MAX_RESPONSE_BYTES} bytes")
    if response.length:
        raise http.client.IncompleteRead(bytes(body), response.length)
    pause = response.getheader("Retry-After", "")
    seconds = float(pause) if pause.isdecimal() else None
    return _Response(
        response.status, bytes(body), seconds, response.getheader(MODEL_HEADER)
    )


def _is_transient(response: _Response) -> bool:
    """Whether another attempt may help: the server failed itself. With an id, 500 and 504 are errors of the model."""
    if response.status in MODEL_FAILED:
        return _field_of(response.body, "id") is None
    return (
        response.status == http.HTTPStatus.TOO_MANY_REQUESTS
        or response.status > http.HTTPStatus.INTERNAL_SERVER_ERROR
    )


def _error_of(body: bytes) -> str:
    return _field_of(body, "error") or quote(body)


def _field_of(body: bytes, name: str) -> str | None:
    try:
        value = msgspec.json.decode(body, type=dict[str, Any]).get(name)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, str) else None
