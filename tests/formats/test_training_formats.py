"""Formats that projects train with: written, read back as those projects load them, losses counted."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pycocotools import mask as coco_mask
from typer.testing import CliRunner

import maskwise as mw
from maskwise.benchmarks.lisa_folder import to_border_pixels
from maskwise.benchmarks.polygon_fill import fill_polygon
from maskwise.cli.main import app
from maskwise.errors import ImageError
from maskwise.formats import convert_annotations, find_format, write_dataset
from maskwise.formats.qwen import resized_size
from maskwise.masks import Mask
from maskwise.masks.contours import trace_polygons
from maskwise.schema import Answer, ImageInfo, Phrase, Region, Sample
from maskwise.store import Dataset, DatasetWriter
from tests.formats.reading import read, reasons

LOSSY = ["gcg_json", "lisa", "mmr_json", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "sa2va"]
HEIGHT = 30
WIDTH = 40


def disk(x: int, y: int, radius: float, hole: float = 0) -> Mask:
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    square = (rows - y) ** 2 + (columns - x) ** 2
    return Mask.from_dense((square < radius**2) & (square >= hole**2))


CUP = Region(id="cup", name="cup", visible=disk(10, 10, 6), amodal=disk(12, 10, 8))
RING = Region(id="ring", name="ring", visible=disk(28, 16, 9, 4), order=1)
BOWL = Region(id="bowl", name="bowl", visible=disk(20, 25, 4))
SAMPLES = [
    Sample(
        id="a",
        image_id="kitchen",
        question="Which cup and which ring?",
        targets=(CUP, RING),
        answer=Answer(
            text="The cup and the ring.",
            phrases=(
                Phrase(start=0, stop=7, regions=(0,)),
                Phrase(start=12, stop=20, regions=(1,)),
            ),
        ),
        tags={"split": "val", "question_type": "long"},
    ),
    Sample(
        id="b",
        image_id="kitchen",
        question="The whole cup",
        mask_type="amodal",
        targets=(CUP,),
        ignore=disk(30, 5, 3),
        other_targets=((BOWL,),),
    ),
    Sample(id="c", image_id="kitchen", question="Any cow?", answer=Answer(text="No.")),
]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    out = io.BytesIO()
    Image.new("RGB", (WIDTH, HEIGHT), (9, 90, 190)).save(out, "PNG")
    path = tmp_path_factory.mktemp("training") / "data"
    image = ImageInfo(id="kitchen", width=WIDTH, height=HEIGHT, license="CC BY 4.0")
    with DatasetWriter(path, name="made up", about={"split": "val"}) as writer:
        writer.add_image(image, (CUP, RING, BOWL), out.getvalue())
        for sample in SAMPLES:
            writer.add_sample(sample)
    return Dataset.open(path)


def write_and_read(
    dataset: Dataset, name: str, tmp_path: Path
) -> tuple[dict[str, int], Dataset]:
    left_out = write_dataset(dataset, name, tmp_path / "written")
    summary = convert_annotations(
        find_format(name), tmp_path / "written", tmp_path / "read"
    )
    assert summary.skipped == {}
    return left_out, Dataset.open(tmp_path / "read")


def test_lisa_reads_the_same_masks_except_holes(
    dataset: Dataset, tmp_path: Path
) -> None:
    left_out, again = write_and_read(dataset, "lisa", tmp_path)
    assert [sample.question for sample in again] == [item.question for item in SAMPLES]
    assert again[1].targets[0].visible == CUP.amodal
    assert again[1].ignore == SAMPLES[1].ignore
    assert again[2].targets == ()
    filled = CUP.visible | disk(28, 16, 9)
    assert again[0].targets[0].visible == filled
    assert [sample.tags["question_type"] for sample in again] == [
        "long",
        "short",
        "long",
    ]
    assert left_out["masks whose holes are filled"] == 1
    assert left_out["questions whose targets are merged"] == 1
    assert left_out["questions with further annotators"] == 1
    assert left_out["answers in words"] == 2
    assert "questions with ignored pixels" not in left_out
    assert "masks that become boxes" not in left_out
    assert left_out["second masks of targets (visible or amodal)"] == 2
    assert left_out["licenses or attributions of images"] == 1
    assert left_out["regions that no question asks for"] == 1
    lines = (tmp_path / "written/left_out.txt").read_text().splitlines()
    assert "1 masks whose holes are filled" in lines
    assert len(lines) == len(left_out)


def test_border_pixels_draw_any_mask_without_holes() -> None:
    """The outline that OpenCV draws and fills gives every component again, up to holes."""
    rng = np.random.default_rng(1)
    for _ in range(60):
        plane = rng.random((9, 11)) > rng.uniform(0.2, 0.8)
        drawn = np.zeros_like(plane)
        filled = np.zeros_like(plane)
        for rings in trace_polygons(plane):
            points = to_border_pixels(rings[0]).astype(np.int32)
            drawn |= fill_polygon(points, *plane.shape)
            flat = rings[0].astype(float).ravel().tolist()
            rle = coco_mask.frPyObjects([flat], *plane.shape)
            filled |= coco_mask.decode(rle)[..., 0].astype(bool)
        assert (drawn == filled).all()


def test_mmr_json_keeps_targets_and_answers(dataset: Dataset, tmp_path: Path) -> None:
    left_out, again = write_and_read(dataset, "mmr_json", tmp_path)
    assert [region.visible for region in again[0].targets] == [
        CUP.visible,
        RING.visible,
    ]
    assert again[0].answer.text == "The cup and the ring."
    assert [phrase.stop for phrase in again[0].answer.phrases] == [7, 20]
    assert left_out["phrases, of which only the end is marked"] == 2
    assert again[1].targets[0].visible == CUP.amodal
    assert again[2].targets == ()
    assert left_out["questions with ignored pixels"] == 1
    assert "masks that become boxes" not in left_out


def test_sa2va_polygons_go_around_holes(dataset: Dataset, tmp_path: Path) -> None:
    left_out, again = write_and_read(dataset, "sa2va", tmp_path)
    assert [sample.question for sample in again] == [
        "Which cup and which ring?",
        "The whole cup",
    ]
    assert again[0].targets[0].visible == CUP.visible | RING.visible
    assert left_out["questions left out: no target or no text"] == 1
    assert "masks that become boxes" not in left_out
    # What Sa2VA's loader does: pycocotools draws the polygons of an object and adds them.
    (entry,) = json.loads((tmp_path / "written/annotations.json").read_text())
    rles = coco_mask.frPyObjects(entry["mask"][0], HEIGHT, WIDTH)
    drawn = coco_mask.decode(rles).sum(axis=2) > 0
    assert (drawn == (CUP.visible | RING.visible).to_dense()).all()


def test_gcg_keeps_captions_and_phrases(dataset: Dataset, tmp_path: Path) -> None:
    left_out, again = write_and_read(dataset, "gcg_json", tmp_path)
    (sample,) = again
    assert sample.answer == SAMPLES[0].answer
    assert [region.visible for region in sample.targets] == [CUP.visible, RING.visible]
    assert left_out["questions left out: no answer with phrases"] == 2
    (entry,) = json.loads((tmp_path / "written/annotations/val.json").read_text())
    assert entry["groundings"]["The cup"]["token_positives"] == [0, 7]


def box_of(mask: Mask) -> tuple[int, int, int, int]:
    x, y, width, height = mask.box
    return x, y, x + width, y + height


@pytest.mark.parametrize("name", ["qwen2_vl", "qwen2_5_vl", "qwen3_vl"])
def test_qwen_boxes_come_back(name: str, dataset: Dataset, tmp_path: Path) -> None:
    left_out, again = write_and_read(dataset, name, tmp_path)
    assert [len(sample.targets) for sample in again] == [2, 1, 0]
    assert [region.name for region in again[0].targets] == ["cup", "ring"]
    expected = np.array([box_of(CUP.visible), box_of(RING.visible)])
    found = np.array([box_of(region.visible) for region in again[0].targets])
    assert np.abs(found - expected).max() <= 1
    assert left_out["masks that become boxes"] == 3
    entries = json.loads((tmp_path / "written/annotations.json").read_text())
    turns = entries[0]["conversations"]
    assert [turn["from"] for turn in turns] == ["human", "gpt"]
    assert turns[0]["value"] == "<image>\nWhich cup and which ring?"
    (box, _) = json.loads(turns[1]["value"])
    height, width = resized_size((HEIGHT, WIDTH))
    space = (width, height) if name == "qwen2_5_vl" else (1000, 1000)
    assert box["bbox_2d"][2] == round(box_of(CUP.visible)[2] * space[0] / WIDTH)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((480, 640), (476, 644)),
        ((30, 40), (56, 84)),
        ((3000, 4000), (840, 1148)),
        ((28, 28), (56, 56)),
    ],
)
def test_the_size_of_resized_images(size: Any, expected: Any) -> None:
    assert resized_size(size) == expected


def test_segzero_is_what_load_from_disk_opens(dataset: Dataset, tmp_path: Path) -> None:
    left_out, again = write_and_read(dataset, "segzero", tmp_path)
    assert [sample.question for sample in again] == [
        "Which cup and which ring?",
        "The whole cup",
    ]
    assert again[0].image.size == (840, 840)
    scaled = np.array(box_of(CUP.visible)) * [21, 28, 21, 28]
    assert box_of(again[0].targets[0].visible) == tuple(scaled.tolist())
    assert left_out["questions left out: no target"] == 1
    assert left_out["masks that become boxes"] == 3
    datasets = pytest.importorskip("datasets")
    rows = datasets.load_from_disk(str(tmp_path / "written"))["train"]
    assert rows[0]["image"].size == (840, 840)
    assert (rows[0]["img_height"], rows[0]["img_width"]) == (HEIGHT, WIDTH)
    objects = json.loads(rows[0]["solution"])
    assert objects[0]["bbox_2d"] == scaled.tolist()
    x, y = objects[0]["point_2d"]
    assert CUP.visible.to_dense()[int(y / 28), int(x / 21)]
    with pytest.raises(ImageError, match="with images"):
        write_dataset(dataset, "segzero", tmp_path / "other", with_images=False)


@pytest.mark.parametrize("name", LOSSY)
def test_the_command_prints_what_is_not_written(name: str, tmp_path: Path) -> None:
    arguments = ["write", name, "world", "--out", str(tmp_path / "out"), "--no-images"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert f"not written, because {name} cannot say it" in done.output


def test_formats_that_keep_everything_report_nothing(
    dataset: Dataset, tmp_path: Path
) -> None:
    assert mw.write_dataset(dataset, "coco", tmp_path / "out") == {}
    assert not (tmp_path / "out/left_out.txt").exists()


def test_boxes_beyond_the_image_are_cut_off(tmp_path: Path) -> None:
    Image.new("RGB", (WIDTH, HEIGHT)).save(tmp_path / "1.png")
    boxes = [[500, 500, 10**30, 2000], [10, 10, 5, 20], [-5, -5, 500, 1000]]
    reply = json.dumps([{"bbox_2d": box} for box in boxes])
    turns = [{"from": "human", "value": "?"}, {"from": "gpt", "value": reply}]
    entry = {"image": "1.png", "conversations": turns}
    broken = {"image": "1.png", "conversations": turns[:1]}
    (tmp_path / "annotations.json").write_text(json.dumps([entry, broken]))
    (scene,), diagnostics = read("qwen3_vl", tmp_path)
    areas = [region.visible.area for region in scene.regions]
    assert areas == [HEIGHT * WIDTH // 4, 0, HEIGHT * WIDTH // 2]
    assert reasons(diagnostics) == ["reply without boxes"]
