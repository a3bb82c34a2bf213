"""The training loop of all models, on a network of two weights."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")

from safetensors.torch import load_file
from torch import nn

from maskwise.errors import MaskwiseError
from maskwise.training import checkpoints
from maskwise.training.accelerator import make_accelerator
from maskwise.training.averaging import average_weights
from maskwise.training.batch_loader import load_batches
from maskwise.training.loop import TrainingTask, run_training
from maskwise.training.progress import reporting
from tests.training.line_run import STAGE, Killed, line_task

REPOSITORY = Path(__file__).parents[2]


def train(folder: Path, task: TrainingTask) -> dict[str, torch.Tensor]:
    folder.mkdir(exist_ok=True)
    run_training(task, STAGE.schedule(), folder)
    return task.network.state_dict()


def read_curve(folder: Path) -> list[dict[str, float]]:
    lines = (folder / "line.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_an_interrupted_run_ends_with_the_bytes_of_an_uninterrupted_one(
    tmp_path: Path,
) -> None:
    train(tmp_path / "straight", line_task())
    for number in (20, 43):
        with pytest.raises(Killed):
            train(tmp_path / "resumed", line_task(killed_at=number))
        # Random numbers that were used in the meantime do not matter.
        torch.rand(number)
    weights = train(tmp_path / "resumed", line_task())
    straight = (tmp_path / "straight" / "stages" / "line.safetensors").read_bytes()
    assert (
        tmp_path / "resumed" / "stages" / "line.safetensors"
    ).read_bytes() == straight
    curve = read_curve(tmp_path / "resumed")
    assert [row["step"] for row in curve] == [7, 14, 21, 28, 35, 42, 49, 56, 60]
    assert curve[-1]["val_weight"] == pytest.approx(
        weights["0.weight"].item(), abs=1e-4
    )


def test_a_finished_stage_is_loaded_and_not_repeated(tmp_path: Path) -> None:
    weights = train(tmp_path, line_task())
    again = train(tmp_path, line_task(killed_at=0))
    assert all(torch.equal(weights[name], again[name]) for name in weights)


def test_checkpoints_are_complete_and_nothing_is_pickled(tmp_path: Path) -> None:
    train(tmp_path, line_task())
    (checkpoint,) = (tmp_path / "checkpoints" / "line").iterdir()
    assert checkpoint.name == "step-0000060"
    assert {path.name for path in checkpoint.iterdir()} == {
        "model.safetensors",
        "averaged.safetensors",
        "optimizer.safetensors",
        "state.json",
    }
    averaged = load_file(checkpoint / "averaged.safetensors")
    finished = load_file(tmp_path / "stages" / "line.safetensors")
    assert torch.equal(averaged["0.weight"], finished["0.weight"])


def test_a_kill_while_a_checkpoint_is_written_leaves_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    straight = train(tmp_path / "straight", line_task())

    with pytest.raises(Killed):
        train(tmp_path / "killed", line_task(killed_at=10))
    write_tensors = checkpoints.write_tensors

    def write_or_die(path: Path, tensors: dict[str, torch.Tensor]) -> None:
        if path.name == "optimizer.safetensors":
            raise Killed
        write_tensors(path, tensors)

    monkeypatch.setattr(checkpoints, "write_tensors", write_or_die)
    with pytest.raises(Killed):
        train(tmp_path / "killed", line_task())
    monkeypatch.undo()
    folder = tmp_path / "killed" / "checkpoints" / "line"
    assert sorted(path.name for path in folder.iterdir()) == ["partial", "step-0000007"]
    resumed = train(tmp_path / "killed", line_task())
    assert all(torch.equal(straight[name], resumed[name]) for name in straight)


KILL_POINTS = 24


def train_and_kill(folder: Path, kill_at: int) -> bool:
    """Train in a forked process that kills itself before a change of the disk. Returns whether it was killed."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.WIFSIGNALED(status)
    count = 0

    def count_or_die(function: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            nonlocal count
            count += 1
            if count == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **named)

        return call

    for module, name in ((os, "fsync"), (os, "replace"), (shutil, "rmtree")):
        setattr(module, name, count_or_die(getattr(module, name)))
    try:
        torch.set_num_threads(1)
        train(folder, line_task())
    finally:
        os._exit(0)


