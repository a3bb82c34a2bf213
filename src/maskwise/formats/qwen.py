"""Grounding data for Qwen-VL: `annotations.json` with conversations whose replies are boxes, and the folder `images`.

An entry has `image` and `conversations`: a human turn `<image>` and the question, and a reply, a JSON list of
`{"bbox_2d": [x1, y1, x2, y2], "label": ...}`. The coordinates differ between the versions:

- Qwen2-VL and Qwen3-VL: 0 to 1000, relative to the image.
- Qwen2.5-VL: pixels of the image after its resizing to multiples of 28 (`resized_size`).

There are no masks. A question without target gets an empty list.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from maskwise.formats.annotation_format import AnnotatedImages, AnnotationFormat
from maskwise.formats.annotations import (
    ImageAnnotation,
    QuestionAnnotation,
    RegionAnnotation,
    decode_annotations,
)
from maskwise.formats.answer_boxes import box_mask, scaled_boxes
from maskwise.formats.coco_export import write_json
from maskwise.formats.exported_dataset import export_images, write_image
from maskwise.formats.file_layout import FileLayout, Size
from maskwise.formats.json_files import BROKEN, read_json
from maskwise.formats.read_context import ReadContext, locate_image
from maskwise.formats.written_losses import Losses, requested_mask
from maskwise.schema import Sample
from maskwise.store import Dataset

PATCH = 28
"""Qwen2.5-VL resizes both sides to multiples of it: two patches of 14 pixels are merged."""

MIN_PIXELS = 56 * 56
MAX_PIXELS = 14 * 14 * 4 * 1280
"""The bounds of the resized image in the processor's defaults."""

RELATIVE = 1000
"""The side of the image in relative coordinates."""

IMAGE_TOKEN = "<image>"


class ReplyBox(msgspec.Struct, frozen=True):
    """An object of a reply."""

    bbox_2d: tuple[int, int, int, int]
    label: str = ""


class QwenTurn(msgspec.Struct, frozen=True, rename={"speaker": "from"}):
    """A turn of a conversation."""

    speaker: str
    value: str


class QwenEntry(msgspec.Struct, frozen=True):
    """An image with one question and its reply."""

    image: str
    conversations: list[QwenTurn]


def relative_size(size: Size) -> Size:
    """The size (height, width) of every image in relative coordinates."""
    return RELATIVE, RELATIVE


def resized_size(size: Size) -> Size:
    """The size (height, width) to which Qwen2.5-VL's processor resizes an image, by its rule and defaults."""
    height, width = size
    new_height = max(PATCH, round(height / PATCH) * PATCH)
    new_width = max(PATCH, round(width / PATCH) * PATCH)
    if new_height * new_width > MAX_PIXELS:
        shrink = math.sqrt(height * width / MAX_PIXELS)
        new_height = max(PATCH, math.floor(height / shrink / PATCH) * PATCH)
        new_width = max(PATCH, math.floor(width / shrink / PATCH) * PATCH)
    elif new_height * new_width < MIN_PIXELS:
        grow = math.sqrt(MIN_PIXELS / (height * width))
        new_height = math.ceil(height * grow / PATCH) * PATCH
        new_width = math.ceil(width * grow / PATCH) * PATCH
    return new_height, new_width


def write(
    dataset: Dataset,
    folder: Path,
    *,
    with_images: bool,
    space_of: Callable[[Size], Size] = relative_size,
) -> dict[str, int]:
    """Write `annotations.json` and `images`. space_of: the coordinates of an image of a size."""
    losses = Losses("instances", "names")
    entries: list[dict[str, Any]] = []
    for file_name, exported in export_images(dataset, with_images=with_images):
        losses.note_image(exported)
        write_image(folder / "images" / file_name, exported.data)
        space = space_of((exported.image.height, exported.image.width))
        for sample in exported.samples:
            losses.note_sample(sample)
            turns = [
                {"from": "human", "value": f"{IMAGE_TOKEN}\n{sample.question}"},
                {"from": "gpt", "value": _to_reply(sample, space)},
            ]
            entries.append({"image": file_name, "conversations": turns})
    write_json(folder / "annotations.json", entries)
    return dict(losses.counts)


