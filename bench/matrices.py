"""Boolean-matrix Parquet: reading 1,000 images of 12 megapixels, beside `datasets` with numpy and pycocotools.

Each way runs in a process of its own, which tells its seconds of processor time and its peak memory. The file is made
on the fly in a temporary folder and removed. The public way reads fewer rows, because it takes Python lists of pixels.
"""

import importlib
import io
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from pycocotools import mask as coco_mask

from bench.memory import peak_megabytes
from bench.sizes import QUICK
from maskwise.benchmarks import find_reader
from maskwise.formats import convert_annotations

HEIGHT, WIDTH = (60, 80) if QUICK else (3000, 4000)
ROWS = 6 if QUICK else 1000
FEW_ROWS = 2 if QUICK else 20
"""How many rows the public way reads: it takes about a second for each, and lists of Python objects."""

GROUP_ROWS = 10
"""Rows in a row group. `datasets` writes 100 if there are images; Parquet takes 8 GB to write such a group."""

MOST_MEGABYTES = 700
"""Wanted at the most, whatever the number of rows. Parquet itself takes about 100 MB to decode one such matrix."""


def sections() -> list[str]:
    """The section of bench/RESULTS.md."""
    with tempfile.TemporaryDirectory(prefix="maskwise-matrices-") as folder:
        many = Path(folder) / "many" / "test.parquet"
        few = Path(folder) / "few" / "test.parquet"
        write_rows(many, ROWS)
        write_rows(few, FEW_ROWS)
        megabytes = many.stat().st_size / 2**20
        ours = _measure("maskwise", many)
        ours_few = _measure("maskwise", few)
        public = _measure("datasets", few)
    assert ours[1] <= MOST_MEGABYTES, f"{ours[1]:.0f} MB"
    return [
        "\n".join(
            [
                f"## Boolean-matrix Parquet, images of {HEIGHT * WIDTH / 1e6:.3g} megapixels "
                f"({ROWS:,} rows in {megabytes:.0f} MB)",
                "",
                "| method | rows | masks per second | peak memory |",
                "|---|--:|--:|--:|",
                _line("`datasets`, numpy, pycocotools", FEW_ROWS, public),
                _line("maskwise, `read hub-matrices`", FEW_ROWS, ours_few),
                _line("**maskwise, `read hub-matrices`**", ROWS, ours),
                "",
                "maskwise also writes the dataset folder with the images; the other way only encodes the masks.",
                "",
            ]
        )
    ]


def write_rows(path: Path, rows: int) -> None:
    """A file as Seg-Zero's converter makes it: one disk at another place per image."""
    path.parent.mkdir(parents=True)
    image = io.BytesIO()
    Image.new("RGB", (WIDTH, HEIGHT), (90, 120, 150)).save(image, "JPEG", quality=50)
    schema = pa.schema(
        [
            ("image", pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
            ("text", pa.string()),
            ("mask", pa.list_(pa.list_(pa.bool_()))),
            ("image_id", pa.string()),
            ("ann_id", pa.string()),
            ("img_height", pa.int64()),
            ("img_width", pa.int64()),
        ]
    )
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for first in range(0, rows, GROUP_ROWS):
            numbers = range(first, min(first + GROUP_ROWS, rows))
            columns = [
                # Every image differs in its last bytes, as photos do; decoders stop before them.
                [
                    {"bytes": image.getvalue() + row.to_bytes(4, "little")}
                    for row in numbers
                ],
                [f"the thing in image {row}" for row in numbers],
                make_matrices(numbers),
                [f"image{row}" for row in numbers],
                ["0"] * len(numbers),
                [HEIGHT] * len(numbers),
                [WIDTH] * len(numbers),
            ]
            table = pa.table(columns, schema=schema)
            writer.write_table(table, row_group_size=GROUP_ROWS)


def make_matrices(rows: range) -> pa.Array:
    """One matrix per row."""
    y = np.arange(HEIGHT)[:, None]
    x = np.arange(WIDTH)[None, :]
    planes = []
    for row in rows:
        center = (row * 7919) % WIDTH  # a prime, so that centers are spread
        inside = (y - HEIGHT / 2) ** 2 + (x - center) ** 2 < (HEIGHT / 3) ** 2
        planes.append(np.packbits(inside.ravel(), bitorder="little"))
    pixel_count = len(rows) * HEIGHT * WIDTH
    bits = pa.py_buffer(np.concatenate(planes))
    pixels = pa.Array.from_buffers(pa.bool_(), pixel_count, [None, bits])
    line_ends = np.arange(len(rows) * HEIGHT + 1, dtype=np.int32) * WIDTH
    matrix_ends = np.arange(len(rows) + 1, dtype=np.int32) * HEIGHT
    lines = pa.ListArray.from_arrays(pa.array(line_ends), pixels)
    return pa.ListArray.from_arrays(pa.array(matrix_ends), lines)


def read_by_maskwise(path: Path) -> int:
    """Write a dataset folder; returns the number of masks."""
    summary = convert_annotations(
        find_reader("hub-matrices"), path, path.parent / "dataset"
    )
    return summary.kept["targets"]


def read_by_datasets(path: Path) -> int:
    """Encode every mask with numpy and pycocotools, as the evaluation scripts do; returns their number."""
    datasets = importlib.import_module("datasets")
    rows = datasets.load_dataset(
        "parquet", data_files=str(path), split="train", streaming=True
    )
    count = 0
    for row in rows:
        plane = np.array(row["mask"], bool)
        coco_mask.encode(np.asfortranarray(plane.astype(np.uint8)))
        count += 1
    return count


WAYS: dict[str, Callable[[Path], int]] = {
    "maskwise": read_by_maskwise,
    "datasets": read_by_datasets,
}


def _measure(way: str, path: Path) -> tuple[float, float]:
    """Masks per second of processor time, and megabytes at the most, of a new process."""
    command = [sys.executable, "-m", "bench.matrices", way, str(path)]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rate, megabytes = out.split()
    return float(rate), float(megabytes)


def _line(name: str, rows: int, measured: tuple[float, float]) -> str:
    rate, megabytes = measured
    return f"| {name} | {rows:,} | {rate:,.2f} | {megabytes:,.0f} MB |"


if __name__ == "__main__":
    if sys.argv[1] == "datasets":
        # Imported before the clock starts, and only here: it takes memory of its own.
        importlib.import_module("datasets")
    started = time.process_time()
    masks = WAYS[sys.argv[1]](Path(sys.argv[2]))
    seconds = time.process_time() - started
    print(masks / seconds, peak_megabytes())
