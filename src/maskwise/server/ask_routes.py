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

import time
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from litestar import Router, get, post
from litestar.di import NamedDependency, Provide
from litestar.middleware import DefineMiddleware
from litestar.params import Body, FromPath, JSONBody, SkipValidation
from litestar.response import Stream

from maskwise.errors import MaskwiseError
from maskwise.language.intent import CueSpan, classify_intent
from maskwise.schema import Turn
from maskwise.server.access import check_read, check_write
from maskwise.server.browser_copies import BrowserCopies, split_chunks
from maskwise.server.browser_images import content_type
from maskwise.server.encoding_cache import ImageNeededError
from maskwise.server.image_uploads import ExampleImage, ImageUploads, StoredImage
from maskwise.server.limits import RequestLimits
from maskwise.server.metrics import ServerMetrics
from maskwise.server.model_errors import to_rejection
from maskwise.server.model_pool import ModelPool
from maskwise.server.model_process import AskAnswer, AskRequest, ServedModel
from maskwise.server.requests import BoundedRequest, LargeBodies
from maskwise.server.responses import RequestRejectedError, errors

Pool = NamedDependency[SkipValidation[ModelPool]]
Uploads = NamedDependency[SkipValidation[ImageUploads]]
Copies = NamedDependency[SkipValidation[BrowserCopies]]
Limits = NamedDependency[SkipValidation[RequestLimits]]
Metrics = NamedDependency[SkipValidation[ServerMetrics]]
Descriptions = NamedDependency[SkipValidation[Mapping[str, str]]]


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question about an uploaded image.

    image: the id that `POST /v1/images` returned. model: a name of `GET /v1/models`, None for the default. turns:
    earlier questions about the image with their answers, which this one may refer to.
    """

    image: str
    question: str
    model: str | None = None
    turns: tuple[Turn, ...] = ()


class AskResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An answer with the image and the model it belongs to.

    cues: the words of the question that decide about the mask type. seconds: from the request to the response.
    """

    image: StoredImage
    model: str
    question: str
    cues: list[CueSpan]
    answer: AskAnswer
    seconds: float


@get("/v1/models", guards=[check_read], sync_to_thread=False, responses=errors(401))
def list_models(pool: Pool, descriptions: Descriptions) -> list[dict[str, Any]]:
    """The models that can be chosen, with one line about each."""
    return [_describe_model(pool, name, descriptions) for name in pool.names]


@post(
    "/v1/models/{name:path}",
    status_code=200,
    guards=[check_write],
    responses=errors(401, 404, 422, 503),
)
async def start_model(
    pool: Pool, descriptions: Descriptions, name: FromPath[str]
) -> dict[str, Any]:
    """Start the process of a model, unless it runs."""
    # A parameter that may contain slashes begins with the one before it.
    started, _ = await pool.find(name.removeprefix("/"))
    return _describe_model(pool, started, descriptions)


@get("/v1/examples", guards=[check_read], sync_to_thread=False, responses=errors(401))
def list_examples(uploads: Uploads) -> list[ExampleImage]:
    """Bundled images with questions about them."""
    return uploads.examples


@post(
    "/v1/images",
    status_code=200,
    guards=[check_write],
    sync_to_thread=True,
    responses=errors(401, 408, 413, 421, 422, 503),
    response_description="Id, width and height of the image.",
)
def upload_image(
    uploads: Uploads,
    data: Annotated[bytes, Body(media_type="application/octet-stream")] = b"",
) -> StoredImage:
    """Upload an image: the body is the file itself (JPEG, PNG, WebP, GIF or TIFF)."""
    return uploads.add(data)


@get(
    "/v1/images/{id:str}",
    guards=[check_read],
    media_type="image/png",
    responses=errors(401, 404, 422, 503),
)
async def read_image(uploads: Uploads, copies: Copies, id: FromPath[str]) -> Stream:
    """An uploaded image in a format that browsers show."""
    _, data = uploads.find(id)
    kind = content_type(data)
    if kind is None:
        copy = await copies.find(id, data)
        chunks = copy.chunks()
        size = copy.bytes
        kind = copy.content_type
    else:
        chunks = split_chunks(data)
        size = len(data)
    headers = {
        # The id is a hash of the bytes, so that what it names never changes.
        "Cache-Control": "private, max-age=86400, immutable",
        "Content-Length": str(size),
    }
    return Stream(chunks, headers=headers, media_type=kind)


