"""The training loop of all models: one stage, from its last checkpoint or from the beginning to its weights.

A step is a function of the seed, the step and the weights: its batches and its random numbers do not depend on what ran
before. So an interrupted stage ends with the same weights as an uninterrupted one, and checkpoints hold no state of a
random generator.
"""

import logging
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from torch.optim.swa_utils import AveragedModel

from maskwise.errors import MaskwiseError
from maskwise.training.accelerator import is_fsdp, make_accelerator
from maskwise.training.averaging import average_weights, set_updates
from maskwise.training.batch_loader import load_batches
from maskwise.training.checkpoints import (
    StageCheckpoints,
    gather_weights,
    load_stage_weights,
    stage_weights_path,
    validation_value,
    write_tensors,
)
from maskwise.training.progress import report
from maskwise.training.schedule import Schedule
from maskwise.training.signals import noting_signals
from maskwise.training.trackers import TrainingCurve

logger = logging.getLogger(__name__)

MAX_LEFT_OUT = 10
"""Updates in a row that may have gradients that are not finite: a rare bad batch is survived, divergence is not."""


@dataclass(frozen=True, kw_only=True)
class TrainingTask:
    """What a model supplies for one stage.

    `name`: of the stage and of its files. `title`: of its progress bar; by default the name.
    `network`: what is trained, with frozen parameters where the stage has some.
    `optimizer`: of the trained parameters, with their learning rates after warm-up.
    `make_batch(number)`: a batch that depends on its number alone. With several processes or accumulation, numbers go
    on through the processes and forwards of a step.
    `loss(network, batch)`: the loss to minimize, and its weighted terms by name for the training curve: the same names
    in the same order for every batch. The network may be wrapped for several processes.
    `seed`: of the random numbers of the steps, such as dropout.
    `validate(network)`: metrics of the network in evaluation mode. All processes call it, and may share the work; the
    metrics that the first one returns are reported.
    `count_tokens(batch)`: the tokens of a batch, for the pace; None for a model without tokens.
    `loader_workers`: threads that make batches ahead; above 1, `make_batch` has to be safe for several.
    `stored_names`: the weights that checkpoints and the result hold; None: all.
    `ema_decay`: the result is the average of the weights over the steps with this decay; None: the last weights.
    """

    name: str
    title: str = ""
    network: nn.Module
    optimizer: torch.optim.Optimizer
    make_batch: Callable[[int], Any]
    loss: Callable[[Any, Any], tuple[Tensor, dict[str, Tensor]]]
    seed: tuple[int, ...]
    validate: Callable[[Any], dict[str, float]]
    count_tokens: Callable[[Any], int] | None = None
    loader_workers: int = 1
    stored_names: frozenset[str] | None = None
    ema_decay: float | None = None


def run_training(
    task: TrainingTask,
    schedule: Schedule,
    folder: Path,
    accelerator: Accelerator | None = None,
) -> None:
    """Train a stage to its end; its network then has the resulting weights. All processes have to call this.

    Writes into folder: stages/`task.name`.safetensors (the weights, at the end), checkpoints/`task.name` (training
    state), and what the trackers write. A stage whose weights exist is not repeated: they are loaded.
    """
    finished = stage_weights_path(folder, task.name)
    stored_names = task.stored_names or frozenset(task.network.state_dict())
    if finished.exists():
        load_stage_weights(task.network, finished, stored_names)
        return
    if accelerator is None:
        accelerator = make_accelerator()
    loop = StageLoop(task, schedule, accelerator)
    checkpoints = StageCheckpoints(
        accelerator,
        folder / "checkpoints" / task.name,
        # The network itself, not what wraps it: its weights have the same names under DDP, FSDP 2 and DeepSpeed.
        task.network,
        optimizer=getattr(loop.optimizer, "optimizer", loop.optimizer),
        averaged=None if loop.averaged is None else loop.averaged.module,
        stored_names=stored_names,
        keep=schedule.keep_checkpoints,
    )
    loop.run(checkpoints, folder)
    weights = gather_weights(task.network, stored_names)
    if accelerator.is_main_process:
        write_tensors(finished, weights)
    accelerator.wait_for_everyone()


