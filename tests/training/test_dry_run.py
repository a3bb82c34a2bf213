"""The plan of a run of small networks."""

import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from torch import nn

from maskwise.training.dry_run import plan_small_run
from maskwise.training.stage_config import StageConfig

NETWORKS = {"large": nn.Linear(9, 10), "small": nn.Linear(4, 2)}
STAGE = StageConfig(steps=40, stop_step=30, batch_size=4, learning_rate=0.1)


def test_parameters_steps_draws_and_memory_of_a_run() -> None:
    plan = plan_small_run(
        "lines",
        NETWORKS,
        {"first": STAGE, "second": STAGE},
        trained={"first": "small", "second": "small"},
        images={"world": 30, "own": 10},
        samples={"world": 60, "own": None},
    )
    counts = [(part.module, part.trainable, part.frozen) for part in plan.parameters]
    assert counts == [("large", 0, 100), ("small", 10, 0)]
    assert [(stage.name, stage.steps) for stage in plan.stages] == [
        ("first", 30),
        ("second", 30),
    ]
    assert [source.drawn for source in plan.sources] == [180, 60], "240 draws in all"
    assert plan.memory == {
        "weights": 4 * 110,
        "averaged weights": 40,
        "gradients": 40,
        "optimizer": 80,
    }


def test_a_run_without_images_draws_nothing() -> None:
    plan = plan_small_run(
        "lines",
        NETWORKS,
        {"first": STAGE},
        trained={"first": "large"},
        images={"world": 0},
        samples={"world": 0},
    )
    assert plan.sources[0].drawn == 0
