"""The training loop: deterministic by step, resumable at any checkpoint, with averaged weights (EMA).

The batch of step n depends on the seed and n only, so an interrupted run ends with the same weights as an uninterrupted
one. `accelerate` places the network on the available hardware, in one process or several.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from maskwise.training.batch_loader import load_batches
from maskwise.training.curve import TrainingCurve, training_progress
from maskwise.training.tiny.checkpoints import (
    CheckpointFolder,
    load_weights,
    save_weights,
)
from maskwise.training.tiny.config import Schedule

Network = TypeVar("Network", bound=nn.Module)


class TrainingTask(msgspec.Struct, frozen=True, kw_only=True):
    """`make_batch(n)` gives the n-th batch, `loss(network, batch)` its named terms, `validate(network)` the metrics of
    the averaged weights.
    """

    make_batch: Callable[[int], Any]
    loss: Callable[[nn.Module, Any], dict[str, Tensor]]
    validate: Callable[[nn.Module], dict[str, float]]


def learning_rate_factor(step: int, schedule: Schedule) -> float:
    """Linear warmup to 1, then a cosine decay to 0.01."""
    if step < schedule.warmup_steps:
        return (step + 1) / schedule.warmup_steps
    done = (step - schedule.warmup_steps) / max(
        1, schedule.steps - schedule.warmup_steps
    )
    return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


def average_weights(network: Network, decay: float) -> AveragedModel:
    """The exponential moving average of a network's weights; integer buffers are copied.

    The decay rises from 0.1 to `decay` over the first updates, so that the initial weights do not dominate.
    """

    def update(average: Tensor, current: Tensor, updates: Tensor | int) -> Tensor:
        if not average.dtype.is_floating_point:
            return current
        number = int(updates)
        return torch.lerp(average, current, 1 - min(decay, number / (number + 9)))

    averaged = AveragedModel(network, avg_fn=update, use_buffers=True)
    # At 0 the first update would copy the network instead of averaging.
    averaged.n_averaged.fill_(1)
    return averaged


def fit(
    name: str, network: Network, task: TrainingTask, schedule: Schedule, *, folder: Path
) -> Network:
    """Train `network` to the end of its schedule, from its last checkpoint if there is one; returns averaged weights.

    Writes into folder: `name`.safetensors (averaged weights, at the end), checkpoints/`name` (training state),
    `name`.jsonl (the training curve) and TensorBoard events.
    """
    finished = folder / f"{name}.safetensors"
    if finished.exists():
        load_weights(network, finished)
        return network
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    optimizer = torch.optim.AdamW(
        network.parameters(),
        schedule.learning_rate,
        betas=(0.9, 0.99),
        weight_decay=schedule.weight_decay,
    )
    network.to(accelerator.device)
    averaged = average_weights(network, schedule.ema_decay)
    prepared, optimizer = accelerator.prepare(network, optimizer)
    accelerator.register_for_checkpointing(averaged)
    checkpoints = CheckpointFolder(accelerator, folder / "checkpoints" / name)
    step = checkpoints.load()
    curve = TrainingCurve(folder, name, step) if accelerator.is_main_process else None
    batches = load_batches(
        task.make_batch,
        step,
        schedule.last_step,
        process=accelerator.process_index,
        processes=accelerator.num_processes,
    )
    with training_progress(curve is not None) as progress:
        bar = progress.add_task(name, total=schedule.last_step, completed=step)
        for batch in batches:
            for group in optimizer.param_groups:
                group["lr"] = schedule.learning_rate * learning_rate_factor(
                    step, schedule
                )
            terms = task.loss(prepared, send_to_device(batch, accelerator.device))
            optimizer.zero_grad(set_to_none=True)
            accelerator.backward(torch.stack(list(terms.values())).sum())
            accelerator.clip_grad_norm_(prepared.parameters(), 1.0)
            optimizer.step()
            averaged.update_parameters(network)
            step += 1
            if curve is not None:
                curve.add(terms)
            if step % schedule.checkpoint_every == 0 or step == schedule.last_step:
                if curve is not None:
                    curve.write(step, _validate(task, averaged.module))
                checkpoints.save(step)
            progress.update(bar, completed=step)
    network.load_state_dict(averaged.module.state_dict())
    if curve is not None:
        curve.close()
        save_weights(network, finished)
    accelerator.wait_for_everyone()
    return network


def _validate(task: TrainingTask, network: nn.Module) -> dict[str, float]:
    network.eval()
    with torch.inference_mode():
        return task.validate(network)
