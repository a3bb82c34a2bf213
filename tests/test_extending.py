"""docs/extending: the package of these pages is installed, and every command in them works."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from docs.conf import NAVIGATION

DOCS = Path(__file__).parent.parent / "docs"
PAGES = [
    "extending",
    *NAVIGATION["extending"][""],
]
"""In the order of the site: later commands read what earlier ones wrote."""

TEXT = "\n".join((DOCS / f"{page}.md").read_text("utf-8") for page in PAGES)
SOURCE = Path(__file__).parent.parent / "src"

FILE_BLOCK = re.compile(r"^`([\w./-]+)`:\n\n```\w+\n(.*?)^```$", re.M | re.S)
"""A file: its path on a line, then its content."""

CONSOLE_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
SCRIPT = re.compile(r"^In Python.*?\n\n```python\n(.*?)^```$", re.M | re.S)

COMMANDS = "\n".join(CONSOLE_BLOCK.findall(TEXT)).split("\n")
COMMANDS = [command for command in COMMANDS if command]

EXPECTED = {
    "maskwise eval world --model center-square": "any-overlap",
    "maskwise read boxes": "1 images, 2 regions, 0 questions",
    "maskwise read box-questions": "1 images, 2 regions, 1 questions",
    "maskwise build largest world --limit 4 --filter": "filtered_world:",
    "maskwise build largest world --limit 4 --writer": "4 calls",
    "maskwise judge runs/tiny": "by the given judge",
    "maskwise train mean-box.toml --dry-run": "mean",
    "maskwise export": "box.json",
    "maskwise probe world": "Long questions",
    "maskwise probe ls": "long-questions",
}
"""What the output of a command contains, by the command's beginning."""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the document, and its package installed in `site`."""
    folder = tmp_path_factory.mktemp("extending")
    for name, content in FILE_BLOCK.findall(TEXT):
        path = folder / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "install", "--quiet"]
    options = ["--no-deps", "--no-build-isolation", "--no-index"]
    target = ["--target", str(folder / "site")]
    subprocess.run([*pip, *options, *target, str(folder / "files")], check=True)
    # The commands run beside the data, but not beside the sources of the package.
    work = folder / "work"
    (folder / "files" / "data").rename(folder / "data")
    work.mkdir()
    (folder / "data").rename(work / "data")
    (folder / "files" / "mean-box.toml").rename(work / "mean-box.toml")
    return folder


def run_python(workspace: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in the work folder, with the package installed."""
    paths = [str(workspace / "site"), str(SOURCE)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "COLUMNS": "200",
        "MASKWISE_DATA": str(workspace / "downloads"),
    }
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=workspace / "work",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_kind_has_an_example() -> None:
    for kind in [
        "models",
        "formats",
        "benchmarks",
        "protocols",
        "recipes",
        "filters",
        "judges",
        "probes",
        "trainers",
        "writers",
    ]:
        assert f'[project.entry-points."maskwise.{kind}"]' in TEXT


def test_the_commands_of_the_document_work(workspace: Path) -> None:
    # Later commands read what earlier ones wrote, so all are run in order.
    for command in COMMANDS:
        program, *arguments = shlex.split(command)
        assert program == "maskwise"
        result = run_python(workspace, "-m", "maskwise", *arguments)
        assert result.returncode == 0, f"{command}\n{result.stdout}{result.stderr}"
        for start, expected in EXPECTED.items():
            if command.startswith(start):
                assert expected in result.stdout, f"{command}\n{result.stdout}"


def test_the_script_of_the_document_works(workspace: Path) -> None:
    [script] = SCRIPT.findall(TEXT)
    result = run_python(workspace, "-c", script)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("Metric(0.")


def test_plug_ins_are_listed_with_their_package(workspace: Path) -> None:
    listed = run_python(workspace, "-m", "maskwise", "ls", "filters").stdout
    assert "says-image" in listed
    assert "lab.filter:SAYS_IMAGE, package maskwise-lab 1.0" in listed
    checked = run_python(workspace, "-m", "maskwise", "ls", "plugins").stdout
    assert "models/center-square" in checked
    assert "cannot be loaded" not in checked
