"""The curve of a training run as JSON lines and TensorBoard events, and its progress bar."""

import json
import time
from pathlib import Path

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)
from torch import Tensor
from torch.utils.tensorboard import SummaryWriter

from maskwise.console import make_console

VALIDATION_METRICS = (
    "giou",
    "f1",
    "no_target_accuracy",
    "occluded_iou",
    "mask_type_accuracy",
    "answer_exact",
)
"""Metrics of the strict protocol that validation during training reports."""


class TrainingCurve:
    """The mean loss terms since the last line, and validation metrics: `name`.jsonl, and TensorBoard events.

    Lines after `step`, from which training continues, are removed: they will be written again.
    """

    def __init__(self, folder: Path, name: str, step: int) -> None:
        self.path = folder / f"{name}.jsonl"
        known = (
            self.path.read_text().splitlines(keepends=True)
            if self.path.exists()
            else []
        )
        self.path.write_text(
            "".join(line for line in known if json.loads(line)["step"] <= step)
        )
        self.events = SummaryWriter(str(folder / "events" / name), purge_step=step + 1)
        self.started = time.perf_counter()
        self.last_step = step
        self.sums: dict[str, float] = {}

    def add(self, terms: dict[str, Tensor]) -> None:
        """Add the loss terms of one step."""
        for name, value in terms.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value.detach())

    def write(self, step: int, metrics: dict[str, float]) -> None:
        """Write the means since the last call."""
        steps = step - self.last_step
        means = {name: total / steps for name, total in self.sums.items()}
        pace = (time.perf_counter() - self.started) / steps
        row = {
            "step": step,
            "loss": sum(means.values()),
            **means,
            **metrics,
            "seconds_per_step": pace,
        }
        with self.path.open("a") as file:
            file.write(
                json.dumps({key: round(value, 5) for key, value in row.items()}) + "\n"
            )
        for name, value in row.items():
            self.events.add_scalar(name, value, step)
        self.started = time.perf_counter()
        self.last_step = step
        self.sums = {}

    def close(self) -> None:
        """Flush the TensorBoard events."""
        self.events.close()


def training_progress(shown: bool) -> Progress:
    """A progress bar of steps on standard error; standard output may be read by a program."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=make_console(stderr=True), disable=not shown)