class StageLoop:
    """The steps of a stage in this process."""

    def __init__(
        self, task: TrainingTask, schedule: Schedule, accelerator: Accelerator
    ) -> None:
        self.task = task
        self.schedule = schedule
        self.accelerator = accelerator
        task.network.to(accelerator.device)
        task.network.train()
        self.averaged: AveragedModel | None = None
        if task.ema_decay is not None:
            self.averaged = average_weights(task.network, task.ema_decay)
        self.network, self.optimizer = accelerator.prepare(task.network, task.optimizer)
        self.base_rates = [group["lr"] for group in self.optimizer.param_groups]
        # Forwards per step: their gradients are accumulated.
        self.forwards = accelerator.gradient_accumulation_steps
        self.title = task.title or task.name
        # Of the last step, before clipping; None where DeepSpeed clips by itself.
        self.gradient_norm: float | None = None
        # Updates in a row that were left out because their gradients were not finite.
        self.left_out = 0
        # Of the last step, in this process.
        self.tokens = 0
        # True if a process was asked to end.
        self.stopping = False
        # Of the last validation.
        self.last_metrics: dict[str, float] = {}

    def run(self, checkpoints: StageCheckpoints, folder: Path) -> None:
        """Train from the last checkpoint to the last step, and leave the resulting weights in the network.

        A signal that ends the program (SIGTERM, SIGHUP) is answered after the step that runs: with a checkpoint, and
        KeyboardInterrupt.
        """
        schedule = self.schedule
        first_step = checkpoints.load()
        if self.averaged is not None:
            set_updates(self.averaged, first_step)
        curve = self._open_curve(folder, first_step)
        batches = self._load_batches(first_step)
        with noting_signals() as signals:
            for step in range(first_step, schedule.last_step):
                started = time.perf_counter()
                losses = self.train_step(step, batches, stopping=bool(signals))
                seconds = time.perf_counter() - started
                finite = self._check_finite(step, losses)
                done = step + 1
                metrics = {}
                if schedule.is_due(done, schedule.validate_every):
                    metrics = self._validate()
                    checkpoints.save_best(done, metrics)
                if curve is not None:
                    self._add_to_curve(curve, losses if finite else None, seconds)
                    self._report(curve, done, losses, metrics)
                if self.stopping or schedule.is_due(done, schedule.checkpoint_every):
                    checkpoints.save(done)
                if self.stopping:
                    raise KeyboardInterrupt
        if curve is not None:
            curve.close()
        if self.averaged is not None:
            self.task.network.load_state_dict(self.averaged.module.state_dict())

    def _open_curve(self, folder: Path, first_step: int) -> TrainingCurve | None:
        """The training curve, in the first process only."""
        if not self.accelerator.is_main_process:
            return None
        if first_step:
            logger.warning("%s: continuing from step %d", self.title, first_step)
        report(self.title, first_step, self.schedule.last_step)
        return TrainingCurve(folder, self.task.name, first_step)

    def _add_to_curve(
        self, curve: TrainingCurve, losses: dict[str, Tensor] | None, seconds: float
    ) -> None:
        """Add a step. losses: None if they are not finite."""
        if losses is None:
            curve.add_left_out()
        else:
            curve.add(losses, self.gradient_norm, seconds=seconds, tokens=self.tokens)

    def _report(
        self,
        curve: TrainingCurve,
        done: int,
        losses: dict[str, Tensor],
        metrics: dict[str, float],
    ) -> None:
        """Write a row of the curve if it is due, and tell whoever shows the progress."""
        schedule = self.schedule
        if metrics or schedule.is_due(done, schedule.log_every):
            learning_rate = self.optimizer.param_groups[0]["lr"]
            curve.write(done, metrics, learning_rate)
        self.last_metrics = metrics or self.last_metrics
        note = describe_step(losses, self.last_metrics)
        report(self.title, done, schedule.last_step, note)

    def _check_finite(self, step: int, losses: dict[str, Tensor]) -> bool:
        """False if the update was left out; MaskwiseError if too many in a row were."""
        norm = self.gradient_norm
        if norm is None or math.isfinite(norm):
            self.left_out = 0
            return True
        self.left_out += 1
        terms = [name for name, value in losses.items() if not math.isfinite(value)]
        reason = f"the losses {', '.join(terms)}" if terms else "the gradients"
        if self.left_out == MAX_LEFT_OUT:
            raise MaskwiseError(
                f"stage {self.task.name}, step {step + 1}: {reason} are not finite, for the {MAX_LEFT_OUT}th step in a "
                "row; lower the learning rate, or delete the last checkpoint if its weights are not finite either"
            )
        logger.warning(
            "%s, step %d: %s are not finite; the weights are left as they are",
            self.task.name,
            step + 1,
            reason,
        )
        return False

    def train_step(
        self, step: int, batches: Iterator[Any], *, stopping: bool = False
    ) -> dict[str, Tensor]:
        """One update of the weights; returns the terms of the loss, averaged over forwards and processes.

        stopping: this process was asked to end. All learn of it, because all have to write the checkpoint.
        """
        factor = self.schedule.learning_rate_factor(step)
        for group, rate in zip(self.optimizer.param_groups, self.base_rates):
            group["lr"] = rate * factor
        names: list[str] = []
        total = torch.zeros((), device=self.accelerator.device)
        self.tokens = 0
        for forward in range(self.forwards):
            batch = send_to_device(next(batches), self.accelerator.device)
            if self.task.count_tokens is not None:
                self.tokens += self.task.count_tokens(batch)
            self._seed_torch(step * self.forwards + forward)
            with self.accelerator.accumulate(self.network):
                loss, terms = self.task.loss(self.network, batch)
                if is_fsdp(self.accelerator):
                    loss = loss + _zero_of_unwrapped_weights(self.network)
                self.accelerator.backward(loss)
                if self.accelerator.sync_gradients:
                    norm = self.accelerator.clip_grad_norm_(
                        self.network.parameters(), self.schedule.clip_norm
                    )
                    self.gradient_norm = _to_number(norm)
                # The norm is that of all processes, so all of them leave the same update out.
                if self.gradient_norm is None or math.isfinite(self.gradient_norm):
                    self.optimizer.step()
                self.optimizer.zero_grad()
            names = list(terms)
            values = [value.detach().float() for value in terms.values()]
            total = total + torch.stack(values) / self.forwards
        if self.averaged is not None:
            self.averaged.update_parameters(self.task.network)
        flag = torch.tensor([float(stopping)], device=self.accelerator.device)
        means = self.accelerator.reduce(torch.cat([total, flag]), "mean")
        self.stopping = bool(means[-1] > 0)
        return dict(zip(names, means))

    def _load_batches(self, first_step: int) -> Iterator[Any]:
        """The batches of this process, one per forward."""
        return load_batches(
            self.task.make_batch,
            first_step * self.forwards,
            self.schedule.last_step * self.forwards,
            process=self.accelerator.process_index,
            processes=self.accelerator.num_processes,
            workers=self.task.loader_workers,
        )

    def _seed_torch(self, forward: int) -> None:
        """Seed torch by the number of the batch: dropout is the same for any number of processes."""
        processes = self.accelerator.num_processes
        number = forward * processes + self.accelerator.process_index
        sequence = np.random.SeedSequence((*self.task.seed, number))
        state = sequence.generate_state(1, np.uint64)
        # torch takes seeds of 63 bits.
        torch.manual_seed(int(state[0]) >> 1)

    def _validate(self) -> dict[str, float]:
        """Metrics of the averaged weights, or of the current ones.

        Under FSDP there are none: only the training forward gathers the shards of all weights.
        """
        if is_fsdp(self.accelerator):
            return {}
        network = self.accelerator.unwrap_model(self.network)
        if self.averaged is not None:
            network = self.averaged.module
        network.eval()
        # Trained weights are in float32 and frozen ones may not be, so the network needs autocast as in training.
        with torch.inference_mode(), self.accelerator.autocast():
            metrics = self.task.validate(network)
        network.train()
        self.accelerator.wait_for_everyone()
        return metrics


def describe_step(losses: dict[str, Tensor], metrics: dict[str, float]) -> str:
    """The loss of a step and the last validation, for a progress bar."""
    total = sum(float(value) for value in losses.values())
    parts = [f"loss {total:.3g}"]
    value = validation_value(metrics)
    if value is not None:
        parts.append(f"validation gIoU {value:.3f}")
    return ", ".join(parts)


def _to_number(norm: Tensor | float | None) -> float | None:
    """The norm of all gradients as a number; under FSDP 2 its parts are added up by all processes."""
    if isinstance(norm, DTensor):
        norm = norm.full_tensor()
    return None if norm is None else float(norm)


def _zero_of_unwrapped_weights(network: nn.Module) -> Tensor | float:
    """Zero times the sum of the trained weights outside the layers that FSDP wraps, which run in every batch.

    FSDP exchanges the gradients that there are. A process whose batch does not use a weight has no gradient of it, and
    the others would wait for it.
    """
    unwrapped = [
        parameter
        for parameter in network.parameters()
        if parameter.requires_grad and not isinstance(parameter, DTensor)
    ]
    if not unwrapped:
        return 0.0
    sums = [parameter.float().sum() for parameter in unwrapped]
    return 0.0 * torch.stack(sums).sum()
