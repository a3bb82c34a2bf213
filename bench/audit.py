"""What an audit finds of planted errors, beside random order: `python -m bench.audit DATASET`.

The runs that the audit asks are oracles of the dataset before errors were planted, with noise of their own.
"""

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.planted_errors import CHANGES, plant_errors
from maskwise.auditing.audit import audit_dataset
from maskwise.datasets import load_dataset
from maskwise.harness.oracle import Oracle
from maskwise.protocols import GroundTruth, PredictionColumns
from maskwise.schema import Prediction
from maskwise.store import Dataset

NOISE = {"noise": 2.0, "drop": 0.1, "add": 0.1, "flip": 0.1}
"""Of the oracles: about 70 % gIoU on the world."""


DEPTHS = (1, 2)
"""How far down the list is looked, in multiples of the number of planted errors."""


@dataclass(frozen=True)
class Recall:
    """Planted errors of a kind, and how many of them are at the top of the list: by rules alone and with runs, for each
    of DEPTHS.
    """

    kind: str
    planted: int
    by_rules: tuple[int, ...]
    with_runs: tuple[int, ...]


def measure(
    dataset: Dataset, *, share: float = 0.1, seed: int = 0, runs: int = 3
) -> tuple[list[Recall], float]:
    """Recall by kind of error, and that of random order to the first depth."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "planted"
        planted = plant_errors(dataset, path, share=share, seed=seed)
        changed = Dataset.open(path)
        predictions = predict(dataset, changed, runs)
        audits = (audit_dataset(changed), audit_dataset(changed, predictions))
    ranks = []
    for result in audits:
        ranks.append({item.sample: place for place, item in enumerate(result.doubtful)})
    recalls = []
    for kind in CHANGES:
        samples = [sample for sample, other in planted.items() if other == kind]
        by_rules, with_runs = (
            tuple(
                sum(
                    rank.get(sample, len(dataset)) < depth * len(planted)
                    for sample in samples
                )
                for depth in DEPTHS
            )
            for rank in ranks
        )
        recalls.append(Recall(kind, len(samples), by_rules, with_runs))
    return recalls, len(planted) / len(dataset)


def predict(dataset: Dataset, changed: Dataset, runs: int) -> list[PredictionColumns]:
    """Predictions of oracles that know the truth before it was changed."""
    truth = GroundTruth.from_dataset(changed)
    columns = []
    for seed in range(runs):
        oracle = Oracle(seed=seed, **NOISE)
        records: list[Prediction] = []
        for image, samples in dataset.groups():
            made = oracle.predict_with_ground_truth(
                dataset.open_image(image.id), samples
            )
            records += [
                _name(prediction, sample.id)
                for prediction, sample in zip(made, samples, strict=True)
            ]
        columns.append(PredictionColumns.from_predictions(truth, records))
    return columns


def _name(prediction: Prediction, sample: str) -> Prediction:
    return Prediction(
        sample=sample,
        mask_type=prediction.mask_type,
        regions=prediction.regions,
        no_target=prediction.no_target,
    )


def print_table(recalls: Sequence[Recall], random: float) -> None:
    """One row per kind of error, then all."""
    print("| error | planted | rules, k | rules, 2k | with runs, k | with runs, 2k |")
    print("|---|---|---|---|---|---|")
    total = Recall(
        "all",
        sum(recall.planted for recall in recalls),
        tuple(map(sum, zip(*(recall.by_rules for recall in recalls)))),
        tuple(map(sum, zip(*(recall.with_runs for recall in recalls)))),
    )
    for recall in (*recalls, total):
        shares = [
            f"{100 * count / recall.planted:.0f} %" if recall.planted else "-"
            for count in (*recall.by_rules, *recall.with_runs)
        ]
        print(f"| {recall.kind} | {recall.planted} | {' | '.join(shares)} |")
    print(f"k: the number of planted errors. Random order: {100 * random:.0f} % at k")


def main() -> None:
    """Measure one dataset."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", help="a dataset folder, or `world`")
    parser.add_argument(
        "--share", type=float, default=0.1, help="of samples with errors"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    recalls, random = measure(
        load_dataset(options.dataset),
        share=options.share,
        seed=options.seed,
        runs=options.runs,
    )
    print_table(recalls, random)


if __name__ == "__main__":
    main()
