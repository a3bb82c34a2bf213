"""ReasonSeg: one implicit question an image, one mask, from the LISA paper.

Beside each `X.jpg` lies `X.json`: `text` (a list: the question and, in train, rephrasings), `is_sentence`, and
`shapes` of labelled polygons. The mask is what LISA draws (utils/data_processing.py): a label `flag` is left out, one
with `ignore` in it marks pixels that do not count, anything else is target. Points are cut to whole numbers. Polygons
are drawn in order of falling area, so that smaller ones overwrite larger ones; of equal areas the one listed later is
drawn first (LISA leaves that to numpy's sort). Files that are not UTF-8 are read as cp1252. A file without any polygon
has an empty target.

Evaluation asks `text[0]` only, and so do all splits but train, which has one sample a text. `explanatory/train.json`,
where it is there, gives answers in words.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from maskwise.benchmarks.benchmark import Benchmark
from maskwise.benchmarks.polygon_fill import Drawing, fill_polygon
from maskwise.errors import SourceError
from maskwise.formats.draft import Draft, Outline, Question, finish
from maskwise.formats.layout import Layout, Place, locate_image
from maskwise.formats.records import read_json
from maskwise.formats.source import Published, Reading
from maskwise.masks import Masks
from maskwise.schema import Answer

PAPER = "LISA paper (CVPR 2024)"
TARGET, IGNORE = 1, 255


class Shape(msgspec.Struct, frozen=True):
    """A labelled polygon."""

    label: str
    points: list[tuple[float, float]]


class ReasonSegFile(msgspec.Struct, frozen=True):
    """What a JSON says of its image."""

    text: list[str]
    is_sentence: bool
    shapes: list[Shape]


class Explanation(msgspec.Struct, frozen=True):
    """An entry of `explanatory/train.json`."""

    image: str
    query: str
    outputs: str


def read(place: Place, *, drawing: Drawing = "4.11") -> Reading:
    """Images with their question. drawing: which OpenCV draws the polygons (see `polygon_fill`)."""
    files = sorted(place.annotations.glob("*.json"))
    answers = _answers(place)
    drafts = (draft for file in files for draft in _draft(place, file, answers, drawing=drawing))
    return Reading(len(files), finish(drafts, place.problems))


def _draft(
    place: Place, path: Path, answers: dict[tuple[str, str], str], *, drawing: Drawing
) -> Iterator[Draft]:
    """The draft of one file, or none and a problem."""
    try:
        file = read_json(path, ReasonSegFile, encodings=("utf-8", "cp1252"))
        if not file.text:
            raise SourceError("text is an empty list")
        corners = [_to_points(shape) for shape in file.shapes]
    except SourceError as error:
        place.skip("fields of another type", path.name, expected="ReasonSegFile", found=str(error))
        return
    image = locate_image(place, f"{path.stem}.jpg", None, id=path.stem, record=path.name)
    if image is None:
        return
    plane = _draw(file.shapes, corners, (image.height, image.width), drawing=drawing)
    target, ignore = Masks.from_dense(np.stack([plane == TARGET, plane == IGNORE]))
    if not target.area:
        place.keep("no target", path.name, expected="a polygon", found="an empty mask, as LISA scores it")
    texts = file.text if place.split == "train" else file.text[:1]
    tags = {"split": place.split, "question_type": "long" if file.is_sentence else "short"}
    questions = tuple(
        Question(
            path.stem if place.split != "train" else f"{path.stem}/{number}",
            text,
            f"{path.name}, text[{number}]",
            ("target",),
            answer=_to_answer(answers.get((f"{path.stem}.jpg", text))),
            ignore=ignore if ignore.area else None,
            tags=tags,
        )
        for number, text in enumerate(texts)
    )
    outline = Outline("target", "target", path.name, visible=target)
    yield Draft(image, path.name, (outline,), questions)


def _draw(
    shapes: list[Shape], corners: list[NDArray[np.int32]], size: tuple[int, int], *, drawing: Drawing
) -> NDArray[np.uint8]:
    """0 background, 1 target, 255 ignored, (height, width)."""
    used = [item for item, shape in enumerate(shapes) if shape.label.lower() != "flag"]
    drawn = [fill_polygon(corners[item], *size, drawing=drawing) for item in used]
    areas = [np.count_nonzero(pixels) for pixels in drawn]
    plane = np.zeros(size, np.uint8)
    for rank in np.argsort(areas, kind="stable")[::-1]:
        plane[drawn[rank]] = IGNORE if "ignore" in shapes[used[rank]].label.lower() else TARGET
    return plane


def _to_points(shape: Shape) -> NDArray[np.int32]:
    """The corners, cut to whole numbers as LISA does."""
    points = np.array(shape.points, np.float64).reshape(-1, 2)
    if not len(points) or not (np.abs(points) < 2**31 - 1).all():
        raise SourceError(f"a polygon labelled {shape.label!r} has no corners or corners beyond all bounds")
    return points.astype(np.int32)


def _answers(place: Place) -> dict[tuple[str, str], str]:
    """Answers in words by image and question; only train has some."""
    path = place.annotations.parent / "explanatory" / f"{place.split}.json"
    entries = read_json(path, list[Explanation]) if path.is_file() else []
    return {(entry.image, entry.query): entry.outputs for entry in entries}


def _to_answer(text: str | None) -> Answer | None:
    return None if text is None else Answer(text=text)


REASONSEG = Benchmark(
    name="reasonseg",
    title="ReasonSeg: reasoning segmentation (LISA, CVPR 2024)",
    protocol="lisa",
    layout=Layout(
        annotations=("ReasonSeg/{split}", "{split}"),
        images=("ReasonSeg/{split}", "{split}", "."),
        splits=("train", "val", "test"),
        inside="*.json",
        notes="beside each X.jpg its X.json. A folder of such files itself can be named too.",
    ),
    read=read,
    published=(
        Published("train", "images", 239, PAPER),
        Published("val", "images", 200, PAPER),
        Published("test", "images", 779, PAPER),
    ),
    facts={
        "licence": "none stated for the annotations; images of OpenImages and ScanNetv2 under their own terms",
        "download": "github.com/dvlab-research/LISA",
        "paper": "Lai et al., CVPR 2024",
    },
)
