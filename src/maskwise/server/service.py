"""What happens to a prediction request: token, size and content are checked, then the model is asked.

Everything that comes in is bounded before it is taken: bytes of the body, pixels before they are decoded, questions and
their length, requests that wait. Requests are answered one at a time.
"""

import asyncio
import contextlib
import hashlib
import hmac
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import msgspec
from fastapi import Request, Response
from fastapi.responses import JSONResponse
from starlette.requests import ClientDisconnect

import maskwise
from maskwise.errors import ImageError, MaskwiseError
from maskwise.harness import wire_format
from maskwise.server.connections import RETRY_SECONDS
from maskwise.server.model_process import ModelFailureError, ModelRequest, ModelTimeoutError, ServedModel
from maskwise.terminal import safe_text

_log = logging.getLogger("maskwise.server")


@dataclass(frozen=True)
class RequestLimits:
    """Bounds of a request. waiting: requests accepted at once, of which one is being answered."""

    body_bytes: int = 2**26
    body_seconds: float = 60.0
    pixels: int = 50_000_000
    questions: int = 64
    question_characters: int = 2000
    waiting: int = 8


class RequestRejectedError(MaskwiseError):
    """A request that is not answered: status, message, headers."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers


class PredictionService:
    """A model with its limits and its queue."""

    def __init__(self, model: ServedModel, token: str | None, limits: RequestLimits) -> None:
        self.model, self.token, self.limits = model, token, limits
        facts = model.facts
        self._description = {"model": facts.name, "weights_hash": facts.weights_hash, "config": facts.config}
        digest = hashlib.sha256(msgspec.json.encode(self._description, order="sorted")).hexdigest()
        self._model_header = {wire_format.MODEL_HEADER: digest[:32]}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._lock, self._accepted = asyncio.Lock(), 0

    async def predict(self, request: Request) -> Response:
        """The response to a request that passes every check; RequestRejectedError otherwise."""
        self.check_token(request)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise RequestRejectedError(415, "expected a body of content type application/json")
        with self._queue_place():
            decoded = self._decode(await self._read_body(request))
            async with self._lock:
                if await request.is_disconnected():
                    raise RequestRejectedError(400, "the client has disconnected")
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._thread, self._ask_model, decoded)

    def health(self, request: Request) -> Response:
        """Status; with a valid token, or where none is needed, also which model is served."""
        try:
            self.check_token(request)
        except RequestRejectedError:
            return JSONResponse({"status": "ok"})
        content = {"status": "ok", **self._description, "maskwise": maskwise.__version__}
        return JSONResponse(content, headers=self._model_header)

    def check_token(self, request: Request) -> None:
        """Reject a request without the token, where one is set."""
        if self.token is None:
            return
        kind, _, given = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token.encode()):
            message = "expected the header Authorization: Bearer TOKEN"
            raise RequestRejectedError(401, message, {"WWW-Authenticate": "Bearer"})

    def close(self) -> None:
        """Wait for the request being answered, and end the model's process."""
        self._thread.shutdown(cancel_futures=True)
        self.model.close()

    @contextlib.contextmanager
    def _queue_place(self) -> Iterator[None]:
        if self._accepted >= self.limits.waiting:
            headers = {"Retry-After": str(RETRY_SECONDS)}
            raise RequestRejectedError(503, "too many requests are waiting", headers)
        self._accepted += 1
        try:
            yield
        finally:
            self._accepted -= 1

    async def _read_body(self, request: Request) -> bytes:
        """The body, rejected as soon as it is known to be too large or too slow."""
        limit = self.limits.body_bytes
        too_large = RequestRejectedError(413, f"the body is larger than {limit} bytes")
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
            raise RequestRejectedError(400, "the body did not arrive") from None
        except TimeoutError:
            message = f"the body took longer than {self.limits.body_seconds:g} seconds"
            raise RequestRejectedError(408, message) from None
        return bytes(body)

    def _decode(self, body: bytes) -> ModelRequest:
        limits = self.limits
        try:
            decoded = _REQUESTS.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, MaskwiseError) as error:
            raise RequestRejectedError(400, f"invalid request: {error}") from None
        if decoded.image.png is None:
            raise RequestRejectedError(400, 'files are not read here: send the image itself, as "png"')
        count = len(decoded.questions)
        if not 1 <= count <= limits.questions:
            raise RequestRejectedError(422, f"{count} questions; expected 1 to {limits.questions}")
        if any(len(question) > limits.question_characters for question in decoded.questions):
            raise RequestRejectedError(
                422, f"a question has more than {limits.question_characters} characters"
            )
        return ModelRequest(decoded.id, decoded.image.png, decoded.questions)

    def _ask_model(self, request: ModelRequest) -> Response:
        try:
            body = self.model.predict(request)
            return Response(body, headers=self._model_header, media_type="application/json")
        except ImageError as error:
            return error_response(422, str(error), id=request.id)
        except ModelTimeoutError as error:
            _log.error("%s", error)
            return error_response(504, str(error), id=request.id)
        except ModelFailureError as error:
            return error_response(500, _log_failure(error), id=request.id)
        except MaskwiseError as error:
            return error_response(
                500, _log_failure(ModelFailureError("the model failed", str(error))), id=request.id
            )


def error_response(
    status: int, message: str, *, id: str | None = None, headers: dict[str, str] | None = None
) -> Response:
    """An error as JSON: `{"error": "..."}`, with the request's id where it is known."""
    content = {"error": message} if id is None else {"id": id, "error": message}
    return JSONResponse(content, status, headers)


def _log_failure(error: ModelFailureError) -> str:
    """Log what a model raised, and return a message without it: it can hold paths and data of this machine.

    The number follows from the details, so that the same failure has the same number.
    """
    number = hashlib.blake2b(error.details.encode(errors="replace"), digest_size=4).hexdigest()
    _log.error("failure %s: %s", number, safe_text(error.details))
    return f"{error}; the server's log has the details as failure {number}"


_REQUESTS = msgspec.json.Decoder(wire_format.Request)
