"""The training loop of one stage on accelerate: accumulation, clipping, schedule, curve, validation, checkpoints.

A step is a function of the seed, the step and the weights: its samples and its random numbers do not depend on what ran
before. So an interrupted stage ends with the same weights as an uninterrupted one, and the number of processes does
not matter beyond rounding.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator, PartialState
from accelerate.state import AcceleratorState
from accelerate.utils import (
    DistributedDataParallelKwargs,
    DistributedType,
    GradientAccumulationPlugin,
)
from torch import Tensor
from torch.distributed.tensor import DTensor

from maskwise.errors import ConfigError, MaskwiseError
from maskwise.models.vlm.batch import VlmBatch, collate
from maskwise.models.vlm.config import LossWeights
from maskwise.models.vlm.model import VlmModel
from maskwise.models.vlm.processor import VlmProcessor
from maskwise.training.batch_loader import load_batches
from maskwise.training.curve import TrainingCurve, training_progress
from maskwise.training.vlm.checkpoints import StageCheckpoints, gather_weights
from maskwise.training.vlm.config import Optimization, Stage, VlmTrainingConfig
from maskwise.training.vlm.optimizers import make_optimizer
from maskwise.training.vlm.sources import TrainingItems

LOSSES = LossWeights.__struct_fields__


@dataclass(frozen=True)
class StageTask:
    """What a stage trains: its number, its settings, its model with frozen parameters, its items, and the names of the
    weights that its checkpoints hold. `validate`: metrics of the model, every `validate_every` steps.
    """

    number: int
    stage: Stage
    model: VlmModel
    processor: VlmProcessor
    items: TrainingItems
    names: frozenset[str]
    validate: Callable[[VlmModel], dict[str, float]]
    validate_every: int | None


def make_accelerator(
    config: VlmTrainingConfig, optimization: Optimization
) -> Accelerator:
    """The accelerator of a stage. FSDP and DeepSpeed are set up by `accelerate launch --config_file`."""
    on_cpu = not torch.cuda.is_available()
    processes = PartialState(cpu=on_cpu).num_processes
    share, rest = divmod(
        optimization.batch_size, optimization.micro_batch_size * processes
    )
    if rest:
        raise MaskwiseError(
            f"batch_size {optimization.batch_size} cannot be divided among {processes} processes with "
            f"micro_batch_size {optimization.micro_batch_size}"
        )
    # accelerate keeps the precision of the first Accelerator of a process and refuses another one.
    AcceleratorState._reset_state()
    accelerator = Accelerator(
        cpu=on_cpu,
        mixed_precision="bf16" if config.precision == "bf16" else "no",
        gradient_accumulation_plugin=GradientAccumulationPlugin(
            num_steps=share, adjust_scheduler=False, sync_with_dataloader=False
        ),
        # A process whose batch has no image, or no segmentation token, leaves parameters unused.
        kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)],
    )
    sharded = accelerator.distributed_type in (
        DistributedType.FSDP,
        DistributedType.DEEPSPEED,
    )
    if sharded and optimization.matrix_rate is not None:
        raise ConfigError(
            "matrix_rate: Muon needs whole matrices, which FSDP and DeepSpeed split among processes; remove matrix_rate"
        )
    if accelerator.distributed_type == DistributedType.DEEPSPEED:
        accelerator.state.deepspeed_plugin.deepspeed_config.update(
            deepspeed_settings(optimization, share)
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


def learning_rate_factor(step: int, steps: int, optimization: Optimization) -> float:
    """Linear warm-up to 1, then the schedule down to `final_factor` at `steps`."""
    if step < optimization.warmup_steps:
        return (step + 1) / optimization.warmup_steps
    if optimization.schedule == "constant":
        return 1.0
    done = (step - optimization.warmup_steps) / max(
        1, steps - optimization.warmup_steps
    )
    left = (
        1 - done
        if optimization.schedule == "linear"
        else 0.5 * (1 + math.cos(math.pi * done))
    )
    return optimization.final_factor + (1 - optimization.final_factor) * left


def fit_stage(
    config: VlmTrainingConfig, task: StageTask, folder: Path
) -> dict[str, Tensor]:
    """Train a stage from its last checkpoint, or from the beginning; returns the weights that it stores, by name."""
    optimization = config.optimization_of(task.stage)
    accelerator = make_accelerator(config, optimization)
    optimizer = make_optimizer(task.model, task.stage, optimization)
    task.model.to(accelerator.device)
    model, prepared = accelerator.prepare(task.model, optimizer)
    # The model itself, not what wraps it: its parameters have the same names under DDP, FSDP 2 and DeepSpeed.
    checkpoints = StageCheckpoints(
        accelerator,
        folder / "checkpoints" / task.stage.name,
        task.model,
        optimizer=getattr(prepared, "optimizer", prepared),
        names=task.names,
        keep=config.keep_checkpoints,
    )
    loop = _StageLoop(config, task, accelerator, model=model, optimizer=prepared)
    loop.run(checkpoints, folder)
    return gather_weights(task.model, task.names)


class _StageLoop:
    """The steps of a stage."""

    def __init__(
        self,
        config: VlmTrainingConfig,
        task: StageTask,
        accelerator: Accelerator,
        *,
        model: Any,
        optimizer: Any,
    ) -> None:
        self.config = config
        self.task = task
        self.accelerator = accelerator
        self.model = model
        self.optimizer = optimizer
        self.optimization = config.optimization_of(task.stage)
        self.accumulated = accelerator.gradient_accumulation_steps
        self.base_rates = [group["lr"] for group in optimizer.param_groups]
        self.weights = {
            name: getattr(task.model.config.losses, name) for name in LOSSES
        }

    def run(self, checkpoints: StageCheckpoints, folder: Path) -> None:
        """Train to the end of the stage."""
        stage = self.task.stage
        main = self.accelerator.is_main_process
        first = checkpoints.load()
        curve = TrainingCurve(folder, stage.name, first) if main else None
        batches = self._batches(first)
        with training_progress(main) as progress:
            bar = progress.add_task(stage.name, total=stage.steps, completed=first)
            for step in range(first + 1, stage.steps + 1):
                terms = self._step(step - 1, batches)
                if curve is not None:
                    curve.add(terms)
                metrics = self._validate(step)
                if curve is not None and (
                    metrics or self._due(step, self.config.log_every)
                ):
                    curve.write(step, metrics)
                if self._due(step, self.config.checkpoint_every):
                    checkpoints.save(
                        step, {"position": step * self.optimization.batch_size}
                    )
                progress.update(bar, completed=step)
        if curve is not None:
            curve.close()

    def _step(self, step: int, batches: Iterator[VlmBatch]) -> dict[str, Tensor]:
        """One optimizer step; returns the weighted losses, averaged over the batch and all processes."""
        factor = learning_rate_factor(step, self.task.stage.steps, self.optimization)
        for group, rate in zip(self.optimizer.param_groups, self.base_rates):
            group["lr"] = rate * factor
        terms = torch.zeros(len(LOSSES), device=self.accelerator.device)
        for number in range(self.accumulated):
            batch = next(batches).to(self.accelerator.device)
            self._seed(step * self.accumulated + number)
            with self.accelerator.accumulate(self.model):
                output = self.model(batch)
                self.accelerator.backward(output.loss + self._zero_of_all_weights())
                if self.accelerator.sync_gradients:
                    self.accelerator.clip_grad_norm_(
                        self.model.parameters(), self.optimization.clip_norm
                    )
                self.optimizer.step()
                self.optimizer.zero_grad()
            for name, value in output.losses.items():
                terms[LOSSES.index(name)] += (
                    self.weights[name] * value.detach().float() / self.accumulated
                )
        mean = self.accelerator.reduce(terms, "mean")
        return {name: value for name, value in zip(LOSSES, mean) if self.weights[name]}

    def _zero_of_all_weights(self) -> Tensor | float:
        """Under FSDP, zero times the sum of the trained weights outside the wrapped layers, which run in every batch.

        FSDP exchanges the gradients that there are. A process whose batch is text alone has none of the segmenter, and
        the others would wait for it.
        """
        if self.accelerator.distributed_type != DistributedType.FSDP:
            return 0.0
        gathered = [
            one
            for one in self.model.parameters()
            if one.requires_grad and not isinstance(one, DTensor)
        ]
        return (
            0.0 * torch.stack([one.float().sum() for one in gathered]).sum()
            if gathered
            else 0.0
        )

    def _seed(self, round_number: int) -> None:
        """Seed torch for a micro-batch: dropout is the same for any number of processes."""
        number = (
            round_number * self.accelerator.num_processes
            + self.accelerator.process_index
        )
        torch.manual_seed(_hash(self.config.seed, self.task.number, number))

    def _batches(self, first: int) -> Iterator[VlmBatch]:
        """The micro-batches of this process from step `first` on, prepared one ahead."""
        size = self.optimization.micro_batch_size
        stage = self.task.stage

        def make_batch(number: int) -> VlmBatch:
            items = [
                self.task.items[position]
                for position in range(number * size, (number + 1) * size)
            ]
            return collate(items, self.task.processor, dense=stage.dense)

        return load_batches(
            make_batch,
            first * self.accumulated,
            stage.steps * self.accumulated,
            process=self.accelerator.process_index,
            processes=self.accelerator.num_processes,
        )

    def _validate(self, step: int) -> dict[str, float]:
        """Metrics of the model, by the first process, if they are due; else none.

        Under FSDP there are none: only the training forward gathers the shards of all weights.
        """
        every = self.task.validate_every
        sharded = self.accelerator.distributed_type == DistributedType.FSDP
        if every is None or sharded or not self._due(step, every):
            return {}
        found: dict[str, float] = {}
        if self.accelerator.is_main_process:
            model = self.accelerator.unwrap_model(self.model)
            model.eval()
            # Trained weights are in float32 and frozen ones may not be, so the model needs autocast as in training.
            with self.accelerator.autocast():
                found = self.task.validate(model)
            model.train()
        self.accelerator.wait_for_everyone()
        return found

    def _due(self, step: int, every: int) -> bool:
        return step % every == 0 or step == self.task.stage.steps


def _hash(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0]) >> 1
