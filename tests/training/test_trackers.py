"""Training curves: JSON lines and TensorBoard events."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from maskwise.training import trackers
from maskwise.training.trackers import JsonLinesTracker, TrainingCurve


def rows(path: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_row_has_the_mean_losses_their_sum_and_the_metrics(tmp_path: Path) -> None:
    curve = TrainingCurve(tmp_path, "stage", 0)
    curve.add({"a": torch.tensor(1.0), "b": torch.tensor(4.0)})
    curve.add({"a": torch.tensor(3.0), "b": torch.tensor(4.0)})
    curve.write(2, {"val_giou": 0.5})
    curve.add({"a": torch.tensor(7.0), "b": torch.tensor(0.0)})
    curve.write(3, {})
    curve.close()
    first, second = rows(tmp_path / "stage.jsonl")
    assert first["seconds_per_step"] >= 0
    assert list(first) == ["step", "loss", "a", "b", "val_giou", "seconds_per_step"]
    assert (first["step"], first["loss"], first["a"], first["b"]) == (2, 6, 2, 4)
    assert (second["a"], second["loss"]) == (7, 7), "means begin again after a row"
    assert list((tmp_path / "events" / "stage").glob("events.*"))


def test_rows_after_the_checkpoint_are_removed(tmp_path: Path) -> None:
    tracker = JsonLinesTracker(tmp_path, "stage", 0)
    for step in (1, 2, 3):
        tracker.write(step, {"loss": step / 3})
    JsonLinesTracker(tmp_path, "stage", 2).write(3, {"loss": 0.25})
    assert [row["step"] for row in rows(tmp_path / "stage.jsonl")] == [1, 2, 3]
    assert rows(tmp_path / "stage.jsonl")[2]["loss"] == 0.25
    assert rows(tmp_path / "stage.jsonl")[0]["loss"] == 0.33333


def test_another_tracker_gets_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[tuple[int, dict[str, float]]] = []

    class ListTracker:
        def __init__(self, folder: Path, stage: str, step: int) -> None:
            self.stage = stage

        def write(self, step: int, values: Mapping[str, float]) -> None:
            written.append((step, dict(values)))

        def close(self) -> None:
            written.append((-1, {}))

    monkeypatch.setattr(trackers, "TRACKERS", (JsonLinesTracker, ListTracker))
    curve = TrainingCurve(tmp_path, "stage", 0)
    curve.add({"a": torch.tensor(2.0)})
    curve.write(1, {})
    curve.close()
    assert written[0][0] == 1
    assert written[0][1]["a"] == 2
    assert written[-1] == (-1, {})
