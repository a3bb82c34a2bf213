"""Answer the requests of maskwise from another Python environment (3.8 or newer). Copy this file beside your model.

    from maskwise_worker import serve

    def predict(image, questions):                 # a PIL image, upright, RGB; a list of texts
        return [my_masks(image, question) for question in questions]

    serve(predict)

and then, where maskwise is installed,

    maskwise eval world --model "command: /envs/lisa/bin/python my_model.py"

`predict` returns one reply per question, in order. A reply is

    a list of masks             the visible masks of the targets
    None, or an empty list      no target is in the image
    a dict                      {"answer": "the mug", "regions": [...], "mask_type": "visible", "no_target": False},
                                every entry optional

A region of a dict is a mask, or {"visible": mask, "amodal": mask, "score": 0.9, "name": "mug"} with at least one mask.
A mask is of the image's height and width: a bool or integer array of numpy or torch, a PIL image, a list of rows, the
bytes of its pixels row by row, or a COCO RLE ({"size": [height, width], "counts": ...}). Everything but 0 is inside.

This file needs the standard library only. From its import on, what your code prints goes to standard error, because
standard output carries the responses: import it first. An exception fails the questions of its request; maskwise shows
its traceback.
"""

from __future__ import annotations

import base64
import io
import json
import os
import struct
import sys
import traceback
import zlib

try:
    from PIL import Image
except ImportError:
    Image = None  # type: ignore[assignment]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Predict = Callable[[Any, list[str]], list[Any]]
    PredictForced = Callable[[Any, list[str], list[Any]], list[Any]]

INSIDE = bytes([0] + [1] * 255)
"""Translates the bytes of a mask: 0 stays, everything else becomes 1."""

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
RGB_BYTES = 3


class PixelImage:
    """An image without Pillow. rgb: bytes, 3 per pixel, row by row."""

    def __init__(self, width: int, height: int, rgb: bytes) -> None:
        self.width = width
        self.height = height
        self.rgb = rgb


def serve(
    predict: Predict,
    *,
    predict_teacher_forced: PredictForced | None = None,
    raw_images: bool = False,
) -> None:
    """Answer requests until standard input ends.

    predict(image, questions): one reply per question. Load the model when it is first called, or before `serve`.
    predict_teacher_forced(image, questions, answers): the same with the true answers, {"text": ...} or None, for
    `maskwise eval --teacher-forced`.
    raw_images: images are `PixelImage`, not PIL images: no Pillow is needed.
    """
    if Image is None and not raw_images:
        raise SystemExit(
            "maskwise_worker: Pillow is not installed here; install it, or call serve(predict, raw_images=True)"
        )
    responses = protect_output()
    capabilities = {
        "accepts": ["rgb"],
        "teacher_forcing": predict_teacher_forced is not None,
    }
    _send(responses, _encode(capabilities))
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        request = json.loads(line.decode("utf-8"))
        try:
            image = _read_image(request["image"], raw=raw_images)
            questions = request["questions"]
            answers = request.get("answers")
            if answers is None:
                replies = predict(image, questions)
            elif predict_teacher_forced is None:
                raise ValueError("this model does not support teacher forcing")
            else:
                replies = predict_teacher_forced(image, questions, answers)
            size = (image.height, image.width)
            predictions = [to_prediction(reply, size) for reply in replies]
            response = _encode({"id": request["id"], "predictions": predictions})
        except Exception as error:
            traceback.print_exc()
            failure = {
                "id": request["id"],
                "error": "{}: {}".format(type(error).__name__, error),
                "traceback": traceback.format_exc(),
            }
            response = _encode(failure)
        _send(responses, response)


def protect_output() -> Any:
    """Send everything that is printed to standard error, also by C libraries; returns the stream of responses."""
    global _responses  # noqa: PLW0603
    if _responses is None:
        _responses = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        sys.stdout.flush()
        # Lines appear in the log when they are printed.
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    return _responses


_responses: Any = None


