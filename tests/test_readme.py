"""The documents are up to date: their examples run, and the listed files and commands exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.generate.api import undescribed
from docs.generate.commands import all_commands, first_line
from docs.generate.documents import PAGES, PARTS, read_pages, read_part
from docs.generate.tree import ROOT, file_tree

README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```\n```text\n(.*?)^```", TEXT, re.S | re.M)
DOCUMENTS = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize(
    ("path", "name"), PARTS, ids=lambda value: str(getattr(value, "name", value))
)
def test_generated_parts_are_up_to_date(path: Path, name: str) -> None:
    expected = PARTS[path, name]()
    assert read_part(path, name).splitlines() == expected.splitlines(), "run make tree"


@pytest.mark.parametrize("folder", PAGES, ids=lambda folder: folder.name)
def test_generated_pages_are_up_to_date(folder: Path) -> None:
    assert read_pages(folder) == PAGES[folder](), "run make tree"


def test_every_command_has_a_description_in_the_reference() -> None:
    text = "".join(read_pages(ROOT / "docs" / "reference" / "cli").values())
    described = re.findall(r"^## `maskwise (.*)`$", text, re.M)
    assert sorted(described) == sorted(all_commands())


def test_every_file_says_what_it_is() -> None:
    lines = file_tree().splitlines()[1:-1]  # without the marks of the code block
    bare = [line for line in lines if len(line.split()) < 2]
    assert not bare, f"give these a docstring (or an opening comment): {bare}"


def test_every_public_name_is_in_the_reference() -> None:
    assert not undescribed(), "give these a section in docs/generate/api.py"


def test_every_command_says_what_it_does() -> None:
    silent = [
        name for name, command in all_commands().items() if not first_line(command)
    ]
    assert not silent


@pytest.mark.parametrize(
    "path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_named_commands_and_links_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    words = {name.split()[0] for name in all_commands()}
    code = re.findall(r"^```\w*\n(.*?)^```", text, re.S | re.M) + re.findall(
        r"`([^`\n]+)`", text
    )
    named = set(re.findall(r"^maskwise ([a-z][a-z-]*)", "\n".join(code), re.M))
    assert named <= words, f"no such command: {sorted(named - words)}"
    linked = [link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link]
    missing = [link for link in linked if not (path.parent / link).exists()]
    assert not missing, f"links to nowhere: {missing}"


def test_make_targets_exist() -> None:
    targets = set(
        re.findall(
            r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M
        )
    )
    named = {
        name
        for path in DOCUMENTS
        for name in re.findall(r"(?:^|`)make ([a-z-]+)", path.read_text("utf-8"), re.M)
    }
    assert named <= targets, f"no such target: {sorted(named - targets)}"


@pytest.mark.parametrize(("example", "printed"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_examples_print_what_stands_below_them(
    example: str, printed: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", example],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == printed


def test_every_example_has_its_output() -> None:
    assert len(EXAMPLES) == TEXT.count("```python") > 0
