"""ReasonSeg: masks as LISA draws them, questions as LISA asks them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from maskwise.benchmarks.reasonseg import read as read_reasonseg
from maskwise.formats import Diagnostics
from maskwise.formats.read_context import ImageFolder, ReadContext
from maskwise.schema import Sample
from tests.formats import layouts
from tests.formats.reading import read, reasons
from tests.shared import shared


def box(label: str, left: int, top: int, right: int, bottom: int) -> dict[str, Any]:
    return {
        "label": label,
        "points": [[left, top], [right, top], [right, bottom], [left, bottom]],
    }


def sample(root: Path, *shapes: dict[str, Any], **fields: Any) -> Sample:
    layouts.write_image(root / "val/a.jpg")
    value = {"text": ["What?"], "is_sentence": False, "shapes": list(shapes)} | fields
    layouts.write_json(root / "val/a.json", value)
    (scene,), _ = read("reasonseg", root)
    return scene.samples[0]


def plane(found: Sample, size: tuple[int, int] = (1, 1)) -> NDArray[np.uint8]:
    """As LISA's own: 0, 1 and 255. size: of a sample without any mask."""
    masks = [target.visible for target in found.targets if target.visible is not None]
    assert len(masks) == len(found.targets) <= 1
    height, width = (
        found.ignore.size
        if found.ignore is not None
        else masks[0].size
        if masks
        else size
    )
    out = (
        masks[0].to_dense().astype(np.uint8)
        if masks
        else np.zeros((height, width), np.uint8)
    )
    if found.ignore is not None:
        assert not any((found.ignore & mask).area for mask in masks)
        out[found.ignore.to_dense()] = 255
    return out


def test_the_smaller_overwrites_the_larger_whatever_the_order(tmp_path: Path) -> None:
    large = box("target", 0, 0, 9, 9)
    small = box("ignore", 2, 2, 4, 4)
    for shapes in ((large, small), (small, large)):
        found = plane(sample(tmp_path, *shapes))
        assert (np.count_nonzero(found == 255), np.count_nonzero(found == 1)) == (9, 91)
    found = plane(
        sample(tmp_path, box("ignore", 0, 0, 9, 9), box("target", 2, 2, 4, 4))
    )
    assert (np.count_nonzero(found == 255), np.count_nonzero(found == 1)) == (91, 9)


def test_of_equal_areas_the_first_listed_is_drawn_last(tmp_path: Path) -> None:
    found = plane(
        sample(tmp_path, box("target", 0, 0, 3, 3), box("ignore", 2, 0, 5, 3))
    )
    assert np.count_nonzero(found == 1) == 16
    assert np.count_nonzero(found == 255) == 8


def test_labels(tmp_path: Path) -> None:
    assert not plane(sample(tmp_path, box("FLAG", 0, 0, 9, 9))).any()
    assert (
        plane(sample(tmp_path, box("Please Ignore this", 0, 0, 1, 1))) == 255
    ).sum() == 4
    assert (plane(sample(tmp_path, box("flags", 0, 0, 1, 1))) == 1).sum() == 4
    assert (plane(sample(tmp_path, box("", 0, 0, 1, 1))) == 1).sum() == 4


def test_points_are_cut_not_rounded(tmp_path: Path) -> None:
    shape = {
        "label": "target",
        "points": [[0.9, 0.9], [2.9, 0.9], [2.9, 1.99], [-0.9, 1.99]],
    }
    assert plane(sample(tmp_path, shape)).nonzero()[0].tolist() == [0, 0, 0, 1, 1, 1]


def test_a_file_without_target_pixels_is_a_question_without_target(
    tmp_path: Path,
) -> None:
    found = sample(tmp_path)
    assert found.targets == ()
    assert found.ignore is None
    assert sample(tmp_path, box("ignore", 0, 0, 1, 1)).targets == ()
    sample(tmp_path)
    _, diagnostics = read("reasonseg", tmp_path)
    assert reasons(diagnostics, kept=True) == ["no target"]


def test_short_and_long_questions_are_tagged(tmp_path: Path) -> None:
    assert sample(tmp_path, is_sentence=True).tags == {
        "split": "val",
        "question_type": "long",
    }
    assert sample(tmp_path, is_sentence=False).tags == {
        "split": "val",
        "question_type": "short",
    }