@pytest.mark.posix
def test_kills_at_every_change_of_the_disk_do_not_change_the_weights(
    tmp_path: Path,
) -> None:
    """One run, killed again and again, each time at another change of the disk inside a checkpoint."""
    train(tmp_path / "straight", line_task())
    kills = sum(
        train_and_kill(tmp_path / "killed", kill_at)
        for kill_at in range(1, KILL_POINTS + 1)
    )
    assert kills >= 20
    train(tmp_path / "killed", line_task())
    straight = (tmp_path / "straight" / "stages" / "line.safetensors").read_bytes()
    assert (
        tmp_path / "killed" / "stages" / "line.safetensors"
    ).read_bytes() == straight


def test_a_full_disk_keeps_the_checkpoint_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    straight = train(tmp_path / "straight", line_task())
    with pytest.raises(Killed):
        train(tmp_path / "full", line_task(killed_at=10))
    write_tensors = checkpoints.write_tensors

    def write_or_fail(path: Path, tensors: dict[str, torch.Tensor]) -> None:
        if path.name == "optimizer.safetensors":
            raise OSError(errno.ENOSPC, "No space left on device")
        write_tensors(path, tensors)

    monkeypatch.setattr(checkpoints, "write_tensors", write_or_fail)
    with pytest.raises(
        MaskwiseError, match=r"step 14 cannot be written.*No space left"
    ):
        train(tmp_path / "full", line_task())
    monkeypatch.undo()
    folder = tmp_path / "full" / "checkpoints" / "line"
    assert [path.name for path in folder.iterdir()] == ["step-0000007"]
    resumed = train(tmp_path / "full", line_task())
    assert all(torch.equal(straight[name], resumed[name]) for name in straight)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("state.json", b"[]"),
        ("state.json", b"{"),
        ("state.json", b'{"step": "x"}'),
        ("state.json", b'{"step": null}'),
        ("model.safetensors", b"\x80\x04cos\nsystem\n"),
        ("model.safetensors", (2**62).to_bytes(8, "little") + b"{}"),
        ("optimizer.safetensors", (2**40).to_bytes(8, "little") + b"{" * 100),
        ("averaged.safetensors", b""),
    ],
)
def test_a_tampered_checkpoint_is_refused(
    tmp_path: Path, name: str, content: bytes
) -> None:
    """Pickles, headers of impossible lengths and invalid states."""
    with pytest.raises(Killed):
        train(tmp_path, line_task(killed_at=10))
    (checkpoint,) = (tmp_path / "checkpoints" / "line").iterdir()
    (checkpoint / name).write_bytes(content)
    with pytest.raises(MaskwiseError, match="is not a usable checkpoint"):
        train(tmp_path, line_task())


def test_progress_is_reported_up_to_the_last_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps: list[int] = []
    with reporting(lambda label, done, total, note: steps.append(done)):
        train(tmp_path, line_task())
    assert steps == list(range(61))
    assert not capsys.readouterr().err, "only the command line prints"


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        train(tmp_path, line_task(killed_at=20))
    (checkpoint,) = (tmp_path / "checkpoints" / "line").iterdir()
    (checkpoint / "model.safetensors").write_bytes(b"torn")
    with pytest.raises(
        MaskwiseError, match=r"step-0000014 is not a usable checkpoint.*delete it"
    ):
        train(tmp_path, line_task())


def test_a_checkpoint_of_another_network_is_named(tmp_path: Path) -> None:
    with pytest.raises(Killed):
        train(tmp_path, line_task(killed_at=20))
    wider = nn.Sequential(nn.Linear(1, 2))
    with pytest.raises(
        MaskwiseError, match=r"0\.bias have the shape \[1\].*expects \[2\]"
    ):
        train(tmp_path, line_task(network=wider))
    deeper = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    with pytest.raises(MaskwiseError, match=r"2 weights are missing: 1\.bias"):
        train(tmp_path, line_task(network=deeper))


def test_accumulated_forwards_are_one_step(tmp_path: Path) -> None:
    """Two forwards per step see the batches of a run with half as many steps as batches."""
    schedule = replace(STAGE.schedule(), steps=4, last_step=4, log_every=1)
    (tmp_path / "two").mkdir()
    numbers: list[int] = []
    task = line_task()

    def make_batch(number: int) -> torch.Tensor:
        numbers.append(number)
        return task.make_batch(number)

    accelerator = make_accelerator(accumulated=2)
    run_training(
        replace(task, make_batch=make_batch), schedule, tmp_path / "two", accelerator
    )
    assert numbers == list(range(8))
    assert [row["step"] for row in read_curve(tmp_path / "two")] == [1, 2, 3, 4]


