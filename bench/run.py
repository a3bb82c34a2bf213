"""`make bench`: measure everything and write bench/RESULTS.md."""

import os
import platform
import sys
from importlib.metadata import version
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import asking, building, harness, importing, masks, opening, scoring, vlm
from bench.timing import to_markdown

PEERS = (
    "numpy",
    "pycocotools",
    "hotcoco",
    "rlemasklib",
    "opencv-python-headless",
    "orjson",
)


def main() -> None:
    """Measure, show and write."""
    os.chdir(Path(__file__).parents[1])
    peers = ", ".join(f"{name} {version(name)}" for name in PEERS)
    parts = [
        "# How fast, beside the others\n",
        "Made by `make bench`, all in one run. Times are the least processor time of several repeats, one thread "
        "unless the title says otherwise. Compare the ratios: absolute figures move with the machine.\n",
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores; {peers}.\n",
    ]
    tables = chain(masks.tables(), [opening.table()], scoring.tables(), asking.tables())
    for section in chain(
        map(to_markdown, tables),
        harness.sections(),
        building.sections(),
        vlm.sections(),
        [importing.section()],
    ):
        parts.append(section)
        print(section, flush=True)
    Path("bench/RESULTS.md").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
