"""The program `maskwise`."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import maskwise
from maskwise.cli import main as cli_main


def start(*arguments: str, **options: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "maskwise", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,  # type: ignore[call-overload]
    )


def test_the_package_runs_as_a_program() -> None:
    with start("--version") as process:
        assert process.communicate()[0] == f"maskwise {maskwise.__version__}\n"


def test_ctrl_c_while_loading_ends_the_program_quietly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that the command line imports waits for ever, as on a slow disk."""
    (tmp_path / "typer.py").write_text(
        f"import pathlib, time\npathlib.Path({str(tmp_path / 'loading')!r}).touch()\ntime.sleep(600)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    with start("--version") as process:
        while not (tmp_path / "loading").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        assert process.communicate() == ("", "")
    assert process.returncode == 130


@pytest.mark.parametrize("options", [(), ("--keep-going",)])
def test_model_calls_past_their_time_do_not_abort_the_program(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """They still run in onnxruntime when the command ends."""
    evaluation = ("eval", "world", "--model", "tiny", "--limit", "3", *options)
    with start(
        *evaluation, "--timeout", "0.001", "--out", str(tmp_path / "run")
    ) as process:
        said = process.communicate()[1]
    assert process.returncode == 2, said
    assert said.startswith("maskwise: ")
    assert said.count("\n") == 1, said


def test_what_a_program_with_a_hung_thread_printed_and_registered_is_done(
    tmp_path: Path,
) -> None:
    program = (
        "import atexit, sys, threading, time\n"
        "from maskwise.__main__ import main\n"
        "from maskwise.cli import main as command_line\n"
        "def run():\n"
        "    atexit.register(print, 'handler', end='')\n"
        "    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
        "    print('output')\n"
        "    sys.exit(7)\n"
        "command_line.main = run\n"
        "main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert (ended.returncode, ended.stdout) == (7, "output\nhandler")
    assert ended.stderr == ""


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_errors_of_the_disk_are_one_line(
    number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise OSError(number, os.strerror(number), "/disk/file")

    monkeypatch.setattr(cli_main, "app", fail)
    with pytest.raises(SystemExit) as caught:
        cli_main.main()
    assert caught.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(f"maskwise: [Errno {number}]")
    assert "/disk/file" in said
    assert "Traceback" not in said


def test_other_errors_of_the_system_keep_their_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> None:
        raise FileNotFoundError(errno.ENOENT, "none", "file")

    monkeypatch.setattr(cli_main, "app", fail)
    with pytest.raises(FileNotFoundError):
        cli_main.main()