def test_evaluation_asks_the_first_text_and_training_all(tmp_path: Path) -> None:
    layouts.reasonseg(tmp_path)
    (scene,), _ = read("reasonseg", tmp_path)
    assert [(found.id, found.question) for found in scene.samples] == [("a", "What?")]
    (tmp_path / "val").rename(tmp_path / "train")
    explanation = [{"image": "a.jpg", "query": "Which?", "outputs": "The left one."}]
    layouts.write_json(tmp_path / "explanatory/train.json", explanation)
    (scene,), _ = read("reasonseg", tmp_path)
    assert [(found.id, found.question) for found in scene.samples] == [
        ("a/0", "What?"),
        ("a/1", "Which?"),
    ]
    assert [found.answer and found.answer.text for found in scene.samples] == [
        None,
        "The left one.",
    ]


def test_cp1252_files_are_read(tmp_path: Path) -> None:
    path = layouts.reasonseg(tmp_path)
    text = path.read_text().replace("What?", "Who\u2019s there?")
    path.write_bytes(text.encode("cp1252"))
    (scene,), diagnostics = read("reasonseg", tmp_path)
    assert scene.samples[0].question == "Who\u2019s there?"
    assert diagnostics == []


@pytest.mark.parametrize(
    "fields",
    [
        {"text": []},
        {"text": "What?"},
        {"is_sentence": "yes"},
        {"shapes": [{"label": "target"}]},
        {"shapes": [{"label": "target", "points": []}]},
        {"shapes": [{"label": "target", "points": [[1]]}]},
        {"shapes": [{"label": "target", "points": [[1e300, 1]]}]},
        {"shapes": [{"label": 7, "points": [[1, 1]]}]},
    ],
)
def test_a_bad_file_is_skipped_alone(fields: dict[str, Any], tmp_path: Path) -> None:
    path = layouts.reasonseg(tmp_path)
    layouts.write_image(path.with_name("b.jpg"))
    layouts.write_json(path.with_name("b.json"), json.loads(path.read_text()) | fields)
    layouts.write_json(path.with_name("c.json"), json.loads(path.read_text()))
    scenes, diagnostics = read("reasonseg", tmp_path)
    assert [scene.image.id for scene in scenes] == ["a"]
    assert reasons(diagnostics) == ["fields of another type", "missing image"]


def by_lisa(shapes: list[dict[str, Any]], height: int, width: int) -> NDArray[np.uint8]:
    """The rule in LISA's words, with OpenCV: areas first, then drawing in falling order."""
    cv2: Any = pytest.importorskip(
        "cv2", reason="compares with OpenCV, which the bench extra brings"
    )

    def draw(out: NDArray[np.uint8], shape: dict[str, Any], value: int) -> None:
        points = np.array([shape["points"]], dtype=np.int32)
        cv2.polylines(out, points, True, value, 1)
        cv2.fillPoly(out, points, value)

    used = [shape for shape in shapes if shape["label"].lower() != "flag"]
    areas = []
    for shape in used:
        alone = np.zeros((height, width), np.uint8)
        draw(alone, shape, 1)
        areas.append(alone.sum())
    out = np.zeros((height, width), np.uint8)
    for item in np.argsort(areas)[::-1]:
        draw(out, used[item], 255 if "ignore" in used[item]["label"].lower() else 1)
    return out


def test_every_real_file_as_lisa_with_opencv() -> None:
    folder = shared("data", "reasonseg_val")
    scenes, diagnostics = read("reasonseg", folder)
    assert (len(scenes), reasons(diagnostics)) == (57, [])
    for scene in scenes:
        value = json.loads((folder / f"{scene.image.id}.json").read_text())
        with Image.open(folder / f"{scene.image.id}.jpg") as image:
            assert (scene.image.width, scene.image.height) in (
                image.size,
                image.size[::-1],
            )
        (found,) = scene.samples
        assert found.question == value["text"][0]
        assert np.array_equal(
            plane(found, (scene.image.height, scene.image.width)),
            by_lisa(value["shapes"], scene.image.height, scene.image.width),
        )


def test_the_pinned_opencv_draws_at_least_as_much() -> None:
    folder = shared("data", "reasonseg_val")
    context = ReadContext(
        annotations=folder,
        split="val",
        diagnostics=Diagnostics(),
        images=ImageFolder(folder, (".",)),
    )
    now, pinned = (
        [
            region.visible
            for scene in read_reasonseg(context, drawing=drawing).images
            for region in scene.regions
        ]
        for drawing in ("4.11", "4.8")
    )
    areas = [
        (a.area, b.area) for a, b in zip(now, pinned) if a is not None and b is not None
    ]
    assert all(abs(a - b) <= 0.02 * max(a, 500) for a, b in areas)
    assert any(a != b for a, b in areas)
