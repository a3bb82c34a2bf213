"""Requests and responses of models outside this process, as JSON: the same for a child process and over HTTP.

    {"id": "7", "image": {"png": "<base64>"}, "questions": ["What could I drink from?"]}
    {"id": "8", "image": ..., "questions": ["And the one behind it?"], "turns": [[{"question": ..., "answer": ...}]]}
    {"id": "7", "predictions": [{"mask_type": "visible", "regions": [...]}]}
    {"id": "7", "error": "out of memory", "traceback": "optional: the run folder keeps it"}

A prediction has the fields of docs/reference/predictions.md without `sample`. A child process may announce capabilities
in its first line (`Capabilities`) and then gets raw pixels, or the true answers for teacher forcing.
docs/guides/model_exchange.md describes the exchange for authors of the other side.
"""

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from PIL import Image, ImageFile

from maskwise.errors import MaskwiseError, ModelError, RecordError
from maskwise.predictions.conversion import LISTED_FIELDS, to_prediction
from maskwise.schema import (
    Answer,
    Prediction,
    Record,
    Turn,
    earlier_turns,
)

PREDICT = "/v1/predict"
HEALTH = "/healthz"
"""The routes of a server."""

MODEL_HEADER = "Maskwise-Model"
"""Identifies the model of a server in its responses and its health, so that a client notices a change."""

MAX_REQUEST_BYTES = 2**28
"""The longest request: about that of an image of 65 million pixels."""

MAX_RESPONSE_BYTES = 2**26
"""The longest response: thousands of masks."""

MAX_QUOTE = 120
"""Characters that are quoted of an invalid text."""


class RequestImage(Record, frozen=True, kw_only=True):
    """An image: the path of its file, or the bytes of a PNG (base64 in JSON)."""

    path: str | None = None
    png: bytes | None = None

    def __post_init__(self) -> None:
        if (self.path is None) == (self.png is None):
            raise RecordError('an image needs either a "path" or a "png"')


class RawImage(Record, frozen=True, kw_only=True):
    """The pixels of an image for a child that accepts them. size: height and width; rgb: uint8 [height, width, 3]."""

    size: tuple[int, int]
    rgb: bytes


class Request(Record, frozen=True, kw_only=True):
    """Questions about one image. `id` is any text; the response repeats it."""

    id: str
    image: RequestImage
    questions: tuple[str, ...]
    turns: tuple[tuple[Turn, ...], ...] = ()
    """Earlier turns of each question, where one of them continues a dialogue."""

    def __post_init__(self) -> None:
        if self.turns and len(self.turns) != len(self.questions):
            raise RecordError(
                f"{len(self.turns)} lists of turns for {len(self.questions)} questions"
            )


class CommandRequest(Record, frozen=True, kw_only=True):
    """A request to a child process. answers: the true answers, for teacher forcing only."""

    id: str
    image: RequestImage | RawImage
    questions: tuple[str, ...]
    answers: tuple[Answer | None, ...] | None = None
    turns: tuple[tuple[Turn, ...], ...] = ()


class Capabilities(Record, frozen=True, kw_only=True):
    """What a child announces in its first line. accepts: `rgb` for raw pixels. Unknown entries are ignored."""

    accepts: tuple[str, ...] = ()
    teacher_forcing: bool = False


class PredictResponse(Record, frozen=True, kw_only=True):
    """One prediction per question, in order, as JSON; or why there are none.

    traceback: of the error, for the log of a run.
    """

    id: str
    predictions: tuple[msgspec.Raw, ...] | None = None
    error: str | None = None
    traceback: str | None = None

    def __post_init__(self) -> None:
        if (self.predictions is None) == (self.error is None):
            raise RecordError('a response needs either "predictions" or an "error"')


class RemoteTraceback(Exception):
    """The traceback of a model outside this process, as the cause of a ModelError: it is printed above ours."""


def to_request_image(image: Image.Image, *, embed: bool = False) -> RequestImage:
    """The path of an image that equals its file, else (or if `embed`) its pixels as an RGB PNG.

    An image that was rotated, converted or made in memory has no file that equals it.
    """
    if (
        isinstance(image, ImageFile.ImageFile)
        and isinstance(image.filename, str)
        and not embed
    ):
        path = Path(image.filename)
        if path.is_file():
            return RequestImage(path=str(path.resolve()))
    buffer = io.BytesIO()
    image.convert("RGB").save(buffer, "PNG", compress_level=1)
    return RequestImage(png=buffer.getvalue())


def encode_request(
    image: Image.Image, questions: Sequence[str], *, embed: bool = False
) -> tuple[str, bytes]:
    """An id and one line of JSON, without its newline; ModelError if it is longer than MAX_REQUEST_BYTES."""
    id = _request_id(image, questions)
    request = Request(
        id=id,
        image=to_request_image(image, embed=embed),
        questions=tuple(map(str, questions)),
        turns=_turns(questions),
    )
    return id, _bounded(msgspec.json.encode(request), image)


def encode_command_request(
    image: Image.Image,
    questions: Sequence[str],
    answers: Sequence[Answer | None] | None,
    *,
    raw: bool,
) -> tuple[str, bytes]:
    """As `encode_request`, for a child process. raw: it accepts raw pixels. answers: for teacher forcing, else None."""
    id = _request_id(image, questions)
    request = CommandRequest(
        id=id,
        image=_to_raw_image(image) if raw else to_request_image(image),
        questions=tuple(map(str, questions)),
        answers=None if answers is None else tuple(answers),
        turns=_turns(questions),
    )
    return id, _bounded(msgspec.json.encode(request), image)


