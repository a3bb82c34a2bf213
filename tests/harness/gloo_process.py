"""One of two processes that share an evaluation: `python gloo_process.py RANK FOLDER`.

Each updates every second sample, in an order of its own, and prints the metrics of all of them. The last sample of the
first process is repeated in the second, as a sampler does that fills the last batch.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch.distributed

from maskwise.harness.evaluator import Evaluator
from maskwise.schema import Prediction
from maskwise.store import Log


def main(rank: int, folder: Path) -> None:
    """Update, gather, compute."""
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=2
    )
    predictions = Log(folder / "predictions.jsonl", Prediction).read()
    order = np.random.default_rng(rank).permutation(len(predictions))
    mine = [predictions[row] for row in order if row % 2 == rank]
    if rank == 1:
        mine.append(predictions[0])
    evaluator = Evaluator("world", protocol=["strict", "mmr", "lisa"])
    for first in range(0, len(mine), 7):
        batch = mine[first : first + 7]
        evaluator.update([prediction.sample for prediction in batch], batch)
    evaluator.gather()
    print(json.dumps({"samples": len(evaluator), "metrics": evaluator.compute()}))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
