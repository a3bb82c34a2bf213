"""One training loop for every network: deterministic by step, resumable at any checkpoint, averaged weights.

What is drawn at step n depends on the seed and n alone, so that a run that was interrupted ends where one that was
not would have. `accelerate` places it on whatever hardware there is, one process or many.
"""

import json
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import torch
from accelerate import Accelerator
from accelerate.utils import send_to_device
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from safetensors import safe_open
from torch import Tensor, nn
from torch.utils.tensorboard import SummaryWriter

from maskwise.models.checkpoints import load_state, load_weights, read_tensors, write_tensors

Network = TypeVar("Network", bound=nn.Module)
Count = Annotated[int, msgspec.Meta(ge=1)]


class Schedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long and how fast. The rate rises over `warmup` steps and falls to a hundredth along a cosine."""

    steps: Count
    batch: Count
    rate: Annotated[float, msgspec.Meta(gt=0)]
    warmup: Count = 200
    decay: Annotated[float, msgspec.Meta(ge=0)] = 0.02
    average: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.998
    every: Count = 250
    """Steps between checkpoints, each of which is validated."""
    stop: Count | None = None
    """Where to stop before the schedule ends, if time is short; the rate falls as if it went on."""

    @property
    def last(self) -> int:
        """The step after which training ends."""
        return self.steps if self.stop is None else min(self.stop, self.steps)


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """What a network is to learn. `draw(n)` makes the n-th batch; `loss(network, batch)` gives its terms;
    `validate(network)` gives figures of the averaged weights.
    """

    draw: Callable[[int], Any]
    loss: Callable[[nn.Module, Any], dict[str, Tensor]]
    validate: Callable[[nn.Module], dict[str, float]]


def rate_at(step: int, schedule: Schedule) -> float:
    """Factor of the rate."""
    if step < schedule.warmup:
        return (step + 1) / schedule.warmup
    done = (step - schedule.warmup) / max(1, schedule.steps - schedule.warmup)
    return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


def fit(name: str, network: Network, task: Task, schedule: Schedule, *, folder: Path) -> Network:
    """Train `network` to the end of its schedule, from its last checkpoint if there is one; give the averaged weights.

    Writes into folder: `name`.safetensors (averaged weights, at the end), `name`.state.safetensors (all that resuming
    needs, at every checkpoint), `name`.jsonl (the curve) and TensorBoard events.
    """
    done = folder / f"{name}.safetensors"
    if done.exists():
        load_weights(network, done)
        return network
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    optimizer = torch.optim.AdamW(
        network.parameters(), schedule.rate, betas=(0.9, 0.99), weight_decay=schedule.decay
    )
    network.to(accelerator.device)
    state = folder / f"{name}.state.safetensors"
    step, average = _resume(state, network, optimizer)
    average = {key: value.to(accelerator.device) for key, value in average.items()}
    prepared, optimizer = accelerator.prepare(network, optimizer)
    curve = Curve(folder, name, step) if accelerator.is_main_process else None
    with ThreadPoolExecutor(1) as ahead, _progress(curve is not None) as progress:
        bar = progress.add_task(name, total=schedule.last, completed=step)
        turn, turns = accelerator.process_index, accelerator.num_processes
        coming = ahead.submit(task.draw, step * turns + turn)
        while step < schedule.last:
            batch, coming = coming.result(), ahead.submit(task.draw, (step + 1) * turns + turn)
            for group in optimizer.param_groups:
                group["lr"] = schedule.rate * rate_at(step, schedule)
            terms = task.loss(prepared, send_to_device(batch, accelerator.device))
            optimizer.zero_grad(set_to_none=True)
            accelerator.backward(torch.stack(list(terms.values())).sum())
            accelerator.clip_grad_norm_(prepared.parameters(), 1.0)
            optimizer.step()
            _follow(average, network, min(schedule.average, (step + 1) / (step + 10)))
            step += 1
            progress.update(bar, completed=step)
            if curve is None:
                continue
            curve.add(terms)
            if step % schedule.every == 0 or step == schedule.last:
                curve.write(step, _validate(task, network, average))
                _save(state, network, optimizer, step, average)
    network.load_state_dict(average)
    if curve is not None:
        curve.close()
        write_tensors(average, done)
    accelerator.wait_for_everyone()
    return network


class Curve:
    """The means of the loss terms between checkpoints, and the figures of validation: a line of JSON and TensorBoard
    events a checkpoint.
    """

    def __init__(self, folder: Path, name: str, step: int) -> None:
        self.path = folder / f"{name}.jsonl"
        # What was written after the last checkpoint comes again.
        known = self.path.read_text().splitlines(keepends=True) if self.path.exists() else []
        self.path.write_text("".join(line for line in known if json.loads(line)["step"] <= step))
        self.events = SummaryWriter(str(folder / "events" / name), purge_step=step + 1)
        self.started, self.last, self.sums = time.perf_counter(), step, {}  # type: ignore[var-annotated]

    def add(self, terms: dict[str, Tensor]) -> None:
        """Count one step."""
        for name, value in terms.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value.detach())

    def write(self, step: int, figures: dict[str, float]) -> None:
        """Write the means since the last call."""
        steps = step - self.last
        means = {name: total / steps for name, total in self.sums.items()}
        pace = (time.perf_counter() - self.started) / steps
        row = {"step": step, "loss": sum(means.values()), **means, **figures, "seconds_a_step": pace}
        with self.path.open("a") as file:
            file.write(json.dumps({key: round(value, 5) for key, value in row.items()}) + "\n")
        for name, value in row.items():
            self.events.add_scalar(name, value, step)
        self.started, self.last, self.sums = time.perf_counter(), step, {}

    def close(self) -> None:
        """Write out what TensorBoard has not got yet."""
        self.events.close()


def _progress(shown: bool) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True), disable=not shown)


def _validate(task: Task, network: nn.Module, average: dict[str, Tensor]) -> dict[str, float]:
    """Figures of the averaged weights; the network is left as it was."""
    own = {name: value.detach().clone() for name, value in network.state_dict().items()}
    network.load_state_dict(average)
    network.eval()
    with torch.inference_mode():
        figures = task.validate(network)
    network.load_state_dict(own)
    network.train()
    return {f"val_{name}": value for name, value in figures.items()}


def _follow(average: dict[str, Tensor], network: nn.Module, keep: float) -> None:
    for name, value in network.state_dict().items():
        if value.dtype.is_floating_point:
            average[name].lerp_(value.detach(), 1 - keep)
        else:
            average[name].copy_(value)


def _resume(
    path: Path, network: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[int, dict[str, Tensor]]:
    """The step to go on from, and the averaged weights."""
    if not path.exists():
        return 0, {name: value.detach().clone() for name, value in network.state_dict().items()}
    groups: dict[str, dict[str, Tensor]] = {"network": {}, "average": {}, "optimizer": {}}
    for name, value in read_tensors(path).items():
        group, _, key = name.partition("/")
        groups[group][key] = value
    load_state(network, groups["network"], path)
    moments: dict[int, dict[str, Tensor]] = {}
    for key, value in groups["optimizer"].items():
        number, _, moment = key.partition("/")
        moments.setdefault(int(number), {})[moment] = value
    optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})
    with safe_open(path, "pt") as stored:
        return int(stored.metadata()["step"]), groups["average"]


def _save(path: Path, network: nn.Module, optimizer: Any, step: int, average: dict[str, Tensor]) -> None:
    tensors = {f"network/{name}": value for name, value in network.state_dict().items()}
    tensors |= {f"average/{name}": value for name, value in average.items()}
    for number, moments in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer/{number}/{name}": value for name, value in moments.items()}
    write_tensors(tensors, path, {"step": str(step)})
