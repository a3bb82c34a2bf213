"""Models and datasets that are made to have one fault, and clean ones, for `bench/probe_alarms.py` and for tests.

The models know the ground truth, so that their fault is the only thing that can cost them anything.
Whether a question fails is drawn from the seed and the sample's id: it depends on nothing else.
"""

import io
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from maskwise import (
    Dataset,
    DatasetWriter,
    ImageInfo,
    Mask,
    PredictedRegion,
    Prediction,
    Region,
    Sample,
)
from maskwise.harness.oracle import Oracle

NOTHING = Prediction(no_target=True)
SIDE = 64
"""Side of the images in pixels."""
COLORS = {"red": (200, 40, 40), "blue": (40, 60, 200), "green": (40, 160, 60)}


def draw(seed: int, sample: Sample, purpose: str = "") -> float:
    """A number in [0, 1) that depends on these three only."""
    key = zlib.crc32(f"{purpose} {sample.id}".encode())
    return float(np.random.default_rng([seed, key]).random())


class FailsSometimes(Oracle):
    """Answers nothing with a chance that may depend on the sample. Without a function it is clean."""

    name = "fails sometimes"

    def __init__(
        self, seed: int = 0, chance: Callable[[Sample], float] = lambda sample: 0.3
    ) -> None:
        super().__init__(seed=seed)
        self.chance = chance

    def predict_with_ground_truth(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> list[Prediction]:
        predictions = super().predict_with_ground_truth(image, samples)
        return [
            NOTHING if draw(self.seed, sample) < self.chance(sample) else prediction
            for prediction, sample in zip(predictions, samples)
        ]


class DrawsAmodal(FailsSometimes):
    """States and draws the amodal mask, whatever is asked for."""

    name = "draws amodal"

    def predict_with_ground_truth(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> list[Prediction]:
        predictions = super().predict_with_ground_truth(image, samples)
        return [
            Prediction(
                mask_type="amodal",
                regions=prediction.regions,
                no_target=prediction.no_target,
            )
            for prediction in predictions
        ]


class StatesConfidence(Oracle):
    """Is right with a chance that it states as its score, plus `excess`."""

    name = "states confidence"

    def __init__(self, seed: int = 0, excess: float = 0.0) -> None:
        super().__init__(seed=seed)
        self.excess = excess

    def predict_with_ground_truth(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> list[Prediction]:
        predictions = super().predict_with_ground_truth(image, samples)
        return [
            self._doubt(prediction, sample)
            for prediction, sample in zip(predictions, samples)
        ]

    def _doubt(self, prediction: Prediction, sample: Sample) -> Prediction:
        chance = 0.3 + 0.6 * draw(self.seed, sample, "chance")
        is_right = draw(self.seed, sample, "right") < chance
        regions = []
        for region in prediction.regions:
            visible = region.visible if is_right else _corner(region.size)
            amodal = region.amodal if is_right else _corner(region.size)
            score = min(1.0, chance + self.excess)
            regions.append(PredictedRegion(visible=visible, amodal=amodal, score=score))
        return Prediction(
            mask_type=prediction.mask_type,
            regions=tuple(regions),
            no_target=prediction.no_target,
        )


class FixedPlace:
    """Draws the central square of every image, and reads nothing."""

    name = "fixed place"

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        """One prediction per question, in order."""
        mask = box_mask(SIDE // 4, SIDE // 4, SIDE // 2)
        return [
            Prediction(mask_type="visible", regions=(PredictedRegion(visible=mask),))
            for _ in questions
        ]


def is_small(sample: Sample) -> bool:
    """Whether the targets of a sample cover less than a twentieth of the image."""
    visible = [region.visible for region in sample.targets if region.visible]
    pixels = sum(mask.area for mask in visible)
    return bool(visible) and pixels < 0.05 * visible[0].size[0] * visible[0].size[1]


def write_squares(
    folder: Path,
    *,
    seed: int = 0,
    images: int = 60,
    centered: bool = False,
    left_only: bool = False,
    copies: int = 0,
    groups: Sequence[str] = (),
) -> Dataset:
    """Images with one square each, and three questions about it.

    centered: all squares are at the same place. left_only: all are on the left. copies: so many
    images occur twice. groups: values of the tag `group`, drawn for each question.
    """
    random = np.random.default_rng(seed)
    with DatasetWriter(folder, name=folder.name) as writer:
        for number in range(images):
            color = str(random.choice(list(COLORS)))
            side = SIDE // 2 if centered else int(random.integers(8, SIDE // 2))
            left = SIDE // 4 if centered else int(random.integers(SIDE - side))
            top = SIDE // 4 if centered else int(random.integers(SIDE - side))
            if left_only:
                left = left // 8
            pixels = random.integers(90, 140, (SIDE, SIDE, 3)).astype(np.uint8)
            # A dark half makes images differ in what a hash sees.
            shade = random.integers(40, 200, (4, 4, 3)).repeat(SIDE // 4, 0)
            pixels = (pixels // 4 + shade.repeat(SIDE // 4, 1) // 2).astype(np.uint8)
            pixels[top : top + side, left : left + side] = COLORS[color]
            region = Region(
                id=f"r{number}", name=color, visible=box_mask(left, top, side)
            )
            data = io.BytesIO()
            Image.fromarray(pixels).save(data, "PNG")
            for copy in range(2 if number < copies else 1):
                id = f"{number}-{copy}"
                info = ImageInfo(id=id, width=SIDE, height=SIDE)
                writer.add_image(info, [region], data.getvalue())
                for place, verb in enumerate(("Segment", "Mark", "Find")):
                    tags = {"group": str(random.choice(groups))} if groups else {}
                    writer.add_sample(
                        Sample(
                            id=f"{id}-{place}",
                            image_id=id,
                            question=f"{verb} the {color} square of image {number}.",
                            targets=(region,),
                            tags=tags,
                        )
                    )
    return Dataset.open(folder)


def box_mask(left: int, top: int, side: int) -> Mask:
    """A square as a mask."""
    plane = np.zeros((SIDE, SIDE), bool)
    plane[top : top + side, left : left + side] = True
    return Mask.from_dense(plane)


def _corner(size: tuple[int, int]) -> Mask:
    """A mask of one pixel that matches no target."""
    plane = np.zeros(size, bool)
    plane[0, 0] = True
    return Mask.from_dense(plane)
