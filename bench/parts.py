"""Scoring more masks than fit in memory: the MMR-sized set repeated, in parts, in one process of its own.

python -m bench.parts [--copies 15]     # 15 copies: 10 million masks, targets and predictions together; 4 GB of disk

The set is `bench.mmr_set` with other ids in every copy, so every copy has the scores of the first. Peak memory is given
as the process's own and with the files that it maps (the dataset and the columns of parts).
"""

import argparse
import hashlib
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bench.mmr_set import find_set
from bench.sizes import CACHE, QUICK, choose
from maskwise.arrow import arrow_to_numpy
from maskwise.harness.parts import compute_scores_in_parts
from maskwise.harness.run_record import result_to_scores
from maskwise.harness.scoring import compute_scores
from maskwise.store import Dataset
from maskwise.store.folder import TABLES, file_facts, read_manifest, write_manifest

COPIES = choose(3, 3)
"""Of the set in the page of results: 15 take 10 GB of memory at once."""
PART_QUESTIONS = choose(50_000, 100)
SAMPLE = re.compile(rb'^\{"sample":"(q\d+)"', re.MULTILINE)


def sections() -> Iterator[str]:
    """The table as Markdown."""
    yield measure(COPIES, at_once=True)


def measure(copies: int, *, at_once: bool) -> str:
    """Both ways, each in a process of its own. at_once: also without parts, whose scores have to be the same."""
    folder = repeat_set(copies)
    dataset = Dataset.open(folder / "truth")
    targets = dataset.manifest.counts["masks"]
    lines = [
        f"## Scoring {len(dataset):,} questions with {targets:,} targets in parts of {PART_QUESTIONS:,} questions, all "
        "nine protocols, from files to JSON",
        "",
        "| method | own memory at the most, MB | with mapped files, MB | processor time, s | SHA-256 of the scores |",
        "|---|--:|--:|--:|---|",
    ]
    hashes = set()
    for way in ("at once", "parts") if at_once else ("parts",):
        done = subprocess.run(
            [sys.executable, "-m", "bench.parts", "--way", way, str(folder)],
            capture_output=True,
            text=True,
            check=True,
        )
        own, mapped, seconds, digest = done.stdout.split()
        hashes.add(digest)
        lines.append(
            f"| {way} | {float(own):,.0f} | {float(mapped):,.0f} | {float(seconds):,.1f} | {digest[:16]} |"
        )
    assert len(hashes) == 1, "the scores differ"
    return "\n".join(lines) + "\n"


def repeat_set(copies: int) -> Path:
    """The folder of the repeated set, which is made the first time."""
    folder = CACHE / f"parts-{copies}"
    if (folder / "predictions.jsonl").exists():
        return folder
    source = find_set("streaming") if QUICK else find_set()
    (folder / "truth").mkdir(parents=True, exist_ok=True)
    manifest = read_manifest(source / "truth")
    tables = {
        name: pa.ipc.open_file(source / "truth" / f"{name}.arrow").read_all()
        for name in TABLES
    }
    for name, schema in TABLES.items():
        with pa.ipc.new_file(folder / "truth" / f"{name}.arrow", schema) as writer:
            for copy in range(copies):
                shifted = _shift(tables[name], copy, tables)
                for batch in shifted.to_batches():
                    writer.write_batch(batch)
    files = {
        f"{name}.arrow": file_facts(folder / "truth" / f"{name}.arrow")
        for name in TABLES
    }
    counts = {name: count * copies for name, count in manifest.counts.items()}
    write_manifest(
        folder / "truth", msgspec.structs.replace(manifest, counts=counts, files=files)
    )
    text = (source / "predictions.jsonl").read_bytes()
    partial = folder / "partial.jsonl"
    with partial.open("wb") as file:
        for copy in range(copies):
            file.write(SAMPLE.sub(rb'{"sample":"\1-%d"' % copy, text))
    partial.rename(folder / "predictions.jsonl")
    return folder


def _shift(table: pa.Table, copy: int, tables: dict[str, pa.Table]) -> pa.Table:
    """A table with other ids, and rows that refer to the same copy of the other tables."""
    columns = {name: table[name] for name in table.column_names}
    columns["id"] = pc.binary_join_element_wise(
        table["id"].cast(pa.string()), str(copy), "-"
    )
    if "image" in columns:
        columns["image"] = pc.add(
            table["image"], pa.scalar(copy * len(tables["images"]), pa.int32())
        )
    if "targets" in columns:
        lists = table["targets"].combine_chunks()
        rows = arrow_to_numpy(lists.flatten()) + copy * len(tables["regions"])
        ends = np.concatenate(
            [[0], np.cumsum(arrow_to_numpy(pc.list_value_length(lists)))]
        )
        columns["targets"] = pa.ListArray.from_arrays(
            pa.array(ends.astype(np.int32)), pa.array(rows.astype(np.int32))
        )
    return pa.table(columns, schema=table.schema)


class _OwnMemory(threading.Thread):
    """The largest own memory of this process, without the files that it maps, sampled 20 times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.megabytes = 0.0
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.05):
            self.megabytes = max(self.megabytes, _status("RssAnon"))


def _status(name: str) -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{name}:")[1].split()[0]) / 1024


def _work(way: str, folder: Path) -> None:
    watch = _OwnMemory()
    watch.start()
    before = time.process_time()
    dataset = Dataset.open(folder / "truth")
    path = folder / "predictions.jsonl"
    if way == "at once":
        result = compute_scores(path, dataset, threads=2)
    else:
        parts = 1 + len(dataset) // PART_QUESTIONS
        result = compute_scores_in_parts(path, dataset, parts=parts, threads=2)
    text = msgspec.json.encode(result_to_scores(result))
    seconds = time.process_time() - before
    watch.done.set()
    digest = hashlib.sha256(text).hexdigest()
    print(watch.megabytes, _status("VmHWM"), seconds, digest)


def main() -> None:
    """Measure and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=15)
    parser.add_argument("--way", choices=("at once", "parts"), help=argparse.SUPPRESS)
    parser.add_argument("folder", nargs="?", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way:
        _work(arguments.way, arguments.folder)
    else:
        print(measure(arguments.copies, at_once=False))


if __name__ == "__main__":
    main()
