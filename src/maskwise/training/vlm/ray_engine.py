"""Train on workers of Ray Train (extra `ray`). The folder of the run has to be on a disk that all workers share."""

import importlib
import os
from pathlib import Path
from typing import Any

import msgspec
import ray.train
from ray.train.torch import TorchTrainer

from maskwise.errors import MaskwiseError
from maskwise.training.vlm.config import VlmTrainingConfig


def train_on_ray(config: VlmTrainingConfig, folder: Path) -> None:
    """Run all stages on the workers that the config asks for. A repeated call continues from the last checkpoint."""
    execution = config.execution
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    engine = importlib.import_module("maskwise.harness.engines.ray")
    options = engine.RayOptions(
        address=execution.address,
        actors=execution.workers + 1,
        cpus=execution.cpus_per_worker,
    )
    resources: dict[str, float] = {"CPU": execution.cpus_per_worker}
    if execution.gpus_per_worker:
        resources["GPU"] = execution.gpus_per_worker
    with engine.connected(options):
        trainer = TorchTrainer(
            _train_in_worker,
            train_loop_config={
                "config": msgspec.json.encode(config).decode(),
                "folder": str(folder),
                "working_folder": os.getcwd(),
            },
            scaling_config=ray.train.ScalingConfig(
                num_workers=execution.workers,
                use_gpu=execution.gpus_per_worker > 0,
                resources_per_worker=resources,
            ),
            run_config=ray.train.RunConfig(
                name="ray",
                storage_path=str(folder),
                failure_config=ray.train.FailureConfig(max_failures=execution.restarts),
            ),
        )
        try:
            trainer.fit()
        except ray.train.TrainingFailedError as error:
            raise MaskwiseError(
                f"{folder}: training failed on Ray: {_last_line(error)}"
            ) from error


def _train_in_worker(settings: dict[str, Any]) -> None:
    """What a worker does: the same as a process of torchrun; Ray has set up the process group."""
    os.chdir(settings["working_folder"])
    config = msgspec.json.decode(settings["config"], type=VlmTrainingConfig)
    if not config.execution.gpus_per_worker:
        os.environ["ACCELERATE_USE_CPU"] = "true"
    pipeline = importlib.import_module("maskwise.training.vlm.pipeline")
    pipeline.train_here(config, Path(settings["folder"]))


def _last_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
