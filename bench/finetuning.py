"""Does fine-tuning on questions in the manner of R2SM help? `tiny` and `nano` before and after, on held-out images.

    make finetuning CHECKPOINT=runs/nano

Scenes of the world get questions by the recipe `r2sm`, whose wording decides between the visible and the amodal mask.
Neither model has seen such wordings. Training and held-out scenes have different seeds, and the held-out ones are used
once, after training. R2SM reports for its own data and models that fine-tuning helps; this is the same question here.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from maskwise import load_model
from maskwise.harness.evaluate import evaluate
from maskwise.runs.metric import Metric

COLUMNS = {
    "gIoU (r2sm)": ("r2sm", "giou"),
    "cIoU (r2sm)": ("r2sm", "ciou"),
    "gIoU (strict)": ("strict", "giou"),
    "mask type": ("strict", "mask_type_accuracy"),
}
"""What is reported, by protocol and metric."""

TINY = """
model = "tiny"
seed = 1
threads = 1
init = "tiny"
datasets = ["{data}"]
detected_scenes = {scenes}

[world]
scenes = {world}
validation_scenes = 0

[grounder]
steps = {steps}
batch_size = 64
learning_rate = 0.0002
warmup_steps = 20
"""

NANO = """
model = "vlm"
init = "{checkpoint}"
seed = 1
threads = 1
checkpoint_every = 100

[optimization]
learning_rate = 5e-4
batch_size = 8
micro_batch_size = 8
questions_per_image = 4
schedule = "cosine"
warmup_steps = 20

[sources.built]
dataset = "{data}"

[[stages]]
name = "finetune"
steps = {steps}
freeze = ["visual", "embed_tokens", "^segmenter", "^decoders", "^projector"]
losses = {{ bce = 0.0, dice = 0.0, region_words = 0.0, name_prompt = 0.0, name_alignment = 0.0, mask_type = 1.0 }}
"""


def main() -> None:
    """Build, train and measure; print a table for the documentation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", help="a trained nano; without it only tiny")
    parser.add_argument("--out", type=Path, default=Path("runs/finetuning"))
    parser.add_argument("--scenes", type=int, default=400)
    parser.add_argument("--held-out", type=int, default=60)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--world", type=int, default=200)
    given = parser.parse_args()
    train = build(given.out, "train", given.scenes, seed=31)
    held_out = build(given.out, "test", given.held_out, seed=32)
    settings = {
        "data": train,
        "steps": given.steps,
        "scenes": given.scenes,
        "world": given.world,
        "checkpoint": given.checkpoint,
    }
    rows = {"tiny": measure("tiny", held_out)}
    tuned = finetune(given.out / "tiny", TINY.format(**settings))
    rows["tiny, fine-tuned"] = measure("tiny", held_out, folder=str(tuned))
    if given.checkpoint is not None:
        rows["nano"] = measure("vlm", held_out, checkpoint=given.checkpoint)
        tuned = finetune(given.out / "nano", NANO.format(**settings))
        rows["nano, fine-tuned"] = measure("vlm", held_out, checkpoint=str(tuned))
    print_table(rows, given.held_out)


def build(out: Path, split: str, scenes: int, *, seed: int) -> Path:
    """Scenes with questions by the recipe `r2sm`, unless they are there."""
    images = out / f"scenes-{split}"
    questions = out / f"r2sm-{split}"
    if not images.exists():
        options = ("--seed", seed, "--split", split, "--preset", "easy")
        call("world", "--scenes", scenes, *options, "--out", images)
    if not questions.exists():
        call("build", "r2sm", images, "--out", questions)
    return questions


def finetune(folder: Path, config: str) -> Path:
    """Train, or continue; returns the folder of the model."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.toml"
    path.write_text(config)
    call("train", path, "--out", folder / "run")
    return folder / "run"


def measure(model: str, data: Path, **options: str) -> list[Metric | None]:
    """The metrics of a model on a dataset."""
    loaded = load_model(model, **options)
    run = evaluate(loaded, data, protocols=["strict", "r2sm"], keep_going=True)
    return [run[protocol][metric] for protocol, metric in COLUMNS.values()]


def print_table(rows: dict[str, list[Metric | None]], images: int) -> None:
    """A Markdown table with 95 % intervals."""
    print(f"\n{images} held-out scenes, 95 % intervals over images\n")
    print("| |", " | ".join(COLUMNS), "|")
    print("|---|", " | ".join("--:" for _ in COLUMNS), "|")
    for name, metrics in rows.items():
        print(f"| {name} |", " | ".join(map(to_cell, metrics)), "|")


def to_cell(metric: Metric | None) -> str:
    """A value with its interval, if it has one."""
    if metric is None:
        return "none"
    if metric.interval is None:
        return f"{metric:.3f}"
    low, high = metric.interval
    return f"{metric:.3f} ({low:.3f} to {high:.3f})"


def call(*arguments: object) -> None:
    """Run a command of maskwise; it has to end well."""
    program = [sys.executable, "-m", "maskwise", *map(str, arguments)]
    subprocess.run(program, check=True, stdout=sys.stderr)


if __name__ == "__main__":
    main()
