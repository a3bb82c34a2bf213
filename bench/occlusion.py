"""The two parts after AURA, alone and together: which of them improves amodal masks? The same start, steps and scenes.

    make occlusion CHECKPOINT=runs/nano-short

Four models continue from one: neither part, the occlusion head (a rate that conditions the prompt), the occlusion map
(three classes that condition the decoder), and both. Masks are drawn by the names of all regions of held-out scenes,
so that no language decides. IoU of amodal masks, and of what is hidden (amodal minus visible) where more than 5 % is.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from bench.reinforcement import interval
from maskwise import load_dataset
from maskwise.arrays import Float64Array
from maskwise.masks import Mask
from maskwise.models.vlm.batch import pad_rows
from maskwise.models.vlm.folder import load_folder
from maskwise.models.vlm.generation import encode_image
from maskwise.store import Dataset
from maskwise.world import write_scenes

VARIANTS = {
    "neither": (False, False),
    "occlusion head": (True, False),
    "occlusion map": (False, True),
    "both": (True, True),
}
"""Whether the model has `occlusion_head` and `occlusion_map`."""

HIDDEN = 0.05
"""The least hidden share of a region whose hidden part is compared."""

CONFIG = """
model = "vlm"
init = {init}
seed = 1
threads = 1
checkpoint_every = 100

[vlm]
occlusion_head = {head}
occlusion_map = {map}

[optimization]
learning_rate = 1e-3
matrix_rate = 0.01
batch_size = 8
micro_batch_size = 8
questions_per_image = 0
schedule = "cosine"
warmup_steps = 10

[augmentation]
flip = 0.5

[sources.world]
world = {{ scenes = 4000, seed = 41, preset = "easy", size = 160, questions = 1 }}

[[stages]]
name = "masks"
steps = {steps}
dense = true
freeze = ["^vision_language", "^mask_type_head"]

[stages.losses]
text = 0.0
mask_type = 0.0
region_words = 0.0
name_alignment = 0.0
occlusion = {occlusion}
occlusion_map = {occlusion_map}
"""


class RegionScores(NamedTuple):
    """Of every region: the IoU of its amodal mask [n], of its hidden part [n] (NaN where little is hidden), and the
    image it is of.
    """

    amodal: Float64Array
    hidden: Float64Array
    images: np.ndarray


def main() -> None:
    """Train the four models and measure them; print a table for the documentation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/occlusion"))
    parser.add_argument("--held-out", type=int, default=60)
    parser.add_argument("--seed", type=int, default=2609)
    parser.add_argument("--steps", type=int, default=100)
    given = parser.parse_args()
    torch.set_num_threads(1)
    given.out.mkdir(parents=True, exist_ok=True)
    folders = {}
    for name in VARIANTS:
        folders[name] = train(name, given.checkpoint, given.out, given.steps)
    scenes = given.out / f"held-out-{given.held_out}-{given.seed}"
    if not scenes.exists():
        write_scenes(scenes, given.held_out, given.seed, split="test", preset="easy")
    dataset = load_dataset(scenes)
    rows = {"the start": measure(given.checkpoint, dataset)}
    for name, folder in folders.items():
        rows[name] = measure(folder, dataset)
    print_table(rows, given)


def train(name: str, checkpoint: Path, out: Path, steps: int) -> Path:
    """Train a variant, or continue; returns the folder of the run."""
    head, has_map = VARIANTS[name]
    folder = out / name.replace(" ", "-")
    path = folder.with_suffix(".toml")
    path.write_text(
        CONFIG.format(
            init=json.dumps(str(checkpoint)),
            head=str(head).lower(),
            map=str(has_map).lower(),
            steps=steps,
            occlusion=float(head),
            occlusion_map=float(has_map),
        )
    )
    command = [sys.executable, "-m", "maskwise", "train", str(path), "--out"]
    subprocess.run([*command, str(folder)], check=True, stdout=sys.stderr)
    return folder


@torch.inference_mode()
def measure(folder: Path, dataset: Dataset) -> RegionScores:
    """The scores of all regions of a dataset, by their names."""
    model, processor = load_folder(folder)
    amodal = []
    hidden = []
    images = []
    for row, name in enumerate(dataset.images.id):
        regions = [
            region
            for region in dataset.regions_of(row)
            if region.amodal is not None and region.visible is not None and region.name
        ]
        image = encode_image(model, processor, dataset.open_image(row))
        words = [processor.name_tokens(region.name) for region in regions]
        owners = torch.zeros(len(regions), dtype=torch.long)
        masks = model.decode(
            image.segmenter, model.name_vectors(pad_rows(words, -1)), owners
        )
        drawn = to_masks(processor.restore_masks(masks.amodal, image.size))
        shown = to_masks(processor.restore_masks(masks.visible, image.size))
        for region, whole, visible in zip(regions, drawn, shown):
            amodal.append(whole.iou(region.amodal))
            share = 1 - region.visible.area / max(region.amodal.area, 1)
            behind = region.amodal - region.visible
            hidden.append((whole - visible).iou(behind) if share > HIDDEN else np.nan)
            images.append(name)
    return RegionScores(np.array(amodal), np.array(hidden), np.array(images))


def to_masks(logits: torch.Tensor) -> list[Mask]:
    """Masks of logits [n, height, width]."""
    return [Mask.from_dense((plane > 0).numpy()) for plane in logits]


def print_table(rows: dict[str, RegionScores], given: argparse.Namespace) -> None:
    """A Markdown table, with the difference of each model to the one without both parts."""
    base = rows["neither"]
    print(
        f"\n{given.steps} steps each; {given.held_out} held-out scenes, {len(base.amodal)} regions, of which "
        f"{int((~np.isnan(base.hidden)).sum())} are more than {HIDDEN:.0%} hidden; 95 % intervals over scenes\n"
    )
    print(
        "| | amodal IoU | difference to neither | hidden IoU | difference to neither |"
    )
    print("|---|--:|--:|--:|--:|")
    for name, scores in rows.items():
        cells = []
        for values, others in (
            (scores.amodal, base.amodal),
            (scores.hidden, base.hidden),
        ):
            known = ~np.isnan(values)
            difference = (values - others)[known]
            low, high = interval(difference, scores.images[known])
            cells.append(f"{values[known].mean():.3f}")
            cells.append(f"{difference.mean():+.3f} ({low:+.3f} to {high:+.3f})")
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
