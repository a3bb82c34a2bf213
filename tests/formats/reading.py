"""Read a layout as a user would, and look at what comes."""

from pathlib import Path
from typing import Any

from maskwise.benchmarks import find_reader
from maskwise.formats import Problem, Problems, Scene


def read(
    name: str, root: Path, *, split: str | None = None, **options: Any
) -> tuple[list[Scene], list[Problem]]:
    """All scenes and all problems."""
    seen: list[Problem] = []
    strict = options.pop("strict", False)
    _, reading = find_reader(name).open(root, Problems(seen.append, strict=strict), split=split, **options)
    return list(reading.scenes), seen


def reasons(problems: list[Problem], *, kept: bool = False) -> list[str]:
    return [problem.reason for problem in problems if problem.kept == kept]
