"""A training run of the completion network. Running it again continues where it stopped.

composites/                 crops of objects for training, encoded and others
validation/                 crops of objects for validation
completion.safetensors      the weights
checkpoints/, *.jsonl, ...  training state and curves
completion.onnx             the network for inference
"""

import copy
from pathlib import Path

import numpy as np
import torch
from accelerate.utils import set_seed
from rich.console import Console
from rich.progress import track
from torch import Tensor, nn

from maskwise.errors import MaskwiseError
from maskwise.models.dry_run import DryRun, ParameterCount, SourcePlan, StagePlan
from maskwise.models.photo.completion import CROP_CHANNELS
from maskwise.models.photo.sam import FEATURE_CHANNELS, MobileSam
from maskwise.models.photo.train.batches import MIN_RATE, CompletionBatch, make_batch, plain_example
from maskwise.models.photo.train.composites import ObjectCrop, read_crops, write_composites
from maskwise.models.photo.train.config import CompletionConfig, read_config
from maskwise.models.photo.train.losses import completion_loss
from maskwise.models.photo.train.network import CompletionUNet
from maskwise.models.photo.train.validation import score_network
from maskwise.models.photo.weights import load_sam
from maskwise.models.photo.window import CROP_SIZE, FEATURE_SIZE
from maskwise.models.tiny.train.checkpoints import load_weights
from maskwise.models.tiny.train.export import OnnxGraph, write_onnx
from maskwise.models.tiny.train.trainer import TrainingTask, fit
from maskwise.models.trainers import record_config
from maskwise.store import Dataset

__all__ = ["dry_run", "export_run", "read_config", "train"]

VALIDATION_SEED = 100


def train(config: CompletionConfig, folder: Path) -> list[Path]:
    """Make the training images, train, and write the ONNX file, which is returned."""
    torch.set_num_threads(config.threads)
    folder.mkdir(parents=True, exist_ok=True)
    record_config(config, folder)
    sam = load_sam(threads=config.threads)
    crops: list[ObjectCrop] = []
    for name in config.datasets:
        for seed in config.encoded_seeds:
            crops += _load(name, seed, sam, config, folder / "composites")
        for seed in config.seeds:
            crops += _load(name, seed, None, config, folder / "composites")
    validation = _load(config.validation, VALIDATION_SEED, sam, config, folder / "validation")
    set_seed(config.seed)
    network = fit(
        "completion", CompletionUNet(), make_task(config, crops, validation), config.schedule, folder=folder
    )
    return [export(network, folder / "completion.onnx")]


def export_run(run: Path, out: Path) -> list[Path]:
    """Write the network of a finished run as an ONNX file."""
    path = run / "completion.safetensors"
    if not path.exists():
        raise MaskwiseError(f"{run} has no {path.name}; run `maskwise train` to the end first")
    network = CompletionUNet()
    load_weights(network, path)
    out.mkdir(parents=True, exist_ok=True)
    return [export(network, out / "completion.onnx")]


def dry_run(config: CompletionConfig) -> DryRun:
    """Parameters, steps and images of a run. How many composites can be made is not known in advance."""
    count = sum(parameter.numel() for parameter in CompletionUNet().parameters())
    draws = config.schedule.last_step * config.schedule.batch_size
    sizes = {name: len(Dataset.open(name).images) for name in config.datasets}
    return DryRun(
        model=config.model,
        parameters=(ParameterCount(module="completion", trainable=count, frozen=0),),
        stages=(
            StagePlan(
                name="completion",
                steps=config.schedule.last_step,
                batch_size=config.schedule.batch_size,
                trainable=count,
            ),
        ),
        sources=tuple(
            SourcePlan(
                name=name, images=size, samples=None, drawn=draws * size // max(1, sum(sizes.values()))
            )
            for name, size in sizes.items()
        ),
        memory={"weights, averaged weights, gradients, optimizer": 5 * 4 * count},
    )


def make_task(
    config: CompletionConfig, crops: list[ObjectCrop], validation: list[ObjectCrop]
) -> TrainingTask:
    """What the trainer needs to know."""
    occluded = [crop for crop in crops if crop.rate >= MIN_RATE]
    complete = [crop for crop in crops if crop.rate < MIN_RATE]
    examples = [plain_example(crop) for crop in validation]
    if not occluded:
        raise MaskwiseError(f"{', '.join(config.datasets)}: no composite has an occluded object to train on")

    def batch(step: int) -> CompletionBatch:
        return make_batch(
            occluded, complete, config.schedule.batch_size, np.random.default_rng((config.seed, step))
        )

    return TrainingTask(
        make_batch=batch, loss=completion_loss, validate=lambda network: score_network(network, examples)
    )


class CompletionGraph(nn.Module):
    """The network with probabilities as outputs."""

    def __init__(self, network: CompletionUNet) -> None:
        super().__init__()
        self.network = network

    def forward(self, crop: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """Amodal mask and occlusion rate, in 0..1."""
        amodal, rate = self.network(crop, features)
        return amodal.sigmoid(), rate.sigmoid()


def export(network: CompletionUNet, path: Path) -> Path:
    """Write the network as an ONNX file; it is not changed. onnxruntime folds the batch normalisation."""
    network = copy.deepcopy(network).cpu().eval()
    inputs = {
        "crop": torch.zeros(1, CROP_CHANNELS, CROP_SIZE, CROP_SIZE),
        "features": torch.zeros(1, FEATURE_CHANNELS, FEATURE_SIZE, FEATURE_SIZE),
    }
    return write_onnx(OnnxGraph(CompletionGraph(network), inputs, ("amodal", "rate"), {}), path)


def _load(
    name: str, seed: int, sam: MobileSam | None, config: CompletionConfig, folder: Path
) -> list[ObjectCrop]:
    """The objects of a dataset's composites with one seed; the originals are among them if they are encoded."""
    dataset = Dataset.open(name)
    files = write_composites(dataset, config.occlude_options(seed), sam, folder, prefix=Path(name).name)
    label, total = f"composites of {name}, seed {seed}", len(dataset.images)
    found: dict[Path, None] = {}
    for paths in track(files, label, total=total, console=Console(stderr=True)):
        found |= dict.fromkeys(paths)
    used = [path for path in found if sam is not None or not path.stem.endswith("original")]
    return [crop for path in used for crop in read_crops(path)]
