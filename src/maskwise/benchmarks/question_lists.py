"""Files that list images with their questions, the targets of each question and an answer in words: MMR and MUSE.

`answers[q]` lists the targets of question q. `text_answers[q]`, where there, is its answer with `{seg}` after the words
each mask belongs to. A target's segmentation may have several parts, which the official evaluations sum: pixels
covered twice are neither target nor background there, so they are kept as the region's overlap. Targets have no ids:
equal ones of an image are one region.

Questions and targets stay in their order, by which official protocols go. Where the number of `{seg}` is not that of
the targets the official evaluations go on, so the question is kept, without phrases. An image listed again stays
apart (`id#2`), because the official evaluations average by record.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec

from maskwise.benchmarks.targets import Targets, find_wholes, parse_answer
from maskwise.formats.draft import Draft, Question, finish
from maskwise.formats.layout import Place, locate_image
from maskwise.formats.records import decode_record, read_json
from maskwise.formats.source import Reading
from maskwise.schema import Answer

TOKEN = "{seg}"


class ListedImage(msgspec.Struct, frozen=True, kw_only=True):
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
        """The image's file below the folder of COCO's folders."""
        raise NotImplementedError


class ListedTarget(msgspec.Struct, frozen=True, kw_only=True):
    """One target of a question."""

    segmentation: msgspec.Raw
    category_name: str

    @property
    def said(self) -> str:
        """How the answer calls it."""
        return self.category_name


def read_question_list(
    place: Place, image: type[ListedImage], target: type[ListedTarget], *, tags: dict[str, str]
) -> Reading:
    """Images with their questions, from a file whose records are of the given types."""
    records = read_json(place.annotations, list[msgspec.Raw])
    drafts = _drafts(place, records, image, target=target, tags=tags)
    return Reading(len(records), finish(drafts, place.problems, overlaps=True))


def _drafts(
    place: Place,
    records: list[msgspec.Raw],
    kind: type[ListedImage],
    *,
    target: type[ListedTarget],
    tags: dict[str, str],
) -> Iterator[Draft]:
    times: Counter[str] = Counter()
    for position, raw in enumerate(records):
        name = f"[{position}]"
        record = decode_record(raw, kind, problems=place.problems, file=place.file, record=name)
        if record is None:
            continue
        if len(record.answers) != len(record.questions):
            found = f"{len(record.questions)} questions, {len(record.answers)} answers"
            place.skip("answers that do not fit the questions", name, expected="one each", found=found)
            continue
        times[record.id] += 1
        id = record.id if times[record.id] == 1 else f"{record.id}#{times[record.id]}"
        if id != record.id:
            place.keep("image listed again", name, expected="one record an image", found=record.id)
        image = locate_image(place, record.file, (record.height, record.width), id=id, record=name)
        if image is not None:
            targets = Targets()
            questions = tuple(_questions(place, record, target, targets=targets, id=id, name=name))
            questions = tuple(question._replace(tags=tags) for question in questions)
            yield Draft(image, place.file, targets.outlines, questions)


def _questions(
    place: Place,
    record: ListedImage,
    kind: type[ListedTarget],
    *,
    targets: Targets,
    id: str,
    name: str,
) -> Iterator[Question]:
    for number, (question, raw) in enumerate(zip(record.questions, record.answers)):
        where = f"{name}, answers[{number}]"
        listed = decode_record(raw, _list_of(kind), problems=place.problems, file=place.file, record=where)
        if listed is None:
            continue
        ids = tuple(
            targets.add(target.category_name, f"{where}[{item}]", visible=target.segmentation)
            for item, target in enumerate(listed)
        )
        said = [target.said for target in listed]
        answer = _answer(place, record, said, number=number, where=where)
        for part, whole in find_wholes(answer, ids, said).items() if answer else ():
            targets.link(part, whole)
        yield Question(f"{id}/{number}", question, where, ids, answer=answer)


def _list_of(kind: type[ListedTarget]) -> type[list[ListedTarget]]:
    return list[kind]  # type: ignore[valid-type]


def _answer(place: Place, record: ListedImage, names: list[str], *, number: int, where: str) -> Answer | None:
    text = record.text_answers[number] if number < len(record.text_answers) else None
    if text is None:
        return None
    answer, count = parse_answer(text, TOKEN, names)
    if count != len(names):
        expected = f"{len(names)} {TOKEN}, one a target"
        place.keep("answer that does not fit its targets", where, expected=expected, found=count)
    return answer
