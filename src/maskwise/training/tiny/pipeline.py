"""A whole training run, from rendering to ONNX files. Running it again continues where it stopped.

    scenes/                          rendered scenes, in shards
    val/                             the dataset of validation scenes
    detector.safetensors             detector and RoI head, trained on scenes as they are
    detector_augmented.safetensors   detector and RoI head, trained further with augmentation
    detections/                      the detections on the scenes, in shards
    grounder.safetensors             the grounder, trained on questions about these detections
    checkpoints/, *.jsonl, events/   training state and curves
    *.onnx                           the networks for inference

A stage whose weights exist is skipped; within a stage, training continues from its last checkpoint.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import msgspec
import numpy as np
import torch
from accelerate import PartialState
from accelerate.utils import set_seed
from rich.console import Console
from rich.progress import track
from torch import nn

from maskwise.errors import MaskwiseError
from maskwise.models.tiny.model import BUNDLED_WEIGHTS, Tiny
from maskwise.store import Dataset
from maskwise.training.config_file import open_dataset
from maskwise.training.tiny.annotated_dataset import (
    dataset_examples,
    unknown_categories,
)
from maskwise.training.tiny.checkpoints import load_weights
from maskwise.training.tiny.config import Schedule, TrainingConfig, read_config
from maskwise.training.tiny.dry_run import dry_run
from maskwise.training.tiny.export import export
from maskwise.training.tiny.grounder import Grounder
from maskwise.training.tiny.grounding_batch import (
    GroundingBatch,
    make_grounding_batch,
)
from maskwise.training.tiny.grounding_dataset import (
    GroundingExample,
    SceneDetections,
    annotated_objects,
    detect_all,
    make_grounding_example,
)
from maskwise.training.tiny.losses import detector_loss, grounding_loss
from maskwise.training.tiny.networks import (
    TorchNetworks,
    TwoStageDetector,
    load_onnx,
)
from maskwise.training.tiny.scene_dataset import (
    SceneExample,
    read_shard,
    shard_count,
    write_shards,
)
from maskwise.training.tiny.sentence_templates import make_templates
from maskwise.training.tiny.targets import DetectorBatch, make_detector_batch
from maskwise.training.tiny.trainer import TrainingTask, fit
from maskwise.training.tiny.validation import (
    Validation,
    open_validation,
    world_validation,
)
from maskwise.training.trainers import record_config

__all__ = [
    "dry_run",
    "export_run",
    "initial_networks",
    "load_trained",
    "read_config",
    "train",
]

T = TypeVar("T")

TEMPLATES = 20_000
"""Number of sentence templates for noun phrases."""

MAX_LISTED = 20
"""Unknown categories listed by name."""

DETECTED_REPEATS = 4
"""Detections of a scene are used this many times as often as its annotations to train the grounder."""


def train(config: TrainingConfig, folder: Path) -> list[Path]:
    """All stages; returns the ONNX files. With several processes, the first one prepares the data and exports."""
    process = PartialState(cpu=not torch.cuda.is_available())
    torch.set_num_threads(config.threads)
    with process.main_process_first():
        folder.mkdir(parents=True, exist_ok=True)
        record_config(config, folder)
        examples = _load_examples(config, folder / "scenes")
        validations = _load_validations(config, folder / "val")
    set_seed(config.seed)
    detector, grounder = initial_networks(config.init)
    for name, schedule in config.stages().items():
        if name == "grounder":
            continue
        task = _detector_task(
            examples,
            config.seed,
            schedule,
            validations,
            augmented=name == "detector_augmented",
        )
        detector = fit(name, detector, task, schedule, folder=folder)
    if config.grounder is not None:
        model = Tiny(TorchNetworks(detector, grounder))
        detected = examples[: config.detected_scenes]
        with process.main_process_first():
            found = detect_all(model, detected, folder / "detections")
            grounding = _grounding_examples(
                examples, _track(found, "detecting", len(detected))
            )
        task = _grounder_task(
            grounding, config.seed, config.grounder, validations, model
        )
        grounder = fit("grounder", grounder, task, config.grounder, folder=folder)
    return export(detector, grounder, folder) if process.is_main_process else []


def initial_networks(init: str | None) -> tuple[TwoStageDetector, Grounder]:
    """New networks, those of the bundled model (`tiny`), or those of a folder of ONNX files."""
    if init is None:
        return TwoStageDetector(), Grounder()
    return load_onnx(BUNDLED_WEIGHTS if init == "tiny" else Path(init))


def load_trained(folder: Path) -> tuple[TwoStageDetector, Grounder]:
    """The networks of a finished run."""
    if not (folder / "config.json").exists():
        raise MaskwiseError(
            f"{folder} has no config.json; expected a folder that `maskwise train` wrote"
        )
    config = msgspec.json.decode(
        (folder / "config.json").read_bytes(), type=TrainingConfig
    )
    detector, grounder = initial_networks(config.init)
    for name in config.stages():
        path = folder / f"{name}.safetensors"
        if not path.exists():
            raise MaskwiseError(
                f"{folder} has no {path.name}; run `maskwise train` to the end first"
            )
        load_weights(grounder if name == "grounder" else detector, path)
    return detector.eval(), grounder.eval()


def export_run(run: Path, out: Path) -> list[Path]:
    """Write the networks of a finished run as ONNX files."""
    return export(*load_trained(run), out)


def _load_examples(config: TrainingConfig, folder: Path) -> list[SceneExample]:
    """All examples, in memory: about 100 kB each."""
    world = config.world
    examples = []
    if world.scenes:
        paths = write_shards(
            folder,
            "train",
            config.seed,
            scenes=world.scenes,
            questions=world.questions,
            workers=config.threads,
        )
        for path in _track(paths, "rendering scenes", shard_count(world.scenes)):
            examples += read_shard(path)
    for name in config.datasets:
        dataset = open_dataset(name)
        read = _track(
            dataset_examples(dataset), f"reading {name}", len(dataset.images.id)
        )
        found = [example for example in read if example is not None]
        _report_unused(name, dataset, found)
        examples += found
    if not examples:
        raise MaskwiseError(
            "nothing to train on: world.scenes is 0 and no dataset has an object"
        )
    return examples


def _report_unused(name: str, dataset: Dataset, examples: list[SceneExample]) -> None:
    """Say on standard error which annotations of a dataset the model cannot use."""
    console = Console(stderr=True)
    if unknown := unknown_categories(dataset):
        objects = sum(len(example.labels) for example in examples)
        listed = ", ".join(
            f"{category} ({count})"
            for category, count in unknown.most_common(MAX_LISTED)
        )
        more = (
            f" and {len(unknown) - MAX_LISTED} more"
            if len(unknown) > MAX_LISTED
            else ""
        )
        console.print(
            f"{name}: {unknown.total()} of {objects} objects, in {len(unknown)} categories, are unknown to the model "
            f"and train only boxes and masks: {listed}{more}",
            markup=False,
        )
    left_out = len(dataset) - sum(len(example.questions) for example in examples)
    if left_out:
        console.print(
            f"{name}: {left_out} of {len(dataset)} questions are left out: their targets are crowds, unknown parts or "
            "regions without a pixel at the model's resolution",
            markup=False,
        )


def _load_validations(config: TrainingConfig, folder: Path) -> dict[str, Validation]:
    """The validation sets by the prefix of their metrics."""
    validations = {}
    if config.world.validation_scenes:
        validations["val"] = world_validation(
            folder, config.world.validation_scenes, config.seed
        )
    if config.validation is not None:
        validations["own_val"] = open_validation(config.validation)
    return validations


def _track(steps: Iterable[T], label: str, total: int) -> Iterable[T]:
    """A progress bar on standard error; standard output may be read by a program."""
    return track(steps, label, total=total, console=Console(stderr=True))


def _detector_task(
    examples: list[SceneExample],
    seed: int,
    schedule: Schedule,
    validations: dict[str, Validation],
    *,
    augmented: bool,
) -> TrainingTask:
    def make_batch(step: int) -> DetectorBatch:
        random = np.random.default_rng((seed, step))
        chosen = random.integers(len(examples), size=schedule.batch_size)
        return make_detector_batch(
            [examples[i] for i in chosen], random, augmented=augmented
        )

    def validate(detector: nn.Module) -> dict[str, float]:
        assert isinstance(detector, TwoStageDetector)
        model = Tiny(TorchNetworks(detector, Grounder()))
        return _prefixed(
            {prefix: one.score_detector(model) for prefix, one in validations.items()}
        )

    return TrainingTask(make_batch=make_batch, loss=detector_loss, validate=validate)


def _grounding_examples(
    examples: list[SceneExample], detections: Iterable[SceneDetections]
) -> list[GroundingExample]:
    """Examples with the detections of the first ones, repeated, and with the annotations of all."""
    detected = [
        make_grounding_example(example, found)
        for found, example in zip(detections, examples)
    ]
    annotated = [
        make_grounding_example(example, annotated_objects(example))
        for example in examples
    ]
    usable = [
        one
        for one in DETECTED_REPEATS * detected + annotated
        if one.questions and len(one.features.unary)
    ]
    if not usable:
        raise MaskwiseError(
            "no image has both an object and a question: the grounder cannot be trained"
        )
    return usable


def _grounder_task(
    examples: list[GroundingExample],
    seed: int,
    schedule: Schedule,
    validations: dict[str, Validation],
    model: Tiny,
) -> TrainingTask:
    templates = make_templates(TEMPLATES, seed)
    encoded = {prefix: one.encode(model) for prefix, one in validations.items()}
    assert isinstance(model.networks, TorchNetworks)
    detector = model.networks.detector

    def make_batch(step: int) -> GroundingBatch:
        return make_grounding_batch(
            examples,
            templates,
            schedule.batch_size,
            np.random.default_rng((seed, step)),
        )

    def validate(grounder: nn.Module) -> dict[str, float]:
        assert isinstance(grounder, Grounder)
        networks = TorchNetworks(detector, grounder)
        return _prefixed(
            {
                prefix: one.score(networks, encoded[prefix])
                for prefix, one in validations.items()
            }
        )

    return TrainingTask(make_batch=make_batch, loss=grounding_loss, validate=validate)


def _prefixed(metrics: dict[str, dict[str, float]]) -> dict[str, float]:
    return {
        f"{prefix}_{name}": value
        for prefix, found in metrics.items()
        for name, value in found.items()
    }