@post(
    "/v1/ask",
    status_code=200,
    guards=[check_write],
    responses=errors(401, 404, 408, 413, 415, 421, 422, 500, 503, 504),
    response_description="The answer, and the masks it refers to.",
)
async def ask(
    request: BoundedRequest,
    pool: Pool,
    uploads: Uploads,
    *,
    limits: Limits,
    metrics: Metrics,
    data: JSONBody[Question],
) -> AskResponse:
    """Ask one question about an uploaded image. Further questions about it use its encoding."""
    started = time.perf_counter()
    _check_question(data.question, limits)
    if len(data.turns) > limits.turns:
        raise RequestRejectedError(422, f"more than {limits.turns} earlier turns")
    for turn in data.turns:
        _check_question(turn.question, limits)
        if len(turn.answer or "") > limits.question_characters:
            raise RequestRejectedError(
                422, f"an answer has more than {limits.question_characters} characters"
            )
    stored, image = uploads.find(data.image)
    name, worker = await pool.find(data.model)
    try:
        content = await worker.call(
            request,
            stored.id,
            lambda model: _ask_model(model, stored.id, image, data),
        )
    except RequestRejectedError:
        raise
    except MaskwiseError as error:
        raise to_rejection(error) from None
    answer = msgspec.json.decode(content, type=AskAnswer)
    (intent,) = classify_intent([data.question])
    encoding = "reused" if answer.encoding_reused else "new"
    metrics.model_duration.labels(name, encoding).observe(answer.seconds)
    return AskResponse(
        image=StoredImage(id=stored.id, width=stored.width, height=stored.height),
        model=name,
        question=data.question,
        cues=list(intent.spans),
        answer=answer,
        seconds=time.perf_counter() - started,
    )


def ask_router(
    pool: ModelPool,
    uploads: ImageUploads,
    limits: RequestLimits,
    *,
    copies: BrowserCopies,
    metrics: ServerMetrics,
    descriptions: Mapping[str, str],
) -> Router:
    """The routes. descriptions: one line about each model."""
    metrics.waiting.set_function(lambda: pool.waiting)
    metrics.uploaded.set_function(lambda: uploads.bytes)
    bounded = Router(
        "/",
        route_handlers=[upload_image],
        middleware=[DefineMiddleware(LargeBodies, memory=limits.body_memory)],
        request_max_body_size=limits.body_bytes,
    )
    return Router(
        "/",
        route_handlers=[
            bounded,
            list_models,
            start_model,
            list_examples,
            read_image,
            ask,
        ],
        dependencies={
            "pool": Provide(lambda: pool, sync_to_thread=False),
            "uploads": Provide(lambda: uploads, sync_to_thread=False),
            "copies": Provide(lambda: copies, sync_to_thread=False),
            "limits": Provide(lambda: limits, sync_to_thread=False),
            "metrics": Provide(lambda: metrics, sync_to_thread=False),
            "descriptions": Provide(lambda: descriptions, sync_to_thread=False),
        },
    )


def _check_question(text: str, limits: RequestLimits) -> None:
    if not text.strip():
        raise RequestRejectedError(422, "the question is empty")
    if len(text) > limits.question_characters:
        raise RequestRejectedError(
            422, f"the question has more than {limits.question_characters} characters"
        )


def _ask_model(model: ServedModel, id: str, image: bytes, data: Question) -> bytes:
    """Ask without the image first: it is sent only where the process does not have its encoding."""
    try:
        return model.ask(AskRequest(id, data.question, turns=data.turns))
    except ImageNeededError:
        return model.ask(AskRequest(id, data.question, image, data.turns))


def _describe_model(
    pool: ModelPool, name: str, descriptions: Mapping[str, str]
) -> dict[str, Any]:
    return {
        "name": name,
        "description": descriptions.get(name, ""),
        "default": name == pool.default,
        "running": pool.running(name),
    }