def to_prediction(reply: Any, size: tuple[int, int]) -> dict[str, Any]:
    """The JSON of a reply. size: height and width of the image, which every mask has to have."""
    if reply is None:
        return {"no_target": True}
    if not isinstance(reply, dict):
        regions = [to_region(mask, size) for mask in reply]
        return {"regions": regions} if regions else {"no_target": True}
    prediction = dict(reply)
    if isinstance(prediction.get("answer"), str):
        prediction["answer"] = {"text": prediction["answer"]}
    if "regions" in prediction:
        prediction["regions"] = [
            to_region(region, size) for region in prediction["regions"]
        ]
    return prediction


def to_region(region: Any, size: tuple[int, int]) -> dict[str, Any]:
    """The JSON of a region: its masks as COCO RLE."""
    if not isinstance(region, dict) or "counts" in region:
        return {"visible": to_rle(region, size)}
    encoded = dict(region)
    for name in ("visible", "amodal"):
        if encoded.get(name) is not None:
            encoded[name] = to_rle(encoded[name], size)
    if hasattr(encoded.get("score"), "item"):
        # A number of numpy or torch, which JSON does not know.
        encoded["score"] = encoded["score"].item()
    return encoded


def to_rle(mask: Any, size: tuple[int, int]) -> dict[str, Any]:
    """A mask as COCO RLE; ValueError if it has another size, or holds scores instead of a decision per pixel."""
    if isinstance(mask, dict):
        rle_size = [int(side) for side in mask["size"]]
        _check_size(tuple(rle_size), size)
        counts = mask["counts"]
        if isinstance(counts, bytes):
            counts = counts.decode("ascii")
        elif not isinstance(counts, str):
            counts = runs_to_counts([int(run) for run in counts])
        return {"size": rle_size, "counts": counts}
    height, width = size
    pixels = _to_pixels(mask, size).translate(INSIDE)
    # COCO counts column by column.
    columns = b"".join(pixels[column::width] for column in range(width))
    runs = []
    value = 0
    start = 0
    while start < len(columns):
        end = columns.find(b"\x01" if value == 0 else b"\x00", start)
        if end < 0:
            end = len(columns)
        runs.append(end - start)
        start = end
        value = 1 - value
    return {"size": [height, width], "counts": runs_to_counts(runs)}


def runs_to_counts(runs: list[int]) -> str:
    """Run lengths, background first, as COCO's text: from the fourth on the difference to the one two before it,
    five bits per character, the lowest first.
    """
    characters = []
    for place, run in enumerate(runs):
        value = run - runs[place - 2] if place > 2 else run
        more = True
        while more:
            low = value & 31
            value >>= 5
            # Bit 16 is the sign: the number ends when the rest is that sign only.
            more = value != (-1 if low & 16 else 0)
            characters.append(chr(48 + low + (32 if more else 0)))
    return "".join(characters)


def _to_pixels(mask: Any, size: tuple[int, int]) -> bytes:
    """One byte per pixel, row by row, 0 outside."""
    height, width = size
    if isinstance(mask, (bytes, bytearray)):
        if len(mask) != height * width:
            raise ValueError(
                "a mask has {} bytes, but the image {} x {} pixels".format(
                    len(mask), width, height
                )
            )
        return bytes(mask)
    if Image is not None and isinstance(mask, Image.Image):
        _check_size((mask.height, mask.width), size)
        return mask.convert("L").tobytes()
    if hasattr(mask, "detach"):
        mask = mask.detach().cpu().numpy()
    if hasattr(mask, "dtype"):
        if mask.dtype.kind not in "bui":
            raise ValueError(
                "a mask has values of type {}; compare scores with a threshold first, for example logits > 0".format(
                    mask.dtype
                )
            )
        _check_size(tuple(mask.shape), size)
        inside: bytes = (mask != 0).tobytes()
        return inside
    rows = list(mask)
    widths = {len(row) for row in rows}
    _check_size((len(rows), widths.pop() if len(widths) == 1 else None), size)
    values = [value for row in rows for value in row]
    if any(isinstance(value, float) for value in values):
        raise ValueError(
            "a mask has float values; compare scores with a threshold first, for example score > 0.5"
        )
    return bytes(1 if value else 0 for value in values)


