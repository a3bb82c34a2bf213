"""Records of maskwise's loggers and Python warnings on standard error."""

import ast
import logging
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from maskwise.errors import UnknownNameError
from maskwise.logs import configure

PACKAGE = Path(__file__).parent.parent / "src" / "maskwise"

PRINTING = (
    "cli/",
    "console.py",
    "harness/progress.py",
    "progress_bars.py",
    "terminal.py",
)
"""What may print: the command line, what it prints with, and the bars of Python functions (`progress=False`)."""


@pytest.fixture(autouse=True)
def keep_logging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore the logger and the warnings of the test session."""
    logger = logging.getLogger("maskwise")
    handlers = list(logger.handlers)
    level = logger.level
    propagate = logger.propagate
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    monkeypatch.delenv("MASKWISE_LOG", raising=False)
    yield
    logger.handlers = handlers
    logger.level = level
    logger.setLevel(level)
    logger.propagate = propagate


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    """What the levels of a module's logger print."""
    logger = logging.getLogger("maskwise.store.log")
    logger.debug("a detail")
    logger.info("a step")
    logger.warning("a warning")
    captured = capsys.readouterr()
    assert not captured.out
    return captured.err


def test_warnings_are_printed_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    configure()
    assert printed(capsys) == "maskwise: warning: a warning\n"


def test_level_shows_steps_with_time_and_module(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure("info")
    lines = printed(capsys).splitlines()
    assert len(lines) == 2
    assert lines[0].endswith(" info store.log: a step")
    assert lines[1] == "maskwise: warning: a warning"


@pytest.mark.parametrize(
    ("value", "lines"), [("", 1), ("debug", 3), ("INFO", 2), ("error", 0)]
)
def test_environment_variable_sets_the_level(
    value: str,
    lines: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MASKWISE_LOG", value)
    configure()
    assert len(printed(capsys).splitlines()) == lines


def test_level_takes_precedence_over_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MASKWISE_LOG", "error")
    configure("debug")
    assert len(printed(capsys).splitlines()) == 3


def test_unknown_level_lists_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKWISE_LOG", "debg")
    with pytest.raises(UnknownNameError, match="debug"):
        configure()


def test_repeated_configuration_prints_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure()
    configure()
    assert len(printed(capsys).splitlines()) == 1


def test_python_warnings_are_printed_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning("3 actors fit", UserWarning, "file.py", 1)
    assert capsys.readouterr().err == "maskwise: warning: 3 actors fit\n"


def test_control_characters_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    configure()
    logging.getLogger("maskwise").warning("name \x1b[2J")
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--debug", "--verbose", None])
def test_debug_shows_the_traceback_of_a_failed_command(
    option: str | None, tmp_path: Path
) -> None:
    options = [] if option is None else [option]
    missing = str(tmp_path / "missing")
    command = [sys.executable, "-m", "maskwise", *options, "stats", missing]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert ("Traceback" in done.stderr) == (option == "--debug")
    assert done.stderr.splitlines()[-1].startswith("maskwise: ")


def find_printing(path: Path) -> Iterator[str]:
    """Calls of print and imports of rich in a module. A program's `main` may print."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    body = [
        node
        for node in tree.body
        if not (isinstance(node, ast.FunctionDef) and node.name == "main")
    ]
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and node.id == "print":
                yield f"{path}, line {node.lineno}: print"
            elif isinstance(node, ast.ImportFrom) and str(node.module).startswith(
                "rich"
            ):
                yield f"{path}, line {node.lineno}: {node.module}"


def test_only_the_command_line_prints() -> None:
    lines: list[str] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if not path.relative_to(PACKAGE).as_posix().startswith(PRINTING):
            lines += find_printing(path)
    assert not lines, "log it, or call a function that the caller passes"
