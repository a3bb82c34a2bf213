"""The routes of the ask page: upload an image once, then ask any number of questions about it.

| route | |
|---|---|
| `GET /v1/models` | the models that can be chosen |
| `POST /v1/models/{name}` | start the process of a model |
| `GET /v1/examples` | bundled images with questions |
| `POST /v1/images` | the bytes of an image; its id comes back |
| `GET /v1/images/{id}` | an image, upright |
| `POST /v1/ask` | one question about an image |
"""

import asyncio
import functools
import io
import time
from collections.abc import Mapping
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response

from maskwise.errors import ImageError, MaskwiseError
from maskwise.images import open_image
from maskwise.server.access import AccessTokens
from maskwise.server.encoding_cache import ImageNeededError
from maskwise.server.image_uploads import ImageUploads, StoredImage
from maskwise.server.metrics import ServerMetrics
from maskwise.server.model_pool import ModelPool
from maskwise.server.model_process import AskAnswer, AskRequest, ServedModel
from maskwise.server.openapi import ASK_OPERATION, UPLOAD_OPERATION, error_responses
from maskwise.server.responses import (
    RequestRejectedError,
    json_response,
    read_body,
    read_json,
)
from maskwise.server.service import RequestLimits, model_error_response

IMAGE_TYPES = {
    b"\x89PNG": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
}
"""What every browser shows, by its first bytes; other formats are sent as PNG."""

CONCURRENT_UPLOADS = 8
"""Bodies in memory at once."""


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question about an uploaded image. model: a name of `GET /v1/models`, None for the default."""

    image: str
    question: str
    model: str | None = None


class AskResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An answer with the image and the model it belongs to. seconds: from the request to the response."""

    image: StoredImage
    model: str
    question: str
    answer: AskAnswer
    seconds: float


class AskService:
    """What answers questions about uploaded images."""

    def __init__(
        self,
        pool: ModelPool,
        uploads: ImageUploads,
        limits: RequestLimits,
        metrics: ServerMetrics,
    ) -> None:
        self.pool = pool
        self.uploads = uploads
        self.limits = limits
        self.metrics = metrics
        self._uploading = asyncio.Semaphore(CONCURRENT_UPLOADS)
        metrics.waiting.set_function(lambda: pool.waiting)
        metrics.uploaded.set_function(lambda: uploads.bytes)

    async def upload(self, request: Request) -> StoredImage:
        """Keep the image of a body."""
        async with self._uploading:
            data = await read_body(
                request, self.limits.body_bytes, self.limits.body_seconds
            )
            return await asyncio.to_thread(self.uploads.add, data)

    async def ask(self, request: Request, question: Question) -> Response:
        """The answer to a question, or an error."""
        if not question.question.strip():
            raise RequestRejectedError(422, "the question is empty")
        if len(question.question) > self.limits.question_characters:
            message = f"the question has more than {self.limits.question_characters} characters"
            raise RequestRejectedError(422, message)
        started = time.perf_counter()
        stored, data = self.uploads.find(question.image)
        name, worker = await self.pool.find(question.model)
        try:
            content = await worker.call(
                request,
                stored.id,
                functools.partial(
                    _ask_model, id=stored.id, data=data, text=question.question
                ),
            )
        except RequestRejectedError:
            raise
        except MaskwiseError as error:
            return model_error_response(error)
        answer = _ANSWERS.decode(content)
        encoding = "reused" if answer.encoding_reused else "new"
        self.metrics.model_duration.labels(name, encoding).observe(answer.seconds)
        seconds = time.perf_counter() - started
        plain = StoredImage(id=stored.id, width=stored.width, height=stored.height)
        return json_response(
            AskResponse(
                image=plain,
                model=name,
                question=question.question,
                answer=answer,
                seconds=seconds,
            )
        )


def _ask_model(model: ServedModel, *, id: str, data: bytes, text: str) -> bytes:
    """Ask without the image first: it is sent only where the process does not have its encoding."""
    try:
        return model.ask(AskRequest(id, text))
    except ImageNeededError:
        return model.ask(AskRequest(id, text, data))


def ask_router(
    service: AskService, access: AccessTokens, descriptions: Mapping[str, str]
) -> APIRouter:
    """The routes. descriptions: one line about each model."""
    router = APIRouter()
    pool = service.pool

    @router.get("/v1/models", responses=error_responses(401))
    async def models(request: Request) -> Response:
        """The models that can be chosen, with one line about each."""
        access.check_read(request)
        return json_response(
            [_describe_model(pool, name, descriptions) for name in pool.names]
        )

    @router.post(
        "/v1/models/{name:path}", responses=error_responses(401, 404, 422, 503)
    )
    async def start_model(request: Request, name: str) -> Response:
        """Start the process of a model, unless it runs."""
        access.check_write(request)
        found, _ = await pool.find(name)
        return json_response(_describe_model(pool, found, descriptions))

    @router.get("/v1/examples", responses=error_responses(401))
    async def examples(request: Request) -> Response:
        """Bundled images with questions about them."""
        access.check_read(request)
        return json_response(service.uploads.examples)

    @router.post("/v1/images", **UPLOAD_OPERATION)
    async def upload(request: Request) -> Response:
        """Upload an image: the body is the file itself (JPEG, PNG, WebP, GIF or TIFF)."""
        access.check_write(request)
        return json_response(await service.upload(request))

    @router.get("/v1/images/{id}", responses=error_responses(401, 404, 422))
    async def image(request: Request, id: str) -> Response:
        """An uploaded image in a format that browsers show."""
        access.check_read(request)
        _, data = service.uploads.find(id)
        kind = next(
            (kind for start, kind in IMAGE_TYPES.items() if data.startswith(start)),
            None,
        )
        if kind is None:
            data = await asyncio.to_thread(_to_png, data, service.limits.pixels)
            kind = "image/png"
        headers = {"Cache-Control": "private, max-age=86400, immutable"}
        return Response(data, headers=headers, media_type=kind)

    @router.post("/v1/ask", **ASK_OPERATION)
    async def ask(request: Request) -> Response:
        """Ask one question about an uploaded image. Further questions about it use its encoding."""
        access.check_write(request)
        return await service.ask(request, await read_json(request, _QUESTIONS))

    return router


def _describe_model(
    pool: ModelPool, name: str, descriptions: Mapping[str, str]
) -> dict[str, Any]:
    return {
        "name": name,
        "description": descriptions.get(name, ""),
        "default": name == pool.default,
        "running": pool.running(name),
    }


def _to_png(data: bytes, max_pixels: int) -> bytes:
    try:
        image = open_image(data, max_pixels=max_pixels)
    except ImageError as error:
        raise RequestRejectedError(422, str(error)) from None
    buffer = io.BytesIO()
    image.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


_QUESTIONS = msgspec.json.Decoder(Question)
_ANSWERS = msgspec.json.Decoder(AskAnswer)