def _check_size(mask_size: tuple[Any, ...], size: tuple[int, int]) -> None:
    if mask_size != tuple(size):
        raise ValueError(
            "a mask has the size {}, but the image is {} (height, width)".format(
                mask_size, tuple(size)
            )
        )


def _encode(value: dict[str, Any]) -> bytes:
    return json.dumps(value).encode("ascii") + b"\n"


def _send(responses: Any, line: bytes) -> None:
    responses.write(line)
    responses.flush()


def _read_image(sent: dict[str, Any], *, raw: bool) -> Any:
    """The image of a request: raw pixels, the bytes of a PNG, or a file."""
    if "rgb" in sent:
        height, width = sent["size"]
        pixels = base64.b64decode(sent["rgb"])
        if raw:
            return PixelImage(width, height, pixels)
        return Image.frombytes("RGB", (width, height), pixels)
    if Image is not None:
        source = (
            sent["path"]
            if "path" in sent
            else io.BytesIO(base64.b64decode(sent["png"]))
        )
        with Image.open(source) as opened:
            image = opened.convert("RGB")
        return PixelImage(image.width, image.height, image.tobytes()) if raw else image
    if "png" in sent:
        return _decode_png(base64.b64decode(sent["png"]))
    with open(sent["path"], "rb") as file:
        return _decode_png(file.read())


def _decode_png(data: bytes) -> PixelImage:
    """A PNG as maskwise writes it: RGB, 8 bits, not interlaced. It sends one in the first request only."""
    if not data.startswith(PNG_SIGNATURE):
        raise ValueError("this image is not a PNG; install Pillow to read it")
    width = height = 0
    compressed = b""
    position = len(PNG_SIGNATURE)
    while position < len(data):
        length, kind = struct.unpack(">I4s", data[position : position + 8])
        content = data[position + 8 : position + 8 + length]
        # Length, kind and checksum take 12 bytes.
        position += length + 12
        if kind == b"IHDR":
            width, height, depth, color, _, _, interlaced = struct.unpack(
                ">IIBBBBB", content
            )
            if (depth, color, interlaced) != (8, 2, 0):
                raise ValueError(
                    "this PNG is not RGB with 8 bits; install Pillow to read it"
                )
        elif kind == b"IDAT":
            compressed += content
    lines = zlib.decompress(compressed)
    row_bytes = width * RGB_BYTES
    above = bytes(row_bytes)
    rows = []
    for number in range(height):
        start = number * (row_bytes + 1)
        above = _unfilter(lines[start], lines[start + 1 : start + 1 + row_bytes], above)
        rows.append(above)
    return PixelImage(width, height, b"".join(rows))


def _unfilter(kind: int, line: bytes, above: bytes) -> bytes:
    """One row of a PNG, given what it was filtered with (RFC 2083, section 6) and the row above."""
    if kind == 0:
        return line
    row = bytearray(line)
    for place, value in enumerate(line):
        left = row[place - RGB_BYTES] if place >= RGB_BYTES else 0
        up = above[place]
        corner = above[place - RGB_BYTES] if place >= RGB_BYTES else 0
        if kind == 1:
            expected = left
        elif kind == 2:
            expected = up
        elif kind == 3:
            expected = (left + up) // 2
        else:
            expected = _paeth(left, up, corner)
        row[place] = (value + expected) & 255
    return bytes(row)


def _paeth(left: int, up: int, corner: int) -> int:
    estimate = left + up - corner
    distances = (abs(estimate - left), abs(estimate - up), abs(estimate - corner))
    # The first of the nearest, in this order.
    return (left, up, corner)[distances.index(min(distances))]


if __name__ == "maskwise_worker":
    # The copy beside a model: libraries may print while they are imported, before `serve` is called.
    protect_output()
