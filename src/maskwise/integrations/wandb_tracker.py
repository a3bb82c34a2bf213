"""Weights & Biases (extra `track`). WANDB_MODE=offline writes below the folder of the run and sends nothing."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import wandb

from maskwise.integrations.tracked_run import PROJECT, run_id


class WandbTracker:
    """One run of Weights & Biases per stage, in the project WANDB_PROJECT or `maskwise`; the folder is its group."""

    def __init__(
        self, folder: Path, stage: str, step: int, config: Mapping[str, Any]
    ) -> None:
        folder = folder.absolute()
        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            dir=str(folder),
            id=run_id(folder, stage),
            name=f"{folder.name}/{stage}",
            group=folder.name,
            config=dict(config),
            # A run that is continued goes on in the same place.
            resume="allow",
            reinit="create_new",
        )

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Log the values."""
        self.run.log(dict(values), step=step)

    def close(self) -> None:
        """Send what is left."""
        self.run.finish()
