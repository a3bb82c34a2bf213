"""Does reinforcement learning help? A `nano` before and after configs/vlm/nano-grpo.toml, on held-out scenes.

    make reinforcement CHECKPOINT=runs/nano-short

The held-out scenes have a seed of their own and are used once, after training. For each reward the mean over their
questions is printed, with the 95 % interval of the difference by a bootstrap over scenes, and the curve of training.

A control is trained supervised: as many steps on as many questions of the same scenes, with the same rate and the same
frozen weights. It sees the true answers and masks, of which GRPO only sees the rewards.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

from maskwise import load_dataset, load_model
from maskwise.arrays import Float64Array
from maskwise.harness.evaluate import evaluate
from maskwise.store import Dataset
from maskwise.training.vlm.rewards import REWARDS
from maskwise.world import write_scenes

CONFIG = Path(__file__).parent.parent / "configs" / "vlm" / "nano-grpo.toml"
INIT = 'init = "runs/nano"'
RESAMPLES = 2000
CURVE_ROWS = 5
"""Rows of the curve that are printed: means of a fifth of the steps each."""


def main() -> None:
    """Train and measure; print tables for the documentation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/reinforcement"))
    parser.add_argument("--held-out", type=int, default=60)
    parser.add_argument("--seed", type=int, default=2608)
    parser.add_argument("--steps", type=int, help="in place of those of the config")
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.out.mkdir(parents=True, exist_ok=True)
    trained = train(given.checkpoint, given.out, given.steps)
    control = train(given.checkpoint, given.out, given.steps, supervised=True)
    print_curve(trained / "grpo.jsonl")
    scenes = given.out / f"held-out-{given.held_out}-{given.seed}"
    if not scenes.exists():
        write_scenes(scenes, given.held_out, given.seed, split="test", preset="easy")
    dataset = load_dataset(scenes)
    before = measure(given.checkpoint, dataset)
    after = {
        "GRPO": measure(trained, dataset),
        "supervised": measure(control, dataset),
    }
    print_table(before, after, dataset)


def train(
    checkpoint: Path, out: Path, steps: int | None, *, supervised: bool = False
) -> Path:
    """Train, or continue; returns the folder of the run. supervised: without GRPO, otherwise by the same config."""
    text = CONFIG.read_text()
    assert INIT in text
    text = text.replace(INIT, f"init = {json.dumps(str(checkpoint))}")
    lines = []
    for line in text.splitlines():
        if steps is not None and line.startswith("steps = "):
            lines.append(f"steps = {steps}")
        elif not (supervised and line.startswith("grpo = ")):
            lines.append(line)
    folder = out / ("control" if supervised else "run")
    path = folder.with_suffix(".toml")
    path.write_text("\n".join(lines))
    command = [sys.executable, "-m", "maskwise", "train", str(path), "--out"]
    subprocess.run([*command, str(folder)], check=True, stdout=sys.stderr)
    return folder


def measure(checkpoint: Path, dataset: Dataset) -> dict[str, Float64Array]:
    """Each reward of the greedy answers, one per question in the order of the dataset; NaN where it says nothing."""
    model = load_model("vlm", checkpoint=str(checkpoint))
    run = evaluate(model, dataset, protocols=["strict"], keep_going=True)
    predictions = {one.sample: one for one in run.predictions or ()}
    samples = list(dataset)
    ordered = [predictions[sample.id] for sample in samples]
    rewards = {}
    for name, reward in REWARDS.items():
        rewards[name] = np.array(reward(ordered, samples), float)
    # A right "nothing" alone: what published rewards give nothing for.
    has_target = np.array([bool(sample.targets) for sample in samples])
    decided = rewards["no_target"]
    rewards["no_target, questions without"] = np.where(has_target, np.nan, decided)
    rewards["no_target, questions with"] = np.where(has_target, decided, np.nan)
    return rewards


def print_table(
    before: dict[str, Float64Array],
    after: dict[str, dict[str, Float64Array]],
    dataset: Dataset,
) -> None:
    """A Markdown table. after: by the name of the training."""
    images = np.array([sample.image_id for sample in dataset])
    print(f"\n{len(dataset)} held-out questions, 95 % intervals over scenes\n")
    titles = "".join(f" {name} | difference |" for name in after)
    print(f"| reward | before |{titles}\n|---|--:|{' --: | --: |' * len(after)}")
    for name, first in before.items():
        # A reward may say nothing about a question, but then it does for all models.
        known = ~np.isnan(first)
        cells = [f"`{name}`", f"{first[known].mean():.3f}"]
        for rewards in after.values():
            second = rewards[name][known]
            difference = second - first[known]
            low, high = interval(difference, images[known])
            cells.append(f"{second.mean():.3f}")
            cells.append(f"{difference.mean():+.3f} ({low:+.3f} to {high:+.3f})")
        print(f"| {' | '.join(cells)} |")


def interval(values: Float64Array, groups: np.ndarray) -> tuple[float, float]:
    """The 95 % interval of the mean of values by a bootstrap over their groups."""
    names = np.unique(groups)
    sums = np.array([values[groups == name].sum() for name in names])
    counts = np.array([(groups == name).sum() for name in names])
    random = np.random.default_rng(0)
    drawn = random.integers(len(names), size=(RESAMPLES, len(names)))
    means = sums[drawn].sum(1) / counts[drawn].sum(1)
    low, high = np.quantile(means, (0.025, 0.975))
    return float(low), float(high)


def print_curve(path: Path) -> None:
    """Means of the curve over equal parts of training."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows = [row for row in rows if "reward" in row]
    names = ["reward", "frac_reward_zero_std"]
    names += [
        name for name in rows[0] if name.startswith("rewards/") and "mean" in name
    ]
    titles = [name.removeprefix("rewards/").removesuffix("/mean") for name in names]
    print(f"\n| steps | {' | '.join(titles)} |")
    print(f"|---|{' --: |' * len(names)}")
    for part in np.array_split(np.arange(len(rows)), min(CURVE_ROWS, len(rows))):
        chosen = [rows[index] for index in part]
        cells = []
        for name in names:
            values = [row[name] for row in chosen if name in row]
            cells.append(f"{np.mean(values):.3f}" if values else "none")
        print(f"| to {chosen[-1]['step']} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
