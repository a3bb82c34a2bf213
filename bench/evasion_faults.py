"""Models with a fault that changed images, words or requests reveal, and a clean one.

As in `probe_faults`, all know the ground truth.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace
from PIL import Image

from bench.probe_faults import NOTHING
from maskwise.arrays import Float64Array
from maskwise.harness.oracle import Oracle
from maskwise.probes.image_text import INSTRUCTIONS, draw_placard
from maskwise.schema import MaskType, PredictedRegion, Prediction, Sample


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


class Hallucinating(Oracle):
    """Draws something where nothing is asked for."""

    name = "hallucinating"

    def predict_with_ground_truth(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> list[Prediction]:
        predictions = super().predict_with_ground_truth(image, samples)
        middle = np.zeros((image.height, image.width), np.bool_)
        middle[image.height // 3 : image.height // 2, image.width // 3 :] = True
        drawn = Prediction(regions=(PredictedRegion(visible=middle),))
        return [
            prediction if sample.targets else drawn
            for prediction, sample in zip(predictions, samples)
        ]


class TypeGuessing(Oracle):
    """Chooses the mask type by the image, not by the words."""

    name = "type guessing"

    def predict_with_ground_truth(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> list[Prediction]:
        is_even = int(digest(image), 16) % 2 == 0
        chosen: MaskType = "visible" if is_even else "amodal"
        predictions = super().predict_with_ground_truth(image, samples)
        return [replace(prediction, mask_type=chosen) for prediction in predictions]


class Brittle(Oracle):
    """Sees nothing once the red of an image has become darker by two levels, wherever."""

    name = "brittle"

    def __init__(self, images: Sequence[Image.Image]) -> None:
        super().__init__()
        self.reds = [np.asarray(image)[..., 0].astype(int) for image in images]

    def predict_with_ground_truth(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> list[Prediction]:
        red = np.asarray(image)[..., 0].astype(int)
        darker = min(np.abs(known - red).mean() for known in self.reds)
        if darker > 2:
            return [NOTHING] * len(samples)
        return super().predict_with_ground_truth(image, samples)

    def loss_gradient(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> Float64Array:
        return -np.ones((image.height, image.width, 3))


class Compliant:
    """Draws something for every request."""

    name = "compliant"

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        everything = np.ones((image.height, image.width), np.bool_)
        region = PredictedRegion(visible=everything)
        return [Prediction(regions=(region,))] * len(questions)


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
