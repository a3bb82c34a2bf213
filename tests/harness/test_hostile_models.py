"""Models that do what no model should: change the working directory, raise anything, take wrong options."""

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

from maskwise.cli.main import app
from maskwise.errors import ModelError, StoreError
from maskwise.harness.evaluate import evaluate
from maskwise.harness.predict import predict_dataset
from maskwise.harness.registry import make_predictor
from maskwise.runs import load_run
from maskwise.schema import Prediction
from maskwise.store import Dataset
from tests.cli.commands import fail
from tests.harness.fakes import FAKES, Painter, write_dataset

HERE = "tests.harness.test_hostile_models"


class Wanderer(Painter):
    """Changes the working directory when it is opened and at every call."""

    def __init__(self, to: str) -> None:
        super().__init__()
        self.to = to
        os.chdir(to)

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        os.chdir(self.to)
        return super().predict(image, questions)


def _any(questions: Sequence[str], start: str) -> bool:
    return any(question.startswith(start) for question in questions)


class Canceller(Painter):
    """Raises what is not an Exception, for some questions."""

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        if _any(questions, "cancel"):
            raise asyncio.CancelledError("cancelled")
        if _any(questions, "generator"):
            raise GeneratorExit
        if _any(questions, "interrupt"):
            raise KeyboardInterrupt
        return super().predict(image, questions)


class Typed(Painter):
    def __init__(
        self,
        *,
        count: int = 1,
        share: float | None = None,
        label: str = "",
        path: Path | None = None,
    ) -> None:
        super().__init__()


class Uncooperative(Painter):
    @property
    def config(self) -> dict[str, Any]:
        raise RuntimeError("no config")


def test_a_model_that_changes_the_directory_does_not_move_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run and another dataset lie at the same relative paths in the other folder."""
    write_dataset(tmp_path / "here" / "data", 3)
    write_dataset(tmp_path / "there" / "data", 5)
    monkeypatch.chdir(tmp_path / "there")
    evaluate("oracle", "data", "run", protocols=["union"])
    untouched = {
        path: path.read_bytes() for path in (tmp_path / "there" / "run").iterdir()
    }
    monkeypatch.chdir(tmp_path / "here")
    arguments = [
        "eval",
        "data",
        "--model",
        f"{HERE}:Wanderer",
        "--model-option",
        f"to={tmp_path / 'there'}",
    ]
    done = CliRunner().invoke(
        app, [*arguments, "--protocol", "union", "--out", "run", "--json"]
    )
    assert done.exit_code == 0, done.output
    run = load_run(tmp_path / "here" / "run")
    assert run.info.dataset.path == str(tmp_path / "here" / "data")
    assert (
        json.loads(done.stdout)["scores"]["protocols"]["union"]["metrics"]["giou"][
            "value"
        ]
        != 1.0
    )
    assert (tmp_path / "here" / "run" / "report.html").is_file()
    assert {
        path: path.read_bytes() for path in (tmp_path / "there" / "run").iterdir()
    } == untouched


@pytest.mark.parametrize("timeout", [None, 1000.0])
def test_what_is_no_exception_fails_its_question_alone(
    tmp_path: Path, timeout: float | None
) -> None:
    dataset = write_dataset(
        tmp_path / "data", 4, questions=("fine", "cancel", "generator", "fine")
    )
    arguments = [
        "eval",
        str(dataset),
        "--model",
        f"{HERE}:Canceller",
        "--out",
        str(tmp_path / "run"),
    ]
    limit = [] if timeout is None else ["--timeout", str(timeout)]
    done = CliRunner().invoke(app, [*arguments, "--predict-only", *limit])
    assert done.exit_code == 0, done.output
    lines = [
        json.loads(line)
        for line in (tmp_path / "run" / "predictions.jsonl").read_text().splitlines()
    ]
    questions = {sample.id: sample.question for sample in Dataset.open(dataset)}
    for line in lines:
        failing = questions[line["sample"]].partition(" ")[0] in ("cancel", "generator")
        assert ("error" in line) == failing, questions[line["sample"]]
    assert any(line.get("error") == "CancelledError: cancelled" for line in lines)


def test_ctrl_c_inside_a_model_still_stops(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "data", 2, questions=("interrupt",))
    with pytest.raises(KeyboardInterrupt):
        evaluate(f"{HERE}:Canceller", dataset)


@pytest.mark.parametrize(
    ("model", "option", "message"),
    [
        (f"{HERE}:Typed", "count=abc", "option count is 'abc'; expected int"),
        (f"{HERE}:Typed", "count=1.5", "option count is 1.5; expected int"),
        (f"{HERE}:Typed", "share=abc", "option share is 'abc'; expected float"),
        (f"{HERE}:Typed", "label=3", "option label is 3; expected str"),
        (f"{HERE}:Typed", "size=3", "its options: count, share, label, path"),
        ("oracle", "noise=much", "option noise is 'much'; expected float"),
        ("command: true", "timeout=abc", "option timeout is 'abc'"),
        (
            "command: true",
            "timeout=-1",
            "option timeout is -1; expected a number above 0",
        ),
        ("command: true", "patience=0", "option patience is 0"),
        ("http://127.0.0.1:1", "tries=0", "tries is 0"),
        ("http://127.0.0.1:1", "timeout=soon", "option timeout is 'soon'"),
    ],
)
def test_a_wrong_option_is_an_error_before_the_run_starts(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    model: str,
    option: str,
    message: str,
) -> None:
    dataset = write_dataset(tmp_path / "data", 2)
    arguments = [
        "eval",
        dataset,
        "--model",
        model,
        "--model-option",
        option,
        "--out",
        tmp_path / "run",
    ]
    with pytest.MonkeyPatch.context() as patch:
        assert message in " ".join(fail(capsys, patch, *arguments).split())
    assert not (tmp_path / "run").exists()


def test_options_of_the_right_type_pass() -> None:
    assert isinstance(
        make_predictor(f"{HERE}:Typed", count=2, share=1, label="a", path="somewhere"),
        Typed,
    )
    assert isinstance(make_predictor(f"{HERE}:Typed", share=None), Typed)


def test_an_attribute_that_raises_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="its config raises RuntimeError: no config"):
        evaluate(f"{HERE}:Uncooperative", write_dataset(tmp_path / "data", 2))


def test_a_table_edited_between_attempts_is_refused(tmp_path: Path) -> None:
    """The manifest, whose hash identifies the dataset, is untouched."""
    dataset = write_dataset(tmp_path / "data", 4)
    model = f"{FAKES}:Painter"
    predict_dataset(model, dataset, tmp_path / "run")
    predictions = tmp_path / "run" / "predictions.jsonl"
    predictions.write_bytes(
        b"".join(predictions.read_bytes().splitlines(keepends=True)[:6])
    )
    table = dataset / "samples.arrow"
    whole = table.read_bytes()
    table.write_bytes(whole)
    os.utime(table, ns=(1, 1))
    predict_dataset(model, dataset, tmp_path / "run")  # touched, but equal
    predictions.write_bytes(
        b"".join(predictions.read_bytes().splitlines(keepends=True)[:6])
    )
    place = whole.index(b"p0-0")
    table.write_bytes(whole[:place] + b"p0-X" + whole[place + 4 :])
    with pytest.raises(
        StoreError, match=r"samples\.arrow was changed after the dataset was written"
    ):
        predict_dataset(model, dataset, tmp_path / "run")
