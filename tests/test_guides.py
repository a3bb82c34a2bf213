"""The guides tell the truth: their Python and console blocks run, in the order of the page, in a short form.

A block that is not run says why in a comment before it: `<!-- not run: REASON -->`. `<!-- before: COMMANDS -->` and
`<!-- before, in Python: CODE -->` make what a reader of the page has already. A Python block below a line with a path
is written to that file; one that a `text` block follows prints that text.
"""

import contextlib
import io
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from docs.conf import DOCS
from tests.cli.commands import run

PAGES = [
    *DOCS.glob("*.md"),
    *(DOCS / "guides").glob("*.md"),
    DOCS / "reference" / "api.md",
    DOCS / "reference" / "predictions.md",
    DOCS / "reference" / "runs.md",
]
BESIDES = {"extending.md", "contributing.md"}
"""The first has a test of its own, the second is a copy."""

STEP = re.compile(
    r"<!-- (?P<note>not run|before|before, in Python): ?(?P<said>.*?)-->\n"
    r"|^(?:`(?P<path>[\w./]+)`:\n\n)?```(?P<language>[\w-]*)\n(?P<code>.*?)^```$"
    r"(?:\n```text\n(?P<printed>.*?)^```$)?",
    re.S | re.M,
)
PROGRAM = re.compile(r"(maskwise|pip|make|python|ray|accelerate|hf) ")


class Page:
    """A page that is worked through in the current folder."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}

    def follow(self, text: str) -> None:
        """Do what the page says, step by step."""
        is_skipped = False
        for step in STEP.finditer(text):
            if step["note"] == "not run":
                assert step["said"].strip(), "say why the block is not run"
                is_skipped = True
            elif step["note"] == "before":
                self.commands(step["said"])
            elif step["note"]:
                self.python(step["said"])
            elif not is_skipped:
                self.block(step)
            else:
                is_skipped = False

    def block(self, step: re.Match[str]) -> None:
        """Write a file, run Python, or run commands."""
        if step["path"]:
            Path(step["path"]).write_text(step["code"], encoding="utf-8")
        elif step["language"] == "python":
            printed = self.python(step["code"])
            assert step["printed"] is None or printed == step["printed"]
        elif step["language"] == "console":
            self.commands(step["code"])

    def python(self, code: str) -> str:
        """Run code with the names of earlier blocks; what it prints."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(code, self.names)
        return output.getvalue()

    def commands(self, lines: str) -> None:
        """Run commands of maskwise, on at most two images."""
        for line in lines.strip().splitlines():
            short = re.sub(r"--limit \d+", "--limit 2", line)
            program, *arguments = shlex.split(short, comments=True) or [""]
            if program:
                assert program == "maskwise", (
                    f"mark as not run, with the reason: {line}"
                )
                run(*arguments)


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(PAGES) if path.name not in BESIDES],
    ids=lambda path: path.stem,
)
def test_the_blocks_of_a_page_run(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").symlink_to(DOCS.parent / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    programs = Path(sys.executable).parent
    monkeypatch.setenv("PATH", os.pathsep.join([str(programs), os.environ["PATH"]]))
    Page().follow(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", sorted(PAGES), ids=lambda path: path.stem)
def test_commands_are_marked_as_such(path: Path) -> None:
    for step in STEP.finditer(path.read_text(encoding="utf-8")):
        if step["language"] == "" and step["code"]:
            first = step["code"].splitlines()[0]
            assert not PROGRAM.match(first), f"make it a block of `console`: {first}"
