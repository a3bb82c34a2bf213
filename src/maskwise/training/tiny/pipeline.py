"""A whole training run, from rendering to ONNX files. Running it again continues where it stopped.

    scenes/                          rendered scenes, in shards
    val/                             the dataset of validation scenes
    stages/detector.safetensors      detector and RoI head, trained on scenes as they are
    stages/detector_augmented.safetensors
                                     detector and RoI head, trained further with augmentation
    detections/                      the detections on the scenes, in shards
    stages/grounder.safetensors      the grounder, trained on questions about these detections
    checkpoints/, *.jsonl, events/   training state and curves
    *.onnx                           the networks for inference

A stage whose weights exist is skipped; within a stage, training continues from its last checkpoint.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import torch
from accelerate import PartialState
from accelerate.utils import set_seed

from maskwise.errors import MaskwiseError
from maskwise.models.tiny.model import BUNDLED_WEIGHTS, Tiny
from maskwise.models.tiny.scene_example import SceneExample
from maskwise.store import Dataset
from maskwise.training.accelerator import make_accelerator
from maskwise.training.checkpoints import find_stage_weights, load_stage_weights
from maskwise.training.config_file import open_dataset
from maskwise.training.loop import TrainingTask, run_training
from maskwise.training.progress import track_items
from maskwise.training.stage_config import StageConfig
from maskwise.training.tiny.annotated_dataset import (
    dataset_examples,
    unknown_categories,
)
from maskwise.training.tiny.config import TrainingConfig, read_config
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
    restore_batch_norm,
)
from maskwise.training.tiny.scene_dataset import read_shard, shard_count, write_shards
from maskwise.training.tiny.sentence_templates import make_templates
from maskwise.training.tiny.targets import DetectorBatch, make_detector_batch
from maskwise.training.tiny.validation import Validation
from maskwise.training.trainers import record_config
from maskwise.training.validation import open_validation, write_validation

__all__ = [
    "dry_run",
    "export_run",
    "initial_networks",
    "load_trained",
    "read_config",
    "train",
]

logger = logging.getLogger(__name__)

NORM_BATCHES = 6
NORM_BATCH_SIZE = 16
"""Augmented images that the first means and variances of batch normalisation are from: about a hundred."""

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
    if config.batch_norm:
        detector = restore_batch_norm(detector, _norm_batches(examples, config.seed))
    if config.precision == "bf16":
        # Convolutions in bfloat16 are fast on CPUs in this order only.
        for parameter in detector.parameters():
            if parameter.ndim == 4:
                parameter.data = parameter.to(memory_format=torch.channels_last)
    for name, stage in config.stages().items():
        if name == "grounder":
            model = Tiny(TorchNetworks(detector, grounder))
            with process.main_process_first():
                grounding = _detect_examples(config, model, examples, folder)
            task = _grounder_task(
                grounding, config.seed, stage, validations=validations, model=model
            )
        else:
            task = _detector_task(
                name,
                examples,
                config.seed,
                stage,
                validations=validations,
                detector=detector,
            )
        # None: as `accelerate launch` says.
        precision = None if config.precision == "fp32" else config.precision
        accelerator = make_accelerator(precision=precision)
        run_training(task, stage.schedule(), folder, accelerator)
    return export(detector, grounder, folder) if process.is_main_process else []


def initial_networks(init: str | None) -> tuple[TwoStageDetector, Grounder]:
    """New networks, those of the bundled model (`tiny`), or those of a folder of ONNX files."""
    if init is None:
        return TwoStageDetector(), Grounder()
    return load_onnx(BUNDLED_WEIGHTS if init == "tiny" else Path(init))


def load_trained(
    folder: Path, checkpoint: int | str | None = None
) -> tuple[TwoStageDetector, Grounder]:
    """The networks of a run. checkpoint: of the last stage, as for `find_stage_weights`; those before are finished."""
    path = folder / "config.json"
    if not path.exists():
        raise MaskwiseError(
            f"{folder} has no config.json; expected a folder that `maskwise train` wrote"
        )
    try:
        config = msgspec.json.decode(path.read_bytes(), type=TrainingConfig)
    except (OSError, ValueError, RecursionError) as error:
        raise MaskwiseError(
            f"{path} is damaged: {error}; expected the config of a run of `tiny`, as `maskwise train` wrote it; "
            "restore the file, or repeat the run in another folder"
        ) from error
    detector, grounder = initial_networks(config.init)
    if config.batch_norm:
        detector = TwoStageDetector()
    stages = list(config.stages())
    for name in stages:
        network = grounder if name == "grounder" else detector
        chosen = checkpoint if name == stages[-1] else None
        load_stage_weights(network, find_stage_weights(folder, name, chosen))
    return detector.eval(), grounder.eval()


def export_run(run: Path, out: Path, checkpoint: int | str | None = None) -> list[Path]:
    """Write the networks of a run as ONNX files. checkpoint: as for `load_trained`."""
    return export(*load_trained(run, checkpoint), out)


def _load_examples(config: TrainingConfig, folder: Path) -> list[SceneExample]:
    """All examples, in memory: about 100 kB each."""
    world = config.world
    examples = []
    for preset, scenes in {
        "default": world.scenes,
        "crowded": world.crowded_scenes,
    }.items():
        paths = write_shards(
            folder,
            "train",
            config.seed,
            scenes=scenes,
            questions=world.questions,
            workers=config.threads,
            preset=preset,
        )
        title = f"rendering scenes, preset {preset}"
        if scenes:
            for path in track_items(paths, title, shard_count(scenes)):
                examples += read_shard(path)
    for name in config.datasets:
        dataset = open_dataset(name)
        read = track_items(
            dataset_examples(dataset), f"reading {name}", len(dataset.images.id)
        )
        usable = [example for example in read if example is not None]
        _report_unused(name, dataset, usable)
        examples += usable
    if not examples:
        raise MaskwiseError(
            "nothing to train on: world.scenes is 0 and no dataset has an object"
        )
    return examples


def _report_unused(name: str, dataset: Dataset, examples: list[SceneExample]) -> None:
    """Warn of annotations of a dataset that the model cannot use."""
    unknown = unknown_categories(dataset)
    if unknown:
        objects = sum(len(example.labels) for example in examples)
        most_common = unknown.most_common(MAX_LISTED)
        listed = ", ".join(f"{category} ({count})" for category, count in most_common)
        if len(unknown) > MAX_LISTED:
            listed += f" and {len(unknown) - MAX_LISTED} more"
        logger.warning(
            "%s: %d of %d objects, in %d categories, are unknown to the model and train only boxes and masks: %s",
            name,
            unknown.total(),
            objects,
            len(unknown),
            listed,
        )
    questions = sum(len(example.questions) for example in examples)
    left_out = len(dataset) - questions
    if left_out:
        logger.warning(
            "%s: %d of %d questions are left out: their targets are crowds, unknown parts or regions without a pixel "
            "at the model's resolution",
            name,
            left_out,
            len(dataset),
        )


def _load_validations(config: TrainingConfig, folder: Path) -> dict[str, Validation]:
    """The validation sets by the prefix of their metrics."""
    validations = {}
    if config.world.validation_scenes:
        scenes = write_validation(folder, config.world.validation_scenes, config.seed)
        validations["val"] = Validation(scenes)
    if config.validation is not None:
        validations["own_val"] = Validation(open_validation(config.validation))
    return validations


def _norm_batches(examples: list[SceneExample], seed: int) -> Iterator[DetectorBatch]:
    """Batches as of `detector_augmented`, for the statistics of batch normalisation."""
    random = np.random.default_rng(seed)
    for _ in range(NORM_BATCHES):
        chosen = random.integers(len(examples), size=NORM_BATCH_SIZE)
        yield make_detector_batch(
            [examples[index] for index in chosen], random, augmented=True
        )


def _detector_task(
    name: str,
    examples: list[SceneExample],
    seed: int,
    stage: StageConfig,
    *,
    validations: dict[str, Validation],
    detector: TwoStageDetector,
) -> TrainingTask:
    def make_batch(number: int) -> DetectorBatch:
        random = np.random.default_rng((seed, number))
        chosen = random.integers(len(examples), size=stage.batch_size)
        return make_detector_batch(
            [examples[index] for index in chosen],
            random,
            augmented=name == "detector_augmented",
        )

    def validate(network: TwoStageDetector) -> dict[str, float]:
        # The grounder is not used: the detector is scored with the true targets.
        model = Tiny(TorchNetworks(network, Grounder()))
        return _score_all(validations, lambda _, data: data.score_detector(model))

    return stage.make_task(
        name,
        detector,
        seed=seed,
        make_batch=make_batch,
        loss_terms=detector_loss,
        validate=validate,
    )


def _detect_examples(
    config: TrainingConfig, model: Tiny, examples: list[SceneExample], folder: Path
) -> list[GroundingExample]:
    """What the grounder is trained on: the detections of the first examples, and the annotations of all."""
    detected = examples[: config.detected_scenes]
    detections = detect_all(model, detected, folder / "detections")
    return _grounding_examples(
        examples, track_items(detections, "detecting", len(detected))
    )


def _grounding_examples(
    examples: list[SceneExample], detections: Iterable[SceneDetections]
) -> list[GroundingExample]:
    """Examples with the detections of the first ones, repeated, and with the annotations of all."""
    detected = [
        make_grounding_example(example, objects)
        for objects, example in zip(detections, examples)
    ]
    annotated = [
        make_grounding_example(example, annotated_objects(example))
        for example in examples
    ]
    usable = []
    for features, questions in DETECTED_REPEATS * detected + annotated:
        if questions and len(features.unary):
            usable.append((features, questions))
    if not usable:
        raise MaskwiseError(
            "no image has both an object and a question: the grounder cannot be trained"
        )
    return usable


def _grounder_task(
    examples: list[GroundingExample],
    seed: int,
    stage: StageConfig,
    *,
    validations: dict[str, Validation],
    model: Tiny,
) -> TrainingTask:
    templates = make_templates(TEMPLATES, seed)
    # The detector does not change any more: held-out images are encoded once for all validations.
    encoded = {prefix: data.encode(model) for prefix, data in validations.items()}
    assert isinstance(model.networks, TorchNetworks)
    detector = model.networks.detector

    def make_batch(number: int) -> GroundingBatch:
        random = np.random.default_rng((seed, number))
        return make_grounding_batch(examples, templates, stage.batch_size, random)

    def validate(network: Grounder) -> dict[str, float]:
        networks = TorchNetworks(detector, network)
        return _score_all(
            validations, lambda prefix, data: data.score(networks, encoded[prefix])
        )

    return stage.make_task(
        "grounder",
        model.networks.grounder,
        seed=seed,
        make_batch=make_batch,
        loss_terms=grounding_loss,
        validate=validate,
    )


def _score_all(
    validations: dict[str, Validation],
    score: Callable[[str, Validation], dict[str, float]],
) -> dict[str, float]:
    """The metrics of all validation sets, their names prefixed with that of the set."""
    metrics = {}
    for prefix, data in validations.items():
        for name, value in score(prefix, data).items():
            metrics[f"{prefix}_{name}"] = value
    return metrics
