"""What a signal does to `maskwise eval`, and how it names run folders."""

import os
import signal
import time
from pathlib import Path

import pytest
import typer

from maskwise.cli.options import MAX_SLUG, to_slug
from maskwise.cli.signals import ending_on_signals


@pytest.mark.posix
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_the_command_and_keeps_the_run(
    number: signal.Signals, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Programs in the background ignore some signals (nohup, `&`); here none is ignored.
    python_default = signal.default_int_handler
    handler = python_default if number == signal.SIGINT else signal.SIG_DFL
    inherited = signal.signal(number, handler)

    def evaluate() -> None:
        with ending_on_signals(tmp_path):
            os.kill(os.getpid(), number)
            time.sleep(10)

    try:
        with pytest.raises(typer.Exit) as stop:
            evaluate()
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, inherited)
    assert stop.value.exit_code == 128 + number
    said = capsys.readouterr().err
    assert f"{tmp_path} keeps what is done: repeat the command to continue" in said


def test_other_errors_pass_through(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="of the model"),
        ending_on_signals(tmp_path),
    ):
        raise ValueError("of the model")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("world", "world"),
        ("data/mmr_val/", "mmr_val"),
        ("http://localhost:8000", "localhost-8000"),
        ("my_package.models:load", "my_package.models-load"),
        ("command: python model.py --fast", "command-python-model.py---fast"),
        ("..", "run"),
        ("x" * 200, "x" * MAX_SLUG),
    ],
)
def test_run_folders_are_named_after_dataset_and_model(text: str, name: str) -> None:
    assert to_slug(text) == name
