"""The metrics of the bundled model and its baselines on the world's test split under `strict`: make figures.

Runs are kept in .cache/figures and continued; the table is printed as Markdown, for docs/results/model.md.
"""

import argparse
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.progress import track

from maskwise.harness.evaluate import evaluate
from maskwise.language.intent import classify_intent
from maskwise.models.tiny import load
from maskwise.store import Dataset
from maskwise.world import write_scenes

MODELS = (
    "tiny",
    "text-blind",
    "image-blind",
    "whole-image",
    "visible-copy",
    "convex-hull",
    "oracle-detector",
    "oracle-mask-type",
    "oracle-grounder",
    "oracle-masks",
)
SLICES = {
    "visible gIoU": ("mask_type", "visible"),
    "amodal gIoU": ("mask_type", "amodal"),
    "part gIoU": ("level", "part"),
}
METRICS = {
    "occluded IoU": "occluded_iou",
    "no target": "no_target_accuracy",
    "F1@.5": "f1",
    "answers exact": "answer_exact",
    "mask type": "mask_type_accuracy",
}


def main() -> None:
    """Evaluate every model on the same scenes and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", type=int, default=400)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--out", type=Path, default=Path(".cache/figures"))
    given = parser.parse_args()
    weights = load().weights_hash or ""
    folder = given.out / f"{given.seed}-{given.scenes}-{weights[:12]}"
    dataset = folder / "test"
    if not dataset.exists():
        write_scenes(dataset, given.scenes, given.seed, split="test", workers=2)
    rows = []
    for model in track(given.models, "evaluating", console=Console(stderr=True)):
        run = evaluate(model, dataset, folder / model, protocols=["strict"])
        rows.append([model, *_row(msgspec.to_builtins(run["strict"]))])
    head = ["", *SLICES, *METRICS]
    for cells in (head, ["---"] * len(head), *rows):
        print("|", " | ".join(cells), "|")
    print(
        "\nMask type on held-out wordings, questions with targets:",
        _held_out_types(Dataset.open(dataset)),
    )


def _row(scores: dict[str, Any]) -> list[str]:
    cells = [_slice_cell(scores, *place) for place in SLICES.values()]
    cells += [_cell(scores["metrics"][name]) for name in METRICS.values()]
    return cells


def _slice_cell(scores: dict[str, Any], slicing: str, group: str) -> str:
    found = [
        row["metrics"]["giou"]
        for row in scores["slices"][slicing]
        if row["name"] == group
    ]
    return _cell(found[0]) if found else ""


def _held_out_types(dataset: Dataset) -> str:
    asked = [
        sample
        for sample in dataset
        if sample.tags["wording"] == "held out" and sample.targets
    ]
    said = classify_intent([sample.question for sample in asked])
    right = sum(one.mask_type == sample.mask_type for one, sample in zip(said, asked))
    return f"{right} of {len(asked)} right"


def _cell(metric: dict[str, Any]) -> str:
    if metric["value"] is None:
        return "none"
    if metric["low"] is None:  # too few images for an interval
        return f"{metric['value']:.3f}"
    return f"{metric['value']:.3f} ({metric['low']:.3f} to {metric['high']:.3f})"


if __name__ == "__main__":
    main()
