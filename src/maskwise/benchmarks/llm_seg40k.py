"""LLM-Seg40K: questions and answers by a language model about COCO and EgoObjects photos.

The JSON maps an image name to `from_dataset` (coco or ego_objects) and `qa_pairs`: `question`, `answer`, `rle_seg`.
"""

from collections.abc import Iterator

import msgspec

from maskwise.benchmarks.benchmark import Benchmark
from maskwise.formats.annotation_format import AnnotatedImages
from maskwise.formats.annotations import (
    ImageAnnotation,
    QuestionAnnotation,
    RegionAnnotation,
    decode_annotations,
)
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.json_files import read_json
from maskwise.formats.read_context import ReadContext, locate_image
from maskwise.formats.segmentations import CocoRle
from maskwise.schema import Answer


class LlmSegPair(msgspec.Struct, frozen=True):
    """A question with its answer and mask."""

    question: str
    rle_seg: CocoRle
    answer: str | None = None


class LlmSegImage(msgspec.Struct, frozen=True):
    """The questions about one image."""

    qa_pairs: list[LlmSegPair]
    from_dataset: str = ""


def read(context: ReadContext) -> AnnotatedImages:
    """Images with their questions."""
    entries = read_json(context.annotations, dict[str, msgspec.Raw])
    annotations = _image_annotations(context, entries)
    return AnnotatedImages(
        len(entries), decode_annotations(annotations, context.diagnostics)
    )


def _image_annotations(
    context: ReadContext, entries: dict[str, msgspec.Raw]
) -> Iterator[ImageAnnotation]:
    for name, raw in entries.items():
        entry = context.decode(raw, LlmSegImage, record=name)
        if entry is None or not entry.qa_pairs:
            continue
        size = entry.qa_pairs[0].rle_seg.size
        image = locate_image(context, name, size, id=name, record=name)
        if image is None:
            continue
        regions = []
        questions = []
        for number, pair in enumerate(entry.qa_pairs):
            record = f"{name}, qa_pairs[{number}]"
            mask = msgspec.structs.asdict(pair.rle_seg)
            regions.append(
                RegionAnnotation(str(number), "target", record, visible=mask)
            )
            questions.append(
                QuestionAnnotation(
                    f"{name}/{number}",
                    pair.question,
                    record,
                    targets=(str(number),),
                    answer=None if pair.answer is None else Answer(text=pair.answer),
                    tags={"split": context.split, "source": entry.from_dataset},
                )
            )
        yield ImageAnnotation(image, context.file, tuple(regions), tuple(questions))


LLM_SEG40K = Benchmark(
    name="llm-seg40k",
    title="LLM-Seg40K: questions by a language model about COCO and EgoObjects photos",
    protocol="lisa",
    layout=FileLayout(
        annotations=("{split}.json",),
        images=("coco/train2017", "train2017", "egoobjects", "images", "."),
    ),
    read=read,
    facts={
        "license": "none stated; photos under the terms of COCO and EgoObjects",
        "download": "github.com/wangjunchi/LLMSeg",
        "paper": "Wang and Ke, LLM-Seg, 2024",
        "layout": "layout from code, file not seen",
    },
)
