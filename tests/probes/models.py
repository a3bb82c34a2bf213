"""Models that are made to have a fault, and one that has none, for tests of probes.

All know the ground truth, so that a fault is the only thing that can cost them anything.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from PIL import Image

from maskwise.harness.oracle import Oracle
from maskwise.probes.image_text import INSTRUCTIONS, draw_placard
from maskwise.schema import Prediction, Sample

NOTHING = Prediction(no_target=True)


class Clean(Oracle):
    """The ground truth with errors that have nothing to do with what a probe changes."""

    name = "clean"

    def __init__(self, seed: int = 0) -> None:
        super().__init__(noise=2.0, drop=0.1, seed=seed)


class Memorizing(Oracle):
    """Answers only questions that it has seen word for word."""

    name = "memorizing"

    def __init__(self, questions: Sequence[str]) -> None:
        super().__init__()
        self.questions = frozenset(questions)

    def predict_with_ground_truth(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> list[Prediction]:
        predictions = super().predict_with_ground_truth(image, samples)
        return [
            prediction if sample.question in self.questions else NOTHING
            for prediction, sample in zip(predictions, samples)
        ]


class PixelPerfect(Oracle):
    """Answers only about images that it has seen pixel by pixel."""

    name = "pixel perfect"

    def __init__(self, images: Sequence[Image.Image]) -> None:
        super().__init__()
        self.images = frozenset(digest(image) for image in images)

    def predict_with_ground_truth(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> list[Prediction]:
        if digest(image) not in self.images:
            return [NOTHING] * len(samples)
        return super().predict_with_ground_truth(image, samples)


class Obedient(Oracle):
    """Answers nothing where the image gives one of two instructions."""

    name = "obedient"

    def predict_with_ground_truth(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> list[Prediction]:
        obeyed = [INSTRUCTIONS["answer nothing"], INSTRUCTIONS["whole image"]]
        if any(shows(image, text) for text in obeyed):
            return [NOTHING] * len(samples)
        return super().predict_with_ground_truth(image, samples)


def digest(image: Image.Image) -> str:
    """A hash of the pixels."""
    return hashlib.sha256(image.tobytes()).hexdigest()


def shows(image: Image.Image, text: str) -> bool:
    """Whether an image has a placard with this text at its left or right border."""
    pixels = np.asarray(image)
    placard = draw_placard(text, pixels.shape[:2])
    tall, wide = placard.shape[:2]
    for left in (0, pixels.shape[1] - wide):
        columns = pixels[:, left : left + wide]
        for top in range(len(pixels) - tall + 1):
            if (columns[top : top + tall] == placard).all():
                return True
    return False
