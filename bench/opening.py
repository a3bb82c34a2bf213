"""Opening a stored dataset of 470,000 masks until the kernel can score it, beside parsing the same masks as JSON.

Each way runs in a process of its own, which tells its seconds and its peak memory.
"""

import gc
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import orjson

from bench.memory import peak_megabytes
from bench.scenes import mask_pairs
from bench.sizes import CACHE, choose
from bench.timing import Row, Table, to_markdown
from maskwise.masks import Masks, pair_areas
from maskwise.schema import ImageInfo, Region
from maskwise.store import Dataset, DatasetWriter

MASKS = choose(470_000, 2_000)
A_IMAGE = 10
DIFFERENT = choose(4_700, 40)
HEIGHT = 480
WIDTH = 640
MOST_MEGABYTES = 400


def sections() -> list[str]:
    """The table as Markdown."""
    return [to_markdown(table())]


def table() -> Table:
    """Both ways, each the best of three processes."""
    prepare()
    seconds = {}
    for way in ("json", "store", "store again"):
        runs = [_measure(way) for _ in range(3)]
        seconds[way] = min(run[0] for run in runs)
        print(
            f"opening {way}: {seconds[way]:.3f} s, peak {runs[0][1]:.0f} MB",
            file=sys.stderr,
        )
        megabytes = max(run[1] for run in runs)
    assert megabytes <= MOST_MEGABYTES, f"{megabytes} MB"
    return Table(
        f"Opening {MASKS:,} stored masks until the kernel can score them (µs for all; peak memory "
        f"{megabytes:.0f} MB, wanted at most {MOST_MEGABYTES})",
        [
            Row("orjson, the same masks as JSON", seconds["json"] * 1e6),
            Row("maskwise, opened again by the process", seconds["store again"] * 1e6),
            Row("maskwise, `Dataset.open`", seconds["store"] * 1e6),
        ],
        {"orjson, the same masks as JSON": 10},
    )


def prepare() -> None:
    """Write the dataset and the JSON file once. Masks repeat, which neither way can tell."""
    folder = CACHE / "opening"
    text = CACHE / "opening.json"
    if folder.exists() and text.exists():
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    masks = list(mask_pairs(DIFFERENT, HEIGHT, WIDTH)[0])
    with DatasetWriter(folder, name="opening") as writer:
        for image in range(MASKS // A_IMAGE):
            regions = tuple(
                Region(
                    id=str(i),
                    name="thing",
                    visible=masks[(image * A_IMAGE + i) % DIFFERENT],
                )
                for i in range(A_IMAGE)
            )
            writer.add_image(
                ImageInfo(id=str(image), width=WIDTH, height=HEIGHT, path="none.jpg"),
                regions,
            )
    rows = [
        {
            "size": [HEIGHT, WIDTH],
            "counts": masks[i % DIFFERENT].counts,
            "image_id": i // A_IMAGE,
        }
        for i in range(MASKS)
    ]
    text.write_bytes(orjson.dumps(rows))


def open_json() -> Masks:
    """Parse, then hand the strings to the kernel."""
    rows = orjson.loads((CACHE / "opening.json").read_bytes())
    return Masks.from_strings([row["counts"] for row in rows], (HEIGHT, WIDTH))


def open_store() -> Masks:
    """Map the columns."""
    return Dataset.open(CACHE / "opening").regions.masks("visible").masks


def _measure(way: str) -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.opening", way],
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, megabytes = done.stdout.split()
    return float(seconds), float(megabytes)


def _child(work: Callable[[], Masks], *, prepare: Callable[[], object]) -> None:
    prepare()
    before = time.process_time()
    masks = work()
    seconds = time.process_time() - before
    assert len(masks) == MASKS
    some = masks[np.arange(0, MASKS, 1000)]
    assert (pair_areas(some, some).iou() == 1).all()
    print(seconds, peak_megabytes())


if __name__ == "__main__":
    way = sys.argv[1]
    _child(
        open_json if way == "json" else open_store,
        prepare=open_store if way == "store again" else gc.collect,
    )
