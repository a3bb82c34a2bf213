"""Where the losses and metrics of a run are written: JSON lines and TensorBoard events.

A tracker is a class with the methods of `Tracker`; another service needs one class and its entry in `TRACKERS`.
"""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from torch import Tensor
from torch.utils.tensorboard import SummaryWriter

DECIMALS = 5
"""Of the values in JSON lines: enough to compare runs, short enough to read."""


class Tracker(Protocol):
    """One place where values are written.

    It is made with the folder of the run, the name of the stage, and the step from which training continues (0 at the
    beginning): values of later steps that an interrupted run left behind will be written again.
    """

    def __init__(self, folder: Path, stage: str, step: int) -> None: ...

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Write the values after a step."""

    def close(self) -> None:
        """Finish writing."""


class JsonLinesTracker:
    """STAGE.jsonl in the folder of the run: one object per line, with its step."""

    def __init__(self, folder: Path, stage: str, step: int) -> None:
        self.path = folder / f"{stage}.jsonl"
        written = []
        if self.path.exists():
            written = self.path.read_text().splitlines(keepends=True)
        kept = [line for line in written if json.loads(line)["step"] <= step]
        self.path.write_text("".join(kept))

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Append a line."""
        rounded = {name: round(value, DECIMALS) for name, value in values.items()}
        with self.path.open("a") as file:
            file.write(json.dumps({"step": step, **rounded}) + "\n")

    def close(self) -> None:
        """Nothing is open between two lines."""


class TensorBoardTracker:
    """TensorBoard events in events/STAGE of the folder of the run."""

    def __init__(self, folder: Path, stage: str, step: int) -> None:
        self.events = SummaryWriter(str(folder / "events" / stage), purge_step=step + 1)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Add a scalar per value."""
        for name, value in values.items():
            self.events.add_scalar(name, value, step)

    def close(self) -> None:
        """Flush the events."""
        self.events.close()


TRACKERS: tuple[type[Tracker], ...] = (JsonLinesTracker, TensorBoardTracker)
"""The trackers of every run."""


class TrainingCurve:
    """The mean losses since the last row and the metrics of validation, written to all trackers."""

    def __init__(self, folder: Path, stage: str, step: int) -> None:
        self.trackers = [tracker(folder, stage, step) for tracker in TRACKERS]
        self._start_row(step)

    def add(self, losses: Mapping[str, Tensor]) -> None:
        """Add the losses of one step."""
        for name, value in losses.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value.detach())

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write the means since the last row: their sum, each of them, then the metrics and the pace."""
        steps = step - self.last_step
        means = {name: total / steps for name, total in self.sums.items()}
        pace = (time.perf_counter() - self.started) / steps
        row = {
            "loss": sum(means.values()),
            **means,
            **metrics,
            "seconds_per_step": pace,
        }
        for tracker in self.trackers:
            tracker.write(step, row)
        self._start_row(step)

    def close(self) -> None:
        """Finish writing."""
        for tracker in self.trackers:
            tracker.close()

    def _start_row(self, step: int) -> None:
        self.started = time.perf_counter()
        self.last_step = step
        self.sums: dict[str, float] = {}
