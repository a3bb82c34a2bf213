"""The training loop, on a network of two weights."""

import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from torch import nn

from maskwise.errors import MaskwiseError
from maskwise.training.batch_loader import load_batches
from maskwise.training.tiny.config import Schedule
from maskwise.training.tiny.trainer import (
    TrainingTask,
    average_weights,
    fit,
    learning_rate_factor,
)

SCHEDULE = Schedule(
    steps=60,
    batch_size=8,
    learning_rate=0.1,
    warmup_steps=5,
    checkpoint_every=7,
    ema_decay=0.9,
)


class Killed(BaseException):
    """Stands for a kill between two steps."""


def line_task(*, killed_at: int | None = None) -> TrainingTask:
    """Fit y = 3 x + 1 to points that depend only on the step."""

    def make_batch(step: int) -> torch.Tensor:
        if step == killed_at:
            raise Killed
        return torch.from_numpy(np.random.default_rng(step).random((8, 1), np.float32))

    def loss(network: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"square": ((network(x) - 3 * x - 1) ** 2).mean()}

    return TrainingTask(
        make_batch=make_batch,
        loss=loss,
        validate=lambda network: {"val_weight": network.weight.item()},
    )


def line_network() -> nn.Linear:
    torch.manual_seed(5)
    return nn.Linear(1, 1)


def test_an_interrupted_run_ends_with_the_weights_of_an_uninterrupted_one(
    tmp_path: Path,
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    straight = fit("line", line_network(), line_task(), SCHEDULE, folder=tmp_path / "a")
    for step in (20, 43):
        with pytest.raises(Killed):
            fit(
                "line",
                line_network(),
                line_task(killed_at=step),
                SCHEDULE,
                folder=tmp_path / "b",
            )
    resumed = fit("line", line_network(), line_task(), SCHEDULE, folder=tmp_path / "b")
    assert all(
        (a == b).all()
        for a, b in zip(straight.state_dict().values(), resumed.state_dict().values())
    )
    curve = [
        json.loads(line)
        for line in (tmp_path / "b" / "line.jsonl").read_text().splitlines()
    ]
    assert [row["step"] for row in curve] == [7, 14, 21, 28, 35, 42, 49, 56, 60]
    assert curve[-1]["val_weight"] == pytest.approx(resumed.weight.item(), abs=1e-4)


def test_the_progress_bar_ends_at_the_last_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fit("line", line_network(), line_task(), SCHEDULE, folder=tmp_path)
    assert "60/60" in capsys.readouterr().err


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        fit("line", line_network(), line_task(killed_at=20), SCHEDULE, folder=tmp_path)
    (checkpoint,) = (tmp_path / "checkpoints" / "line").iterdir()
    (checkpoint / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(
        MaskwiseError, match=r"step-0000014 is not a usable checkpoint.*delete it"
    ):
        fit("line", line_network(), line_task(), SCHEDULE, folder=tmp_path)


def test_averaged_weights_follow_the_network_and_integer_buffers_are_copied() -> None:
    network = nn.BatchNorm1d(1)
    averaged = average_weights(network, 0.9)
    values = [5.0, 6.0, 7.0]
    expected = 1.0
    for number, value in enumerate(values, 1):
        nn.init.constant_(network.weight, value)
        network.num_batches_tracked.fill_(number)
        averaged.update_parameters(network)
        keep = min(0.9, number / (number + 9))
        expected = keep * expected + (1 - keep) * value
    assert averaged.module.weight.item() == pytest.approx(expected)
    assert int(averaged.module.num_batches_tracked) == 3


def test_the_learning_rate_rises_then_falls() -> None:
    schedule = Schedule(steps=100, batch_size=1, learning_rate=1.0, warmup_steps=10)
    factors = [learning_rate_factor(step, schedule) for step in range(101)]
    assert factors[0] == pytest.approx(0.1)
    assert max(factors) == factors[9] == 1.0
    assert factors[100] == pytest.approx(0.01)


def test_processes_get_different_batches() -> None:
    batches = [
        list(load_batches(lambda n: n, 2, 5, process=process, processes=2))
        for process in (0, 1)
    ]
    assert batches == [[4, 6, 8], [5, 7, 9]]
    assert list(load_batches(lambda n: n, 5, 5)) == []
