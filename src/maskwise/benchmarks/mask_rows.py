"""Benchmarks on the hub with one Parquet row per image or question and masks as RLE, images or matrices.

- PBench: `image`, `expression`, `masks` (RLE, one per instance), `count`, `id`.
- RefCOCO-M: `image` and `samples`, each with `sentences` and a `mask` (RLE); some images share a photo.
- WeatherReasonSeg: `image`, `text`, `mask`; of which type is not published, so an image, RLE and a matrix are read.
- VRT-Bench: `image`, `question`, `human_answer_caption`, `objects_info_json` with the objects and
  `human_labeled_a_objs`, the positions of those that the answer means.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa

from maskwise.benchmarks.benchmark import Benchmark
from maskwise.errors import ImageError, MaskError
from maskwise.formats.annotation_format import AnnotatedImages, PublishedCount
from maskwise.formats.annotations import (
    ImageAnnotation,
    QuestionAnnotation,
    RegionAnnotation,
    decode_annotations,
)
from maskwise.formats.coco_file import Id
from maskwise.formats.embedded_images import EmbeddedImage, locate_embedded_image
from maskwise.formats.file_layout import FileLayout, Size
from maskwise.formats.json_files import BROKEN
from maskwise.formats.mask_images import read_mask_image
from maskwise.formats.matrix_columns import decode_matrix, is_matrix_type
from maskwise.formats.parquet_rows import (
    PARQUET_FILES,
    check_columns,
    decode_fields,
    iterate_batches,
    iterate_rows,
    open_parquet,
)
from maskwise.formats.read_context import ReadContext
from maskwise.formats.segmentations import CocoRle
from maskwise.images import image_size
from maskwise.masks import Mask
from maskwise.schema import Answer

CARD_LAYOUT = "layout from the card on the hub, file not seen"


class PbenchRow(msgspec.Struct, frozen=True):
    """An image and an expression."""

    image: EmbeddedImage
    expression: str
    masks: list[CocoRle] = []
    id: Id | None = None


class RefcocoMSample(msgspec.Struct, frozen=True):
    """An object and its expressions."""

    sentences: list[str]
    mask: CocoRle


class RefcocoMRow(msgspec.Struct, frozen=True):
    """An image."""

    image: EmbeddedImage
    samples: list[RefcocoMSample]
    image_id: Id | None = None


class VrtRow(msgspec.Struct, frozen=True):
    """A question about relations of objects."""

    image: EmbeddedImage
    question: str
    objects_info_json: str
    human_labeled_a_objs: list[int]
    key: Id | None = None
    human_answer_caption: str | None = None


def read_pbench(context: ReadContext) -> AnnotatedImages:
    """One image per row."""
    files = open_parquet(context)
    check_columns(context, files[0], ("image", "expression", "masks"))
    total = sum(file.metadata.num_rows for file in files)

    def annotations() -> Iterator[ImageAnnotation]:
        for number, (record, row) in enumerate(iterate_rows(context, files, PbenchRow)):
            id = str(number if row.id is None else row.id)
            masks: list[object] = [msgspec.structs.asdict(mask) for mask in row.masks]
            yield from _one_question(
                context, row.image.bytes, row.expression, masks, id=id, record=record
            )

    return AnnotatedImages(
        total, decode_annotations(annotations(), context.diagnostics)
    )


def read_refcoco_m(context: ReadContext) -> AnnotatedImages:
    """One image per row, with a question for every sentence."""
    files = open_parquet(context)
    check_columns(context, files[0], ("image", "samples"))
    total = sum(file.metadata.num_rows for file in files)

    def annotations() -> Iterator[ImageAnnotation]:
        for number, (record, row) in enumerate(
            iterate_rows(context, files, RefcocoMRow)
        ):
            id = str(number if row.image_id is None else row.image_id)
            image = locate_embedded_image(
                context, row.image.bytes, None, id=id, record=record
            )
            if image is None:
                continue
            regions = []
            questions = []
            for position, sample in enumerate(row.samples):
                target = str(position)
                mask = msgspec.structs.asdict(sample.mask)
                regions.append(RegionAnnotation(target, "target", record, visible=mask))
                for place, sentence in enumerate(sample.sentences):
                    question = QuestionAnnotation(
                        f"{id}/{position}/{place}",
                        sentence,
                        f"{record}, samples[{position}]",
                        targets=(target,),
                        tags={"split": context.split, "source": "coco"},
                    )
                    questions.append(question)
            yield ImageAnnotation(
                image,
                context.file,
                tuple(regions),
                tuple(questions),
                data=row.image.bytes,
            )

    return AnnotatedImages(
        total, decode_annotations(annotations(), context.diagnostics)
    )


def read_weather(context: ReadContext) -> AnnotatedImages:
    """One image per row. The mask may be an image, RLE or a matrix."""
    files = open_parquet(context)
    check_columns(context, files[0], ("image", "text", "mask"))
    total = sum(file.metadata.num_rows for file in files)
    columns = ["image", "text", "mask"]

    def annotations() -> Iterator[ImageAnnotation]:
        for number, batch in enumerate(iterate_batches(context, files, columns)):
            record = f"row {number}"
            fields = decode_fields(context, batch.drop_columns(["mask"]), record)
            if fields is None:
                continue
            data = (fields["image"] or {}).get("bytes")
            if not isinstance(data, bytes) or not isinstance(fields["text"], str):
                context.skip(
                    "fields of another type",
                    record,
                    expected="image bytes and text",
                    found=f"{type(data).__name__} and {type(fields['text']).__name__}",
                )
                continue
            try:
                width, height = image_size(data)
                mask = _any_mask(batch.column("mask"), (height, width))
            except (MaskError, ImageError, UnicodeDecodeError) as error:
                context.skip(
                    "invalid mask", record, expected="a mask", found=str(error)
                )
                continue
            yield from _one_question(
                context, data, fields["text"], [mask], id=str(number), record=record
            )

    return AnnotatedImages(
        total, decode_annotations(annotations(), context.diagnostics)
    )


def _any_mask(column: pa.Array, size: Size) -> object:
    """The mask in the only row of a column: a matrix, the bytes of a PNG, or RLE as it is."""
    if is_matrix_type(column.type):
        return decode_matrix(column, 0)
    value: Any = column[0].as_py()
    if isinstance(value, dict) and isinstance(value.get("bytes"), bytes):
        return Mask.from_dense(read_mask_image(value["bytes"], size) > 0)
    return value


def read_vrt(context: ReadContext) -> AnnotatedImages:
    """One image per row."""
    files = open_parquet(context)
    check_columns(
        context,
        files[0],
        ("image", "question", "objects_info_json", "human_labeled_a_objs"),
    )
    total = sum(file.metadata.num_rows for file in files)

    def annotations() -> Iterator[ImageAnnotation]:
        for number, (record, row) in enumerate(iterate_rows(context, files, VrtRow)):
            try:
                masks = _pick_objects(row.objects_info_json, row.human_labeled_a_objs)
            except MaskError as error:
                context.skip(
                    "invalid mask", record, expected="objects", found=str(error)
                )
                continue
            answer = row.human_answer_caption
            yield from _one_question(
                context,
                row.image.bytes,
                row.question,
                masks,
                id=str(number if row.key is None else row.key),
                record=record,
                answer=None if answer is None else Answer(text=answer),
            )

    return AnnotatedImages(
        total, decode_annotations(annotations(), context.diagnostics)
    )


def _pick_objects(text: str, positions: list[int]) -> list[object]:
    """The segmentations of the objects at these positions, or with these ids."""
    try:
        content = msgspec.json.decode(text)
    except BROKEN as error:
        raise MaskError(f"objects_info_json is not JSON: {error}") from None
    objects: dict[str, Any] = {}
    entries = content.items() if isinstance(content, dict) else None
    for place, item in entries or enumerate(
        content if isinstance(content, list) else []
    ):
        key = item.get("id", place) if isinstance(item, dict) else place
        objects[str(key)] = item
    masks: list[object] = []
    for position in positions:
        item = objects.get(str(position))
        fields = item if isinstance(item, dict) else {}
        segmentation = next(
            (fields[key] for key in ("segmentation", "mask", "rle") if key in fields),
            None,
        )
        if segmentation is None:
            raise MaskError(f"object {position} has no segmentation, mask or rle")
        masks.append(segmentation)
    return masks


def _one_question(
    context: ReadContext,
    data: bytes,
    text: str,
    masks: list[object],
    *,
    id: str,
    record: str,
    answer: Answer | None = None,
) -> Iterator[ImageAnnotation]:
    """An embedded image with one question about all masks; nothing and a diagnostic if it is no image."""
    image = locate_embedded_image(context, data, None, id=id, record=record)
    if image is None:
        return
    regions = []
    for number, mask in enumerate(masks):
        has_pixels = not isinstance(mask, Mask) or mask.area > 0
        if has_pixels:
            regions.append(
                RegionAnnotation(str(number), "target", record, visible=mask)
            )
    question = QuestionAnnotation(
        id,
        text,
        record,
        targets=tuple(region.id for region in regions),
        answer=answer,
        tags={"split": context.split},
    )
    yield ImageAnnotation(image, context.file, tuple(regions), (question,), data=data)


def _layout(notes: str = "") -> FileLayout:
    return FileLayout(annotations=PARQUET_FILES, notes=notes)


PBENCH = Benchmark(
    name="pbench",
    title="PBench: expressions of five levels of difficulty, with all instances (Falcon-Perception)",
    protocol="strict",
    layout=_layout("splits: level_0 to level_4 and dense."),
    read=read_pbench,
    published=tuple(
        PublishedCount(split, "questions", count, "card on the hub")
        for split, count in (
            ("level_0", 1_930),
            ("level_1", 1_108),
            ("level_2", 969),
            ("level_3", 1_089),
            ("level_4", 861),
            ("dense", 381),
        )
    ),
    facts={
        "license": "not known",
        "download": "huggingface.co: tiiuae/PBench (18.7 GB)",
        "layout": CARD_LAYOUT,
    },
)

REFCOCO_M = Benchmark(
    name="refcoco-m",
    title="RefCOCO-M: RefCOCO's val with new masks (moondream)",
    protocol="lisa",
    layout=_layout("not to be confused with RefCOCOm (`refcocom`), which has parts."),
    read=read_refcoco_m,
    published=(
        PublishedCount("validation", "images", 1_190, "a third party"),
        PublishedCount("validation", "regions", 2_080, "a third party"),
        PublishedCount("validation", "questions", 5_598, "a third party"),
    ),
    facts={
        "license": "MIT; COCO photos under their own Flickr licenses",
        "download": "huggingface.co: moondream/refcoco-m (610 MB)",
        "layout": CARD_LAYOUT,
    },
)

WEATHERREASONSEG = Benchmark(
    name="weatherreasonseg",
    title="WeatherReasonSeg: ReasonSeg's questions in fog, rain, snow and at night",
    protocol="lisa",
    layout=_layout(
        "name the folder of one weather, such as syn/val/cfog or real/val/night_s1."
    ),
    read=read_weather,
    facts={
        "license": "other (see its card)",
        "download": "huggingface.co: wanwan1111/WeatherReasonSeg",
        "layout": f"{CARD_LAYOUT}; the type of the masks is not published",
    },
)

VRT_BENCH = Benchmark(
    name="vrt-bench",
    title="VRT-Bench: questions about relations, with a reasoning trace",
    protocol="union",
    layout=_layout(),
    read=read_vrt,
    published=(PublishedCount("test", "questions", 304, "card on the hub"),),
    facts={
        "license": "not known",
        "download": "huggingface.co: ohjoonhee/VRTBench (a copy)",
        "layout": f"{CARD_LAYOUT}; that objects_info_json holds the masks is presumed",
    },
)
