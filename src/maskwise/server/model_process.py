"""The served model in a child process, with a deadline per request.

A model that hangs, crashes or exits takes only its process with it: the process is killed and started again, and the
server keeps answering. Images are decoded in the child too, so that what they cost is freed with it.

Messages are msgpack records over a pipe between the two processes. Images that a page asks about again and again are
sent once: the child keeps their encodings (`encoding_cache`).
"""

import multiprocessing
import os
import time
import traceback
import weakref
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Literal, Protocol

import msgspec

from maskwise.errors import ImageError, MaskwiseError, ModelError
from maskwise.harness import wire_format
from maskwise.harness.predictor import Predictor, describe_model, mask_type_probability
from maskwise.harness.process_group import GroupWatch, kill_group
from maskwise.harness.registry import make_predictor
from maskwise.images import open_image
from maskwise.runs.schema import ModelInfo
from maskwise.schema import PredictedRegion, Prediction, Turn, continue_dialogue
from maskwise.server.encoding_cache import EncodingCache, ImageNeededError

CLOSE_SECONDS = 1.0
"""How long an idle process may take to finish before it is killed; one that is busy is killed at once."""


class ModelFailureError(ModelError):
    """The model failed on a request. `details`: what it raised, with paths of this machine: for the log only."""

    def __init__(self, message: str, details: str) -> None:
        super().__init__(message)
        self.details = details


class ModelTimeoutError(ModelError):
    """The model did not answer in time; its process was killed and started again."""


class ModelRequest(msgspec.Struct, frozen=True, tag=True):
    """Questions about one encoded image."""

    id: str
    image: bytes
    questions: tuple[str, ...]
    turns: tuple[tuple[Turn, ...], ...] = ()


class AskRequest(msgspec.Struct, frozen=True, tag=True):
    """One question about an image. image: its bytes, None where the process should have its encoding."""

    image_id: str
    question: str
    image: bytes | None = None
    turns: tuple[Turn, ...] = ()


class AskAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a question with what a page shows beside it.

    prediction: its `sample` is empty. mask_type_probability: of the chosen mask type, None where the
    model does not tell. occlusion_rates: hidden share of the amodal area of each region, None where a mask is unknown.
    encoding_reused: the image was encoded before. seconds: time of the model.
    """

    prediction: Prediction
    mask_type_probability: float | None
    occlusion_rates: list[float | None]
    domain_warning: str | None
    encoding_reused: bool
    seconds: float


class ModelReply(msgspec.Struct, frozen=True):
    """loaded: ModelInfo as JSON. response: a PredictResponse or an AskAnswer as JSON. Otherwise a text."""

    kind: Literal[
        "loaded",
        "not loaded",
        "response",
        "image needed",
        "invalid image",
        "model error",
    ]
    content: bytes


class ServedModel(Protocol):
    """What a server needs of a model."""

    facts: ModelInfo

    def predict(self, request: ModelRequest) -> bytes:
        """A PredictResponse as JSON."""

    def ask(self, request: AskRequest) -> bytes:
        """An AskAnswer as JSON; ImageNeededError where the request has to contain the image."""

    def interrupt(self) -> None:
        """Fail the request being answered, if there is one, and all later ones. Another thread may call this."""

    def close(self) -> None:
        """End the model."""


class ModelEndingError(ModelError):
    """The server is ending, and its models with it."""


class ModelProcess:
    """A model in a process of its own. `facts` describes it.

    timeout: seconds a question may take; the questions of a request share theirs. start_timeout: seconds the model may
    take to load. register: called before the model is loaded, so that this can be interrupted. Not thread-safe: one
    request at a time; only `interrupt` may come from another thread.
    """

    def __init__(
        self,
        spec: str,
        options: Mapping[str, Any],
        *,
        max_pixels: int,
        timeout: float = 120.0,
        start_timeout: float = 600.0,
        register: Callable[["ModelProcess"], object] | None = None,
    ) -> None:
        self.timeout = timeout
        self.start_timeout = start_timeout
        self._arguments = (spec, dict(options), max_pixels)
        self._busy = True
        self._ending = False
        self._start()
        if register is not None:
            register(self)
        try:
            self.facts = self._wait_until_loaded()
        except BaseException:
            self.close()
            raise
        self._busy = False

    def predict(self, request: ModelRequest) -> bytes:
        """A PredictResponse as JSON.

        ImageError: the image cannot be opened. ModelFailureError: the model failed. ModelTimeoutError: it is too slow.
        """
        return self._exchange(request, self.timeout * len(request.questions))

    def ask(self, request: AskRequest) -> bytes:
        """An AskAnswer as JSON; errors as `predict`, and ImageNeededError."""
        return self._exchange(request, self.timeout)

    def _exchange(self, request: ModelRequest | AskRequest, budget: float) -> bytes:
        self._busy = True
        try:
            return self._exchange_once(request, budget)
        finally:
            self._busy = False

    def _exchange_once(
        self, request: ModelRequest | AskRequest, budget: float
    ) -> bytes:
        if self._ending or not self._process.is_alive():
            self._restart()
        self._wait_until_loaded()
        try:
            self._pipe.send_bytes(_ENCODER.encode(request))
            reply = self._receive(time.monotonic() + budget)
        except TimeoutError:
            self._restart()
            message = f"the model did not answer within {self.timeout:g} seconds per question and was restarted"
            raise ModelTimeoutError(message) from None
        except (EOFError, OSError):
            # The pipe breaks before the exit code is known.
            self._process.join(CLOSE_SECONDS)
            details = (
                f"the model's process ended with exit code {self._process.exitcode}"
            )
            self._restart()
            raise ModelFailureError(
                "the model's process ended and was restarted", details
            ) from None
        return read_response(reply)

    def interrupt(self) -> None:
        """Kill the process if it is busy, and start no other: a request being answered ends with ModelEndingError."""
        self._ending = True
        if self._busy:
            _kill_all(self._process)

    def close(self) -> None:
        """End the process: an idle one finishes by itself, within CLOSE_SECONDS."""
        self.interrupt()
        self._pipe.close()
        self._process.join(CLOSE_SECONDS)
        self._kill()

    def _start(self) -> None:
        # A forked process would inherit the threads' locks and the listening socket.
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=run_model, args=(other, *self._arguments), name="model"
        )
        self._process.start()
        # Only the child may hold its end; otherwise its death would not close the pipe.
        other.close()
        # The child makes a group of its own, with its number, before it loads the model.
        assert self._process.pid is not None
        watch = GroupWatch(self._process.pid)
        self._kill = weakref.finalize(self, _kill, self._process, self._pipe, watch)
        self._loaded = False
        self._load_deadline = time.monotonic() + self.start_timeout

    def _restart(self) -> None:
        self._kill()
        if self._ending:
            raise ModelEndingError("the server is ending")
        self._start()

    def _wait_until_loaded(self) -> ModelInfo:
        if self._loaded:
            return self.facts
        try:
            reply = self._receive(self._load_deadline)
        except TimeoutError:
            self._restart()
            message = f"the model did not load within {self.start_timeout:g} seconds"
            raise ModelTimeoutError(message) from None
        except (EOFError, OSError):
            if self._ending:
                raise ModelEndingError("the server is ending") from None
            raise ModelFailureError(
                "the model's process ended while it loaded",
                f"exit code {self._process.exitcode}",
            ) from None
        if reply.kind != "loaded":
            raise MaskwiseError(reply.content.decode())
        self._loaded = True
        return msgspec.json.decode(reply.content, type=ModelInfo)

    def _receive(self, deadline: float) -> ModelReply:
        if not self._pipe.poll(max(0.0, deadline - time.monotonic())):
            raise TimeoutError
        return _REPLIES.decode(self._pipe.recv_bytes())


def run_model(
    pipe: Connection, spec: str, options: dict[str, Any], max_pixels: int
) -> None:
    """The child's side: load the model, then answer requests until the pipe is closed."""
    # A session of its own: Ctrl-C does not reach it, and all that the model starts is killed with it.
    os.setsid()
    try:
        model = make_predictor(spec, **options)
        if not isinstance(model, Predictor):
            raise ModelError(
                f"model {spec!r} needs the ground truth, which requests do not contain"
            )
        facts = msgspec.json.encode(describe_model(model, spec, options))
    except MaskwiseError as error:
        pipe.send_bytes(_ENCODER.encode(ModelReply("not loaded", str(error).encode())))
        return
    pipe.send_bytes(_ENCODER.encode(ModelReply("loaded", facts)))
    images = EncodingCache(model, max_pixels)
    try:
        while True:
            request = _REQUESTS.decode(pipe.recv_bytes())
            if isinstance(request, AskRequest):
                reply = answer_question(images, request)
            else:
                reply = answer_request(model, request, max_pixels)
            pipe.send_bytes(_ENCODER.encode(reply))
    except (EOFError, OSError):
        pass  # The parent is gone or wants no more.
    finally:
        if hasattr(model, "close"):
            model.close()


