"""A training run of the completion network. Running it again continues where it stopped.

composites/                 encoded crops of objects, for training and validation
stages/completion.safetensors    the weights
checkpoints/, *.jsonl, ...  training state and curves
completion.onnx             the network for inference
"""

import copy
from pathlib import Path

import numpy as np
import torch
from accelerate.utils import set_seed
from torch import Tensor, nn

from maskwise.builder.cutouts import CutoutSource
from maskwise.builder.occlude import OccludeOptions
from maskwise.errors import MaskwiseError
from maskwise.models.photo.completion import CROP_CHANNELS
from maskwise.models.photo.sam import FEATURE_CHANNELS, MobileSam
from maskwise.models.photo.weights import load_sam
from maskwise.models.photo.window import CROP_SIZE, FEATURE_SIZE
from maskwise.store import Dataset
from maskwise.training.checkpoints import find_stage_weights, load_stage_weights
from maskwise.training.completion.batches import (
    CompletionBatch,
    CropPool,
    make_batch,
    plain_example,
)
from maskwise.training.completion.composites import (
    ObjectCrop,
    read_crops,
    split_rows,
    write_composites,
)
from maskwise.training.completion.config import CompletionConfig, read_config
from maskwise.training.completion.covered_pairs import cover_objects
from maskwise.training.completion.losses import completion_loss
from maskwise.training.completion.network import CompletionUNet
from maskwise.training.completion.validation import score_network
from maskwise.training.config_file import open_dataset
from maskwise.training.dry_run import DryRun, plan_small_run
from maskwise.training.loop import TrainingTask, run_training
from maskwise.training.onnx_export import write_onnx
from maskwise.training.progress import track_items
from maskwise.training.trainers import record_config

__all__ = ["dry_run", "export_run", "read_config", "train"]

STAGE = "completion"
"""The only stage of a run."""


def train(config: CompletionConfig, folder: Path) -> list[Path]:
    """Make the training images, train, and write the ONNX file, which is returned."""
    torch.set_num_threads(config.threads)
    folder.mkdir(parents=True, exist_ok=True)
    record_config(config, folder)
    sam = load_sam(threads=config.threads)
    encoded: list[ObjectCrop] = []
    covered: list[ObjectCrop] = []
    held_out: list[ObjectCrop] = []
    for dataset in map(open_dataset, config.datasets):
        rows, others = split_rows(dataset, config.held_out)
        for options in map(config.occlude_options, config.encoded_seeds):
            encoded += _load_encoded(dataset, rows, options, sam=sam, folder=folder)
            held_out += _load_encoded(dataset, others, options, sam=sam, folder=folder)
        for options in map(config.occlude_options, config.seeds):
            covered += _cover(dataset, rows, options)
    set_seed(config.seed)
    network = CompletionUNet()
    task = make_task(config, network, CropPool(encoded, covered), held_out)
    run_training(task, config.schedule.schedule(), folder)
    return [export(network, folder / "completion.onnx")]


def export_run(run: Path, out: Path, checkpoint: int | str | None = None) -> list[Path]:
    """Write the network of a run as an ONNX file. checkpoint: as for `find_stage_weights`."""
    network = CompletionUNet()
    load_stage_weights(network, find_stage_weights(run, STAGE, checkpoint))
    out.mkdir(parents=True, exist_ok=True)
    return [export(network, out / "completion.onnx")]


def dry_run(config: CompletionConfig) -> DryRun:
    """Parameters, steps and images of a run. How many composites can be made is not known in advance."""
    return plan_small_run(
        config.model,
        {STAGE: CompletionUNet()},
        {STAGE: config.schedule},
        trained={STAGE: STAGE},
        images={name: len(open_dataset(name).images) for name in config.datasets},
        samples=dict.fromkeys(config.datasets),
    )


def make_task(
    config: CompletionConfig,
    network: CompletionUNet,
    pool: CropPool,
    held_out: list[ObjectCrop],
) -> TrainingTask:
    """What the training loop needs to know."""
    examples = [plain_example(crop) for crop in held_out]
    if not pool.occluded:
        raise MaskwiseError(
            f"{', '.join(config.datasets)}: no composite has an occluded object to train on"
        )

    def make_numbered_batch(number: int) -> CompletionBatch:
        random = np.random.default_rng((config.seed, number))
        return make_batch(pool, config.schedule.batch_size, random)

    return config.schedule.make_task(
        STAGE,
        network,
        seed=config.seed,
        make_batch=make_numbered_batch,
        loss_terms=completion_loss,
        validate=lambda network: score_network(network, examples),
    )


class CompletionGraph(nn.Module):
    """The network with probabilities as outputs."""

    def __init__(self, network: CompletionUNet) -> None:
        super().__init__()
        self.network = network

    def forward(self, crop: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
        """Amodal masks and whether the neighbours are in front, in 0..1."""
        amodal, front = self.network(crop, features)
        return amodal.sigmoid(), front.sigmoid()


def export(network: CompletionUNet, path: Path) -> Path:
    """Write the network as an ONNX file; it is not changed. onnxruntime folds the batch normalisation."""
    network = copy.deepcopy(network).cpu().eval()
    inputs = {
        "crop": torch.zeros(2, CROP_CHANNELS, CROP_SIZE, CROP_SIZE),
        "features": torch.zeros(1, FEATURE_CHANNELS, FEATURE_SIZE, FEATURE_SIZE),
    }
    return write_onnx(
        CompletionGraph(network),
        path,
        inputs=inputs,
        outputs=("amodal", "front"),
        dynamic_axes={name: {0: "neighbours"} for name in ("crop", "amodal", "front")},
    )


def _load_encoded(
    dataset: Dataset,
    rows: list[int],
    options: OccludeOptions,
    *,
    sam: MobileSam,
    folder: Path,
) -> list[ObjectCrop]:
    """The objects of a dataset's composites with one seed and of their originals."""
    files = write_composites(
        dataset, rows, options, sam=sam, folder=folder / "composites"
    )
    label = f"composites of {dataset.path}, seed {options.seed}"
    # An original belongs to several composites and is read once; a dictionary keeps the order.
    paths: dict[Path, None] = {}
    for files_of_image in track_items(files, label, len(rows)):
        paths.update(dict.fromkeys(files_of_image))
    crops = []
    for path in paths:
        crops += read_crops(path)
    return crops


def _cover(
    dataset: Dataset, rows: list[int], options: OccludeOptions
) -> list[ObjectCrop]:
    """Covered pairs of a dataset with one seed."""
    cutouts = CutoutSource(dataset)
    label = f"covered pairs of {dataset.path}, seed {options.seed}"
    crops: list[ObjectCrop] = []
    for row in track_items(rows, label, len(rows)):
        crops += cover_objects(cutouts, row, options)
    return crops
