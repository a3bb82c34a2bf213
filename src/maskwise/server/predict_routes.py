"""`POST /v1/predict`, a request as `harness.wire_format` describes it, and `GET /healthz`.

Everything that comes in is bounded before it is taken: bytes of the body, pixels before they are decoded, questions and
their length, requests that wait.
"""

import hashlib
from typing import Any

import msgspec
from litestar import Response, Router, get, post
from litestar.di import NamedDependency, Provide
from litestar.middleware import DefineMiddleware
from litestar.params import JSONBody, SkipValidation

import maskwise
from maskwise.errors import MaskwiseError
from maskwise.harness import wire_format
from maskwise.runs.schema import ModelInfo
from maskwise.server.access import check_read
from maskwise.server.limits import RequestLimits
from maskwise.server.model_errors import to_rejection
from maskwise.server.model_process import ModelRequest
from maskwise.server.model_worker import ModelWorker
from maskwise.server.requests import BoundedRequest, LargeBodies
from maskwise.server.responses import RequestRejectedError, errors

Worker = NamedDependency[SkipValidation[ModelWorker]]
Limits = NamedDependency[SkipValidation[RequestLimits]]


@post(
    wire_format.PREDICT,
    status_code=200,
    guards=[check_read],
    responses=errors(401, 408, 413, 415, 421, 422, 500, 503, 504),
    response_description="One prediction per question, in order.",
)
async def predict(
    request: BoundedRequest,
    worker: Worker,
    limits: Limits,
    data: JSONBody[wire_format.Request],
) -> Response[wire_format.PredictResponse]:
    """Ask questions about one image, which is encoded once for all of them."""
    asked = to_model_request(data, limits)
    try:
        body = await worker.call(request, "", lambda model: model.predict(asked))
    except RequestRejectedError:
        raise
    except MaskwiseError as error:
        raise to_rejection(error, id=data.id) from None
    # The model's process has encoded the response.
    content: Any = body
    headers = model_header(worker.model.facts)
    return Response(content, headers=headers, media_type="application/json")


@get(wire_format.HEALTH, sync_to_thread=False)
def healthz(request: BoundedRequest, worker: Worker) -> Response[dict[str, Any]]:
    """Status of the server; with a valid token, or where none is needed, also which model it serves."""
    if not request.app.state.access.may_read(request):
        return Response({"status": "ok"})
    facts = worker.model.facts
    content = {
        "status": "ok",
        **describe_model(facts),
        "maskwise": maskwise.__version__,
    }
    return Response(content, headers=model_header(facts))


def predict_router(worker: ModelWorker, limits: RequestLimits) -> Router:
    """The routes that other programs use. The memory for bodies is `limits.body_memory`."""
    bounded = Router(
        "/",
        route_handlers=[predict],
        middleware=[
            DefineMiddleware(
                LargeBodies, memory=limits.body_memory, limit=limits.waiting
            )
        ],
        request_max_body_size=limits.body_bytes,
    )
    return Router(
        "/",
        route_handlers=[bounded, healthz],
        dependencies={
            "worker": Provide(lambda: worker, sync_to_thread=False),
            "limits": Provide(lambda: limits, sync_to_thread=False),
        },
    )


def to_model_request(
    request: wire_format.Request, limits: RequestLimits
) -> ModelRequest:
    """The request that the model's process gets; RequestRejectedError where it exceeds the limits."""
    if request.image.png is None:
        raise RequestRejectedError(
            400, 'files are not read here: send the image itself, as "png"'
        )
    count = len(request.questions)
    if not 1 <= count <= limits.questions:
        raise RequestRejectedError(
            422, f"{count} questions; expected 1 to {limits.questions}"
        )
    turns = [turn for earlier in request.turns for turn in earlier]
    if any(len(earlier) > limits.turns for earlier in request.turns):
        raise RequestRejectedError(
            422, f"a question has more than {limits.turns} earlier turns"
        )
    texts = [*request.questions]
    for turn in turns:
        texts += [turn.question, turn.answer or ""]
    longest = max(len(text) for text in texts)
    if longest > limits.question_characters:
        raise RequestRejectedError(
            422, f"a question has more than {limits.question_characters} characters"
        )
    return ModelRequest(request.id, request.image.png, request.questions, request.turns)


def describe_model(facts: ModelInfo) -> dict[str, Any]:
    """What clients learn about the served model."""
    return {
        "model": facts.name,
        "weights_hash": facts.weights_hash,
        "config": facts.config,
    }


def model_header(facts: ModelInfo) -> dict[str, str]:
    """A header that changes with the model, so that a client notices another one at the same address."""
    description = msgspec.json.encode(describe_model(facts), order="sorted")
    digest = hashlib.sha256(description).hexdigest()
    return {wire_format.MODEL_HEADER: digest[:32]}
