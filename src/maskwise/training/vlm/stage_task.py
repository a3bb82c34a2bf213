"""The task of one stage: its batches, its loss, its optimizer, and the processes that share a batch."""

from collections.abc import Callable

import torch
from accelerate import Accelerator, PartialState
from torch import Tensor

from maskwise.errors import ConfigError, MaskwiseError
from maskwise.models.vlm.batch import VlmBatch, collate
from maskwise.models.vlm.config import LossWeights
from maskwise.models.vlm.model import VlmModel
from maskwise.models.vlm.processor import VlmProcessor
from maskwise.training.accelerator import is_deepspeed, is_fsdp, make_accelerator
from maskwise.training.loop import TrainingTask
from maskwise.training.vlm.config import Optimization, Stage, VlmTrainingConfig
from maskwise.training.vlm.length_groups import LengthGroups
from maskwise.training.vlm.optimizers import make_optimizer
from maskwise.training.vlm.usable_items import UsableItems

LOSSES = LossWeights.__struct_fields__


def make_task(
    config: VlmTrainingConfig,
    stage: Stage,
    model: VlmModel,
    processor: VlmProcessor,
    *,
    items: UsableItems,
    stored_names: frozenset[str],
    validate: Callable[[VlmModel], dict[str, float]],
) -> TrainingTask:
    """What the training loop needs to know of a stage. model: with its frozen parameters and losses set."""
    optimization = config.optimization_of(stage)
    size = optimization.micro_batch_size
    number = config.stages.index(stage)
    order: range | LengthGroups = range(items.positions)
    if optimization.group_by_length:
        order = LengthGroups(
            items.items.length_of,
            positions=items.positions,
            batch_size=optimization.batch_size,
            seed=config.seed + number,
        )

    def make_batch(batch_number: int) -> VlmBatch:
        first = batch_number * size
        positions = range(first, first + size)
        chosen = [items[order[position]] for position in positions]
        return collate(chosen, processor, dense=stage.dense)

    return TrainingTask(
        name=stage.name,
        title=f"stage {number + 1} of {len(config.stages)}, {stage.name}",
        network=model,
        optimizer=make_optimizer(model, stage, optimization),
        make_batch=make_batch,
        loss=weighted_loss(config.losses_of(stage)),
        seed=(config.seed, number),
        validate=validate,
        count_tokens=lambda batch: int(batch.attention_mask.sum()),
        loader_workers=config.loader_workers,
        stored_names=stored_names,
    )


def weighted_loss(
    weights: LossWeights,
) -> Callable[[VlmModel, VlmBatch], tuple[Tensor, dict[str, Tensor]]]:
    """The loss of the model and its weighted terms: all that have a weight, 0 where a batch does not have one."""
    used = [name for name in LOSSES if getattr(weights, name)]

    def loss(model: VlmModel, batch: VlmBatch) -> tuple[Tensor, dict[str, Tensor]]:
        output = model(batch)
        terms = {}
        for name in used:
            value = output.losses.get(name)
            if value is None:
                terms[name] = output.loss.new_zeros((), dtype=torch.float32)
            else:
                terms[name] = getattr(weights, name) * value.detach().float()
        return output.loss, terms

    return loss


def make_stage_accelerator(
    config: VlmTrainingConfig, optimization: Optimization
) -> Accelerator:
    """The accelerator of a stage: the batch is divided among processes and accumulated forwards."""
    processes = PartialState(cpu=not torch.cuda.is_available()).num_processes
    accumulated, rest = divmod(
        optimization.batch_size, optimization.micro_batch_size * processes
    )
    if rest:
        raise MaskwiseError(
            f"batch_size {optimization.batch_size} cannot be divided among {processes} processes with "
            f"micro_batch_size {optimization.micro_batch_size}"
        )
    accelerator = make_accelerator(
        accumulated=accumulated,
        precision="bf16" if config.precision == "bf16" else "no",
        # A process whose batch has no image, or no segmentation token, leaves parameters unused.
        unused_parameters=True,
    )
    sharded = is_fsdp(accelerator) or is_deepspeed(accelerator)
    if sharded and optimization.matrix_rate is not None:
        raise ConfigError(
            "matrix_rate: Muon needs whole matrices, which FSDP and DeepSpeed split among processes; remove matrix_rate"
        )
    if is_deepspeed(accelerator):
        accelerator.state.deepspeed_plugin.deepspeed_config.update(
            deepspeed_settings(optimization, accumulated)
        )
    return accelerator


def deepspeed_settings(
    optimization: Optimization, accumulated: int
) -> dict[str, float]:
    """What DeepSpeed has to know of a stage; accelerate would take it from a DataLoader or from its file."""
    return {
        "train_micro_batch_size_per_gpu": optimization.micro_batch_size,
        "gradient_accumulation_steps": accumulated,
        "gradient_clipping": optimization.clip_norm,
    }
