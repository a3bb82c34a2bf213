"""A training run in a process of its own that kills itself at a chosen change of its folder."""

import multiprocessing
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from maskwise.training.completion import pipeline as completion
from maskwise.training.completion.config import CompletionConfig
from maskwise.training.stage_config import StageConfig
from maskwise.training.tiny.config import TrainingConfig, WorldData
from maskwise.training.tiny.pipeline import train as train_tiny
from maskwise.training.vlm.pipeline import train as train_vlm
from tests.models.photo.scene import FakeSam
from tests.training.vlm.small_runs import small_run

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([__name__])

Train = Callable[[Path], Any]

CHANGES = {"os.mkdir", "os.remove", "os.rename", "os.rmdir", "shutil.rmtree"}
"""Audit events of changes of a folder, beside opened files and `fsync`."""


def short(steps: int) -> StageConfig:
    return StageConfig(
        steps=steps,
        batch_size=1,
        learning_rate=0.001,
        warmup_steps=1,
        checkpoint_every=1,
    )


def tiny(folder: Path) -> None:
    config = TrainingConfig(
        seed=3,
        world=WorldData(scenes=2, questions=2, validation_scenes=1),
        detector=short(6),
        detector_augmented=short(5),
        grounder=short(5),
        detected_scenes=1,
        threads=1,
    )
    train_tiny(config, folder)


def completion_network(folder: Path) -> None:
    """The dataset is beside the folder, made by the test."""
    completion.load_sam = lambda **_: FakeSam()
    config = CompletionConfig(
        model="completion",
        datasets=(str(folder.parent / "discs"),),
        held_out=3,
        encoded_seeds=(0,),
        seeds=(1,),
        threads=1,
        schedule=short(14),
    )
    completion.train(config, folder)


def vlm(folder: Path) -> None:
    train_vlm(small_run(checkpoint_every=1, keep_checkpoints=1), folder)


TRAINERS: dict[str, Train] = {
    "tiny": tiny,
    "completion": completion_network,
    "vlm": vlm,
}


def train(name: str, folder: Path, log: Path, kill_at: int = 0) -> int | None:
    """Train; the process dies at change `kill_at` of the folder, if there are so many. Returns its exit code."""
    process = CONTEXT.Process(target=_train, args=(name, folder, log, kill_at))
    process.start()
    process.join()
    return process.exitcode


def _train(name: str, folder: Path, log: Path, kill_at: int) -> None:
    torch.set_num_threads(1)
    sys.stdout = sys.stderr = log.open("w")
    _kill_at_change(folder, kill_at)
    TRAINERS[name](folder)


def _kill_at_change(folder: Path, kill_at: int) -> None:
    """Odd kill points are before a change; even ones leave a file that is to be replaced empty, as a kill does."""
    inside = str(folder)
    changes = 0

    def count(path: str | None = None) -> None:
        nonlocal changes
        changes += 1
        if changes == kill_at:
            if path is not None and kill_at % 2 == 0:
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            is_written = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)
            if is_written and str(path).startswith(inside):
                # A file that is opened for appending keeps its content.
                count(str(path) if flags & os.O_TRUNC else None)
        elif event in CHANGES and str(arguments[0]).startswith(inside):
            count()

    fsync = os.fsync

    def counted_fsync(descriptor: int) -> None:
        count()
        fsync(descriptor)

    os.fsync = counted_fsync
    sys.addaudithook(watch)


def copy_discs(dataset: Path, folder: Path) -> None:
    shutil.copytree(dataset, folder / "discs")
