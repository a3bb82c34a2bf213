"""A whole evaluation of a child that misbehaves now and then: its failures are recorded, and nothing else is lost."""

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from maskwise.cli.main import app
from maskwise.errors import ModelGoneError
from maskwise.harness import subprocess_model
from maskwise.schema import ImageInfo, Sample
from maskwise.store import DatasetWriter
from tests.harness.clock import Clock
from tests.report.runs import SIZE, png

TALKER = Path(__file__).parent / "talker.py"
WAYS = {
    "silent": "closed its standard output",
    "crash": "ended with exit code 3",
    "hang": "did not respond within 600 seconds per question and was killed",
    "stop": "did not respond within 600 seconds per question and was killed",
    "killed": "ended by SIGKILL",
    "garbage": "'epoch 1/10 loss 0.3'",
    "half": "the response is invalid",
    "order": "the id of another request",
    "few": "0 predictions for 1 questions",
    "many": "2 predictions for 1 questions",
    "error": "the model reports: the image is upside down",
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One image for every way to misbehave, with one question that provokes it and one that does not."""
    path = tmp_path_factory.mktemp("ways") / "data"
    with DatasetWriter(path, name="ways") as writer:
        for number, how in enumerate(WAYS):
            writer.add_image(
                ImageInfo(id=how, width=SIZE, height=SIZE), data=png(number)
            )
            for id, question in ((how, how), (f"{how}, then well", "well")):
                writer.add_sample(Sample(id=id, image_id=how, question=question))
    return path


def evaluate(
    dataset: Path, out: Path, *arguments: str, keep_going: bool = False
) -> Any:
    command = shlex.join([sys.executable, "-S", "-E", str(TALKER), *arguments])
    log = out.parent / "log"
    options = ["--model-option", f"log={log}"]
    rest = ["--timeout", "600", "--protocol", "strict", "--out", str(out), "--json"]
    if keep_going:
        rest.append("--keep-going")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess_model, "time", Clock(log))
        return CliRunner().invoke(
            app,
            ["eval", str(dataset), "--model", f"command: {command}", *options, *rest],
        )


def read_jsonl(out: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (out / "predictions.jsonl").read_text("utf-8").splitlines()
    ]


@pytest.fixture(scope="module")
def whole(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "run"
    done = evaluate(dataset, out)
    assert done.exit_code == 0, done.output
    return out


def test_what_provokes_it_fails_with_the_reason_and_the_rest_is_answered(
    whole: Path,
) -> None:
    lines = {line["sample"]: line for line in read_jsonl(whole)}
    assert len(lines) == 2 * len(WAYS)
    for how, reason in WAYS.items():
        assert reason in lines[how]["error"], how
        assert lines[f"{how}, then well"] == {
            "sample": f"{how}, then well",
            "answer": {"text": "WELL"},
        }
    counts = json.loads((whole / "scores.json").read_text())["protocols"]["strict"][
        "counts"
    ]
    assert (counts["scored"], counts["failed"]) == (len(WAYS), len(WAYS))


@pytest.mark.parametrize("kept", [5, 8, 13])
def test_a_run_that_was_stopped_ends_with_the_same_bytes(
    dataset: Path, whole: Path, kept: int
) -> None:
    out = whole.parent / f"stopped-{kept}"
    shutil.copytree(whole, out)
    lines = (whole / "predictions.jsonl").read_bytes().splitlines(keepends=True)
    (out / "predictions.jsonl").write_bytes(b"".join(lines[:kept]))
    assert evaluate(dataset, out).exit_code == 0
    assert (out / "predictions.jsonl").read_bytes() == b"".join(lines)
    assert (out / "scores.json").read_bytes() == (whole / "scores.json").read_bytes()


def test_one_that_never_answers_stops_the_run_and_loses_nothing(
    dataset: Path, tmp_path: Path
) -> None:
    done = evaluate(dataset, tmp_path / "run", "--die", keep_going=True)
    assert isinstance(done.exception, ModelGoneError)
    assert "5 images in a row got no response" in str(done.exception)
    assert "no such checkpoint" in str(done.exception)
    assert len(read_jsonl(tmp_path / "run")) == 8


def test_what_a_child_printed_before_it_died_is_kept(
    dataset: Path, tmp_path: Path
) -> None:
    done = evaluate(dataset, tmp_path / "run", "--die")
    assert "the first 6 questions failed" in str(done.exception)
    assert "no such checkpoint" in (tmp_path / "run" / "errors.txt").read_text()
