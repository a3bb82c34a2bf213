"""How a server ends: in order and soon, also with a busy model; and nothing of it stays after a kill."""

import base64
import contextlib
import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.server.test_server import call

ROOT = Path(__file__).parents[2]

SPIN = """
import os, subprocess, sys, time
from pathlib import Path

class Spin:
    def __init__(self, pids, load_seconds=0):
        self.pids = Path(pids)
        time.sleep(float(load_seconds))

    def predict(self, image, questions):
        started = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        self.pids.write_text(f"{os.getpid()} {started.pid}")
        while True:
            pass
"""


@contextlib.contextmanager
def serving_spinning_model(
    folder: Path,
) -> Iterator[tuple[subprocess.Popen[str], str, Path]]:
    """The command with a model that never answers and starts a process that never ends: it, address, pids."""
    (folder / "spin.py").write_text(SPIN)
    pids = folder / "pids"
    options = ["--model", "spin:Spin", "--model-option", f"pids={pids}", "--port", "0"]
    command = [sys.executable, "-m", "maskwise.cli.main", "serve", *options]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{folder}{os.pathsep}{ROOT / 'src'}",
    }
    environment.pop("MASKWISE_TOKEN", None)
    server = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert server.stderr is not None
        line = server.stderr.readline()
        assert " at http://" in line, line
        address = line.partition(" at ")[2].split()[0]
        yield server, address, pids
    finally:
        server.kill()
        server.wait(60)
        assert server.stderr is not None
        server.stderr.close()


def image_request() -> dict[str, Any]:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 6)).save(buffer, "PNG")
    png = base64.b64encode(buffer.getvalue()).decode()
    return {"id": "q", "image": {"png": png}, "questions": ["what?"]}


def wait_for_pids(pids: Path) -> list[int]:
    deadline = time.monotonic() + 60
    while not (pids.exists() and len(pids.read_text().split()) == 2):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return [int(text) for text in pids.read_text().split()]


def wait_for_end(processes: list[int], seconds: float) -> bool:
    """Whether all processes have ended within so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not any(is_running(process) for process in processes):
            return True
        time.sleep(0.05)
    return False


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_busy_model_ends_with_the_server(
    tmp_path: Path, kind: signal.Signals
) -> None:
    with serving_spinning_model(tmp_path) as (server, address, pids):
        answers: list[Any] = []

        def ask() -> None:
            try:
                answers.append(call(address, "POST", "/v1/predict", image_request()))
            except OSError as error:
                answers.append(error)

        client = threading.Thread(target=ask)
        client.start()
        processes = wait_for_pids(pids)
        started = time.monotonic()
        server.send_signal(kind)
        server.wait(60)
        assert wait_for_end(processes, 5.0)
        assert time.monotonic() - started < 5.0
        client.join(60)
        if kind != signal.SIGKILL:
            assert server.returncode == 0
            status, body = answers[0]
            assert (status, body["error"]) == (503, "the server is ending")
