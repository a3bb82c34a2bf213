"""`make bench`: measure everything and write bench/RESULTS.md.

`make bench-quick` (--quick) runs every section with small sizes and writes nothing: a rename cannot break the
measurements without being seen.
"""

import argparse
import importlib
import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import distributions, version
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

PEERS = (
    "numpy",
    "pycocotools",
    "hotcoco",
    "rlemasklib",
    "opencv-python-headless",
    "orjson",
    "torchmetrics",
)

SECTIONS = (
    "masks",
    "opening",
    "matrices",
    "scoring",
    "streaming",
    "parts",
    "asking",
    "harness",
    "building",
    "vlm",
    "importing",
)
"""Modules of this folder: each has `sections()`, Markdown texts in the order of the page."""


def main() -> None:
    """Measure, show and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, no file")
    parser.add_argument("--only", choices=SECTIONS, help="one section, no file")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    if arguments.quick:
        os.environ["MASKWISE_BENCH"] = "quick"
    names = [arguments.only] if arguments.only else list(SECTIONS)
    parts = [introduction()]
    for section in sections(names):
        parts.append(section)
        print(section, flush=True)
    if not arguments.quick and not arguments.only:
        Path("bench/RESULTS.md").write_text("\n".join(parts), encoding="utf-8")


def introduction() -> str:
    """What the page says before its tables."""
    installed = {distribution.name for distribution in distributions()}
    peers = ", ".join(f"{name} {version(name)}" for name in PEERS if name in installed)
    return (
        "# How fast, beside the others\n\n"
        "Made by `make bench`, all in one run. Times are the least processor time of several repeats, one thread "
        "unless the title says otherwise. Compare the ratios: absolute figures move with the machine.\n\n"
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores; {peers}.\n"
    )


def sections(names: list[str]) -> Iterator[str]:
    """The measurements, one after the other. Modules are imported here because they read the sizes."""
    for name in names:
        yield from importlib.import_module(f"bench.{name}").sections()


if __name__ == "__main__":
    main()
