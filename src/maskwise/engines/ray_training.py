"""Training on workers of Ray Train.

The folder of the run has to be on a disk that all workers share.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray.train
from msgspec.structs import replace
from ray.train.torch import TorchTrainer

from maskwise.engines.options import EngineOptions
from maskwise.engines.ray_cluster import connected
from maskwise.errors import MaskwiseError


def train_on_ray(
    function: Callable[[dict[str, Any]], None],
    settings: dict[str, Any],
    options: EngineOptions,
    *,
    folder: Path,
    restarts: int,
) -> None:
    """`launch_training` on Ray. Training has one worker unless the options say more."""
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    workers = options.workers or 1
    gpus = options.gpus_per_worker or 0
    resources: dict[str, float] = {"CPU": options.cpus}
    if gpus:
        resources["GPU"] = gpus
    # Ray Train's own controller needs a place beside the workers.
    with connected(replace(options, workers=workers + 1)):
        trainer = TorchTrainer(
            _call,
            train_loop_config={
                "function": function,
                "settings": settings,
                "working_folder": os.getcwd(),
            },
            scaling_config=ray.train.ScalingConfig(
                num_workers=workers, use_gpu=gpus > 0, resources_per_worker=resources
            ),
            run_config=ray.train.RunConfig(
                name="ray",
                storage_path=str(folder),
                failure_config=ray.train.FailureConfig(max_failures=restarts),
            ),
        )
        try:
            trainer.fit()
        except ray.train.TrainingFailedError as error:
            raise MaskwiseError(
                f"{folder}: training failed on Ray: {_last_line(error)}"
            ) from error


def _call(arguments: dict[str, Any]) -> None:
    # Relative paths in the settings are relative to the folder of the command.
    os.chdir(arguments["working_folder"])
    arguments["function"](arguments["settings"])


def _last_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
