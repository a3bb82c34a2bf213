"""Where the losses and metrics of a run are written: JSON lines, TensorBoard events, and the services of `tracking`.

    with tracking(["wandb"]):
        trainer.train(config, folder)

A tracker is a class with the methods of `Tracker`. `maskwise.registry.TRACKERS` has their names; another package adds
one by an entry point of `maskwise.trackers`, or it is given as `package.module:Class`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Protocol

import psutil
import torch
from torch import Tensor

from maskwise.errors import MaskwiseError
from maskwise.registry import TRACKERS
from maskwise.store.atomic import atomic_write

DIGITS = 6
"""Significant digits of the values in JSON lines: enough to compare runs, short enough to read. Not decimals: a
learning rate of 1e-6 would become 0.
"""


class Tracker(Protocol):
    """One place where values are written.

    It is made with the folder of the run, the name of the stage, the step from which training continues (0 at the
    beginning) and the config of the run. Values of later steps that an interrupted run left behind will be written
    again.
    """

    def __init__(
        self, folder: Path, stage: str, step: int, config: Mapping[str, Any]
    ) -> None: ...

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Write the values after a step."""

    def close(self) -> None:
        """Finish writing."""


class JsonLinesTracker:
    """STAGE.jsonl in the folder of the run: one object per line, with its step."""

    def __init__(
        self, folder: Path, stage: str, step: int, config: Mapping[str, Any]
    ) -> None:
        self.path = folder / f"{stage}.jsonl"
        kept = [line for line in self._read_lines() if json.loads(line)["step"] <= step]
        with atomic_write(self.path) as file:
            file.write("".join(kept).encode())

    def _read_lines(self) -> list[str]:
        """The lines of an earlier attempt; MaskwiseError names one that is damaged."""
        if not self.path.exists():
            return []
        lines = self.path.read_text(errors="replace").splitlines(keepends=True)
        if lines and not lines[-1].endswith("\n"):
            # A full disk or a power failure cut it off.
            lines.pop()
        for number, line in enumerate(lines, 1):
            try:
                json.loads(line)["step"] + 0
            except (ValueError, LookupError, TypeError, RecursionError):
                raise MaskwiseError(
                    f"{self.path}, line {number}: expected a JSON object with a step, found {line[:MAX_QUOTE]!r}; "
                    "delete the line to continue the run"
                ) from None
        return lines

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Append a line."""
        rounded = {name: _round(value) for name, value in values.items()}
        with self.path.open("a") as file:
            file.write(json.dumps({"step": step, **rounded}) + "\n")

    def close(self) -> None:
        """Nothing is open between two lines."""


MAX_QUOTE = 80
"""Characters of a damaged line that an error message quotes."""

DEFAULT = ("tensorboard",)
"""The trackers of every run beside JSON lines, as names of `maskwise.registry.TRACKERS`."""

# A context variable rather than an argument of every function between the command line
# and the loop: trainers of other packages need not pass it on.
_chosen: ContextVar[tuple[str, ...]] = ContextVar("trackers", default=())


@contextmanager
def tracking(names: Iterable[str]) -> Iterator[None]:
    """Write the curves of runs that are trained in the block to these trackers, too.

    UnknownNameError or MissingDependencyError for a tracker that cannot be used.
    """
    chosen = tuple(names)
    for name in chosen:
        TRACKERS.load(name, type)
    token = _chosen.set(chosen)
    try:
        yield
    finally:
        _chosen.reset(token)


def chosen_trackers() -> list[str]:
    """The names given to `tracking`, to be passed on to another process."""
    return list(_chosen.get())


def open_trackers(folder: Path, stage: str, step: int) -> list[Tracker]:
    """The trackers of a stage: JSON lines, the default ones and the chosen ones."""
    path = folder / "config.json"
    config = json.loads(path.read_text()) if path.exists() else {}
    trackers: list[Tracker] = [JsonLinesTracker(folder, stage, step, config)]
    for name in dict.fromkeys([*DEFAULT, *_chosen.get()]):
        trackers.append(TRACKERS.load(name, type)(folder, stage, step, config))
    return trackers


class TrainingCurve:
    """The mean losses since the last row and the metrics of validation, written to all trackers."""

    def __init__(self, folder: Path, stage: str, step: int) -> None:
        self.trackers = open_trackers(folder, stage, step)
        self._start_row()

    def add(
        self,
        losses: Mapping[str, Tensor],
        gradient_norm: float | None,
        *,
        seconds: float,
        tokens: int = 0,
    ) -> None:
        """Add one step: its losses, the norm of its gradients before clipping, if it is known, its time, and the tokens
        of its batches, for a model that has tokens.
        """
        self.steps += 1
        self.seconds += seconds
        self.tokens += tokens
        for name, value in losses.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value.detach())
        if gradient_norm is not None:
            self.gradient_norms.append(gradient_norm)

    def add_left_out(self) -> None:
        """Add a step whose losses or gradients were not finite."""
        self.left_out += 1

    def write(
        self, step: int, metrics: Mapping[str, float], learning_rate: float
    ) -> None:
        """Write the means since the last row: the sum of the losses, each of them and the norm of the gradients; then
        the metrics, the learning rate (of the first group of weights), the pace and the memory.
        """
        row: dict[str, float] = {}
        if self.steps:
            means = {name: total / self.steps for name, total in self.sums.items()}
            row = {"loss": sum(means.values()), **means}
            # Of training alone: validation and checkpoints have a pace of their own.
            row["seconds_per_step"] = self.seconds / self.steps
        if self.tokens:
            row["tokens_per_second"] = self.tokens / self.seconds
        if self.gradient_norms:
            row["gradient_norm"] = sum(self.gradient_norms) / len(self.gradient_norms)
        if self.left_out:
            row["left_out_steps"] = self.left_out
        row |= {**metrics, "learning_rate": learning_rate}
        row["memory_gb"] = _memory_gb()
        for tracker in self.trackers:
            tracker.write(step, row)
        self._start_row()

    def close(self) -> None:
        """Finish writing."""
        for tracker in self.trackers:
            tracker.close()

    def _start_row(self) -> None:
        self.steps = 0
        self.left_out = 0
        self.tokens = 0
        self.seconds = 0.0
        self.sums: dict[str, float] = {}
        self.gradient_norms: list[float] = []


def _memory_gb() -> float:
    """The memory in use: the most so far of the GPU, or that of the process now."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 1e9
    return float(psutil.Process().memory_info().rss) / 1e9


def _round(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
