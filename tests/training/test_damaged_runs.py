"""Curves and best weights that a full disk, a power failure or a person left damaged."""

import errno
import json
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from safetensors.torch import load_file

from maskwise.errors import MaskwiseError
from maskwise.training import checkpoints
from maskwise.training.loop import TrainingTask, run_training
from tests.training.line_run import STAGE, Killed, line_task


def improving_task(values: list[float], killed_at: int | None = None) -> TrainingTask:
    """Validation has these values, one after another."""
    iterator = iter(values)
    return replace(
        line_task(killed_at=killed_at), validate=lambda _: {"val_giou": next(iterator)}
    )


def train(folder: Path, task: TrainingTask) -> None:
    folder.mkdir(exist_ok=True)
    run_training(task, STAGE.schedule(), folder)


def test_a_line_of_the_curve_that_was_cut_off_is_written_again(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        train(tmp_path, line_task(killed_at=20))
    with (tmp_path / "line.jsonl").open("a") as file:
        file.write('{"step": 21, "squ')
    train(tmp_path, line_task())
    rows = [
        json.loads(line) for line in (tmp_path / "line.jsonl").read_text().splitlines()
    ]
    assert [row["step"] for row in rows] == [7, 14, 21, 28, 35, 42, 49, 56, 60]


@pytest.mark.parametrize("line", ["{", "[]", '{"step": "x"}', "\0\0\0"])
def test_a_damaged_line_of_the_curve_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(Killed):
        train(tmp_path, line_task(killed_at=20))
    path = tmp_path / "line.jsonl"
    path.write_text(f"{line}\n{path.read_text()}")
    with pytest.raises(MaskwiseError, match=r"line\.jsonl, line 1: .*delete the line"):
        train(tmp_path, line_task())


def test_a_full_disk_keeps_the_best_weights_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second validation is better, and its weights do not fit."""
    write_tensors = checkpoints.write_tensors
    best = 0

    def write_or_fail(path: Path, tensors: dict[str, torch.Tensor]) -> None:
        nonlocal best
        best += "best" in str(path.parent.name)
        if best == 2:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"a part")
            raise OSError(errno.ENOSPC, "No space left on device")
        write_tensors(path, tensors)

    monkeypatch.setattr(checkpoints, "write_tensors", write_or_fail)
    with pytest.raises(MaskwiseError, match=r"step 14, cannot be written.*No space"):
        train(tmp_path, improving_task([0.1, 0.2]))
    monkeypatch.undo()
    folder = tmp_path / "checkpoints" / "line"
    state = json.loads((folder / "best" / "state.json").read_text())
    assert (state["step"], state["value"]) == (7, 0.1)
    assert load_file(folder / "best" / "model.safetensors")
    names = {path.name for path in folder.iterdir()}
    assert names == {"best", "step-0000007"}
    train(tmp_path, improving_task([0.2, *[0.0] * 9]))
    assert json.loads((folder / "best" / "state.json").read_text())["step"] == 14


@pytest.mark.parametrize("content", ["{", "[]", '{"value": null}', "\0"])
def test_a_damaged_best_checkpoint_is_named(tmp_path: Path, content: str) -> None:
    with pytest.raises(Killed):
        train(tmp_path, improving_task([0.1] * 9, killed_at=20))
    state = tmp_path / "checkpoints" / "line" / "best" / "state.json"
    state.write_text(content)
    with pytest.raises(MaskwiseError, match=r"best.state\.json is damaged.*delete"):
        train(tmp_path, improving_task([0.2] * 9))
