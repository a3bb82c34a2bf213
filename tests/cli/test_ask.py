import json
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from maskwise.cli.main import app
from maskwise.images import image_size
from maskwise.masks import Masks
from maskwise.world import make_scene
from tests.harness.fakes import FAKES


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "scene.png"
    Image.fromarray(make_scene(21, 4, "val", 200).image).save(path)
    return path


def test_ask_tells_answer_type_and_masks(image: Path, tmp_path: Path) -> None:
    result = run(
        "ask",
        image,
        "Everything in the image, hidden parts included.",
        "--out",
        tmp_path / "out",
    )
    assert result.exit_code == 0, result.output
    assert "mask type: amodal" in result.stdout
    assert max(image_size(tmp_path / "out" / "overlay.png")) >= 640
    written = json.loads((tmp_path / "out" / "prediction.json").read_text())
    assert written["mask_type"] == "amodal"


def test_ask_prints_masks_as_coco_rle(image: Path) -> None:
    name = next(
        item.name
        for item in make_scene(21, 4, "val", 200).nodes
        if item.part is None and item.order == 1
    )
    result = run("ask", image, f"Segment the {name}.", "--json")
    prediction = json.loads(result.stdout)
    assert prediction["mask_type"] == "visible"
    assert prediction["regions"]
    for region in prediction["regions"]:
        mask = Masks.from_rles([region["visible"]])[0]
        assert mask.size == (200, 200)
        assert mask.area > 0


def test_help_explains_the_score_in_brackets() -> None:
    shown = " ".join(run("ask", "--help").stdout.split())
    assert (
        "in brackets, its score: the model's confidence in the region, from 0 to 1"
        in shown
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.png", "the mug"], "missing.png"),
        (["IMAGE", "  "], "the question is empty"),
        (["IMAGE", "the mug", "--model", "oracle-mask-type"], "needs the ground truth"),
        (["IMAGE", "the mug", "--model", "nothing-like-it"], "nothing-like-it"),
        (
            ["IMAGE", "the mug", "--model-option", "folder=/nowhere"],
            "/nowhere lacks detector.onnx",
        ),
        (["IMAGE", "raise", "--model", f"{FAKES}:Moody"], "failed: ValueError: what"),
    ],
)
def test_ask_says_what_is_wrong(
    image: Path, arguments: list[str], message: str
) -> None:
    result = run(
        "ask", *[image if argument == "IMAGE" else argument for argument in arguments]
    )
    assert result.exit_code != 0
    assert message in f"{result.exception} {result.output}"


def test_ask_warns_about_an_image_outside_the_domain_of_the_model(
    tmp_path: Path, image: Path
) -> None:
    noise = tmp_path / "noise.png"
    Image.effect_noise((160, 120), 90).convert("RGB").save(noise)
    assert "bring a model for photographs" in run("ask", noise, "the mug").stderr
    assert run("ask", image, "the mug").stderr == ""


def test_train_names_a_config_it_cannot_read(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the extra `train` is not installed")
    result = run("train", tmp_path / "none.toml")
    assert result.exit_code != 0
    assert "none.toml" in f"{result.exception} {result.output}"


def test_ask_writes_nothing_without_out(
    image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    assert run("ask", image, "the mug").exit_code == 0
    assert not list(empty.iterdir())


def test_a_folder_that_cannot_be_written_is_named(image: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    result = run("ask", image, "the mug", "--out", blocked)
    assert result.exit_code != 0
    assert f"cannot write to {blocked}" in str(result.exception)


def test_several_questions_are_answered_one_after_the_other(
    image: Path, tmp_path: Path
) -> None:
    questions = ["Everything, hidden parts included.", "the visible part of the moon"]
    result = run("ask", image, *questions, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    first, second = result.stdout.split("\n\n")
    assert first.startswith(f"{questions[0]}\n")
    assert "mask type: amodal" in first
    assert second.startswith(f"{questions[1]}\n")
    assert str(tmp_path / "out" / "overlay-2.png") in second.replace("\n", "")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [
        "overlay-1.png",
        "overlay-2.png",
        "prediction-1.json",
        "prediction-2.json",
    ]
    printed = json.loads(run("ask", image, *questions, "--json").stdout)
    assert [item["mask_type"] for item in printed] == ["amodal", "visible"]


def test_questions_of_a_dialogue_refer_to_the_ones_before(image: Path) -> None:
    scene = make_scene(21, 4, "val", 200, dialogues=6)
    dialogue = next(item for item in scene.dialogues if item.kind == "mask type")
    questions = [*(turn.question for turn in dialogue.turns), dialogue.question]
    alone = json.loads(run("ask", image, *questions, "--json").stdout)
    told = json.loads(run("ask", image, *questions, "--dialogue", "--json").stdout)
    assert told[0] == alone[0]
    assert told[-1]["mask_type"] == dialogue.mask_type
    names = [region["name"] for region in told[-1]["regions"]]
    assert names == [region["name"] for region in told[0]["regions"]]


def test_a_dialogue_is_read_from_standard_input(image: Path) -> None:
    scene = make_scene(21, 4, "val", 200, dialogues=6)
    dialogue = next(item for item in scene.dialogues if item.kind == "mask type")
    first = dialogue.turns[0].question
    lines = (
        f"{first}\n\n{dialogue.question}\n"  # a blank line between them is no question
    )
    result = CliRunner().invoke(app, ["ask", str(image)], input=lines)
    assert result.exit_code == 0, result.output
    answers = result.stdout.strip().split("\n\n")
    assert len(answers) == 2
    assert f"mask type: {dialogue.mask_type}" in answers[1]
    refused = run("ask", image, "--json")
    assert "need a QUESTION" in str(refused.exception)
