"""Validation during training: held-out questions answered freely and scored by the strict protocol."""

import logging
from pathlib import Path

from maskwise.errors import ModelError
from maskwise.harness.evaluate import evaluate
from maskwise.harness.progress import Progress
from maskwise.models.vlm.model import VlmModel
from maskwise.models.vlm.predictor import Vlm
from maskwise.models.vlm.processor import VlmProcessor
from maskwise.store import Dataset
from maskwise.training.validation import (
    open_validation,
    select_metrics,
    write_validation,
)
from maskwise.training.vlm.config import ValidationConfig

logger = logging.getLogger(__name__)


def open_held_out(config: ValidationConfig, folder: Path) -> Dataset:
    """The held-out dataset; scenes of the world are written to `folder` unless they are there."""
    world = config.world
    if world is None:
        assert config.dataset is not None
        return open_validation(config.dataset, images=config.images)
    return write_validation(
        folder,
        world.scenes,
        world.seed,
        split=world.split,
        size=world.size,
        questions=world.questions,
        preset=world.preset,
    )


def validate(
    model: VlmModel, processor: VlmProcessor, dataset: Dataset, limit: int | None
) -> dict[str, float]:
    """Metrics of a model in evaluation mode; `val_failed` counts questions without a prediction."""
    counts = Progress(0)

    def keep_counts(progress: Progress) -> None:
        counts.failed = progress.failed

    try:
        run = evaluate(
            Vlm(model, processor),
            dataset,
            limit=limit,
            protocols=["strict"],
            threads=1,
            keep_going=True,
            progress=False,
            on_progress=keep_counts,
        )
    except ModelError as error:
        # A model that cannot answer yet must not end its training.
        logger.warning("validation: %s", error)
        return {"val_failed": float(counts.failed)}
    assert run.summary is not None
    metrics = run.scores.protocols["strict"].metrics
    values = {name: metric.value for name, metric in metrics.items()}
    return select_metrics(values, "val_") | {"val_failed": float(run.summary.failed)}