def _to_reply(sample: Sample, space: Size) -> str:
    names = [
        region.name for region in sample.targets if requested_mask(sample, region).area
    ]
    boxes = scaled_boxes(sample, space)
    objects = [
        {"bbox_2d": list(box), "label": name}
        for box, name in zip(boxes, names, strict=True)
    ]
    return msgspec.json.encode(objects).decode()


def read(
    context: ReadContext, *, space_of: Callable[[Size], Size] = relative_size
) -> AnnotatedImages:
    """Images with their questions; the masks are the boxes."""
    records = read_json(context.annotations, list[msgspec.Raw])
    annotations = _image_annotations(context, records, space_of)
    return AnnotatedImages(
        len(records),
        decode_annotations(annotations, context.diagnostics),
        {"masks": "boxes"},
    )


def read_relative(context: ReadContext) -> AnnotatedImages:
    """Coordinates from 0 to 1000."""
    return read(context, space_of=relative_size)


def read_resized(context: ReadContext) -> AnnotatedImages:
    """Coordinates in pixels of the resized image."""
    return read(context, space_of=resized_size)


def _image_annotations(
    context: ReadContext,
    records: list[msgspec.Raw],
    space_of: Callable[[Size], Size],
) -> Iterator[ImageAnnotation]:
    """One image per entry; an image with several questions has several entries."""
    for position, raw in enumerate(records):
        record = f"[{position}]"
        entry = context.decode(raw, QwenEntry, record=record)
        if entry is None:
            continue
        try:
            question, objects = _parse_turns(entry.conversations)
        except (*BROKEN, ValueError) as error:
            context.skip(
                "reply without boxes", record, expected="a list", found=str(error)
            )
            continue
        image = locate_image(
            context, entry.image, None, id=f"{position}-{entry.image}", record=record
        )
        if image is None:
            continue
        size = (image.height, image.width)
        regions = tuple(
            RegionAnnotation(
                str(number),
                item.label,
                record,
                visible=box_mask(item.bbox_2d, space_of(size), size),
            )
            for number, item in enumerate(objects)
        )
        targets = tuple(region.id for region in regions)
        yield ImageAnnotation(
            image,
            context.file,
            regions,
            (QuestionAnnotation(str(position), question, record, targets=targets),),
        )


def _parse_turns(turns: list[QwenTurn]) -> tuple[str, list[ReplyBox]]:
    """The question and the objects of the reply: a list, or one object."""
    if [turn.speaker for turn in turns] != ["human", "gpt"]:
        raise ValueError("expected a turn of human and one of gpt")
    question = turns[0].value.replace(IMAGE_TOKEN, "").strip()
    reply = msgspec.json.decode(turns[1].value, type=list[ReplyBox] | ReplyBox)
    return question, reply if isinstance(reply, list) else [reply]


def _format(name: str, version: str, *, is_relative: bool) -> AnnotationFormat:
    coordinates = "0 to 1000" if is_relative else "pixels of the resized image"
    space_of = relative_size if is_relative else resized_size
    return AnnotationFormat(
        name=name,
        title=f"{version} grounding JSON, boxes in {coordinates}, to train with",
        layout=FileLayout(annotations=("annotations.json",), images=("images", ".")),
        read=read_relative if is_relative else read_resized,
        write=partial(write, space_of=space_of),
        lossy=True,
    )


QWEN2_VL = _format("qwen2_vl", "Qwen2-VL", is_relative=True)
QWEN2_5_VL = _format("qwen2_5_vl", "Qwen2.5-VL", is_relative=False)
QWEN3_VL = _format("qwen3_vl", "Qwen3-VL", is_relative=True)
