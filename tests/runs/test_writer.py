"""Run folders are written with run.json last; existing content is protected."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import maskwise as mw
from maskwise.errors import StoreError
from maskwise.runs import Run, load_run, write_run, writer
from maskwise.runs.writer import write_scores


def facts(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return content


@pytest.fixture(scope="module")
def memory() -> Run:
    """A run of an evaluation in memory, with its dataset and predictions."""
    return mw.evaluate("oracle", mw.load_dataset("world")[:6], protocols="strict")


def test_predictions_in_memory_are_written_with_the_run(
    memory: Run, tmp_path: Path
) -> None:
    written = write_run(tmp_path / "run", memory)
    path = tmp_path / "run" / "predictions.jsonl"
    assert len(path.read_bytes().splitlines()) == 6
    assert written.folder == tmp_path / "run"
    assert written.predictions_info.path == str(path.resolve())
    assert written.predictions_info.format == "jsonl"
    again = load_run(tmp_path / "run")
    assert again.info == written.info
    assert again.scores == memory.scores
    assert again.predictions is None, "they stay in the file"
    assert memory.folder is None, "the run in memory is unchanged"


def test_scores_are_replaced_by_those_of_the_same_predictions(
    run: Run, tmp_path: Path
) -> None:
    write_run(tmp_path / "run", run)
    before = facts(tmp_path / "run")
    write_run(tmp_path / "run", run)
    assert facts(tmp_path / "run") == before


@pytest.mark.parametrize("name", ["thesis.tex", "predictions.jsonl"])
def test_a_folder_with_something_else_is_left_alone(
    run: Run, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(StoreError, match="not a run; choose another folder"):
        write_run(tmp_path, run)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_an_interrupted_write_leaves_no_run_that_opens(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    write_run(folder, run)
    real = writer.write_table

    def fail(path: Path, table: Any) -> None:
        if path.name == "metrics.arrow":
            raise OSError(28, "No space left on device")
        real(path, table)

    monkeypatch.setattr(writer, "write_table", fail)
    with pytest.raises(StoreError, match="cannot be written"):
        write_run(folder, run)
    with pytest.raises(StoreError, match=r"no run\.json"):
        load_run(folder)
    monkeypatch.undo()
    write_run(folder, run)
    assert load_run(folder).scores == run.scores


def test_an_evaluation_keeps_its_record_and_its_own_scores(
    memory: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    evaluated = mw.evaluate(
        "oracle", mw.load_dataset("world")[:6], folder, protocols="strict"
    )
    record = facts(folder)["evaluation"]
    assert record["inputs"]["model"]["name"] == "oracle"
    with pytest.raises(StoreError, match="record of an evaluation"):
        write_run(folder, memory)
    assert facts(folder)["state"] == "scored"
    write_run(folder, evaluated)
    assert facts(folder)["evaluation"] == record


def test_an_evaluation_that_is_scored_again_is_predicted_in_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    run = mw.evaluate(
        "oracle", mw.load_dataset("world")[:6], folder, protocols="strict"
    )

    def fail(path: Path, table: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer, "write_table", fail)
    with pytest.raises(OSError, match="No space"):
        write_scores(folder, run)
    assert facts(folder)["state"] == "predicted"
    with pytest.raises(StoreError, match="is predicted, not scored: repeat"):
        load_run(folder)


def test_a_moved_folder_still_opens(run: Run, tmp_path: Path) -> None:
    write_run(tmp_path / "run", run)
    shutil.move(tmp_path / "run", tmp_path / "moved")
    moved = load_run(tmp_path / "moved")
    assert moved.name == "moved"
    assert (
        moved.rows("strict").value.tolist()[:4] == run.rows("strict").value.tolist()[:4]
    )


def test_load_run_takes_a_run_a_text_or_a_path(run: Run) -> None:
    assert run.folder is not None
    assert load_run(run) is run
    assert load_run(str(run.folder)).info == load_run(run.folder).info == run.info
