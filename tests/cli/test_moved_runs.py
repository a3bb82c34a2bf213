"""Run folders that were renamed or copied: commands read the predictions that are in the folder."""

import json
import shutil
from pathlib import Path

import pytest

from maskwise.runs import load_run
from tests.cli.commands import fail, run

READERS = ("explain", "judge", "audit", "gallery", "rescore")
"""Commands that read the predictions of a run again."""


def arguments_of(command: str, folder: Path, other: Path, scenes: Path) -> list[object]:
    """A command on the run of a folder."""
    out = folder.parent / "page.html"
    return {
        "explain": ["explain", folder],
        "judge": ["judge", folder],
        "audit": ["audit", scenes, "--runs", folder, "--runs", other],
        "gallery": ["gallery", folder, other, "--out", out],
        "rescore": ["rescore", folder, scenes],
    }[command]


def record_place(folder: Path, path: str) -> None:
    """Change where run.json says that the predictions are."""
    record = folder / "run.json"
    facts = json.loads(record.read_text())
    facts["predictions"]["path"] = path
    record.write_text(json.dumps(facts))


@pytest.fixture
def copied(oracle_run: Path, tmp_path: Path) -> Path:
    return shutil.copytree(oracle_run, tmp_path / "copied")


@pytest.mark.parametrize("command", READERS)
def test_a_renamed_run_is_read(
    command: str, copied: Path, whole_image_run: Path, scenes: Path, tmp_path: Path
) -> None:
    record_place(copied, "/gone/old/predictions.jsonl")
    renamed = copied.rename(tmp_path / "renamed")
    run(*arguments_of(command, renamed, whole_image_run, scenes))


@pytest.mark.parametrize("command", READERS)
def test_a_copied_run_is_never_read_from_the_original(
    *,
    command: str,
    copied: Path,
    whole_image_run: Path,
    scenes: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = copied / "predictions.jsonl"
    own.write_bytes(b"")
    said = fail(
        capsys, monkeypatch, *arguments_of(command, copied, whole_image_run, scenes)
    )
    assert f"{own} is not what was scored" in said
    assert "--predictions" not in said, "the command has no such option"


def test_lost_predictions_are_named_without_an_option(
    copied: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    record_place(copied, "/gone/old/predictions.jsonl")
    (copied / "predictions.jsonl").unlink()
    said = fail(capsys, monkeypatch, "explain", copied)
    assert f"the predictions of {copied}, are missing; put them back" in said
    assert "--predictions" not in said


@pytest.mark.parametrize(
    "path", [r"C:\old\predictions.jsonl", "/old/predictions.jsonl"]
)
def test_the_recorded_place_may_be_of_another_system(copied: Path, path: str) -> None:
    record_place(copied, path)
    own = copied / "predictions.jsonl"
    assert load_run(copied).predictions_info.path == str(own.resolve())


def test_a_run_of_predictions_elsewhere_keeps_their_place(
    oracle_run: Path, scenes: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "mine.jsonl"
    shutil.copyfile(oracle_run / "predictions.jsonl", elsewhere)
    folder = tmp_path / "scored"
    run("score", elsewhere, scenes, "--protocol", "strict", "--out", folder)
    moved = folder.rename(tmp_path / "moved")
    assert load_run(moved).predictions_info.path == str(elsewhere.resolve())
    run("explain", moved)