def _turns(questions: Sequence[str]) -> tuple[tuple[Turn, ...], ...]:
    """The earlier turns of each question; empty if none has any."""
    turns = tuple(earlier_turns(question) for question in questions)
    return turns if any(turns) else ()


def encode_response(id: str, predictions: Sequence[Prediction]) -> bytes:
    """A response as JSON."""
    encoded = [
        msgspec.Raw(msgspec.json.encode(without_sample(prediction)))
        for prediction in predictions
    ]
    return msgspec.json.encode(PredictResponse(id=id, predictions=tuple(encoded)))


def decode_response(text: bytes) -> PredictResponse:
    """A response whose fields are valid; ModelError quotes an invalid one."""
    try:
        return _RESPONSES.decode(text)
    except (
        msgspec.DecodeError,
        UnicodeDecodeError,
        RecursionError,
        MaskwiseError,
    ) as error:
        raise ModelError(f"the response is invalid ({error}): {quote(text)}") from None


def decode_capabilities(text: bytes) -> Capabilities | None:
    """What the first line of a child announces; None if it is something else, for example a response."""
    try:
        return _CAPABILITIES.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def response_to_predictions(
    response: PredictResponse, questions: int, size: tuple[int, int]
) -> list[Prediction]:
    """The predictions of a response, `sample` empty. A malformed one has its own error; the others are valid.

    size: height and width of the image.

    ModelError if the model reports an error or their number is not that of the questions.
    """
    if response.predictions is None:
        cause = None
        if response.traceback is not None:
            cause = RemoteTraceback("\n" + response.traceback)
        raise ModelError(f"the model reports: {response.error}") from cause
    if len(response.predictions) != questions:
        raise ModelError(
            f"the response has {len(response.predictions)} predictions for {questions} questions"
        )
    return [_to_prediction(raw, size) for raw in response.predictions]


def quote(text: bytes) -> str:
    """The beginning of an outside text, printable, in quotation marks."""
    start = text[: 4 * MAX_QUOTE].decode("utf-8", "replace").strip()
    plain = "".join(sign if sign.isprintable() else " " for sign in start)
    return repr(plain if len(plain) <= MAX_QUOTE else plain[: MAX_QUOTE - 1] + "…")


def _request_id(image: Image.Image, questions: Sequence[str]) -> str:
    """A hash of pixels and questions: the same however the image is sent, also in a resumed run."""
    digest = hashlib.blake2b(f"{image.mode} {image.size}".encode(), digest_size=8)
    digest.update(image.tobytes())
    digest.update(msgspec.json.encode(questions))
    return digest.hexdigest()


def _to_raw_image(image: Image.Image) -> RawImage:
    return RawImage(
        size=(image.height, image.width), rgb=image.convert("RGB").tobytes()
    )


def _bounded(line: bytes, image: Image.Image) -> bytes:
    if len(line) > MAX_REQUEST_BYTES:
        raise ModelError(
            f"the image of {image.width} x {image.height} pixels makes a request of {len(line)} bytes; "
            f"the limit is {MAX_REQUEST_BYTES}"
        )
    return line


def without_sample(prediction: Prediction) -> dict[str, Any]:
    """The fields of a prediction as responses have them."""
    fields: dict[str, Any] = msgspec.to_builtins(prediction)
    return {name: value for name, value in fields.items() if name != "sample"}


def _to_prediction(raw: msgspec.Raw, size: tuple[int, int]) -> Prediction:
    try:
        fields = {**_OBJECTS.decode(raw), "sample": ""}
        try:
            return msgspec.convert(fields, Prediction)
        except (msgspec.ValidationError, MaskwiseError) as error:
            # Not our own form: perhaps one of the others that are accepted.
            return _convert_prediction(fields, size, error)
    except (
        msgspec.DecodeError,
        UnicodeDecodeError,
        RecursionError,
        MaskwiseError,
    ) as error:
        return Prediction(sample="", error=f"the prediction is malformed: {error}")


def _convert_prediction(
    fields: dict[str, Any], size: tuple[int, int], problem: Exception
) -> Prediction:
    """A prediction with masks in another form than compressed run lengths."""
    regions = fields.get("regions", [])
    if not isinstance(regions, list):
        raise problem
    converted = to_prediction({"regions": regions, **_listed(fields)}, size=size)
    rest = {key: value for key, value in fields.items() if key not in _MASK_FIELDS}
    return msgspec.structs.replace(
        msgspec.convert(rest, Prediction), regions=converted.regions
    )


def _listed(fields: dict[str, Any]) -> dict[str, Any]:
    """The masks of a prediction that are not in its regions."""
    return {key: value for key, value in fields.items() if key in LISTED_FIELDS}


_MASK_FIELDS = {"regions", *LISTED_FIELDS}

_RESPONSES = msgspec.json.Decoder(PredictResponse)
_CAPABILITIES = msgspec.json.Decoder(Capabilities)
_OBJECTS = msgspec.json.Decoder(dict[str, Any])
