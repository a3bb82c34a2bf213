"""A model behind a server: `--model http://localhost:8000`, the client of `maskwise serve`.

    model = HttpModel("http://localhost:8000")
    model.name, model.weights_hash        # what the server says of its model
    model.predict(image, questions)

`POST /v1/predict` takes a request and gives a reply, as `exchange` has them; `GET /healthz` says which model it is. A
server that cannot be reached, is busy or fails on its own account (429, 5xx) is asked again, ever more slowly; in the
end ModelGoneError stops the run, as it does where the server has another model than before. What a model reports of one
request is its word, and not asked for twice. The token in MASKWISE_TOKEN, if set, goes with every request; no record
keeps it.
"""

import contextlib
import http.client
import os
import socket
import time
from collections.abc import Sequence
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

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
"""Seconds before the second try, doubled for each one after it, and never more than these."""

CONNECT_SECONDS = 10.0
HEALTH_SECONDS = 30.0
READ_BYTES = 2**16


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """What a server says of itself; other fields are not read."""

    status: str
    model: str = ""
    weights_hash: str | None = None
    config: dict[str, Any] = {}


class _Got(NamedTuple):
    status: int
    body: bytes
    pause: float | None
    """Seconds the server asks to wait before the next try."""
    model: str | None
    """Which model the server has, if it says."""


class HttpModel:
    """A predictor behind HTTP. timeout: seconds a question may take; tries: how often a request is made at most."""

    def __init__(self, address: str, *, timeout: float | None = 120.0, tries: int = 6) -> None:
        self.timeout, self.tries = timeout, tries
        self.address = address.rstrip("/")
        self._secure, self._host, self._port, self._base = _take_apart(self.address)
        health, self._model = self._check_health()
        self.name, self.weights_hash = health.model or self.address, health.weights_hash
        self.config = {"server": health.config}

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        """One prediction a question. ModelError where this fails, ModelGoneError where it will go on failing."""
        if not questions:
            return []
        id, body = encode_request(image, questions, whole=True)
        seconds = None if self.timeout is None else self.timeout * len(questions)
        got = self._insist("POST", PREDICT, body, seconds=seconds)
        if got.status == http.HTTPStatus.OK and got.model != self._model:
            raise ModelGoneError(f"{self.address} has another model now than when it was first asked")
        reply = self._to_reply(got)
        if reply.id != id and got.status == http.HTTPStatus.OK:
            raise ModelError(f"{self.address} replied to another request")
        return response_to_predictions(reply, len(questions))

    def _check_health(self) -> tuple[Health, str | None]:
        got = self._insist("GET", HEALTH, None, seconds=HEALTH_SECONDS)
        if got.status != http.HTTPStatus.OK:
            raise ModelGoneError(
                f"{self.address}{HEALTH} answers with status {got.status}: expected a server such as `maskwise serve`"
            )
        try:
            return msgspec.json.decode(got.body, type=Health), got.model
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ModelGoneError(
                f"{self.address}{HEALTH} is not that of a model ({error}): {quote(got.body)}"
            ) from None

    def _to_reply(self, got: _Got) -> PredictResponse:
        """The reply in a response; a refusal is an error of the model, or its end where every request will meet it."""
        if got.status == http.HTTPStatus.OK:
            return decode_response(got.body)
        said = _error_of(got.body)
        problem = f"{self.address} refused the request with status {got.status}: {said}"
        if got.status in (http.HTTPStatus.UNAUTHORIZED, http.HTTPStatus.FORBIDDEN):
            raise ModelGoneError(f"{problem}; its token belongs in the environment as {TOKEN}")
        if got.status in (http.HTTPStatus.NOT_FOUND, http.HTTPStatus.METHOD_NOT_ALLOWED):
            raise ModelGoneError(f"{problem}; expected a server such as `maskwise serve`")
        if got.status == http.HTTPStatus.INTERNAL_SERVER_ERROR:
            return PredictResponse(id="", error=said)
        raise ModelError(problem)

    def _insist(self, method: str, path: str, body: bytes | None, *, seconds: float | None) -> _Got:
        """A response, after as many tries as it takes."""
        pause, problem = FIRST_PAUSE, ""
        for left in reversed(range(self.tries)):
            wanted = pause
            try:
                got = self._request(method, path, body, seconds=seconds)
                if not _worth_another_try(got):
                    return got
                problem = f"status {got.status}, {_error_of(got.body)}"
                wanted = max(pause, got.pause or 0.0)
            except (OSError, http.client.HTTPException) as error:
                if isinstance(error, TimeoutError) and seconds is not None:
                    raise ModelError(f"{self.address} did not answer within {seconds:g} seconds") from None
                problem = str(error) or type(error).__name__
            if left:
                time.sleep(min(wanted, LONGEST_PAUSE))
            pause *= 2
        raise ModelGoneError(f"{self.address} is given up after {self.tries} tries: {problem}")

    def _request(self, method: str, path: str, body: bytes | None, *, seconds: float | None) -> _Got:
        deadline = None if seconds is None else time.monotonic() + seconds
        kind = http.client.HTTPSConnection if self._secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=CONNECT_SECONDS)
        try:
            try:
                connection.connect()
            except TimeoutError:
                raise OSError(f"no connection within {CONNECT_SECONDS:g} seconds") from None
            line = connection.sock
            line.settimeout(_left(deadline))
            connection.request(method, self._base + path, body, _headers())
            with connection.getresponse() as response:
                pause = response.getheader("Retry-After", "")
                data = _read(response, line, deadline)
                seconds = float(pause) if pause.isdecimal() else None
                return _Got(response.status, data, seconds, response.getheader(MODEL_HEADER))
        finally:
            connection.close()