def start_line_run(launcher: list[str], folder: Path, forwards: int) -> None:
    folder.mkdir()
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "ACCELERATE_USE_CPU": "true",
        "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "src")]),
    }
    module = ["-m", "tests.training.line_run", str(folder), str(forwards)]
    process = subprocess.run(
        [sys.executable, *launcher, *module],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not process.returncode, process.stderr


def test_two_processes_equal_two_forwards_of_one(tmp_path: Path) -> None:
    """Both see the same batches with the same dropout; only the order of additions differs."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    start_line_run(launcher, tmp_path / "processes", 1)
    start_line_run([], tmp_path / "forwards", 2)
    folders = (tmp_path / "processes", tmp_path / "forwards")
    weights, others = (
        load_file(folder / "stages" / "line.safetensors") for folder in folders
    )
    for name, value in weights.items():
        torch.testing.assert_close(value, others[name], atol=1e-5, rtol=1e-4)
    rows, other_rows = (read_curve(folder) for folder in folders)
    assert [row["square"] for row in rows] == pytest.approx(
        [row["square"] for row in other_rows], abs=1e-4
    )
    (checkpoint,) = (tmp_path / "processes" / "checkpoints" / "line").iterdir()
    assert checkpoint.name == "step-0000060"


def test_averaged_weights_follow_the_network_and_integer_buffers_are_copied() -> None:
    network = nn.BatchNorm1d(1)
    averaged = average_weights(network, 0.9)
    values = [5.0, 6.0, 7.0]
    expected = 1.0
    for number, value in enumerate(values, 1):
        nn.init.constant_(network.weight, value)
        network.num_batches_tracked.fill_(number)
        averaged.update_parameters(network)
        keep = min(0.9, number / (number + 9))
        expected = keep * expected + (1 - keep) * value
    assert averaged.module.weight.item() == pytest.approx(expected)
    assert int(averaged.module.num_batches_tracked) == 3


def test_processes_get_different_batches() -> None:
    batches = [
        list(load_batches(lambda n: n, 2, 5, process=process, processes=2))
        for process in (0, 1)
    ]
    assert batches == [[4, 6, 8], [5, 7, 9]]
    assert list(load_batches(lambda n: n, 5, 5)) == []
    assert list(load_batches(lambda n: n, 2, 9, workers=4)) == list(range(2, 9))


def test_sigterm_saves_the_step_that_runs_and_the_run_continues(tmp_path: Path) -> None:
    train(tmp_path / "straight", line_task())

    def end_at_step_17(label: str, done: int, total: int, note: str) -> None:
        if done == 17:
            os.kill(os.getpid(), signal.SIGTERM)

    with reporting(end_at_step_17), pytest.raises(KeyboardInterrupt):
        train(tmp_path / "ended", line_task())
    saved = tmp_path / "ended" / "checkpoints" / "line" / "step-0000018"
    assert (saved / "state.json").exists(), "18 was running when the signal came"
    train(tmp_path / "ended", line_task())
    weights = [
        (tmp_path / name / "stages" / "line.safetensors").read_bytes()
        for name in ("straight", "ended")
    ]
    assert weights[0] == weights[1]


def broken_task(first: int, last: int) -> TrainingTask:
    """The task of a line with points that are not a number in some batches."""
    task = line_task()

    def make_batch(number: int) -> torch.Tensor:
        batch: torch.Tensor = task.make_batch(number)
        return batch * float("nan") if first <= number <= last else batch

    return replace(task, make_batch=make_batch)


def test_a_step_that_is_not_finite_leaves_the_weights(tmp_path: Path) -> None:
    train(tmp_path, broken_task(20, 22))
    weights = load_file(tmp_path / "stages" / "line.safetensors")
    assert all(torch.isfinite(value).all() for value in weights.values())
    rows = (tmp_path / "line.jsonl").read_text().splitlines()
    assert sum(json.loads(row).get("left_out_steps", 0) for row in rows) == 3


def test_a_run_that_diverges_ends_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        MaskwiseError, match="step 25: the losses square are not finite, for the 10th"
    ):
        train(tmp_path, broken_task(15, 60))


def test_a_checkpoint_copies_only_the_weights_that_are_stored() -> None:
    network = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    assert list(checkpoints.gather_weights(network, {"1.bias"})) == ["1.bias"]
