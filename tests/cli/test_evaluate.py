"""`maskwise eval` and `ls models` as a user meets them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from maskwise.cli.main import app
from maskwise.registry import list_models
from tests.cli.commands import fail, run
from tests.harness.fakes import FAKES, write_dataset
from tests.harness.mortals import MORTALS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(
        tmp_path_factory.mktemp("truth") / "small", questions=("fine", "fine", "unsure")
    )


def test_eval_predicts_scores_and_reports(dataset: Path, tmp_path: Path) -> None:
    printed = run(
        "eval",
        dataset,
        "--model",
        f"{FAKES}:Moody",
        "--protocol",
        "strict",
        "--out",
        tmp_path / "run",
    )
    words = " ".join(printed.output.split())
    assert "48 questions about 24 images" in words
    assert "16 failed; --retry-failed predicts them again" in words
    page = (tmp_path / "run" / "report.html").read_text()
    assert "painter" in page
    assert "not sure" in page


def test_eval_prints_json_and_continues(dataset: Path, tmp_path: Path) -> None:
    arguments = (
        "eval",
        dataset,
        "--model",
        "oracle",
        "--model-option",
        "drop=0.5",
        "--limit",
        6,
        "--seed",
        3,
    )
    first = json.loads(
        run(*arguments, "--predict-only", "--out", tmp_path / "run", "--json").stdout
    )
    assert (first["images"], first["failed"], first["scores"]) == (6, 0, None)
    lines = (tmp_path / "run" / "predictions.jsonl").read_bytes()
    second = json.loads(
        run(
            *arguments, "--protocol", "union", "--out", tmp_path / "run", "--json"
        ).stdout
    )
    assert list(second["scores"]["protocols"]) == ["union"]
    assert (tmp_path / "run" / "predictions.jsonl").read_bytes() == lines


def test_the_default_folder_is_named_after_dataset_and_model(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run("eval", dataset, "--model", "oracle", "--protocol", "union")
    assert (tmp_path / "runs" / "small-oracle" / "run.json").is_file()


def test_what_is_wrong_is_said_in_one_line(
    dataset: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def said(*arguments: object) -> str:
        return " ".join(
            fail(
                capsys, monkeypatch, "eval", *arguments, "--out", tmp_path / "run"
            ).split()
        )

    assert "known: " in said(dataset, "--model", "orcale")
    assert "maskwise read mmr" in said("mmr", "--model", "oracle")
    assert "KEY=VALUE" in said(dataset, "--model", "oracle", "--model-option", "noise")
    assert "use --engine ray" in said(
        dataset, "--model", "oracle", "--gpus-per-worker", 1
    )
    assert "strict does not score teacher-forced" in said(
        dataset, "--model", f"{FAKES}:Pupil", "--teacher-forced", "--protocol", "strict"
    )
    assert not (tmp_path / "run").exists()


def heed_ctrl_c() -> None:
    """Restore the default for SIGINT: a suite that runs in the background ignores it, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_ctrl_c_leaves_a_run_that_continues(tmp_path: Path) -> None:
    """It is stopped at the second image, which takes as long as it has to."""
    dataset = write_dataset(tmp_path / "truth", questions=("fine",) + ("slow",) * 99)
    woken = tmp_path / "woken"
    model = (
        "--model",
        f"{MORTALS}:Known",
        "--model-option",
        f"woken={woken}",
        "--protocol",
        "union",
    )
    arguments = ["eval", str(dataset), *model, "--out", str(tmp_path / "run")]
    command = [sys.executable, "-m", "maskwise.cli.main", *arguments]
    with subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        preexec_fn=heed_ctrl_c,  # noqa: PLW1509
    ) as process:
        predictions = tmp_path / "run" / "predictions.jsonl"
        while process.poll() is None and not (
            predictions.exists() and predictions.stat().st_size
        ):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        words = " ".join(process.communicate()[1].split())
    assert process.returncode == 130, words
    assert "repeat the command to continue" in words
    assert "Traceback" not in words
    kept = predictions.read_bytes()
    assert kept.count(b"\n") == 1
    woken.touch()
    run(*arguments)
    assert predictions.read_bytes().startswith(kept)


def test_ls_lists_models_with_a_line_each() -> None:
    listed = json.loads(run("ls", "models", "--json").stdout)
    assert listed == {"models": list_models()}
    assert "oracle" in run("ls", "models").stdout


def test_a_model_whose_source_was_changed_is_another_model(
    dataset: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = (
        "from tests.harness.fakes import Painter\n\n\nclass Mine(Painter):\n    pass\n"
    )
    (tmp_path / "my_painter.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    arguments = [
        "eval",
        dataset,
        "--model",
        "my_painter:Mine",
        "--predict-only",
        "--out",
        tmp_path / "run",
    ]
    assert "were predicted before" not in run(*arguments).stdout
    assert "questions about" in run(*arguments).stdout
    assert "were predicted before" in run(*arguments).stdout
    (tmp_path / "my_painter.py").write_text(source + "\n# changed\n")
    assert "model.source was" in " ".join(fail(capsys, monkeypatch, *arguments).split())


def test_a_run_in_which_all_failed_says_so(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dataset = write_dataset(tmp_path / "truth", 3, questions=("raise",))
    arguments = [
        "eval",
        dataset,
        "--model",
        f"{FAKES}:Moody",
        "--protocol",
        "strict",
        "--out",
        tmp_path / "r",
    ]
    said = fail(capsys, monkeypatch, *arguments)
    assert "all 6 questions failed; the first: ValueError" in said


def test_a_run_whose_masks_all_have_another_size_says_so(tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "truth", 3)
    arguments = [
        "eval",
        dataset,
        "--model",
        f"{FAKES}:WrongSize",
        "--out",
        tmp_path / "r",
    ]
    printed = CliRunner().invoke(app, list(map(str, arguments)))
    assert printed.exit_code == 1
    assert (
        "No prediction could be scored: mask size differs from the image"
        in printed.output
    )
    assert "without intervals (fewer than 10 images)" in " ".join(
        printed.output.split()
    )


@pytest.mark.parametrize("option", [["--predict-only"], ["--track", "tensorboard"]])
def test_repeats_refuse_options_that_they_would_ignore(
    option: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = ["eval", "world", "--model", "oracle", "--repeat", "2", *option]
    text = fail(capsys, monkeypatch, *arguments, "--out", tmp_path / "run")
    assert "omit --predict-only and --track" in " ".join(text.split())
