"""Validation during training: held-out questions answered freely and scored by the strict protocol."""

from pathlib import Path

import torch

from maskwise.errors import ConfigError
from maskwise.harness.evaluate import evaluate
from maskwise.models.vlm.model import VlmModel
from maskwise.models.vlm.predictor import Vlm
from maskwise.models.vlm.processor import VlmProcessor
from maskwise.store import Dataset
from maskwise.training.config_file import open_dataset
from maskwise.training.curve import VALIDATION_METRICS
from maskwise.training.vlm.config import ValidationConfig
from maskwise.world import write_scenes


def open_validation(config: ValidationConfig, folder: Path) -> Dataset:
    """The held-out dataset; scenes of the world are written to `folder` unless they are there."""
    if config.world is None:
        assert config.dataset is not None
        dataset = open_dataset(config.dataset, images=config.images)
    else:
        world = config.world
        if not folder.exists():
            write_scenes(
                folder,
                world.scenes,
                world.seed,
                split=world.split,
                size=world.size,
                questions=world.questions,
                preset=world.preset,
            )
        dataset = Dataset.open(folder)
    if not len(dataset):
        raise ConfigError(f"{dataset.path} has no questions to validate on")
    return dataset


def validate(
    model: VlmModel, processor: VlmProcessor, dataset: Dataset, limit: int | None
) -> dict[str, float]:
    """Metrics of a model in evaluation mode; `val_failed` counts questions without a prediction."""
    with torch.inference_mode():
        run = evaluate(
            Vlm(model, processor), dataset, limit=limit, protocols=["strict"], threads=1
        )
    assert run.summary is not None
    metrics = run.scores.protocols["strict"].metrics
    values = {
        f"val_{name}": metrics[name].value
        for name in VALIDATION_METRICS
        if name in metrics
    }
    found = {name: value for name, value in values.items() if value is not None}
    return found | {"val_failed": float(run.summary.failed)}
