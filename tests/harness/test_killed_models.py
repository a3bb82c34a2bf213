"""Forty kills of evaluations of every kind of model: in Python, in batches, a command, a server, on Ray."""

import contextlib
import multiprocessing
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskwise.engines import EngineOptions
from maskwise.harness.evaluate import evaluate
from tests.harness.batching import BATCHING
from tests.harness.fakes import FAKES, Painter, write_dataset

pytestmark = [
    pytest.mark.full,
    pytest.mark.posix,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

KILLS = 40
PAUSE = 0.01
"""Seconds that the models take for an image: a run of 36 images takes about half a second."""

LONGEST = {"ray": 20.0}
"""The longest that an attempt lives before it is killed, in seconds: several times what a whole run takes."""

DEFAULT_LONGEST = 0.8
FILES = ("predictions.jsonl", "scores.json", "scores.arrow", "metrics.arrow")
KINDS = ("python", "batch", "command", "http", "ray")

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.harness.fakes", "maskwise.cli.main", __name__])


def attempt(
    dataset: str, out: str, model: str, options: dict[str, Any], ray: dict[str, str]
) -> None:
    """ray: the variables with which a Ray is joined, and its `address`; empty for the local engine."""
    engine = EngineOptions()
    if ray:
        # The forkserver may be older than the Ray, and does not know how to sign in.
        os.environ.update(ray)
        engine = EngineOptions(
            engine="ray", workers=2, ray_address=ray["address"], cpus_per_worker=0.5
        )
    evaluate(model, dataset, out, options=options, protocols=["union"], engine=engine)


@contextlib.contextmanager
def served_painter() -> Iterator[str]:
    """The address of a server, which lives on while its client is killed."""
    pytest.importorskip("litestar")
    from tests.server.test_server import serving  # noqa: PLC0415

    with serving(Painter(sleep=PAUSE)) as address:
        yield address


@contextlib.contextmanager
def own_ray() -> Iterator[str]:
    """The address of a Ray on this machine, which lives on while its driver is killed."""
    ray = pytest.importorskip("ray")
    context = ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        yield context.address_info["gcs_address"]
    finally:
        ray.shutdown()


@pytest.mark.parametrize("kind", KINDS)
def test_killed_runs_end_with_the_same_bytes(kind: str, tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "truth", 36)
    pids = tmp_path / "pids"
    pids.mkdir()
    command = [
        sys.executable,
        "-S",
        "-E",
        str(Path(__file__).parent / "painting_command.py"),
    ]
    options: dict[str, Any] = {"sleep": PAUSE}
    model = f"{FAKES}:Painter"
    joined: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        if kind == "batch":
            model, options = f"{BATCHING}:BatchPainter", {"batch_size": 5}
        elif kind == "command":
            model = "command: " + shlex.join([*command, str(pids), str(PAUSE)])
            options = {}
        elif kind == "http":
            model, options = stack.enter_context(served_painter()), {}
        elif kind == "ray":
            address = stack.enter_context(own_ray())
            joined = {key: os.environ[key] for key in os.environ if key[:4] == "RAY_"}
            joined["address"] = address
        attempt(str(dataset), str(tmp_path / "whole"), model, options, {})
        arguments = (model, options, joined)
        killed, runs = kill_attempts(tmp_path, dataset, kind, arguments)
    print(f"{kind}: {killed} kills of {runs} runs")
    assert killed >= KILLS
    if kind == "command":
        assert_ended([int(path.name) for path in pids.iterdir()])


def kill_attempts(
    folder: Path,
    dataset: Path,
    kind: str,
    arguments: tuple[str, dict[str, Any], dict[str, str]],
) -> tuple[int, int]:
    """Kill attempts at random moments, run after run; each run ends with the bytes of the whole one."""
    chance = np.random.default_rng(28)
    longest = LONGEST.get(kind, DEFAULT_LONGEST)
    killed = 0
    runs = 0
    while killed < KILLS:
        out = folder / f"run{runs}"
        runs += 1
        tries = 0
        while True:
            process = CONTEXT.Process(
                target=attempt, args=(str(dataset), str(out), *arguments)
            )
            process.start()
            # Lives grow longer: on a slow machine, too, an attempt gets to the end at last.
            process.join(chance.uniform(0, longest * (1 + tries / 4)))
            if process.exitcode is None and process.pid is not None:
                os.kill(process.pid, signal.SIGKILL)
            process.join()
            tries += 1
            if process.exitcode == 0:
                break
            assert process.exitcode == -signal.SIGKILL, process.exitcode
            killed += 1
        for name in FILES:
            whole = (folder / "whole" / name).read_bytes()
            assert (out / name).read_bytes() == whole, (kind, runs, name)
    return killed, runs


def assert_ended(pids: list[int]) -> None:
    """Children of killed attempts do not stay."""
    deadline = time.monotonic() + 60
    alive = pids
    while alive and time.monotonic() < deadline:
        alive = [pid for pid in alive if is_alive(pid)]
        time.sleep(0.05)
    assert not alive


def is_alive(pid: int) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"painting_command" in command
