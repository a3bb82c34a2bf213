"""ReasonSeg: one implicit question per image and one mask, from the LISA paper.

Each `X.jpg` has an `X.json`: `text` (a list: the question and, in train, rephrasings), `is_sentence`, and `shapes`,
which are labelled polygons. The mask is what LISA draws (utils/data_processing.py): the label `flag` is skipped, one
that contains `ignore` marks ignored pixels, anything else is the target. Points are truncated to integers. Polygons are
drawn in order of decreasing area, so that smaller ones overwrite larger ones; of equal areas the one listed later is
drawn first (LISA leaves that to numpy's sort). Files that are not UTF-8 are read as cp1252.

An image without target pixels (4 of 181 in one copy of val, 2 of 690 of test) gives a question without target. LISA's
code scores it as one empty mask, so a prediction without pixels is right there too.

Evaluation uses `text[0]` only. So do all splits but train, which has one sample per text. `explanatory/train.json`, if
present, provides answers in words: LISA looks them up by image and never by question, so an answer whose `query` is
none of the texts belongs to all of them. SESAME's version of the files adds `false_premise_QA`: questions without
target, read in train. The test split was given to users who asked for it; two of its 779 files have no polygon.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from maskwise.benchmarks.benchmark import Benchmark
from maskwise.benchmarks.polygon_fill import Drawing, fill_polygon
from maskwise.errors import FormatError
from maskwise.formats.annotation_format import AnnotatedImages, PublishedCount
from maskwise.formats.annotations import (
    ImageAnnotation,
    QuestionAnnotation,
    RegionAnnotation,
    decode_annotations,
)
from maskwise.formats.file_layout import FileLayout
from maskwise.formats.json_files import read_json
from maskwise.formats.read_context import ReadContext, locate_image
from maskwise.masks import Masks
from maskwise.schema import Answer

PAPER = "LISA paper (CVPR 2024)"
TARGET = 1
IGNORE = 255


class ReasonSegShape(msgspec.Struct, frozen=True):
    """A labelled polygon."""

    label: str
    points: list[tuple[float, float]]


class ReasonSegFile(msgspec.Struct, frozen=True):
    """The JSON of one image."""

    text: list[str]
    is_sentence: bool
    shapes: list[ReasonSegShape]
    false_premise_QA: list[tuple[str, bool]] = []


class ReasonSegExplanation(msgspec.Struct, frozen=True):
    """An entry of `explanatory/train.json`."""

    image: str
    query: str
    outputs: str


def read(context: ReadContext, *, drawing: Drawing = "4.11") -> AnnotatedImages:
    """Images with their questions. drawing: the OpenCV version that draws the polygons (see `polygon_fill`)."""
    files = sorted(context.annotations.glob("*.json"))
    answers = _answers(context)
    annotations = (
        annotation
        for file in files
        for annotation in _image_annotation(context, file, answers, drawing=drawing)
    )
    return AnnotatedImages(
        len(files), decode_annotations(annotations, context.diagnostics)
    )


def _image_annotation(
    context: ReadContext,
    path: Path,
    answers: dict[tuple[str, str], str],
    *,
    drawing: Drawing,
) -> Iterator[ImageAnnotation]:
    """The annotation of one file; nothing and a diagnostic if it is invalid."""
    try:
        file = read_json(path, ReasonSegFile, encodings=("utf-8", "cp1252"))
        if not file.text:
            raise FormatError("text is an empty list")
        corners = [_to_points(shape) for shape in file.shapes]
    except FormatError as error:
        context.skip(
            "fields of another type",
            path.name,
            expected="ReasonSegFile",
            found=str(error),
        )
        return
    image = locate_image(
        context, f"{path.stem}.jpg", None, id=path.stem, record=path.name
    )
    if image is None:
        return
    plane = _draw(file.shapes, corners, (image.height, image.width), drawing=drawing)
    target, ignore = Masks.from_dense(np.stack([plane == TARGET, plane == IGNORE]))
    if not target.area:
        context.warn(
            "no target",
            path.name,
            expected="a polygon with pixels",
            found="a question without target",
        )
    texts = file.text if context.split == "train" else file.text[:1]
    tags = {
        "split": context.split,
        "question_type": "long" if file.is_sentence else "short",
    }
    questions = tuple(
        QuestionAnnotation(
            path.stem if context.split != "train" else f"{path.stem}/{number}",
            text,
            f"{path.name}, text[{number}]",
            targets=("target",) if target.area else (),
            answer=_find_answer(answers, f"{path.stem}.jpg", text, file.text),
            ignore=ignore if ignore.area else None,
            tags=tags,
        )
        for number, text in enumerate(texts)
    )
    if context.split == "train":
        questions += tuple(
            QuestionAnnotation(
                f"{path.stem}/false/{number}",
                text,
                f"{path.name}, false_premise_QA[{number}]",
                tags=tags
                | {
                    "question_type": "long" if is_sentence else "short",
                    "false_premise": "yes",
                },
            )
            for number, (text, is_sentence) in enumerate(file.false_premise_QA)
        )
    region = RegionAnnotation("target", "target", path.name, visible=target)
    yield ImageAnnotation(image, path.name, (region,) if target.area else (), questions)


def _draw(
    shapes: list[ReasonSegShape],
    corners: list[NDArray[np.int32]],
    size: tuple[int, int],
    *,
    drawing: Drawing,
) -> NDArray[np.uint8]:
    """0 background, 1 target, 255 ignored, (height, width)."""
    used = [item for item, shape in enumerate(shapes) if shape.label.lower() != "flag"]
    drawn = [fill_polygon(corners[item], *size, drawing=drawing) for item in used]
    areas = [np.count_nonzero(pixels) for pixels in drawn]
    plane = np.zeros(size, np.uint8)
    for rank in np.argsort(areas, kind="stable")[::-1]:
        plane[drawn[rank]] = (
            IGNORE if "ignore" in shapes[used[rank]].label.lower() else TARGET
        )
    return plane


def _to_points(shape: ReasonSegShape) -> NDArray[np.int32]:
    """The corners, truncated to integers as LISA does."""
    points = np.array(shape.points, np.float64).reshape(-1, 2)
    if not len(points) or not (np.abs(points) < 2**31 - 1).all():
        raise FormatError(
            f"a polygon labelled {shape.label!r} has no corners or corners out of bounds"
        )
    return points.astype(np.int32)


def _answers(context: ReadContext) -> dict[tuple[str, str], str]:
    """Answers in words by image and question; only train has them."""
    path = context.annotations.parent / "explanatory" / f"{context.split}.json"
    entries = read_json(path, list[ReasonSegExplanation]) if path.is_file() else []
    return {(entry.image, entry.query): entry.outputs for entry in entries}


def _find_answer(
    answers: dict[tuple[str, str], str], image: str, question: str, texts: list[str]
) -> Answer | None:
    """The answer to a question; or one of the image that belongs to none of its texts."""
    text = answers.get((image, question))
    if text is None:
        unmatched = [
            answer
            for (name, query), answer in answers.items()
            if name == image and query not in texts
        ]
        text = unmatched[-1] if unmatched else None
    return None if text is None else Answer(text=text)


REASONSEG = Benchmark(
    name="reasonseg",
    title="ReasonSeg: reasoning segmentation (LISA, CVPR 2024)",
    protocol="lisa",
    layout=FileLayout(
        annotations=("ReasonSeg/{split}", "{split}"),
        images=("ReasonSeg/{split}", "{split}", "."),
        splits=("train", "val", "test"),
        inside="*.json",
        notes="each X.jpg has an X.json beside it. A folder of such files can be named itself.",
    ),
    read=read,
    published=(
        PublishedCount("train", "images", 239, PAPER),
        PublishedCount("val", "images", 200, PAPER),
        PublishedCount("test", "images", 779, PAPER),
    ),
    facts={
        "license": "none stated for the annotations; images of OpenImages and ScanNetv2 under their own terms",
        "download": "github.com/dvlab-research/LISA",
        "paper": "Lai et al., CVPR 2024",
    },
)
