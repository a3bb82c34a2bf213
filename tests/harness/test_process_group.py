"""A started process ends with the process that started it, and so does everything it started."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from maskwise.harness.process_group import ProcessGroup
from tests.harness.fakes import write_dataset

BUSY = Path(__file__).parent / "busy_child.py"
ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def wait_for(path: Path) -> list[int]:
    """The process ids that the busy child wrote."""
    while not path.exists():
        time.sleep(0.01)
    return [int(word) for word in path.read_text().split()]


def wait_for_end(process: int) -> None:
    """Return when a process has ended; a zombie has. A test that hangs here fails by the runner's limit."""
    while True:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state in "ZX":
            return
        time.sleep(0.01)


def test_killing_ends_the_whole_group(tmp_path: Path) -> None:
    group = ProcessGroup([sys.executable, str(BUSY), str(tmp_path / "ids")])
    with group.process:
        assert group.process.stdin is not None
        group.process.stdin.write(b"\n")
        ids = wait_for(tmp_path / "ids")
        group.kill()
    for process in ids:
        wait_for_end(process)
    assert group.process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_busy_command_ends_with_the_evaluation(
    tmp_path: Path, number: signal.Signals
) -> None:
    dataset = write_dataset(tmp_path / "data", 2)
    command = shlex.join([sys.executable, str(BUSY), str(tmp_path / "ids")])
    arguments = [
        "eval",
        str(dataset),
        "--model",
        f"command: {command}",
        "--out",
        str(tmp_path / "run"),
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "maskwise.cli.main", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        ids = wait_for(tmp_path / "ids")
        process.send_signal(number)
        output = process.communicate()[1]
    for one in ids:
        wait_for_end(one)
    if number != signal.SIGKILL:
        assert process.returncode == 128 + number
        assert "repeat the command to continue" in " ".join(output.split())
        assert "Traceback" not in output


def test_a_fork_that_outlives_its_parent_keeps_nothing_alive(tmp_path: Path) -> None:
    """The forked process has a copy of every pipe of its parent."""
    script = f"""
import os, sys, time
from maskwise.harness.process_group import ProcessGroup
group = ProcessGroup([sys.executable, {str(BUSY)!r}, {str(tmp_path / "ids")!r}])
group.process.stdin.write(b"\\n")
while not os.path.exists({str(tmp_path / "ids")!r}):
    time.sleep(0.01)
if os.fork() == 0:
    open({str(tmp_path / "forked")!r}, "w").write(str(os.getpid()))
    time.sleep(3600)
while not os.path.exists({str(tmp_path / "forked")!r}):
    time.sleep(0.01)
os.kill(os.getpid(), 9)
"""
    subprocess.run(
        [sys.executable, "-c", script], check=False, cwd=ROOT, stderr=subprocess.DEVNULL
    )
    ids = wait_for(tmp_path / "ids")
    for process in ids:
        wait_for_end(process)
    os.kill(wait_for(tmp_path / "forked")[0], signal.SIGKILL)


def test_starting_what_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nothing-there"):
        ProcessGroup([str(tmp_path / "nothing-there")])
