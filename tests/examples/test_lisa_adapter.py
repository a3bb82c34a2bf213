"""The worked example of docs/guides/adapters.md: end to end without a checkpoint, and its masks against ours."""

import importlib.util
import json
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image
from typer.testing import CliRunner

from maskwise.cli.main import app
from maskwise.errors import ModelError
from maskwise.harness.subprocess_model import SubprocessModel
from maskwise.masks import Mask
from tests.examples.lisa_code import write_code

SCRIPT = Path(__file__).parents[2] / "examples" / "lisa_adapter.py"


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lisa_adapter", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ADAPTER = load()


def command(*arguments: str) -> str:
    return shlex.join([sys.executable, str(SCRIPT), *arguments])


@given(arrays.arrays(np.bool_, st.tuples(st.integers(1, 40), st.integers(1, 40))))
def test_its_run_lengths_are_those_of_coco(array: Any) -> None:
    mask = Mask.from_dense(array)
    assert ADAPTER.mask_to_rle(array) == {
        "size": list(mask.size),
        "counts": mask.counts,
    }


@pytest.mark.parametrize("mask_type", ["visible", "amodal"])
def test_echo_answers_with_the_whole_image(mask_type: str) -> None:
    model = SubprocessModel(command("--echo", "--mask-type", mask_type))
    found = model.predict(Image.new("RGB", (30, 20)), ["a", "ü?"])
    model.close()
    assert [one.answer and one.answer.text for one in found] == ["a", "ü?"]
    for one in found:
        mask = getattr(one.regions[0], mask_type)
        assert (mask.size, mask.area) == ((20, 30), 600)


def test_a_whole_evaluation(tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = [
        "eval",
        "world",
        "--limit",
        "2",
        "--protocol",
        "union",
        "--model",
        f"command: {command('--echo')}",
    ]
    done = CliRunner().invoke(app, [*arguments, "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    record = json.loads((out / "run.json").read_text())
    assert record["evaluation"]["inputs"]["model"]["config"]["command"] == command(
        "--echo"
    )
    lines = [
        json.loads(line)
        for line in (out / "predictions.jsonl").read_text().splitlines()
    ]
    assert lines
    assert all("error" not in line and len(line["regions"]) == 1 for line in lines)


def test_what_goes_wrong_is_reported_and_the_next_is_answered() -> None:
    requests = [
        {"id": "1", "image": {"png": "aGVsbG8="}, "questions": ["a"]},
        {"id": "2", "image": {"path": "/no/such/file"}, "questions": ["a"]},
    ]
    said = subprocess.run(
        [sys.executable, str(SCRIPT), "--echo"],
        input="".join(json.dumps(one) + "\n" for one in requests),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    announced, first, second = (json.loads(line) for line in said.stdout.splitlines())
    assert announced == {"accepts": ["rgb"]}
    assert (first["id"], second["id"]) == ("1", "2")
    assert "UnidentifiedImageError" in first["error"]
    assert "FileNotFoundError" in second["error"]
    assert "Traceback" in said.stderr


def test_without_lisa_it_says_what_is_missing() -> None:
    model = SubprocessModel(command("--code", "/no/such/folder"))
    with pytest.raises(
        ModelError, match=r"the model reports: (ModuleNotFoundError|ImportError)"
    ):
        model.predict(Image.new("RGB", (30, 20)), ["a"])
    model.close()


@pytest.mark.parametrize(("architecture", "segments"), [("lisa", 1), ("m2sa", 2)])
def test_questions_are_answered_with_a_mask_for_every_segmentation_token(
    architecture: str, segments: int, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    code = write_code(tmp_path)
    arguments = ("--code", str(code), "--checkpoint", "tiny", "--device", "cpu")
    model = SubprocessModel(command(*arguments, "--architecture", architecture))
    found = model.predict(Image.new("RGB", (30, 20)), ["Who barks?", "Who purrs?"])
    model.close()
    assert [one.answer and one.answer.text for one in found] == ["It is ."] * 2
    for one in found:
        areas = [
            region.visible.area for region in one.regions if region.visible is not None
        ]
        assert areas == [15 * 20] * segments
    encoded, *asked = (code / "seen.txt").read_text().splitlines()
    assert encoded == "encoded", "once for both questions"
    assert asked == [
        f"USER: <im_start><image><im_end> {question} Please output segmentation mask. ASSISTANT: "
        for question in ("Who barks?", "Who purrs?")
    ]
