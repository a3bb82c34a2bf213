"""Scoring an MMR-sized set: all protocols from files to JSON, beside parsing alone; one protocol beside per-mask loops.

Each way of the first table runs in a process of its own, which tells its wall time and its peak memory.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import orjson
from pycocotools import mask as coco

from bench.memory import peak_megabytes
from bench.mmr_set import HEIGHT, WIDTH, find_set
from bench.sizes import choose
from bench.timing import Row, Table, fastest, to_markdown
from maskwise.harness.run_record import result_to_scores
from maskwise.harness.scoring import compute_scores
from maskwise.predictions import read_predictions
from maskwise.protocols import GroundTruth, MetricTerms, ScoringInput, lisa
from maskwise.protocols.image_groups import ImageGroups
from maskwise.protocols.intervals import estimate
from maskwise.store import Dataset

LISA_MASKS = choose(60, 2)
COCO_MASKS = choose(3000, 100)
REPEATS = choose(5, 1)
MOST_MEGABYTES = 1000
MOST_TIMES = 2.0
MOST_SECONDS = 5.0


def sections() -> Iterator[str]:
    """All tables as Markdown."""
    return map(to_markdown, tables())


def tables() -> Iterator[Table]:
    """All tables."""
    folder = find_set()
    yield whole_way(folder)
    yield per_mask(folder)
    yield intervals()


def whole_way(folder: Path) -> Table:
    """From the stored dataset and a file of predictions to JSON."""
    parsing, scoring = (
        [_measure(way, folder) for _ in range(REPEATS)] for way in ("parse", "score")
    )
    megabytes = max(run.megabytes for run in scoring)
    wall = min(run.wall for run in scoring) / min(run.wall for run in parsing)
    first = min(run.first_thread for run in scoring)
    first /= min(run.first_thread for run in parsing)
    processor = min(run.processor for run in scoring)
    alone = min(run.processor for run in parsing)
    return Table(
        "Scoring 194,398 questions with 340,000 targets under all nine protocols, with intervals and slices: stored "
        "dataset and predictions.jsonl to JSON, two threads, processor time of both (µs for all). Times as long as "
        f"parsing alone: {wall:.2f} in wall time (wanted at most {MOST_TIMES:g}), {processor / alone:.2f} in processor "
        f"time, of which the first thread {first:.2f}. Peak memory {megabytes:,.0f} MB, wanted at most "
        f"{MOST_MEGABYTES:,}",
        [
            Row("orjson, parsing the predictions alone", alone * 1e6),
            Row("maskwise, `score`", processor * 1e6),
        ],
        {},
    )


def per_mask(folder: Path) -> Table:
    """LISA's rule on masks in memory, a target mask."""
    ground_truth = GroundTruth.from_dataset(Dataset.open(folder / "truth"))
    predictions = read_predictions(
        folder / "predictions.jsonl", ground_truth, None
    ).predictions
    pairs = _some_pairs(ground_truth, predictions)
    return Table(
        f"One protocol (lisa) on masks in memory, for each target mask, {WIDTH} x {HEIGHT}",
        [
            Row(
                "LISA's loop: decode, two-bin histograms of float planes (numpy for torch.histc)",
                fastest(
                    lambda: [_lisa_pair(a, b) for a, b in pairs[:LISA_MASKS]],
                    LISA_MASKS,
                ),
            ),
            Row(
                "pycocotools, merge and area",
                fastest(lambda: [_coco_pair(a, b) for a, b in pairs], len(pairs)),
            ),
            Row(
                "maskwise, all of it, on one thread",
                fastest(
                    lambda: lisa.score(ScoringInput(ground_truth, predictions)),
                    len(ground_truth.sample),
                    repeats=3,
                ),
            ),
        ],
        {
            "LISA's loop: decode, two-bin histograms of float planes (numpy for torch.histc)": 1000,
            "pycocotools, merge and area": 5,
        },
    )


def intervals() -> Table:
    """The interval of a ratio of sums, clustered by image."""
    random = np.random.default_rng(0)
    union = random.integers(1, 90_000, 200_000)
    metric = MetricTerms(random.integers(0, union), union)
    cluster = np.sort(random.integers(0, 57_000, 200_000))
    seconds = min(
        _timed(lambda: estimate(metric, ImageGroups.single(cluster))) for _ in range(3)
    )
    return Table(
        f"Interval of cIoU over 57,000 images with 200,000 samples (µs; wanted at most {MOST_SECONDS:g} s)",
        [Row("maskwise, `estimate`", seconds * 1e6)],
        {},
    )


def _some_pairs(
    ground_truth: GroundTruth, predictions: Any
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    rows = np.arange(COCO_MASKS)
    return list(
        zip(
            predictions.visible.masks[rows].to_rles(),
            ground_truth.visible.masks[rows].to_rles(),
        )
    )


def _coco_pair(a: dict[str, Any], b: dict[str, Any]) -> tuple[int, int]:
    intersection = int(coco.area(coco.merge([a, b], intersect=True)))
    return intersection, int(coco.area(a)) + int(coco.area(b)) - intersection


def _lisa_pair(a: dict[str, Any], b: dict[str, Any]) -> tuple[Any, Any]:
    """intersectionAndUnion of LISA's utils, on float planes."""
    output = coco.decode(a).astype(np.float32).ravel()
    target = coco.decode(b).astype(np.float32).ravel()
    output[target == 255] = 255
    shared = np.histogram(output[output == target], bins=2, range=(0, 1))[0]
    areas = (np.histogram(plane, bins=2, range=(0, 1))[0] for plane in (output, target))
    return shared, sum(areas) - shared


def _timed(work: Callable[[], object]) -> float:
    before = time.perf_counter()
    work()
    return time.perf_counter() - before


class Costs(NamedTuple):
    """What a process took: seconds of wall time, of all its threads and of the first one; peak memory."""

    wall: float
    processor: float
    first_thread: float
    megabytes: float


def _measure(way: str, folder: Path) -> Costs:
    done = subprocess.run(
        [sys.executable, "-m", "bench.scoring", way, str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    return Costs(*map(float, done.stdout.split()))


def _costs(work: Callable[[], object]) -> Costs:
    clocks = (time.perf_counter, time.process_time, time.thread_time)
    before = [clock() for clock in clocks]
    work()
    spent = [clock() - start for clock, start in zip(clocks, before)]
    wall, processor, first_thread = spent
    return Costs(wall, processor, first_thread, peak_megabytes())


def _parse(folder: Path) -> object:
    with (folder / "predictions.jsonl").open("rb") as lines:
        return [orjson.loads(line) for line in lines]


def _score(folder: Path) -> object:
    result = compute_scores(
        folder / "predictions.jsonl", Dataset.open(folder / "truth"), threads=2
    )
    return msgspec.json.encode(result_to_scores(result))


if __name__ == "__main__":
    work = {"parse": _parse, "score": _score}[sys.argv[1]]
    print(*_costs(lambda: work(Path(sys.argv[2]))))
