"""A whole training run, from rendering to ONNX files. Running it again continues where it stopped.

    scenes/                          rendered scenes, in shards
    val/                             the dataset of validation scenes
    detector_base.safetensors        detector and RoI head, trained on scenes as they are
    detector.safetensors             detector and RoI head, trained further with augmentation
    detections/                      the detections on the scenes, in shards
    grounder.safetensors             the grounder, trained on questions about these detections
    checkpoints/, *.jsonl, events/   training state and curves
    *.onnx                           the networks for inference

A stage whose weights exist is skipped; within a stage, training continues from its last checkpoint.
"""

import json
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
from maskwise.models.tiny.model import Tiny
from maskwise.models.tiny.train.annotated_dataset import dataset_examples
from maskwise.models.tiny.train.config import Schedule, TrainingConfig
from maskwise.models.tiny.train.export import export
from maskwise.models.tiny.train.grounder import Grounder
from maskwise.models.tiny.train.grounding_batch import GroundingBatch, make_grounding_batch
from maskwise.models.tiny.train.grounding_dataset import (
    GroundingExample,
    annotated_objects,
    detect_all,
    make_grounding_example,
)
from maskwise.models.tiny.train.losses import detector_loss, grounding_loss
from maskwise.models.tiny.train.networks import TorchNetworks, TwoStageDetector
from maskwise.models.tiny.train.scene_dataset import SceneExample, read_shard, shard_count, write_shards
from maskwise.models.tiny.train.sentence_templates import make_templates
from maskwise.models.tiny.train.targets import DetectorBatch, make_detector_batch
from maskwise.models.tiny.train.trainer import TrainingTask, fit
from maskwise.models.tiny.train.validation import Validation, world_validation
from maskwise.store import Dataset
from maskwise.store.atomic import atomic_write

T = TypeVar("T")

TEMPLATES = 20_000
"""Number of sentence templates for noun phrases."""

DETECTED_REPEATS = 4
"""Detections of a scene are used this many times as often as its annotations to train the grounder."""


def train(config: TrainingConfig, folder: Path) -> list[Path]:
    """All stages; returns the ONNX files. With several processes, the first one prepares the data and exports."""
    process = PartialState(cpu=not torch.cuda.is_available())
    torch.set_num_threads(config.threads)
    with process.main_process_first():
        folder.mkdir(parents=True, exist_ok=True)
        _check_config(config, folder / "config.json")
        examples = _load_examples(config, folder / "scenes")
        validation = world_validation(folder / "val", config.world.validation_scenes, config.seed)
    set_seed(config.seed)
    detector, grounder = TwoStageDetector(), Grounder()
    stages = (("detector_base", config.detector), ("detector", config.detector_augmented))
    for name, schedule in stages:
        task = _detector_task(examples, config.seed, schedule, validation, augmented=name == "detector")
        detector = fit(name, detector, task, schedule, folder=folder)
    model = Tiny(TorchNetworks(detector, grounder))
    detected = examples[: config.detected_scenes]
    with process.main_process_first():
        detections = _track(detect_all(model, detected, folder / "detections"), "detecting", len(detected))
        grounding = DETECTED_REPEATS * [
            make_grounding_example(example, found)
            for found, example in zip(detections, detected, strict=True)
        ]
    grounding += [make_grounding_example(example, annotated_objects(example)) for example in examples]
    task = _grounder_task(grounding, config, validation, model)
    grounder = fit("grounder", grounder, task, config.grounder, folder=folder)
    return export(detector, grounder, folder) if process.is_main_process else []


def _check_config(config: TrainingConfig, path: Path) -> None:
    """A folder belongs to one run: another config would mix two."""
    new = json.loads(msgspec.json.encode(config))
    if not path.exists():
        with atomic_write(path) as file:
            file.write(json.dumps(new, indent=2).encode() + b"\n")
        return
    old = json.loads(path.read_text())
    changed = [
        f"{key}: {old.get(key)} then, {new.get(key)} now"
        for key in {**old, **new}
        if old.get(key) != new.get(key)
    ]
    if changed:
        raise MaskwiseError(
            f"{path.parent} holds a run with another config ({'; '.join(changed)}); choose another --out"
        )


def _load_examples(config: TrainingConfig, folder: Path) -> list[SceneExample]:
    """All examples, in memory: about 100 kB each."""
    world = config.world
    paths = write_shards(
        folder,
        "train",
        config.seed,
        scenes=world.scenes,
        questions=world.questions,
        workers=config.threads,
    )
    shards = _track(paths, "rendering scenes", shard_count(world.scenes))
    examples = [example for path in shards for example in read_shard(path)]
    for path in config.datasets:
        dataset = Dataset.open(path)
        read = _track(dataset_examples(dataset), f"reading {path}", len(dataset.images.id))
        examples += [example for example in read if example is not None]
    if not examples:
        raise MaskwiseError("nothing to train on: world.scenes is 0 and no dataset has an object")
    return examples


def _track(steps: Iterable[T], label: str, total: int) -> Iterable[T]:
    """A progress bar on standard error; standard output may be read by a program."""
    return track(steps, label, total=total, console=Console(stderr=True))


def _detector_task(
    examples: list[SceneExample], seed: int, schedule: Schedule, validation: Validation, *, augmented: bool
) -> TrainingTask:
    def make_batch(step: int) -> DetectorBatch:
        random = np.random.default_rng((seed, step))
        chosen = random.integers(len(examples), size=schedule.batch_size)
        return make_detector_batch([examples[i] for i in chosen], random, augmented=augmented)

    def validate(detector: nn.Module) -> dict[str, float]:
        assert isinstance(detector, TwoStageDetector)
        return validation.score_detector(Tiny(TorchNetworks(detector, Grounder())))

    return TrainingTask(make_batch=make_batch, loss=detector_loss, validate=validate)


def _grounder_task(
    examples: list[GroundingExample], config: TrainingConfig, validation: Validation, model: Tiny
) -> TrainingTask:
    usable = [example for example in examples if example.questions and len(example.features.unary)]
    if not usable:
        raise MaskwiseError("no image has both an object and a question: the grounder cannot be trained")
    templates = make_templates(TEMPLATES, config.seed)
    encoded = validation.encode(model)
    assert isinstance(model.networks, TorchNetworks)
    detector = model.networks.detector

    def make_batch(step: int) -> GroundingBatch:
        random = np.random.default_rng((config.seed, step))
        return make_grounding_batch(usable, templates, config.grounder.batch_size, random)

    def validate(grounder: nn.Module) -> dict[str, float]:
        assert isinstance(grounder, Grounder)
        return validation.score(TorchNetworks(detector, grounder), encoded)

    return TrainingTask(make_batch=make_batch, loss=grounding_loss, validate=validate)
