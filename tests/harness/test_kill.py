"""A run killed again and again, at any moment, ends with the bytes of one that was left alone.

One process imports everything and forks a child for every attempt, so that an attempt costs milliseconds.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskwise.errors import StoreError
from maskwise.harness.evaluate import evaluate
from tests.harness.fakes import FAKES, write_dataset
from tests.harness.mortals import MORTALS

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

KILLS = 50
PAUSE = 0.004
LONGEST = 0.3
"""Kills in all; seconds the model sleeps over an image; the longest a child lives before it is killed."""

PATIENCE = 300.0
"""Seconds until something that has to happen is given up."""

FILES = ("predictions.jsonl", "scores.json", "scores.arrow", "metrics.arrow")


MOODY = f"{FAKES}:Moody"
KNOWN = f"{MORTALS}:Known"


def attempt(
    dataset: str, out: str, model: str, options: dict[str, Any], retry: bool = False
) -> None:
    evaluate(
        model,
        dataset,
        out,
        options=options,
        retry_failed=retry,
        protocols=["union"],
    )


def serve() -> None:
    """Fork a child for every line of JSON that comes in and say its number; at the next line, say how it ended.

    Until then it is not waited for, so its number stays its own even where it has ended.
    """
    while line := sys.stdin.readline():
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                attempt(*json.loads(line))
                status = 0
            finally:
                os._exit(status)
        print(pid, flush=True)
        sys.stdin.readline()
        print(os.waitpid(pid, 0)[1], flush=True)


class Attempts:
    """A server of attempts, and how many of them were killed."""

    def __init__(self, server: "subprocess.Popen[str]") -> None:
        self.server = server
        self.killed = 0

    def start(self, *arguments: Any) -> int:
        """The number of the child."""
        return self._say(
            json.dumps([str(a) if isinstance(a, Path) else a for a in arguments])
        )

    def end(self) -> int:
        """How it ended."""
        return self._say("how?")

    def _say(self, line: str) -> int:
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(line + "\n")
        self.server.stdin.flush()
        return int(self.server.stdout.readline())

    def run_and_kill(self, seconds: float, *arguments: Any) -> bool:
        """Whether the attempt came to its end before it was killed."""
        pid = self.start(*arguments)
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
        status = self.end()
        assert status in (0, signal.SIGKILL), f"an attempt failed by itself: {status}"
        self.killed += status != 0
        return status == 0


@pytest.fixture
def attempts() -> Iterator[Attempts]:
    command = [
        sys.executable,
        "-c",
        "from tests.harness.test_kill import serve; serve()",
    ]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as server:
        yield Attempts(server)
        assert server.stdin is not None
        server.stdin.close()


def test_kills_at_random_moments_change_nothing(
    tmp_path: Path, attempts: Attempts
) -> None:
    dataset = write_dataset(tmp_path / "truth", 36, questions=("fine", "raise", "fine"))
    mended = tmp_path / "mended"
    chance = np.random.default_rng(20)
    options = {"mended": str(mended), "sleep": PAUSE}
    attempt(str(dataset), str(tmp_path / "failed"), MOODY, options)
    mended.touch()
    attempt(str(dataset), str(tmp_path / "whole"), MOODY, options)
    rounds = 0
    while attempts.killed < KILLS:
        folder = tmp_path / f"run{rounds}"
        rounds += 1
        for stage, like in ((False, "failed"), (True, "whole")):
            if stage:
                mended.touch()
            else:
                mended.unlink()
            tries = 0  # lives grow longer: on a slow machine, too, an attempt gets somewhere in the end
            while not attempts.run_and_kill(
                chance.uniform(0.0, LONGEST * (1 + tries / 10)),
                dataset,
                folder,
                MOODY,
                options,
                stage,
            ):
                tries += 1
            for name in FILES:
                assert (folder / name).read_bytes() == (
                    tmp_path / like / name
                ).read_bytes(), (
                    rounds,
                    stage,
                    name,
                )
    assert attempts.killed >= KILLS


def test_a_second_process_is_refused_and_changes_nothing(
    tmp_path: Path, attempts: Attempts
) -> None:
    """The first one is at its second image until it is killed."""
    dataset = write_dataset(
        tmp_path / "truth", 36, questions=("fine",) + ("slow",) * 99
    )
    out = tmp_path / "run"
    predictions = tmp_path / "run" / "predictions.jsonl"
    options = {"woken": str(tmp_path / "woken")}
    pid = attempts.start(dataset, out, KNOWN, options)
    deadline = time.monotonic() + PATIENCE
    try:
        while not (predictions.exists() and predictions.stat().st_size):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        before = predictions.read_bytes()
        with pytest.raises(StoreError, match="being written by another process"):
            attempt(str(dataset), str(out), KNOWN, options)
    finally:
        os.kill(pid, signal.SIGKILL)
        status = attempts.end()
    assert status == signal.SIGKILL
    with pytest.raises(StoreError, match=r"model\.options\.woken was"):
        attempt(str(dataset), str(out), KNOWN, {"woken": str(tmp_path / "other")})
    assert predictions.read_bytes() == before
