"""`maskwise info`: what is installed and what it will use."""

import json
import platform
import re
from collections.abc import Iterator
from importlib import metadata
from typing import Any

from rich.table import Table

import maskwise
from maskwise.cli.options import AsJson
from maskwise.console import make_console
from maskwise.datasets import BUNDLED_DATASETS
from maskwise.masks import kernel_name
from maskwise.runs.environment import available_cores
from maskwise.terminal import echo

KERNELS = {
    "c": "C",
    "numpy": "numpy (slower; install a C compiler and maskwise again for the C kernel)",
}


def info(as_json: AsJson = False) -> None:
    """Say which version, mask kernel and extras are in use.

    Example: maskwise info --json
    """
    facts = describe_installation()
    if as_json:
        echo(json.dumps(facts, indent=2))
        return
    table = Table.grid(padding=(0, 3))
    for name in ("version", "python", "platform", "threads"):
        table.add_row(name, str(facts[name]))
    table.add_row("mask kernel", KERNELS[facts["kernel"]])
    for extra, packages in facts["extras"].items():
        missing = [package for package, version in packages.items() if version is None]
        state = "installed" if not missing else f"not installed: {', '.join(missing)}"
        table.add_row(f"extra {extra}", state)
    for kind, names in facts["bundled"].items():
        table.add_row(f"bundled {kind}", ", ".join(names) or "none")
    make_console().print(table)


def describe_installation() -> dict[str, Any]:
    """Version, python, platform, kernel, threads, extras as {extra: {package: version or None}}, bundled files."""
    return {
        "version": maskwise.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "threads": available_cores(),
        "kernel": kernel_name(),
        "extras": _extras(),
        "bundled": _bundled(),
    }


def _extras() -> dict[str, dict[str, str | None]]:
    """What each extra asks for; empty where maskwise runs from a bare source folder, whose needs nobody recorded."""
    found: dict[str, dict[str, str | None]] = {}
    for extra, package in _requirements():
        found.setdefault(extra, {})[package] = _installed(package)
    return found


def _requirements() -> Iterator[tuple[str, str]]:
    try:
        lines = metadata.requires("maskwise") or []
    except metadata.PackageNotFoundError:
        return
    for line in lines:
        package = re.match(r"[\w.-]+", line)
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", line)
        if package and extra:
            yield extra[1], package[0]


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _bundled() -> dict[str, list[str]]:
    """Models and datasets that came with the package, by the names commands take."""
    return {"models": ["tiny"], "datasets": list(BUNDLED_DATASETS)}
