"""The figures of the bundled model on the world's test split under `strict`, beside its controls: make figures.

Runs are kept in .cache/figures and continued; the table is printed as Markdown, for docs/model.md.
"""

import argparse
from pathlib import Path
from typing import Any

from rich.progress import track

from maskwise.harness.evaluate import Task, evaluate
from maskwise.harness.score import result_to_json
from maskwise.world import write_scenes

MODELS = (
    "tiny",
    "text-blind",
    "picture-blind",
    "whole-picture",
    "visible-copy",
    "hull",
    "oracle-type",
    "oracle-choice",
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
    dataset = given.out / f"test-{given.seed}-{given.scenes}"
    if not dataset.exists():
        write_scenes(dataset, given.scenes, given.seed, split="test", workers=2)
    print("| |", " | ".join([*SLICES, *METRICS]), "|")
    print("|---" * (1 + len(SLICES) + len(METRICS)), "|", sep="")
    for model in track(given.models, "evaluating"):
        done = evaluate(
            Task(dataset, model), given.out / f"{model}-{given.seed}-{given.scenes}", protocols=["strict"]
        )
        assert done.result is not None
        print(f"| {model} |", " | ".join(_row(result_to_json(done.result)["protocols"]["strict"])), "|")


def _row(scores: dict[str, Any]) -> list[str]:
    cells = []
    for slicing, group in SLICES.values():
        found = [row["metrics"]["giou"] for row in scores["slices"][slicing] if row["name"] == group]
        cells.append(_cell(found[0]) if found else "")
    return cells + [_cell(scores["metrics"][name]) for name in METRICS.values()]


def _cell(figure: dict[str, Any]) -> str:
    if figure["value"] is None:
        return "none"
    return f"{figure['value']:.3f} ({figure['low']:.3f} to {figure['high']:.3f})"


if __name__ == "__main__":
    main()
