"""Validation during training: held-out datasets, and which metrics of the strict protocol are reported."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from maskwise.errors import ConfigError
from maskwise.store import Dataset
from maskwise.training.config_file import open_dataset
from maskwise.world import write_scenes

VALIDATION_METRICS = (
    "giou",
    "f1",
    "no_target_accuracy",
    "occluded_iou",
    "mask_type_accuracy",
    "answer_exact",
)
"""Metrics of the strict protocol that validation during training reports."""


def open_validation(folder: str, *, images: str | None = None) -> Dataset:
    """The dataset folder that a config names to validate on; ConfigError if it has no questions."""
    dataset = open_dataset(folder, images=images)
    if not len(dataset):
        raise ConfigError(f"{folder} has no questions to validate on")
    return dataset


def write_validation(folder: Path, scenes: int, seed: int, **options: Any) -> Dataset:
    """Scenes of the world that training does not use, written to `folder` unless they are there.

    options: of `write_scenes`; the split is `val` unless they name another one.
    """
    if not folder.exists():
        write_scenes(folder, scenes, seed, **({"split": "val"} | options))
    return Dataset.open(folder)


def select_metrics(
    values: Mapping[str, float | None], prefix: str = ""
) -> dict[str, float]:
    """The validation metrics among those of the strict protocol, with a prefix; those without a value are left out."""
    selected = {}
    for name in VALIDATION_METRICS:
        value = values.get(name)
        if value is not None:
            selected[f"{prefix}{name}"] = value
    return selected
