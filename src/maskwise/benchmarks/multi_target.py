"""The file format of MMR and MUSE: images with questions, the targets of each question, and answers in words.

`answers[q]` lists the targets of question q. `text_answers[q]`, if present, is its answer with `{seg}` after the words
that name each mask. A target's segmentation may have several parts, which the official evaluations sum: pixels covered
twice are neither target nor background there, so they are stored as the region's overlap. Targets have no ids; equal
targets of an image are one region.

Questions and targets keep their order, because official protocols depend on it. If the number of `{seg}` differs from
the number of targets, the official evaluations continue, so the question is kept without phrases. An image that is
listed again stays a separate image (`id#2`), because the official evaluations average by record.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec

from maskwise.formats.annotation_format import AnnotatedImages
from maskwise.formats.annotations import (
    ImageAnnotation,
    QuestionAnnotation,
    decode_annotations,
)
from maskwise.formats.answer_phrases import find_wholes, parse_answer
from maskwise.formats.json_files import read_json
from maskwise.formats.read_context import ReadContext, locate_image
from maskwise.formats.region_collector import RegionCollector
from maskwise.schema import Answer

TOKEN = "{seg}"


class MultiTargetImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image with its questions."""

    height: int
    width: int
    questions: list[str]
    answers: list[msgspec.Raw]
    text_answers: list[str | None] = []

    @property
    def id(self) -> str:
        """The image's id."""
        raise NotImplementedError

    @property
    def file(self) -> str:
        """The image's file below the folder that holds the COCO image folders."""
        raise NotImplementedError


class MultiTargetAnnotation(msgspec.Struct, frozen=True, kw_only=True):
    """One target of a question."""

    segmentation: msgspec.Raw
    category_name: str

    @property
    def answer_name(self) -> str:
        """The name used in the answer."""
        return self.category_name


def read_multi_target(
    context: ReadContext,
    image: type[MultiTargetImage],
    target: type[MultiTargetAnnotation],
    *,
    tags: dict[str, str],
) -> AnnotatedImages:
    """Images with their questions, from a file whose records are of the given types."""
    records = read_json(context.annotations, list[msgspec.Raw])
    annotations = _image_annotations(context, records, image, target=target, tags=tags)
    return AnnotatedImages(
        len(records),
        decode_annotations(annotations, context.diagnostics, overlaps=True),
    )


def _image_annotations(
    context: ReadContext,
    records: list[msgspec.Raw],
    kind: type[MultiTargetImage],
    *,
    target: type[MultiTargetAnnotation],
    tags: dict[str, str],
) -> Iterator[ImageAnnotation]:
    times: Counter[str] = Counter()
    for position, raw in enumerate(records):
        name = f"[{position}]"
        record = context.decode(raw, kind, record=name)
        if record is None:
            continue
        if len(record.answers) != len(record.questions):
            found = f"{len(record.questions)} questions, {len(record.answers)} answers"
            context.skip(
                "answers do not fit the questions",
                name,
                expected="one per question",
                found=found,
            )
            continue
        times[record.id] += 1
        id = record.id if times[record.id] == 1 else f"{record.id}#{times[record.id]}"
        if id != record.id:
            context.warn(
                "image listed again",
                name,
                expected="one record per image",
                found=record.id,
            )
        image = locate_image(
            context, record.file, (record.height, record.width), id=id, record=name
        )
        if image is not None:
            targets = RegionCollector()
            questions = tuple(
                _questions(context, record, target, targets=targets, id=id, name=name)
            )
            questions = tuple(
                msgspec.structs.replace(question, tags=tags) for question in questions
            )
            yield ImageAnnotation(image, context.file, targets.regions, questions)


def _questions(
    context: ReadContext,
    record: MultiTargetImage,
    kind: type[MultiTargetAnnotation],
    *,
    targets: RegionCollector,
    id: str,
    name: str,
) -> Iterator[QuestionAnnotation]:
    for number, (question, raw) in enumerate(zip(record.questions, record.answers)):
        where = f"{name}, answers[{number}]"
        listed = context.decode(raw, _list_of(kind), record=where)
        if listed is None:
            continue
        ids = tuple(
            targets.add(
                target.category_name, f"{where}[{item}]", visible=target.segmentation
            )
            for item, target in enumerate(listed)
        )
        names = [target.answer_name for target in listed]
        answer = _answer(context, record, names, number=number, where=where)
        for part, whole in find_wholes(answer, ids, names).items() if answer else ():
            targets.link(part, whole)
        yield QuestionAnnotation(
            f"{id}/{number}", question, where, targets=ids, answer=answer
        )


def _list_of(kind: type[MultiTargetAnnotation]) -> type[list[MultiTargetAnnotation]]:
    return list[kind]  # type: ignore[valid-type]


def _answer(
    context: ReadContext,
    record: MultiTargetImage,
    names: list[str],
    *,
    number: int,
    where: str,
) -> Answer | None:
    text = record.text_answers[number] if number < len(record.text_answers) else None
    if text is None:
        return None
    answer, count = parse_answer(text, TOKEN, names)
    if count != len(names):
        expected = f"{len(names)} {TOKEN}, one per target"
        context.warn(
            "answer does not fit its targets", where, expected=expected, found=count
        )
    return answer