def _take_apart(address: str) -> tuple[bool, str, int | None, str]:
    """Whether it is encrypted, host, port, path before the routes."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as error:
        raise ModelError(f"{address!r} is not an address: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ModelError(f"{address!r} is not an address; expected for example http://localhost:8000")
    if parts.username is not None or parts.password is not None:
        raise ModelError(f"an address with a password would be recorded; put a token in {TOKEN} instead")
    return parts.scheme == "https", parts.hostname, port, parts.path


def _headers() -> dict[str, str]:
    token = os.environ.get(TOKEN, "").strip()
    accepted = {"Accept": "application/json", "Content-Type": "application/json"}
    return accepted | ({"Authorization": f"Bearer {token}"} if token else {})


def _read(response: http.client.HTTPResponse, line: socket.socket, deadline: float | None) -> bytes:
    """The body, within its length and time."""
    body = bytearray()
    while data := response.read1(READ_BYTES):
        body += data
        if len(body) > MAX_RESPONSE_BYTES:
            raise ModelError(f"the reply is longer than {MAX_RESPONSE_BYTES} bytes")
        left = _left(deadline)
        with contextlib.suppress(
            OSError
        ):  # The line may be closed already, with the rest of the body at hand.
            line.settimeout(left)
    if response.length:
        raise http.client.IncompleteRead(bytes(body), response.length)
    return bytes(body)


def _left(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _worth_another_try(got: _Got) -> bool:
    """Whether the server failed on its own account: a 500 that carries a reply is the model's word."""
    if got.status == http.HTTPStatus.INTERNAL_SERVER_ERROR:
        return _field_of(got.body, "id") is None
    return (
        got.status == http.HTTPStatus.TOO_MANY_REQUESTS or got.status > http.HTTPStatus.INTERNAL_SERVER_ERROR
    )


def _error_of(body: bytes) -> str:
    return _field_of(body, "error") or quote(body)


def _field_of(body: bytes, name: str) -> str | None:
    try:
        value = msgspec.json.decode(body, type=dict[str, Any]).get(name)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, str) else None
