"""Sample predictions: the truth, spoiled. They stand in for a model where there is none: demos, tests, reports.

    python -m maskwise.world.spoil DATASET PREDICTIONS.jsonl [--seed 1]

Masks are grown, shrunk and moved; hidden parts are often missed; targets are dropped, invented or denied; now and
then the wrong mask type is chosen or no reply comes at all. Scores follow the quality of the mask, with noise, so that
a report has something to show.
"""

import argparse
import os
import zlib

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from maskwise.masks import Mask
from maskwise.schema import Answer, Phrase, PredictedRegion, Prediction, Region, Sample
from maskwise.store import Dataset, Log
from maskwise.world.chance import Chance

FAILS, DENIES, DROPS, INVENTS, MISTAKES, FORGETS = 0.01, 0.04, 0.08, 0.07, 0.06, 0.35
"""Shares: replies that fail, targets denied altogether, dropped one by one, inventions, wrong mask types, hidden parts
missed.
"""


def spoil(sample: Sample, others: tuple[Region, ...], chance: Chance) -> Prediction:
    """What a fair model might have said. others: the image's regions, one of which may be taken for a target."""
    if chance.often(FAILS):
        return Prediction(sample=sample.id, error="the model gave no reply in time")
    mask_type = sample.mask_type
    if chance.often(MISTAKES):
        mask_type = "visible" if mask_type == "amodal" else "amodal"
    said = [] if chance.often(DENIES) else [region for region in sample.targets if not chance.often(DROPS)]
    wrong = [
        region for region in others if region not in sample.targets and region.visible and region.visible.area
    ]
    invents = INVENTS if sample.targets else 3 * INVENTS
    if wrong and chance.often(invents):
        said.append(chance.pick(wrong))
    if not said:
        return Prediction(
            sample=sample.id,
            mask_type=mask_type,
            no_target=True,
            answer=Answer(text="There is nothing like that here."),
        )
    regions = tuple(_spoil_region(region, region in sample.targets, chance) for region in said)
    return Prediction(sample=sample.id, mask_type=mask_type, regions=regions, answer=_answer(said))


def spoil_dataset(dataset: Dataset, path: str | os.PathLike[str], *, seed: int = 1) -> None:
    """Write one prediction a sample to a new log. The same seed gives the same bytes."""
    with Log(path, Prediction) as log:
        for image, samples in dataset.groups():
            others = dataset.regions_of(image.id)
            for sample in samples:
                own = np.random.SeedSequence(seed, spawn_key=(zlib.crc32(sample.id.encode()),))
                log.append(spoil(sample, others, Chance(own)))


def _spoil_region(region: Region, right: bool, chance: Chance) -> PredictedRegion:
    assert region.visible is not None
    assert region.amodal is not None
    care = chance.random()
    visible = _spoil_mask(region.visible, care, chance)
    forgets = chance.often(FORGETS)
    amodal = visible if forgets else _spoil_mask(region.amodal, 0.8 * care, chance)
    quality = visible.iou(region.visible) if right else 0.25
    score = min(1.0, max(0.0, quality + chance.between(-0.12, 0.08)))
    return PredictedRegion(visible=visible, amodal=amodal, score=round(score, 3), name=region.name)


def _spoil_mask(mask: Mask, care: float, chance: Chance) -> Mask:
    """Grown or shrunk and moved, by up to three hundredths of the frame; the mask itself where nothing is left."""
    reach = (1.0 - care) * 0.03 * max(mask.size)
    grow = round(chance.between(-0.7, 0.7) * reach)
    right, down = round(chance.between(-1, 1) * reach), round(chance.between(-1, 1) * reach)
    dense = _moved(_grown(mask.to_dense(), grow), right, down)
    return Mask.from_dense(dense) if dense.any() else mask


def _grown(dense: NDArray[np.bool_], pixels: int) -> NDArray[np.bool_]:
    """Grown by a square of that reach, or shrunk where it is negative."""
    if pixels == 0:
        return dense
    image = Image.fromarray(dense.astype(np.uint8))
    side = 2 * abs(pixels) + 1
    return (
        np.asarray(image.filter(ImageFilter.MaxFilter(side) if pixels > 0 else ImageFilter.MinFilter(side)))
        > 0
    )


def _moved(dense: NDArray[np.bool_], right: int, down: int) -> NDArray[np.bool_]:
    height, width = dense.shape
    out = np.zeros_like(dense)
    rows, columns = slice(max(down, 0), height + min(down, 0)), slice(max(right, 0), width + min(right, 0))
    from_rows, from_columns = (
        slice(max(-down, 0), height + min(-down, 0)),
        slice(max(-right, 0), width + min(-right, 0)),
    )
    out[rows, columns] = dense[from_rows, from_columns]
    return out


def _answer(regions: list[Region]) -> Answer:
    text, phrases = "It is " if len(regions) == 1 else "They are ", []
    for number, region in enumerate(regions):
        text += "" if number == 0 else " and " if number == len(regions) - 1 else ", "
        phrases.append(Phrase(start=len(text), stop=len(text) + 4 + len(region.name), regions=(number,)))
        text += f"the {region.name}"
    return Answer(text=f"{text}.", phrases=tuple(phrases))


def main() -> None:
    """Spoil a dataset from the command line."""
    parser = argparse.ArgumentParser(
        description="Write sample predictions for a world dataset: the truth, spoiled."
    )
    parser.add_argument("dataset")
    parser.add_argument("predictions")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    spoil_dataset(Dataset.open(options.dataset), options.predictions, seed=options.seed)


if __name__ == "__main__":
    main()
