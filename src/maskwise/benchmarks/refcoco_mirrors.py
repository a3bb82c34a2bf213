"""Copies of the RefCOCO family on the hub, as Parquet or JSON lines, without a pickle.

Three kinds of rows are told apart by their fields:

- `raw_anns` and `raw_image_info` (jxu124/refcoco, refcocoplus, refcocog): one row per reference, annotation and image
  as JSON text; no pixels. Their split `test` is testA.
- `ref_list` and `image_info` (jxu124/refcoco-benchmark): one row per image, with its pixels; splits are named
  `refcoco_unc_testA` and so on.
- `segmentation` and `answer` (lmms-lab/RefCOCO and others): one row per reference, with pixels. The mask is one flat
  list of coordinates: an object of several parts has lost the places where they were joined. Their `val` mixes the
  partitions unc and google (8,811 = 3,811 + 5,000 rows).
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from maskwise.benchmarks.benchmark import CARDS, Benchmark
from maskwise.benchmarks.refcoco import COCO_TERMS, Parts, Sentences
from maskwise.errors import FormatError
from maskwise.formats.annotation_format import AnnotatedImages
from maskwise.formats.annotations import (
    ImageAnnotation,
    QuestionAnnotation,
    RegionAnnotation,
    decode_annotations,
)
from maskwise.formats.coco_file import Id
from maskwise.formats.embedded_images import EmbeddedImage, locate_embedded_image
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.json_files import BROKEN
from maskwise.formats.read_context import ReadContext, locate_image
from maskwise.formats.record_files import FileRecord, read_records


class MirrorSentence(msgspec.Struct, frozen=True):
    """One expression."""

    sent: str
    sent_id: Id | None = None


class MirrorImage(msgspec.Struct, frozen=True):
    """The image of a reference."""

    file_name: str
    height: int
    width: int


class MirrorAnnotation(msgspec.Struct, frozen=True):
    """The object of a reference."""

    segmentation: list[list[float]] | dict[str, Any]


class MirrorReference(msgspec.Struct, frozen=True):
    """A reference of jxu124's copies."""

    ref_id: Id
    ann_id: Id
    image_id: Id
    sentences: list[MirrorSentence]
    raw_anns: str = ""
    raw_image_info: str = ""


class ListedReference(msgspec.Struct, frozen=True):
    """A reference in a row of jxu124/refcoco-benchmark."""

    ann_info: MirrorAnnotation
    ref_info: MirrorReference


class MirrorImageRow(msgspec.Struct, frozen=True):
    """A row of jxu124/refcoco-benchmark."""

    ref_list: list[ListedReference]
    image_info: MirrorImage
    image: EmbeddedImage | None = None


class FlatRow(msgspec.Struct, frozen=True):
    """A row of lmms-lab's copies."""

    segmentation: list[float]
    answer: list[str]
    image: EmbeddedImage
    question_id: Id | None = None


def read(
    context: ReadContext, *, sentences: Sentences = "all", parts: Parts = "union"
) -> AnnotatedImages:
    """Images with their expressions. The options are those of `refcoco`."""
    records = list(read_records(context, None))
    fields = set(records[0].fields) if records else set()
    if {"raw_anns", "raw_image_info"} <= fields:
        annotations = _from_references(context, records, sentences)
    elif {"ref_list", "image_info"} <= fields:
        annotations = _from_image_rows(context, records, sentences)
    elif {"segmentation", "answer"} <= fields:
        annotations = _from_flat_rows(context, records, sentences)
    else:
        raise FormatError(
            f"{context.annotations}: expected rows with raw_anns and raw_image_info, with ref_list and image_info, "
            f"or with segmentation and answer; found: {', '.join(sorted(fields)) or 'no row'}"
        )
    images = decode_annotations(
        annotations, context.diagnostics, overlaps=parts == "sum"
    )
    about = {
        "sentences": sentences,
        "parts": parts,
        "split_name": f"{context.split}: the name that the copy uses",
    }
    return AnnotatedImages(len(records), images, about)


def _from_references(
    context: ReadContext, records: list[FileRecord], sentences: Sentences
) -> Iterator[ImageAnnotation]:
    by_image: dict[Id, list[tuple[MirrorReference, MirrorAnnotation, MirrorImage]]] = (
        defaultdict(list)
    )
    for record in records:
        reference = _convert(context, record, MirrorReference)
        if reference is None:
            continue
        try:
            annotation = msgspec.json.decode(reference.raw_anns, type=MirrorAnnotation)
            image = msgspec.json.decode(reference.raw_image_info, type=MirrorImage)
        except BROKEN as error:
            _skip(context, record, MirrorReference, error)
            continue
        by_image[reference.image_id].append((reference, annotation, image))
    for id, references in by_image.items():
        entry = references[0][2]
        image_info = locate_image(
            context,
            entry.file_name,
            (entry.height, entry.width),
            id=str(id),
            record=f"image {id}",
        )
        if image_info is not None:
            pairs = [(reference, mask) for reference, mask, _ in references]
            regions, questions = _to_annotations(context, pairs, sentences)
            yield ImageAnnotation(image_info, context.file, regions, questions)


