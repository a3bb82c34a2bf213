"""Validation during training: held-out questions answered freely and scored by the strict protocol."""

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from accelerate import PartialState
from PIL import Image

from maskwise.harness.evaluator import Evaluator
from maskwise.harness.plan import Plan, PlannedImage
from maskwise.models.vlm.model import VlmModel
from maskwise.models.vlm.predictor import Vlm
from maskwise.models.vlm.processor import VlmProcessor
from maskwise.schema import Prediction
from maskwise.store import Dataset
from maskwise.training.validation import (
    open_validation,
    select_metrics,
    write_validation,
)
from maskwise.training.vlm.config import ValidationConfig

logger = logging.getLogger(__name__)


def open_held_out(config: ValidationConfig, folder: Path) -> dict[str, Dataset]:
    """The held-out datasets by name; scenes of the world are written to `folder` unless they are there."""
    world = config.world
    if world is not None:
        scenes = write_validation(
            folder,
            world.scenes,
            world.seed,
            split=world.split,
            size=world.size,
            questions=world.questions,
            preset=world.preset,
        )
        return {"world": scenes}
    datasets = {}
    for name in config.dataset_folders():
        datasets[Path(name).name] = open_validation(name, images=config.images)
    return datasets


def validate(
    model: VlmModel,
    processor: VlmProcessor,
    held_out: dict[str, Dataset],
    limit: int | None,
) -> dict[str, float]:
    """Metrics of a model in evaluation mode; `val_failed` counts questions without a prediction.

    All processes call this, and each answers the questions of its share of the images: a long validation by one of them
    would exceed the time that the others wait. With several datasets, their names are part of those of the metrics.
    """
    predictor = Vlm(model, processor)
    metrics: dict[str, float] = {}
    failed = 0
    for name, dataset in held_out.items():
        evaluator = Evaluator(dataset, protocol="strict")
        for planned in _own_share(dataset, limit):
            image = dataset.open_image(dataset.images.id[planned.image])
            rows = list(planned.rows)
            questions = [dataset[row].question for row in rows]
            evaluator.update(rows, _answer(predictor, image, questions))
        evaluator.gather()
        failed += evaluator.failed
        prefix = "val_" if len(held_out) == 1 else f"val_{name}_"
        # A model that cannot answer yet has no metrics.
        if len(evaluator) > evaluator.failed:
            metrics |= select_metrics(evaluator.compute(), prefix)
    return metrics | {"val_failed": float(failed)}


def _own_share(dataset: Dataset, limit: int | None) -> Iterator[PlannedImage]:
    """The images that this process validates on."""
    process = PartialState()
    for number, planned in enumerate(Plan.from_dataset(dataset, limit=limit)):
        if number % process.num_processes == process.process_index:
            yield planned


def _answer(
    predictor: Vlm, image: Image.Image, questions: Sequence[str]
) -> list[Prediction]:
    """One prediction per question; where the model fails, a prediction that says why."""
    try:
        return predictor.predict(image, questions)
    # A model that cannot answer yet must not end its training, whatever it raises.
    except Exception as error:
        logger.warning("validation: %s", error)
        failure = Prediction(error=f"{type(error).__name__}: {error}")
        return [failure] * len(questions)
