"""What is said to a model outside this process and what it replies, as JSON: the same on a pipe and over HTTP.

    {"id": "7", "image": {"png": "<base64>"}, "questions": ["What could I drink from?"]}
    {"id": "7", "predictions": [{"mask_type": "visible", "regions": [...]}]}
    {"id": "7", "error": "out of memory"}

A prediction has the fields of docs/predictions.md without `sample`. docs/adapters.md describes the exchange for those
who write the other side.
"""

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from PIL import Image, ImageFile

from maskwise.errors import MaskwiseError, ModelError, RecordError
from maskwise.schema import Prediction, Record

PREDICT, HEALTH = "/v1/predict", "/healthz"
"""The routes of a server."""

MODEL_HEADER = "Maskwise-Model"
"""Names the model behind a server, in its replies and its health, so that a client sees when there is another."""

MAX_REQUEST_BYTES = 2**28
"""The longest request sent: about that of an image of 65 million pixels."""

MAX_RESPONSE_BYTES = 2**26
"""The longest reply read: thousands of masks."""

MAX_QUOTE = 120
"""Characters quoted of what cannot be understood."""


class RequestImage(Record, frozen=True, kw_only=True):
    """An image by the path of its file, or whole, as the bytes of a PNG (base64 in JSON)."""

    path: str | None = None
    png: bytes | None = None

    def __post_init__(self) -> None:
        if (self.path is None) == (self.png is None):
            raise RecordError('an image needs either a "path" or a "png"')


class Request(Record, frozen=True, kw_only=True):
    """Questions about one image. `id` is any text; the reply repeats it."""

    id: str
    image: RequestImage
    questions: tuple[str, ...]


class PredictResponse(Record, frozen=True, kw_only=True):
    """One prediction a question, in order, as JSON; or why there is none."""

    id: str
    predictions: tuple[msgspec.Raw, ...] | None = None
    error: str | None = None

    def __post_init__(self) -> None:
        if (self.predictions is None) == (self.error is None):
            raise RecordError('a reply needs either "predictions" or an "error"')


def send_image(image: Image.Image, *, whole: bool = False) -> RequestImage:
    """The path of an image just as its file holds it, else (or if `whole`) its pixels as an RGB PNG.

    An image that was turned, converted or made in memory has no file that says the same.
    """
    if isinstance(image, ImageFile.ImageFile) and isinstance(image.filename, str) and not whole:
        path = Path(image.filename)
        if path.is_file():
            return RequestImage(path=str(path.resolve()))
    buffer = io.BytesIO()
    image.convert("RGB").save(buffer, "PNG", compress_level=1)
    return RequestImage(png=buffer.getvalue())


def encode_request(image: Image.Image, questions: Sequence[str], *, whole: bool = False) -> tuple[str, bytes]:
    """An id and one line of JSON, without its newline; ModelError where it is longer than MAX_REQUEST_BYTES.

    The id follows from image and questions, so that whatever quotes it is the same in a run that is continued.
    """
    sent = send_image(image, whole=whole)
    digest = hashlib.blake2b(sent.png or str(sent.path).encode(), digest_size=8)
    digest.update(msgspec.json.encode(questions))
    request = Request(id=digest.hexdigest(), image=sent, questions=tuple(questions))
    line = msgspec.json.encode(request)
    if len(line) > MAX_REQUEST_BYTES:
        raise ModelError(
            f"the image of {image.width} x {image.height} pixels makes a request of {len(line)} bytes; "
            f"no more than {MAX_REQUEST_BYTES} can be sent"
        )
    return request.id, line


def encode_response(id: str, predictions: Sequence[Prediction]) -> bytes:
    """A reply as JSON."""
    said = [msgspec.Raw(msgspec.json.encode(_without_sample(prediction))) for prediction in predictions]
    return msgspec.json.encode(PredictResponse(id=id, predictions=tuple(said)))


def decode_response(text: bytes) -> PredictResponse:
    """A reply whose form is right; ModelError quotes what it cannot read."""
    try:
        return _REPLIES.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, MaskwiseError) as error:
        raise ModelError(f"the reply is not as expected ({error}): {quote(text)}") from None


def response_to_predictions(reply: PredictResponse, questions: int) -> list[Prediction]:
    """The predictions of a reply, `sample` empty. One that is malformed carries its own error; the others stand.

    ModelError where the model reports an error or their number is not that of the questions.
    """
    if reply.predictions is None:
        raise ModelError(f"the model reports: {reply.error}")
    if len(reply.predictions) != questions:
        raise ModelError(f"the reply has {len(reply.predictions)} predictions for {questions} questions")
    return [_to_prediction(raw) for raw in reply.predictions]


def quote(text: bytes) -> str:
    """The beginning of a text from outside, printable, in quotation marks."""
    start = text[: 4 * MAX_QUOTE].decode("utf-8", "replace").strip()
    plain = "".join(sign if sign.isprintable() else " " for sign in start)
    return repr(plain if len(plain) <= MAX_QUOTE else plain[: MAX_QUOTE - 1] + "…")


def _without_sample(prediction: Prediction) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(prediction)
    return {name: value for name, value in fields.items() if name != "sample"}


def _to_prediction(raw: msgspec.Raw) -> Prediction:
    try:
        return msgspec.convert({**_OBJECTS.decode(raw), "sample": ""}, Prediction)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, MaskwiseError) as error:
        return Prediction(sample="", error=f"the prediction is malformed: {error}")


_REPLIES = msgspec.json.Decoder(PredictResponse)
_OBJECTS = msgspec.json.Decoder(dict[str, Any])
