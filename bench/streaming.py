"""The streaming metric: what an update costs beside torchmetrics, and whether two processes give the result of one.

python -m bench.streaming RANK FOLDER       # one of the two processes; the measurement starts them
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.mmr_set import HEIGHT, QUESTIONS, SCALE, WIDTH, find_set
from bench.sizes import QUICK, choose
from bench.timing import Row, Table, fastest, to_markdown
from maskwise.harness.evaluator import Evaluator
from maskwise.harness.score import score
from maskwise.schema import Prediction
from maskwise.store import Dataset, Log

ROOT = Path(__file__).parents[1]
MASKS = choose(128, 8)
BATCH = 8
SAMPLES = choose(10_000, 100)
PROTOCOLS = ["strict", "lisa"]


def find_samples() -> Path:
    """The folder of a set with SAMPLES questions and a few more."""
    scale = SCALE if QUICK else 1.01 * SAMPLES / QUESTIONS
    return find_set("streaming", scale)


def sections() -> Iterator[str]:
    """All tables as Markdown."""
    yield to_markdown(updates())
    yield processes()


def updates() -> Table:
    """One mask per sample, dense on both sides, in batches of 8."""
    dataset = Dataset.open(find_samples() / "truth")
    with_target = [row for row in range(20 * MASKS) if len(dataset[row].targets) == 1][
        :MASKS
    ]
    ids = [dataset.samples.id[row] for row in with_target]
    targets = np.stack(
        [np.asarray(dataset[row].targets[0].visible) for row in with_target]
    )
    predictions = np.roll(targets, 5, axis=2)
    evaluator = Evaluator(dataset, protocol="lisa")

    def update() -> None:
        evaluator.reset()
        for first in range(0, MASKS, BATCH):
            evaluator.update(
                ids[first : first + BATCH], predictions[first : first + BATCH]
            )

    def update_and_compute() -> None:
        update()
        evaluator.compute()

    rows = [
        *_torchmetrics_rows(predictions, targets),
        Row("numpy, sums of dense masks", _measure_numpy(predictions, targets)),
        Row("maskwise, `update` and `compute`", fastest(update_and_compute, MASKS)),
        Row("maskwise, `Evaluator.update`", fastest(update, MASKS)),
    ]
    return Table(
        f"A streaming metric, for each mask of {WIDTH} x {HEIGHT} in batches of {BATCH}. torchmetrics and numpy are "
        "given dense targets; `Evaluator` has them as run lengths",
        rows,
        {},
    )


def _torchmetrics_rows(
    predictions: NDArray[np.bool_], targets: NDArray[np.bool_]
) -> list[Row]:
    """MeanIoU of torchmetrics; no row where it is not installed."""
    try:
        import torch  # noqa: PLC0415
        from torchmetrics.segmentation import MeanIoU  # noqa: PLC0415
    except ImportError:
        return []
    torch.set_num_threads(1)
    metric = MeanIoU(num_classes=1, input_format="one-hot")
    predicted = torch.from_numpy(predictions)[:, None].to(torch.uint8)
    wanted = torch.from_numpy(targets)[:, None].to(torch.uint8)

    def update() -> None:
        metric.reset()
        for first in range(0, MASKS, BATCH):
            metric.update(
                predicted[first : first + BATCH], wanted[first : first + BATCH]
            )

    return [Row("torchmetrics, `MeanIoU.update`", fastest(update, MASKS))]


def _measure_numpy(predictions: NDArray[np.bool_], targets: NDArray[np.bool_]) -> float:
    def update() -> None:
        for first in range(0, MASKS, BATCH):
            predicted = predictions[first : first + BATCH]
            wanted = targets[first : first + BATCH]
            np.logical_and(predicted, wanted).sum((1, 2))
            np.logical_or(predicted, wanted).sum((1, 2))

    return fastest(update, MASKS)


def processes() -> str:
    """Updates in random order by two gloo processes, beside scoring at once."""
    folder = find_samples()
    dataset = Dataset.open(folder / "truth")[:SAMPLES]
    known = set(dataset.samples.id)
    started = time.perf_counter()
    records = [
        prediction
        for prediction in Log(folder / "predictions.jsonl", Prediction)
        if prediction.sample in known
    ]
    run = score(records, dataset, protocols=PROTOCOLS, progress=False)
    seconds = time.perf_counter() - started
    expected = {
        f"{protocol}/{name}": value.value
        for protocol in run
        for name, value in run[protocol].metrics.items()
    }
    with tempfile.TemporaryDirectory() as meeting:
        started_processes = [
            subprocess.Popen(
                [sys.executable, "-m", "bench.streaming", str(rank), meeting],
                stdout=subprocess.PIPE,
                cwd=ROOT,
                env=os.environ | {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"},
            )
            for rank in range(2)
        ]
        results = [json.loads(item.communicate()[0]) for item in started_processes]
    equal = sum(
        result["metrics"][name] == value
        for result in results
        for name, value in expected.items()
    )
    return "\n".join(
        [
            f"## The streaming metric on {len(records):,} predictions in random order, split over two processes",
            "",
            f"{equal} of {2 * len(expected)} metrics (those of both processes) are equal to those of `score`, bit for "
            f"bit. `score` took {seconds:.1f} s with reading; each process took "
            f"{results[0]['update']:.2f} s for its updates and {results[0]['compute']:.2f} s for `compute`.",
            "",
        ]
    )


def work(rank: int, meeting: Path) -> None:
    """One of two processes: every second prediction, shuffled."""
    import torch.distributed  # noqa: PLC0415

    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{meeting / 'store'}", rank=rank, world_size=2
    )
    folder = find_samples()
    dataset = Dataset.open(folder / "truth")[:SAMPLES]
    records = [
        prediction
        for prediction in Log(folder / "predictions.jsonl", Prediction)
        if prediction.sample in dataset.samples.row
    ]
    order = np.random.default_rng(rank).permutation(len(records))
    mine = [records[row] for row in order if row % 2 == rank]
    evaluator = Evaluator(dataset, protocol=PROTOCOLS)
    started = time.process_time()
    for first in range(0, len(mine), BATCH):
        batch = mine[first : first + BATCH]
        evaluator.update([prediction.sample for prediction in batch], batch)
    updated = time.process_time()
    evaluator.gather()
    gathered = time.process_time()
    metrics = evaluator.compute()
    computed = time.process_time()
    result = {
        "metrics": metrics,
        "update": updated - started,
        "compute": computed - gathered,
    }
    print(json.dumps(result))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    work(int(sys.argv[1]), Path(sys.argv[2]))
