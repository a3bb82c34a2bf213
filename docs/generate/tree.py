"""The tree of docs/reference/files.md: every file with the first sentence of its docstring."""

import ast
import json
import re
from pathlib import Path

from tests.test_layers import PACKAGES

ROOT = Path(__file__).parent.parent.parent

LISTED = ["src/maskwise", "bench", "docs", "examples", "release"]
"""Folders shown file by file."""

SUFFIXES = {".ipynb", ".py", ".c", ".h", ".md", ".html", ".css", ".js"}

MADE = {"RESULTS.md"}
"""Written by a target of the Makefile: there or not."""

CLOSED = {
    "docs/benchmarks/datasets",
    "docs/benchmarks/rules",
    "docs/reference/api",
    "docs/reference/cli",
}
"""Folders whose documents are all written from the code: one line each."""

SINGLE = {
    "tests/": "Mirrors the package; tests/golden checks golden files, tests/fuzz the C kernel and the readers",
    "deploy/": "Container file and compose file",
    "Makefile": "demo, test, test-web, test-full, lint, bench, figures, fuzz: each prepares its own environment",
    "constraints.txt": "The versions continuous integration uses",
}
"""Shown in one line."""

DATA = {
    "docs": "Guides, file formats and decisions",
    "examples": "Scripts and notebooks to start from",
    "docs/benchmarks": "Datasets, scoring rules and intervals",
    "docs/benchmarks/datasets": "Every benchmark and format, written from its reader",
    "docs/benchmarks/rules": "Every scoring rule, written from the code",
    "docs/decisions": "One record per design decision",
    "docs/extending": "Plug-ins, one kind on each page",
    "docs/guides": "What to do for each task",
    "docs/images": "Screenshots and figures, made by programs",
    "docs/reference": "The API, commands, file formats and files",
    "docs/reference/api": "The public names by subject, written from their docstrings",
    "docs/reference/cli": "The commands by group, written from their help",
    "docs/site": "Files that the pages of the site load",
    "docs/results": "What was measured, and how",
    "src/maskwise/benchmarks/cards": "Published facts about each benchmark, as YAML",
    "src/maskwise/training/intent/corpus": "Training sentences of the mask type classifier, as templates",
    "src/maskwise/report/templates": "Page templates, their style and script",
    "src/maskwise/server/static": "The pages of `maskwise serve` and `maskwise review`",
    "src/maskwise/server/static/css": "Styles of the pages",
    "src/maskwise/server/static/js": "Scripts of the pages: ES modules, loaded by browsers as they are",
    "src/maskwise/world/bundled": "The benchmark that ships with the package, a dataset folder",
}
"""Folders that have no docstring to say what they are."""


def file_tree() -> str:
    """A code block: per file the first sentence of its docstring; a folder has that of its `__init__.py`."""
    lines = []
    for folder in LISTED:
        lines += folder_lines(ROOT / folder, folder + "/", 0)
    width = max(len(name) for name, _ in lines) + 2
    lines += SINGLE.items()
    rows = [f"{name:<{width}}{line}".rstrip() for name, line in lines]
    return "\n".join(["```", *rows, "```", ""])


def folder_lines(folder: Path, label: str, depth: int) -> list[tuple[str, str]]:
    """(indented name, description) of a folder and of what is in it."""
    lines = [("  " * depth + label, folder_line(folder))]
    if folder.relative_to(ROOT).as_posix() in CLOSED:
        return lines
    for path in sorted(folder.iterdir(), key=place):
        if path.name.startswith((".", "__")) or path.name in MADE:
            continue
        if path.suffix in SUFFIXES and path.is_file():
            lines.append(("  " * (depth + 1) + path.name, first_line(path)))
        elif (
            any(inner.suffix in SUFFIXES for inner in path.rglob("*"))
            or path.relative_to(ROOT).as_posix() in DATA
        ):
            lines += folder_lines(path, path.name + "/", depth + 1)
    return lines


def place(path: Path) -> tuple[int, bool, str]:
    """Packages in the order of their layers; elsewhere files before folders, by name."""
    layer = (
        PACKAGES.index(path.stem)
        if path.parent.name == "maskwise" and path.stem in PACKAGES
        else 0
    )
    return layer, path.is_dir(), path.name


def folder_line(folder: Path) -> str:
    """What a folder is: its package docstring, or what DATA says."""
    package = folder / "__init__.py"
    return (
        first_line(package)
        if package.exists()
        else DATA.get(folder.relative_to(ROOT).as_posix(), "")
    )


def first_line(path: Path) -> str:
    """The first sentence of a docstring or of the opening comment, up to the end of its line; a Markdown title."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        return str(json.loads(text)["cells"][0]["source"][0]).strip("# \n")
    if path.suffix == ".py":
        text = ast.get_docstring(ast.parse(text)) or ""
    for line in text.splitlines():
        words = re.sub(
            r"^(/\*+|//|\{#-?|<!--|#|<!doctype html>|\*)\s*|\s*(\*/|-?#\}|-->)$",
            "",
            line.strip(),
            flags=re.I,
        )
        if words:
            return (
                words
                if path.suffix == ".md"
                else re.split(r"(?<![.,])\. ", words)[0].removesuffix(".")
            )
    return ""