def answer_request(
    model: Predictor, request: ModelRequest, max_pixels: int
) -> ModelReply:
    """Open the image and ask the model; whatever goes wrong is in the reply."""
    try:
        image = open_image(request.image, max_pixels=max_pixels)
    except MaskwiseError as error:
        return ModelReply("invalid image", str(error).encode())
    try:
        turns = request.turns or ((),) * len(request.questions)
        asked = tuple(map(continue_dialogue, request.questions, turns))
        predictions = model.predict(image, asked)
        if len(predictions) != len(request.questions):
            raise ModelError(
                f"{len(predictions)} predictions for {len(request.questions)} questions"
            )
        return ModelReply(
            "response", wire_format.encode_response(request.id, predictions)
        )
    except (
        BaseException
    ):  # whatever a model raises, SystemExit included, fails this request only
        return ModelReply(
            "model error", traceback.format_exc().encode(errors="replace")
        )


def answer_question(images: EncodingCache, request: AskRequest) -> ModelReply:
    """Encode the image unless it is known, and ask; whatever goes wrong is in the reply."""
    reused = request.image_id in images
    started = time.perf_counter()
    try:
        encoding = images.find(request.image_id, request.image)
    except ImageNeededError as error:
        return ModelReply("image needed", str(error).encode())
    except ImageError as error:
        return ModelReply("invalid image", str(error).encode())
    except BaseException:
        return ModelReply(
            "model error", traceback.format_exc().encode(errors="replace")
        )
    try:
        question = continue_dialogue(request.question, request.turns)
        (prediction,) = encoding.answer([question])
        answer = AskAnswer(
            prediction=msgspec.structs.replace(prediction, sample=""),
            mask_type_probability=mask_type_probability(
                images.model, question, prediction
            ),
            occlusion_rates=[occlusion_rate(region) for region in prediction.regions],
            domain_warning=encoding.warning,
            encoding_reused=reused,
            seconds=time.perf_counter() - started,
        )
        return ModelReply("response", msgspec.json.encode(answer))
    except BaseException:
        return ModelReply(
            "model error", traceback.format_exc().encode(errors="replace")
        )


def occlusion_rate(region: PredictedRegion) -> float | None:
    """Hidden share of the amodal area; None where a mask is unknown or the amodal one is empty."""
    if region.visible is None or region.amodal is None or not region.amodal.area:
        return None
    return (region.amodal - region.visible).area / region.amodal.area


def read_response(reply: ModelReply) -> bytes:
    """The content of a response; ImageError or ModelFailureError for any other reply."""
    if reply.kind == "image needed":
        raise ImageNeededError(reply.content.decode())
    if reply.kind == "invalid image":
        raise ImageError(reply.content.decode())
    if reply.kind != "response":
        raise ModelFailureError(
            "the model failed on this request", reply.content.decode()
        )
    return reply.content


def _kill(process: BaseProcess, pipe: Connection, watch: GroupWatch) -> None:
    _kill_all(process)
    process.join()
    watch.end()
    pipe.close()


def _kill_all(process: BaseProcess) -> None:
    """Kill a child with all that it started."""
    if process.pid is not None:
        kill_group(process.pid)
    # Where it has no group of its own yet.
    process.kill()


_ENCODER = msgspec.msgpack.Encoder()
_REQUESTS = msgspec.msgpack.Decoder(ModelRequest | AskRequest)
_REPLIES = msgspec.msgpack.Decoder(ModelReply)
