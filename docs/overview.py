"""Draw the image of the README, one scene and two questions about the same thing: `python docs/overview.py`."""

import itertools
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from maskwise.report.overlay import draw_overlay
from maskwise.schema import Sample
from maskwise.world import make_scene

SEED = 7
INDEX = 28
SPLIT = "val"
SIZE = 640
GAP = 12
WIDTH = 1280


def main() -> None:
    """The bare scene, the visible mask of a half-hidden thing and its amodal mask, side by side."""
    shown = make_scene(SEED, INDEX, SPLIT, SIZE)
    image = Image.fromarray(shown.image)
    panels = [draw_overlay(image, [])]
    for sample in hidden_pair(shown.samples):
        panels.append(
            draw_overlay(
                image,
                sample.targets,
                mask_type=sample.mask_type,
                question=sample.question,
                answer=sample.answer,
            )
        )
    sheet = side_by_side(panels)
    small = sheet.resize(
        (WIDTH, round(sheet.height * WIDTH / sheet.width)), Image.Resampling.LANCZOS
    )
    small.save(Path(__file__).parent / "images" / "overview.png", optimize=True)


def hidden_pair(samples: Sequence[Sample]) -> tuple[Sample, Sample]:
    """Two questions about one thing hidden in part: what shows of it, if possible by its use, and the whole."""
    pairs = [
        (one, other)
        for one, other in itertools.permutations(samples, 2)
        if one.targets == other.targets and one.tags["hidden"] == "much"
        if one.mask_type == "visible" and other.mask_type == "amodal"
    ]
    if not pairs:
        raise SystemExit(
            f"scene {INDEX} of seed {SEED} has no such pair; choose another"
        )
    return min(pairs, key=lambda pair: pair[0].tags["question_type"] != "function")


def side_by_side(panels: list[Image.Image]) -> Image.Image:
    """Panels from left to right, top edges level, on white."""
    width = sum(panel.width + GAP for panel in panels) - GAP
    sheet = Image.new("RGB", (width, max(panel.height for panel in panels)), "white")
    left = 0
    for panel in panels:
        sheet.paste(panel, (left, 0))
        left += panel.width + GAP
    return sheet


if __name__ == "__main__":
    main()
