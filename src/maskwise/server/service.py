"""What happens to a prediction request: token, size and content are checked, then the model is asked.

Everything that comes in is bounded before it is taken: bytes of the body, pixels before they are decoded, questions and
their length, requests that wait. Requests are answered one at a time.
"""

import contextlib
import hashlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
from fastapi import Request, Response
from fastapi.responses import JSONResponse

import maskwise
from maskwise.errors import ImageError, MaskwiseError
from maskwise.harness import wire_format
from maskwise.server.access import AccessTokens
from maskwise.server.connections import RETRY_SECONDS
from maskwise.server.model_process import (
    ModelFailureError,
    ModelRequest,
    ModelTimeoutError,
    ServedModel,
)
from maskwise.server.model_worker import ModelWorker
from maskwise.server.responses import (
    RequestRejectedError,
    check_json_type,
    decode_json,
    error_response,
    read_body,
)
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


class PredictionService:
    """What answers `POST /v1/predict`: a model with its limits."""

    def __init__(
        self, worker: ModelWorker, access: AccessTokens, limits: RequestLimits
    ) -> None:
        self.worker = worker
        self.access = access
        self.limits = limits
        facts = worker.model.facts
        self._description = {
            "model": facts.name,
            "weights_hash": facts.weights_hash,
            "config": facts.config,
        }
        digest = hashlib.sha256(
            msgspec.json.encode(self._description, order="sorted")
        ).hexdigest()
        self._model_header = {wire_format.MODEL_HEADER: digest[:32]}
        self._accepted = 0

    async def predict(self, request: Request) -> Response:
        """The response to a request that passes every check; RequestRejectedError otherwise."""
        self.access.check_read(request)
        check_json_type(request)
        with self._queue_place():
            body = await read_body(
                request, self.limits.body_bytes, self.limits.body_seconds
            )
            decoded = self._decode(body)
            return await self.worker.call(
                request, "", lambda model: self._ask_model(model, decoded)
            )

    def health(self, request: Request) -> Response:
        """Status; with a valid token, or where none is needed, also which model is served."""
        try:
            self.access.check_read(request)
        except RequestRejectedError:
            return JSONResponse({"status": "ok"})
        content = {
            "status": "ok",
            **self._description,
            "maskwise": maskwise.__version__,
        }
        return JSONResponse(content, headers=self._model_header)

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

    def _decode(self, body: bytes) -> ModelRequest:
        limits = self.limits
        decoded = decode_json(body, _REQUESTS)
        if decoded.image.png is None:
            raise RequestRejectedError(
                400, 'files are not read here: send the image itself, as "png"'
            )
        count = len(decoded.questions)
        if not 1 <= count <= limits.questions:
            raise RequestRejectedError(
                422, f"{count} questions; expected 1 to {limits.questions}"
            )
        if any(
            len(question) > limits.question_characters for question in decoded.questions
        ):
            raise RequestRejectedError(
                422, f"a question has more than {limits.question_characters} characters"
            )
        return ModelRequest(decoded.id, decoded.image.png, decoded.questions)

    def _ask_model(self, model: ServedModel, request: ModelRequest) -> Response:
        try:
            body = model.predict(request)
            return Response(
                body, headers=self._model_header, media_type="application/json"
            )
        except MaskwiseError as error:
            return model_error_response(error, id=request.id)


def model_error_response(error: MaskwiseError, *, id: str | None = None) -> Response:
    """The response where a model did not answer. What it raised is logged and not sent."""
    if isinstance(error, ImageError):
        return error_response(422, str(error), id=id)
    if isinstance(error, ModelTimeoutError):
        _log.error("%s", error)
        return error_response(504, str(error), id=id)
    if not isinstance(error, ModelFailureError):
        error = ModelFailureError("the model failed", str(error))
    return error_response(500, _log_failure(error), id=id)


def _log_failure(error: ModelFailureError) -> str:
    """Log what a model raised, and return a message without it: it can hold paths and data of this machine.

    The number follows from the details, so that the same failure has the same number.
    """
    number = hashlib.blake2b(
        error.details.encode(errors="replace"), digest_size=4
    ).hexdigest()
    _log.error("failure %s: %s", number, safe_text(error.details))
    return f"{error}; the server's log has the details as failure {number}"


_REQUESTS = msgspec.json.Decoder(wire_format.Request)
