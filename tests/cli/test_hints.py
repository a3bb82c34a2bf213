"""Misspelt names and swapped arguments: the message says what was probably meant."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from maskwise.cli.hints import is_dataset
from maskwise.cli.lazy import nearest_choice
from maskwise.cli.main import app
from tests.cli.commands import fail


def usage_error(*arguments: object) -> str:
    """What typer says about arguments that it cannot parse, in one line without its frame."""
    texts = [str(argument) for argument in arguments]
    result = CliRunner().invoke(app, texts, env={"COLUMNS": "200"})
    assert result.exit_code == 2, result.output
    return " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("evl", "world"), "'eval'"),
        (("scores",), "'score'"),
        (("validat", "world"), "'validate'"),
        (("build", "r2ms", "world"), "'r2sm'"),
        (("build", "oclude", "world"), "'occlude'"),
    ],
)
def test_misspelt_commands(arguments: tuple[str, ...], meant: str) -> None:
    assert f"Did you mean {meant}" in usage_error(*arguments)


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("ls", "modls"), "'models'"),
        (("ls", "Protocols"), "'protocols'"),
        (("world", "--scenes", 1, "--out", "x", "--split", "tset"), "'test'"),
        (("eval", "world", "--model", "tiny", "--engine", "rey"), "'ray'"),
        (("show", "world", 1, "--mask-type", "amodel"), "'amodal'"),
        (("report", "run", "--format", "htlm"), "'html'"),
        (("review", "export", "d", "--out", "x", "--format", "datset"), "'dataset'"),
    ],
)
def test_misspelt_choices(arguments: tuple[object, ...], meant: str) -> None:
    assert f"Did you mean {meant}?" in usage_error(*arguments)


def test_a_value_that_resembles_no_choice_lists_the_choices() -> None:
    said = usage_error("ls", "zzzz")
    assert "'benchmarks'" in said
    assert "Value error" not in said
    assert "Did you mean" not in said


def test_other_messages_get_no_hint() -> None:
    assert nearest_choice("'x' is not a valid integer.") == ""
    assert nearest_choice("'a' is not one of 'b', 'aa'.") == ". Did you mean 'aa'?"


def test_several_values_behind_one_option() -> None:
    said = usage_error("audit", "world", "--runs", "runs/a", "runs/b")
    assert "unexpected extra argument(s) (runs/b)" in said
    assert "Repeat the option for each value: --runs runs/a --runs runs/b" in said
    said = usage_error("audit", "world", "--runs", "runs/a", "runs/a")
    assert "--runs runs/a --runs runs/a" in said


@pytest.mark.parametrize(
    "arguments", [("audit", "world", "more"), ("audit", "world", "--top", 3, "more")]
)
def test_other_extra_arguments_get_no_hint(arguments: tuple[object, ...]) -> None:
    said = usage_error(*arguments)
    assert "unexpected extra argument(s) (more)" in said
    assert "Repeat" not in said


@pytest.mark.parametrize(
    "arguments",
    [
        ("audit", "world", "--runs", "runs/a", "--runs", "runs/./a"),
        ("gallery", "runs/a", "runs/b", "runs/a", "--out", "page.html"),
    ],
)
def test_the_same_run_twice(
    arguments: tuple[object, ...],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = fail(capsys, monkeypatch, *arguments)
    assert "runs/a is named twice; name different runs" in said


def test_misspelt_options() -> None:
    assert "--model" in usage_error("eval", "world", "--modle", "tiny")


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("eval", "wrold", "--model", "tiny"), "'world'"),
        (("eval", "world", "--model", "tinny"), "'tiny'"),
        (
            ("eval", "world", "--model", "oracle", "--limit", 1, "--protocol", "strct"),
            "'strict'",
        ),
        (("card", "mmrr"), "'mmr'"),
        (("read", "cocoaa", ".", "--out", "x"), "'cocoa'"),
        (("write", "cocoo", "world", "--out", "x"), "'coco'"),
        (("get", "yolox_nano.onx"), "'yolox_nano.onnx'"),
        (("build", "mmr", "world", "--out", "x", "--writer", "gramar"), "'grammar'"),
    ],
)
def test_misspelt_names(
    arguments: tuple[object, ...],
    meant: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    said = fail(capsys, monkeypatch, *arguments)
    assert f"Did you mean {meant}?" in said
    assert len(said.strip().splitlines()) == 1


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    path = tmp_path / "predictions.jsonl"
    path.write_text(json.dumps({"sample": "x", "no_target": True}) + "\n")
    return path


def test_swapped_arguments_of_score(
    predictions: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = fail(capsys, monkeypatch, "score", "world", predictions)
    assert "takes PREDICTIONS DATASET, in this order" in said
    assert f"Did you mean `maskwise score {predictions} world`?" in said


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (("show", 3, "world"), "maskwise show world 3"),
        (("write", "world", "coco", "--out", "x"), "maskwise write coco world"),
        (("read", "folder", "mmr", "--out", "x"), "maskwise read mmr folder"),
        (("build", "world", "mmr", "--out", "x"), "maskwise build mmr world"),
        (("eval", "tiny", "--model", "world"), "maskwise eval world --model tiny"),
        (("report", "world", "runs/x"), "maskwise report runs/x world"),
    ],
)
def test_swapped_arguments(
    arguments: tuple[object, ...],
    meant: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert f"Did you mean `{meant}`?" in fail(capsys, monkeypatch, *arguments)


def test_swapped_arguments_of_ask(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    image = tmp_path / "scene.png"
    image.touch()
    said = fail(capsys, monkeypatch, "ask", "the red mug", image)
    assert f'Did you mean `maskwise ask {image} "the red mug"`?' in said


def test_what_counts_as_a_dataset(scenes: Path, tmp_path: Path) -> None:
    assert is_dataset("world")
    assert is_dataset(scenes)
    assert not is_dataset(tmp_path)
    assert not is_dataset("predictions.jsonl")
