import json
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from maskwise.cli.main import app
from maskwise.masks import Masks
from maskwise.pictures import picture_size
from maskwise.world import scene
from tests.harness.fakes import FAKES


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "scene.png"
    Image.fromarray(scene(21, 4, "val", 200).picture).save(path)
    return path


def test_ask_tells_answer_type_and_masks(picture: Path, tmp_path: Path) -> None:
    result = run(
        "ask", picture, "Everything in the picture, hidden parts included.", "--out", tmp_path / "out"
    )
    assert result.exit_code == 0, result.output
    assert "mask type: amodal" in result.stdout
    assert max(picture_size(tmp_path / "out" / "overlay.png")) >= 640
    written = json.loads((tmp_path / "out" / "prediction.json").read_text())
    assert written["mask_type"] == "amodal"


def test_ask_prints_masks_as_coco_rle(picture: Path) -> None:
    name = next(item.name for item in scene(21, 4, "val", 200).items if item.part is None and item.order == 1)
    result = run("ask", picture, f"Segment the {name}.", "--json")
    prediction = json.loads(result.stdout)
    assert prediction["mask_type"] == "visible"
    assert prediction["regions"]
    for region in prediction["regions"]:
        mask = Masks.from_rles([region["visible"]])[0]
        assert mask.size == (200, 200)
        assert mask.area > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.png", "the mug"], "missing.png"),
        (["PICTURE", "  "], "the question is empty"),
        (["PICTURE", "the mug", "--model", "oracle-type"], "has to be told the truth"),
        (["PICTURE", "the mug", "--model", "nothing-like-it"], "nothing-like-it"),
        (["PICTURE", "the mug", "--model-option", "folder=/nowhere"], "/nowhere lacks eye.onnx"),
        (["PICTURE", "raise", "--model", f"{FAKES}:Moody"], "failed: ValueError: what"),
    ],
)
def test_ask_says_what_is_wrong(picture: Path, arguments: list[str], message: str) -> None:
    result = run("ask", *[picture if argument == "PICTURE" else argument for argument in arguments])
    assert result.exit_code != 0
    assert message in f"{result.exception} {result.output}"


def test_train_names_a_config_it_cannot_read(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    result = run("train", tmp_path / "none.toml")
    assert result.exit_code != 0
    assert "none.toml" in f"{result.exception} {result.output}"
