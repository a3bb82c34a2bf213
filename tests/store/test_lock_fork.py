"""A lock belongs to the process that took it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from maskwise.errors import StoreError
from maskwise.schema import Prediction
from maskwise.store import Log
from maskwise.store.lock import locked

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

OWNER = """
import multiprocessing, os, sys, time
from pathlib import Path
from maskwise.schema import Prediction
from maskwise.store import Log
from maskwise.store.lock import locked

folder = Path(sys.argv[1])

def work():
    (folder.parent / "forked.partial").write_text(str(os.getpid()))
    (folder.parent / "forked.partial").rename(folder.parent / "forked")
    time.sleep(3600)

with locked(folder, "busy"), Log(folder / "log.jsonl", Prediction) as log:
    log.append(Prediction(sample="a"))
    multiprocessing.get_context("fork").Process(target=work).start()
    while not (folder.parent / "forked").exists():
        time.sleep(0.01)
    log.append(Prediction(sample="b"))
    print("ready", flush=True)
    time.sleep(3600)
"""


def test_a_forked_worker_does_not_keep_the_lock_of_its_killed_parent(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "ready\n"
        worker = int((tmp_path / "forked").read_text())
        try:
            with pytest.raises(StoreError, match="busy"), locked(folder, "busy"):
                pass
            with pytest.raises(StoreError, match="another process"):
                Log(folder / "log.jsonl", Prediction).append(Prediction(sample="c"))
            owner.kill()
            owner.wait()
            os.kill(worker, 0)  # it lives on
            with locked(folder, "busy"), Log(folder / "log.jsonl", Prediction) as log:
                log.append(Prediction(sample="c"))
        finally:
            os.kill(worker, signal.SIGKILL)
    assert [one.sample for one in Log(folder / "log.jsonl", Prediction)] == [
        "a",
        "b",
        "c",
    ]


def test_a_fork_leaves_the_lock_with_its_parent(tmp_path: Path) -> None:
    with locked(tmp_path, "busy"):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(StoreError, match="busy"), locked(tmp_path, "busy"):
            pass
    with locked(tmp_path, "busy"):
        pass
