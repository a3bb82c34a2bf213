"""A training run of a network of two weights: line_run FOLDER FORWARDS, started by python or torchrun.

Every step has FORWARDS forwards in each process.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

from maskwise.training.accelerator import make_accelerator
from maskwise.training.loop import TrainingTask, run_training
from maskwise.training.stage_config import StageConfig

STAGE = StageConfig(
    steps=60,
    batch_size=8,
    learning_rate=0.1,
    warmup_steps=5,
    checkpoint_every=7,
    ema_decay=0.9,
)


class Killed(BaseException):
    """Stands for a kill between two steps."""


def line_task(
    *, killed_at: int | None = None, network: nn.Module | None = None
) -> TrainingTask:
    """Fit y = 3 x + 1 to points that depend only on the number of the batch."""

    def make_batch(number: int) -> torch.Tensor:
        if number == killed_at:
            raise Killed
        random = np.random.default_rng(number)
        return torch.from_numpy(random.random((8, 1), np.float32))

    def loss_terms(network: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"square": ((network(x) - 3 * x - 1) ** 2).mean()}

    return STAGE.make_task(
        "line",
        line_network() if network is None else network,
        seed=1,
        make_batch=make_batch,
        loss_terms=loss_terms,
        validate=lambda network: {
            "val_weight": network.state_dict()["0.weight"].item()
        },
    )


def line_network() -> nn.Module:
    """With dropout, whose random numbers have to be the same after an interruption."""
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(1, 1), nn.Dropout(0.2))


if __name__ == "__main__":
    run_training(
        line_task(),
        STAGE.schedule(),
        Path(sys.argv[1]),
        make_accelerator(accumulated=int(sys.argv[2])),
    )
