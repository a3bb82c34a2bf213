"""Models with `predict_batch`, loaded by name in tests of batches."""

from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from maskwise.schema import Prediction
from tests.harness.fakes import Painter

BATCHING = "tests.harness.batching"


class BatchPainter(Painter):
    """Paints as `Painter`, several images at a time. sizes: a file for the size of each batch.

    Fails at questions with the word `raise`.
    """

    def __init__(self, *, batch_size: int = 4, sizes: str = "") -> None:
        super().__init__()
        self.batch_size = batch_size
        self.sizes = sizes

    def predict_batch(
        self, images: Sequence[Image.Image], questions: Sequence[str]
    ) -> list[Prediction]:
        if self.sizes:
            with Path(self.sizes).open("a") as file:
                file.write(f"{len(questions)}\n")
        for question in questions:
            if "raise" in question:
                raise ValueError("what is this?")
        return [
            self.paint(question, image.getpixel((0, 0))[0])
            for image, question in zip(images, questions, strict=True)
        ]


class MiscountingPainter(BatchPainter):
    """Returns a prediction less than it was asked for, if there are several."""

    def predict_batch(
        self, images: Sequence[Image.Image], questions: Sequence[str]
    ) -> list[Prediction]:
        predictions = super().predict_batch(images, questions)
        return predictions[:-1] if len(predictions) > 1 else predictions
