"""The metrics of a trained `nano` and of its blind baselines on unseen scenes, `strict`: make nano CHECKPOINT=FOLDER.

60 scenes of the preset `easy`, which was made for this model, and the bundled benchmark with the scenes of the full
world. The tables are printed as Markdown, for docs/results/vlm.md.
"""

import argparse
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import track

from maskwise import baseline, load_dataset, load_model
from maskwise.harness.evaluate import evaluate
from maskwise.harness.score import score
from maskwise.masks import Mask
from maskwise.runs import Run
from maskwise.runs.metric import Metric
from maskwise.schema import Prediction
from maskwise.store import Dataset
from maskwise.world import write_scenes

BASELINES = ("text-blind", "image-blind")
METRICS = {
    "gIoU": "giou",
    "mask type": "mask_type_accuracy",
    "answers exact": "answer_exact",
    "no target": "no_target_accuracy",
    "F1@.5": "f1",
}
SLICES = ("wording", "colors", "level", "targets")
RESAMPLES = 2000


def main() -> None:
    """Evaluate the model and its baselines on the same scenes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint")
    parser.add_argument("--scenes", type=int, default=60)
    parser.add_argument("--seed", type=int, default=2606)
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        easy = Path(folder) / "easy"
        write_scenes(easy, given.scenes, given.seed, split="test", preset="easy")
        for title, dataset in (
            ("preset easy, test split", easy),
            ("bundled benchmark", "world"),
        ):
            measure(given.checkpoint, load_dataset(dataset), title)


def measure(checkpoint: str, dataset: Dataset, title: str) -> None:
    """Print the tables of one dataset."""
    runs: dict[str, Run] = {}
    nano = load_model("vlm", checkpoint=checkpoint)
    models = {"nano": nano} | {name: baseline(nano, name) for name in BASELINES}
    for name, model in track(models.items(), title, console=Console(stderr=True)):
        runs[name] = evaluate(model, dataset, protocols=["strict"])
    print(f"\n{title}, {len(dataset)} questions, `strict`, 95 % intervals\n")
    rows = [
        [name, *(_cell(run["strict"][key]) for key in METRICS.values())]
        for name, run in runs.items()
    ]
    for cells in (["", *METRICS], ["---", *("--:" for _ in METRICS)], *rows):
        print("|", " | ".join(cells), "|")
    print()
    found = {one.sample: one for one in runs["nano"].predictions or ()}
    print_slices(dataset, found)
    print_amodal(dataset, found)


def print_slices(dataset: Dataset, found: dict[str, Prediction]) -> None:
    """gIoU and accuracy of the mask type by tags of the questions."""
    for tag in SLICES:
        for value in sorted({sample.tags[tag] for sample in dataset}):
            view = dataset.filter(
                lambda one, tag=tag, value=value: one.tags[tag] == value
            )
            scores = score(
                {one.id: found[one.id] for one in view}, view, protocols=["strict"]
            )["strict"]
            cells = [
                f"{name} {_cell(scores[METRICS[name]])}"
                for name in ("gIoU", "mask type")
            ]
            print(f"- {tag}: {value}, {len(view)} questions: {', '.join(cells)}")


def print_amodal(dataset: Dataset, found: dict[str, Prediction]) -> None:
    """The amodal mask beside a copy of the model's own visible mask, on single targets that are partly hidden."""
    for least in (0.05, 0.25):
        pairs: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for sample in dataset:
            target = sample.targets[0] if len(sample.targets) == 1 else None
            if target is None or target.amodal is None or target.visible is None:
                continue
            if target.visible.area < (1 - least) * target.amodal.area:
                pairs[sample.image_id].append(_ious(found[sample.id], target.amodal))
        print(
            f"- single targets more than {least:.0%} hidden, {_difference(list(pairs.values()))}"
        )


def _ious(prediction: Prediction, amodal: Mask) -> tuple[float, float]:
    """IoU of the first region's amodal and visible mask with the true amodal mask; 0 without a region."""
    if not prediction.regions:
        return 0.0, 0.0
    drawn = prediction.regions[0].amodal
    copied = prediction.regions[0].visible
    assert drawn is not None
    assert copied is not None
    return drawn.iou(amodal), copied.iou(amodal)


def _difference(images: list[list[tuple[float, float]]]) -> str:
    """Both means, and the 95 % interval of their difference by a bootstrap over images."""
    sums = np.array([(*np.sum(pairs, 0), len(pairs)) for pairs in images])
    first, second, count = sums.sum(0)
    drawn = sums[
        np.random.default_rng(0).integers(len(sums), size=(RESAMPLES, len(sums)))
    ].sum(1)
    low, high = np.quantile((drawn[:, 0] - drawn[:, 1]) / drawn[:, 2], (0.025, 0.975))
    return (
        f"{count:.0f} questions: IoU of the amodal mask {first / count:.3f}, of the visible copy {second / count:.3f}, "
        f"difference {(first - second) / count:+.3f} ({low:+.3f} to {high:+.3f})"
    )


def _cell(metric: Metric | None) -> str:
    if metric is None:
        return "none"
    if metric.interval is None:
        return f"{metric:.3f}"
    return f"{metric:.3f} ({metric.interval[0]:.3f} to {metric.interval[1]:.3f})"


if __name__ == "__main__":
    main()
