"""`maskwise info`: what is installed and what it will use."""

import platform
import re
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import maskwise
from maskwise.cli.options import AsJson

KERNELS = {
    "c": "C",
    "numpy": "numpy (slower; install a C compiler and maskwise again for the C kernel)",
}


def info(as_json: AsJson = False) -> None:
    """Say which version, mask kernel and extras are in use.

    Example: maskwise info --json
    """
    from rich.table import Table

    from maskwise.cli.output import print_json
    from maskwise.console import make_console

    facts = describe_installation()
    if as_json:
        print_json(facts)
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
    from maskwise.datasets import BUNDLED_DATASETS
    from maskwise.masks import kernel_name
    from maskwise.runs.environment import available_cores

    return {
        "version": maskwise.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "threads": available_cores(),
        "kernel": kernel_name(),
        "extras": _extras(),
        "bundled": {"models": ["tiny"], "datasets": list(BUNDLED_DATASETS)},
    }


def _extras() -> dict[str, dict[str, str | None]]:
    """Installed versions by extra and package; empty where maskwise runs from a source folder without metadata."""
    extras: dict[str, dict[str, str | None]] = {}
    for extra, package in _requirements():
        extras.setdefault(extra, {})[package] = _installed_version(package)
    return extras


def _requirements() -> Iterator[tuple[str, str]]:
    """(extra, package) for every requirement of an extra."""
    try:
        lines = metadata.requires("maskwise") or []
    except metadata.PackageNotFoundError:
        return
    for line in lines:
        package = re.match(r"[\w.-]+", line)
        extra = re.search(r"extra\s*==\s*['\"]([\w-]+)['\"]", line)
        if package and extra:
            yield extra[1], package[0]


def _installed_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