def _from_image_rows(
    context: ReadContext, records: list[FileRecord], sentences: Sentences
) -> Iterator[ImageAnnotation]:
    for record in records:
        row = _convert(context, record, MirrorImageRow)
        if row is None or not row.ref_list:
            continue
        size = (row.image_info.height, row.image_info.width)
        image_id = str(row.ref_list[0].ref_info.image_id)
        data = None if row.image is None else row.image.bytes
        if data is None:
            image = locate_image(
                context,
                row.image_info.file_name,
                size,
                id=image_id,
                record=record.position,
            )
        else:
            image = locate_embedded_image(
                context, data, size, id=image_id, record=record.position
            )
        if image is not None:
            pairs = [(item.ref_info, item.ann_info) for item in row.ref_list]
            regions, questions = _to_annotations(context, pairs, sentences)
            yield ImageAnnotation(image, context.file, regions, questions, data=data)


def _from_flat_rows(
    context: ReadContext, records: list[FileRecord], sentences: Sentences
) -> Iterator[ImageAnnotation]:
    context.warn(
        "parts of a mask may be joined",
        "all rows",
        expected="a list of polygons",
        found="one flat list of coordinates per mask",
    )
    for number, record in enumerate(records):
        row = _convert(context, record, FlatRow)
        if row is None:
            continue
        id = str(number if row.question_id is None else row.question_id)
        image = locate_embedded_image(
            context, row.image.bytes, None, id=id, record=record.position
        )
        if image is None:
            continue
        texts = row.answer[:1] if sentences == "first" else row.answer
        region = RegionAnnotation(
            "target", "target", record.position, visible=[row.segmentation]
        )
        questions = tuple(
            QuestionAnnotation(
                f"{id}/{position}",
                text.strip().lower(),
                f"{record.position}, answer[{position}]",
                targets=("target",),
                tags={"split": context.split, "source": "coco"},
            )
            for position, text in enumerate(texts)
        )
        yield ImageAnnotation(
            image, context.file, (region,), questions, data=row.image.bytes
        )


def _to_annotations(
    context: ReadContext,
    pairs: list[tuple[MirrorReference, MirrorAnnotation]],
    sentences: Sentences,
) -> tuple[tuple[RegionAnnotation, ...], tuple[QuestionAnnotation, ...]]:
    """The regions and the questions of one image; several references may mean the same object."""
    regions: dict[str, RegionAnnotation] = {}
    questions = []
    for reference, annotation in pairs:
        target = str(reference.ann_id)
        record = f"reference {reference.ref_id}"
        if target not in regions:
            regions[target] = RegionAnnotation(
                target, "target", record, visible=annotation.segmentation
            )
        used = reference.sentences[:1] if sentences == "first" else reference.sentences
        for number, sentence in enumerate(used):
            sentence_id = number if sentence.sent_id is None else sentence.sent_id
            question = QuestionAnnotation(
                f"{reference.ref_id}/{sentence_id}",
                sentence.sent.strip().lower(),
                f"{record}, sentence {sentence_id}",
                targets=(target,),
                tags={"split": context.split, "source": "coco"},
            )
            questions.append(question)
    return tuple(regions.values()), tuple(questions)


def _convert(context: ReadContext, record: FileRecord, kind: type[Any]) -> Any:
    """The row as `kind`; None and a diagnostic if its fields have other types."""
    try:
        return msgspec.convert(record.fields, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        _skip(context, record, kind, error)
        return None


def _skip(
    context: ReadContext, record: FileRecord, kind: type[Any], error: Exception
) -> None:
    context.skip(
        "fields of another type",
        record.position,
        expected=kind.__name__,
        found=str(error),
    )


REFCOCO_MIRROR = Benchmark(
    name="refcoco-mirror",
    title="Copies of RefCOCO, RefCOCO+ and RefCOCOg on the hub (jxu124, lmms-lab), without a pickle",
    protocol="lisa",
    layout=FileLayout(
        annotations=(
            "data/{split}-*.parquet",
            "{split}-*.parquet",
            "{split}.parquet",
            "{split}.jsonl",
        ),
        images=("images/mscoco/images/train2014", "train2014", "images", "."),
        notes="splits are named as in the copy: `test` of jxu124/refcoco is testA.",
    ),
    read=read,
    card_file=CARDS / "refcoco.yaml",
    facts={
        "license": COCO_TERMS,
        "download": "huggingface.co: jxu124/refcoco, jxu124/refcoco-benchmark, lmms-lab/RefCOCO",
        "layout": "layout from the cards of the copies, file not seen",
    },
)
