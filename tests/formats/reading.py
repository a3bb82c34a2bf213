"""Read a layout as a user would, and look at what comes."""

from pathlib import Path
from typing import Any

from maskwise.benchmarks import find_reader
from maskwise.formats import AnnotatedImage, Diagnostic, Diagnostics


def read(
    name: str, root: Path, *, split: str | None = None, **options: Any
) -> tuple[list[AnnotatedImage], list[Diagnostic]]:
    """All scenes and all diagnostics."""
    seen: list[Diagnostic] = []
    strict = options.pop("strict", False)
    _, found = find_reader(name).open(
        root, Diagnostics(seen.append, strict=strict), split=split, **options
    )
    return list(found.images), seen


def reasons(diagnostics: list[Diagnostic], *, kept: bool = False) -> list[str]:
    return [diagnostic.reason for diagnostic in diagnostics if diagnostic.kept == kept]
