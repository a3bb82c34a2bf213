"""What trackers write about an evaluation, and how they call a run.

    check_trackers(["wandb", "tensorboard"])          before the evaluation: an error after it would be late
    track_run(run, ["wandb", "tensorboard"])

A tracker is a class with the methods of `maskwise.training.trackers.Tracker`; `maskwise.registry.TRACKERS` has the
names. Trackers of training are opened by the training loop.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from maskwise.errors import StoreError
from maskwise.registry import TRACKERS
from maskwise.runs import Run

PROJECT = "maskwise"
"""Project or experiment, where no variable of the environment names another."""

STAGE = "eval"
STEP = 1
"""An evaluation is one stage of one step."""


def check_trackers(names: Sequence[str]) -> None:
    """UnknownNameError or MissingDependencyError for a tracker that cannot be used."""
    for name in names:
        TRACKERS.load(name, type)


def track_run(run: Run, names: Sequence[str]) -> None:
    """Write the metrics of a run in a folder to trackers, with their intervals, counts and what was evaluated."""
    if run.folder is None:
        raise StoreError("only a run in a folder can be tracked; evaluate with out=")
    values = run_values(run)
    config = run_config(run)
    for name in names:
        tracker = TRACKERS.load(name, type)(run.folder, STAGE, 0, config)
        tracker.write(STEP, values)
        tracker.close()


def run_values(run: Run) -> dict[str, float]:
    """Numbers by name, `strict/giou`, `strict/giou_low`, `strict/giou_high`, `strict/failed`; undefined ones are left
    out.
    """
    values: dict[str, float] = {}
    for protocol, scores in run.scores.protocols.items():
        for name, metric in scores.metrics.items():
            parts = {
                name: metric.value,
                f"{name}_low": metric.low,
                f"{name}_high": metric.high,
            }
            for part, value in parts.items():
                if value is not None:
                    values[f"{protocol}/{part}"] = value
        values[f"{protocol}/scored"] = scores.counts.scored
        values[f"{protocol}/failed"] = scores.counts.failed
        values[f"{protocol}/missing"] = scores.counts.missing
    return values


def run_config(run: Run) -> dict[str, Any]:
    """Model, dataset, predictions and version of a run, as JSON values."""
    config = {"maskwise": run.info.maskwise, "dataset": run.info.dataset}
    if run.info.evaluation is not None:
        config["inputs"] = run.info.evaluation.inputs
    if run.info.predictions is not None:
        config["predictions"] = run.info.predictions
    builtins: dict[str, Any] = msgspec.to_builtins(config)
    return builtins


def run_id(folder: Path, stage: str) -> str:
    """The same short id for the same folder and stage, so that a continued run goes on in its place."""
    return hashlib.sha256(f"{folder.absolute()} {stage}".encode()).hexdigest()[:16]


def flatten(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as one level, with names such as `optimization.steps`."""
    flat: dict[str, Any] = {}
    for key, value in config.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{name}.")
        else:
            flat[name] = value
    return flat
