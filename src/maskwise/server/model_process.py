"""The served model in a child process, with a deadline per request.

A model that hangs, crashes or exits takes only its process with it: the process is killed and started again, and the
server keeps answering. Images are decoded in the child too, so that what they cost is freed with it.

Messages are msgpack records over a pipe between the two processes.
"""

import multiprocessing
import signal
import time
import traceback
import weakref
from collections.abc import Mapping
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Literal, Protocol

import msgspec

from maskwise.errors import ImageError, MaskwiseError, ModelError
from maskwise.harness import wire_format
from maskwise.harness.predictor import Predictor, describe_model
from maskwise.harness.registry import load_model
from maskwise.images import open_image
from maskwise.runs.schema import ModelInfo

CLOSE_SECONDS = 5.0
"""How long a process may take to finish before it is killed."""


class ModelFailureError(ModelError):
    """The model failed on a request. `details`: what it raised, with paths of this machine: for the log only."""

    def __init__(self, message: str, details: str) -> None:
        super().__init__(message)
        self.details = details


class ModelTimeoutError(ModelError):
    """The model did not answer in time; its process was killed and started again."""


class ModelRequest(msgspec.Struct, frozen=True):
    """Questions about one encoded image."""

    id: str
    image: bytes
    questions: tuple[str, ...]


class ModelReply(msgspec.Struct, frozen=True):
    """loaded: ModelInfo as JSON. response: a PredictResponse as JSON. Otherwise a text."""

    kind: Literal["loaded", "not loaded", "response", "invalid image", "model error"]
    content: bytes


class ServedModel(Protocol):
    """What a server needs of a model."""

    facts: ModelInfo

    def predict(self, request: ModelRequest) -> bytes:
        """A PredictResponse as JSON."""

    def close(self) -> None:
        """End the model."""


class ModelProcess:
    """A model in a process of its own. `facts` describes it.

    timeout: seconds a question may take; the questions of a request share theirs. start_timeout: seconds the model may
    take to load. Not thread-safe: one request at a time.
    """

    def __init__(
        self,
        spec: str,
        options: Mapping[str, Any],
        *,
        max_pixels: int,
        timeout: float = 120.0,
        start_timeout: float = 600.0,
    ) -> None:
        self.timeout, self.start_timeout = timeout, start_timeout
        self._arguments = (spec, dict(options), max_pixels)
        self._start()
        try:
            self.facts = self._wait_until_loaded()
        except BaseException:
            self.close()
            raise

    def predict(self, request: ModelRequest) -> bytes:
        """A PredictResponse as JSON.

        ImageError: the image cannot be opened. ModelFailureError: the model failed. ModelTimeoutError: it is too slow.
        """
        if not self._process.is_alive():
            self._restart()
        self._wait_until_loaded()
        budget = self.timeout * len(request.questions)
        try:
            self._pipe.send_bytes(_ENCODER.encode(request))
            reply = self._receive(time.monotonic() + budget)
        except TimeoutError:
            self._restart()
            message = (
                f"the model did not answer within {self.timeout:g} seconds per question and was restarted"
            )
            raise ModelTimeoutError(message) from None
        except (EOFError, OSError):
            self._process.join(CLOSE_SECONDS)
            details = f"the model's process ended with exit code {self._process.exitcode}"
            self._restart()
            raise ModelFailureError("the model's process ended and was restarted", details) from None
        return read_response(reply)

    def close(self) -> None:
        """Let the process finish; after CLOSE_SECONDS it is killed."""
        self._pipe.close()
        self._process.join(CLOSE_SECONDS)
        self._kill()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=run_model, args=(other, *self._arguments), name="model"
        )
        self._process.start()
        other.close()
        self._kill = weakref.finalize(self, _kill, self._process, self._pipe)
        self._loaded, self._load_deadline = False, time.monotonic() + self.start_timeout

    def _restart(self) -> None:
        self._kill()
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
            raise ModelFailureError(
                "the model's process ended while it loaded", f"exit code {self._process.exitcode}"
            ) from None
        if reply.kind != "loaded":
            raise MaskwiseError(reply.content.decode())
        self._loaded = True
        return msgspec.json.decode(reply.content, type=ModelInfo)

    def _receive(self, deadline: float) -> ModelReply:
        if not self._pipe.poll(max(0.0, deadline - time.monotonic())):
            raise TimeoutError
        return _REPLIES.decode(self._pipe.recv_bytes())


def run_model(pipe: Connection, spec: str, options: dict[str, Any], max_pixels: int) -> None:
    """The child's side: load the model, then answer requests until the pipe is closed."""
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C reaches the whole group; the parent closes the pipe.
    try:
        model = load_model(spec, **options)
        if not isinstance(model, Predictor):
            raise ModelError(f"model {spec!r} needs the ground truth, which requests do not contain")
        facts = msgspec.json.encode(describe_model(model, spec, options))
    except MaskwiseError as error:
        pipe.send_bytes(_ENCODER.encode(ModelReply("not loaded", str(error).encode())))
        return
    pipe.send_bytes(_ENCODER.encode(ModelReply("loaded", facts)))
    try:
        while True:
            request = _REQUESTS.decode(pipe.recv_bytes())
            pipe.send_bytes(_ENCODER.encode(answer_request(model, request, max_pixels)))
    except (EOFError, OSError):
        pass  # The parent is gone or wants no more.
    finally:
        if hasattr(model, "close"):
            model.close()


def answer_request(model: Predictor, request: ModelRequest, max_pixels: int) -> ModelReply:
    """Open the image and ask the model; whatever goes wrong is in the reply."""
    try:
        image = open_image(request.image, max_pixels=max_pixels)
    except MaskwiseError as error:
        return ModelReply("invalid image", str(error).encode())
    try:
        predictions = model.predict(image, request.questions)
        if len(predictions) != len(request.questions):
            raise ModelError(f"{len(predictions)} predictions for {len(request.questions)} questions")
        return ModelReply("response", wire_format.encode_response(request.id, predictions))
    except BaseException:  # whatever a model raises, SystemExit included, fails this request only
        return ModelReply("model error", traceback.format_exc().encode(errors="replace"))


def read_response(reply: ModelReply) -> bytes:
    """The content of a response; ImageError or ModelFailureError for any other reply."""
    if reply.kind == "invalid image":
        raise ImageError(reply.content.decode())
    if reply.kind != "response":
        raise ModelFailureError("the model failed on this request", reply.content.decode())
    return reply.content


def _kill(process: BaseProcess, pipe: Connection) -> None:
    process.kill()
    process.join()
    pipe.close()


_ENCODER = msgspec.msgpack.Encoder()
_REQUESTS = msgspec.msgpack.Decoder(ModelRequest)
_REPLIES = msgspec.msgpack.Decoder(ModelReply)
