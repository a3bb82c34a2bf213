"""Training curves: JSON lines and TensorBoard events."""

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from maskwise.errors import MissingDependencyError, UnknownNameError
from maskwise.registry import TRACKERS
from maskwise.training.trackers import (
    JsonLinesTracker,
    TrainingCurve,
    chosen_trackers,
    tracking,
)


def rows(path: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_row_has_the_mean_losses_their_sum_and_the_metrics(tmp_path: Path) -> None:
    curve = TrainingCurve(tmp_path, "stage", 0)
    curve.add({"a": torch.tensor(1.0), "b": torch.tensor(4.0)}, 0.5, seconds=1.0)
    curve.add({"a": torch.tensor(3.0), "b": torch.tensor(4.0)}, 1.5, seconds=3.0)
    curve.write(2, {"val_giou": 0.5}, 1e-6)
    curve.add({"a": torch.tensor(7.0), "b": torch.tensor(0.0)}, None, seconds=1.0)
    curve.write(3, {}, 1e-6)
    curve.close()
    first, second = rows(tmp_path / "stage.jsonl")
    assert first["seconds_per_step"] == 2.0
    assert "left_out_steps" not in first
    assert "tokens_per_second" not in first, "the model has no tokens"
    assert first["memory_gb"] > 0
    assert first["val_giou"] == 0.5
    assert (first["learning_rate"], first["gradient_norm"]) == (1e-6, 1.0)
    assert "gradient_norm" not in second, "it is not known"
    assert (first["step"], first["loss"], first["a"], first["b"]) == (2, 6, 2, 4)
    assert (second["a"], second["loss"]) == (7, 7), "means begin again after a row"
    assert list((tmp_path / "events" / "stage").glob("events.*"))


def test_steps_that_were_left_out_are_counted_and_change_no_mean(
    tmp_path: Path,
) -> None:
    curve = TrainingCurve(tmp_path, "stage", 0)
    curve.add({"a": torch.tensor(2.0)}, 0.5, seconds=0.5, tokens=100)
    curve.add_left_out()
    curve.write(2, {}, 1e-6)
    curve.add_left_out()
    curve.write(3, {}, 1e-6)
    curve.close()
    first, second = rows(tmp_path / "stage.jsonl")
    assert (first["loss"], first["left_out_steps"]) == (2.0, 1)
    assert first["tokens_per_second"] == 200
    assert "loss" not in second, "no step has a loss"


def test_rows_after_the_checkpoint_are_removed(tmp_path: Path) -> None:
    tracker = JsonLinesTracker(tmp_path, "stage", 0, {})
    for step in (1, 2, 3):
        tracker.write(step, {"loss": step / 3})
    JsonLinesTracker(tmp_path, "stage", 2, {}).write(3, {"loss": 0.25})
    assert [row["step"] for row in rows(tmp_path / "stage.jsonl")] == [1, 2, 3]
    assert rows(tmp_path / "stage.jsonl")[2]["loss"] == 0.25
    assert rows(tmp_path / "stage.jsonl")[0]["loss"] == 0.333333


class ListTracker:
    """Keeps what it is told."""

    told: ClassVar[list[Any]] = []

    def __init__(
        self, folder: Path, stage: str, step: int, config: Mapping[str, Any]
    ) -> None:
        self.told.append((stage, step, dict(config)))

    def write(self, step: int, values: Mapping[str, float]) -> None:
        self.told.append((step, dict(values)))

    def close(self) -> None:
        self.told.append("closed")


def test_a_chosen_tracker_gets_config_and_rows(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model": "line"}')
    ListTracker.told.clear()
    with tracking([f"{__name__}:ListTracker"]):
        assert chosen_trackers() == [f"{__name__}:ListTracker"]
        curve = TrainingCurve(tmp_path, "stage", 0)
    curve.add({"a": torch.tensor(2.0)}, None, seconds=1.0)
    curve.write(1, {}, 0.1)
    curve.close()
    start, row, end = ListTracker.told
    assert start == ("stage", 0, {"model": "line"})
    assert row[0] == 1
    assert row[1]["a"] == 2
    assert end == "closed"
    assert chosen_trackers() == []


def test_a_tracker_that_is_not_installed_is_named(tmp_path: Path) -> None:
    if importlib.util.find_spec("trackio"):
        pytest.skip("trackio is installed")
    with (
        pytest.raises(MissingDependencyError, match="pip install trackio"),
        tracking(["trackio"]),
    ):
        pass
    with pytest.raises(UnknownNameError, match="wandb"), tracking(["wandbb"]):
        pass


def test_events_of_a_continued_run_replace_those_of_later_steps(tmp_path: Path) -> None:
    tracker = TRACKERS.load("tensorboard", type)(tmp_path, "stage", 0, {"seed": 3})
    for step in (1, 2, 3):
        tracker.write(step, {"loss": float(step)})
    tracker.close()
    continued = TRACKERS.load("tensorboard", type)(tmp_path, "stage", 1, {"seed": 3})
    continued.write(2, {"loss": 20.0})
    continued.close()
    folder = tmp_path / "events" / "stage"
    # Files of one second have the same name but for a counter, and are read by name.
    events = EventAccumulator(str(folder))
    events.Reload()
    scalars = [(event.step, event.value) for event in events.Scalars("loss")]
    assert scalars == [(1, 1.0), (2, 20.0)]
    (config,) = events.Tensors("config/text_summary")
    assert b'"seed": 3' in config.tensor_proto.string_val[0]
