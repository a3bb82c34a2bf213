"""A small dataset and small models for tests of the harness."""

import io
import itertools
import math
import sys
import threading
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
from PIL import Image

from maskwise.errors import ModelError, ModelGoneError
from maskwise.masks import Mask
from maskwise.schema import (
    Answer,
    ImageInfo,
    PredictedRegion,
    Prediction,
    Region,
    Sample,
)
from maskwise.store import DatasetWriter

HEIGHT = 12
WIDTH = 16
FAKES = "tests.harness.fakes"


def write_dataset(
    path: Path,
    images: int = 24,
    *,
    questions: Sequence[str] = ("what is it?",),
    bad: int | None = None,
) -> Path:
    """A dataset of tiny images, 1 to 3 questions each, the samples of different images mixed, one image bad."""
    samples = []
    with DatasetWriter(path, name="small") as writer:
        for k in range(images):
            pixels = np.full((HEIGHT, WIDTH, 3), (37 * k) % 256, np.uint8)
            file = io.BytesIO()
            Image.fromarray(pixels).save(file, "PNG")
            data = b"not an image" if k == bad else file.getvalue()
            region = Region(
                id=f"r{k}",
                name="strip",
                visible=strip(3 + k % 8),
                amodal=strip(4 + k % 8),
            )
            writer.add_image(
                ImageInfo(id=f"p{k}", width=WIDTH, height=HEIGHT), (region,), data
            )
            for q in range(1 + k % 3):
                samples.append(
                    Sample(
                        id=f"p{k}-{q}",
                        image_id=f"p{k}",
                        question=f"{questions[(k + q) % len(questions)]} {k}.{q}",
                        mask_type=("visible", "amodal")[q % 2],
                        targets=(region,) if (k + q) % 5 else (),
                        answer=Answer(text=f"the strip {k}"),
                    )
                )
        for sample in sorted(samples, key=lambda sample: sample.id[-1]):
            writer.add_sample(sample)
    return path


def strip(width: int) -> Mask:
    """The left columns of the image."""
    inside = np.zeros((HEIGHT, WIDTH), bool)
    inside[:, :width] = True
    return Mask.from_dense(inside)


class Painter:
    """Answers at once, by the words and the image: a strip whose width both decide."""

    name = "painter"

    def __init__(
        self, *, weights: str = "w0", sleep: float = 0.0, calls: str | None = None
    ) -> None:
        self.weights_hash = weights
        self.sleep = sleep
        self.calls = calls

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        time.sleep(self.sleep)
        if self.calls is not None:
            with open(self.calls, "a") as file:
                file.write("|".join(questions) + "\n")
        pixel = image.getpixel((0, 0))[0]
        return [self.paint(question, pixel) for question in questions]

    def paint(self, question: str, pixel: int) -> Prediction:
        width = (zlib.crc32(question.encode()) + pixel) % WIDTH
        if not width:
            return Prediction(sample="", no_target=True)
        return Prediction(
            sample="", regions=(PredictedRegion(visible=strip(width), score=0.75),)
        )


class Moody(Painter):
    """Fails as the words of a question say, until the file `mended` exists."""

    hang = threading.Event()
    hangs = threading.Event()
    """`hangs` is set where a call hangs; it does so until `hang` is set."""

    def __init__(self, *, mended: str = "", **options: object) -> None:
        super().__init__(**options)  # type: ignore[arg-type]
        self.mended = mended

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        found = super().predict(image, questions)
        if self.mended and Path(self.mended).exists():
            return found
        for question in questions:
            self.fail(question)
        if any("few" in question for question in questions):
            return found[1:]
        if any("text" in question for question in questions):
            return ["a strip" for _ in questions]  # type: ignore[misc]
        return [
            Prediction(sample="", error="not sure") if "unsure" in question else reply
            for question, reply in zip(questions, found)
        ]

    def fail(self, question: str) -> None:
        if "raise" in question:
            raise ValueError("what\nis this?")
        if "exit" in question:
            sys.exit(0)
        if "half" in question:
            raise ValueError("half a character: \udcff")
        if "memory" in question:
            raise MemoryError
        if "hang" in question:
            self.hangs.set()
            self.hang.wait(300)
        if "gone" in question:
            raise ModelGoneError("the server left")


class Tuned(Painter):
    """Says of itself what JSON knows by other names."""

    config: ClassVar = {"sides": (512, 1024), "rate": math.nan, 7: "seven"}


class Renewed(Moody):
    """Hangs at `hang`, and has other weights every time it is opened."""

    opened: ClassVar = itertools.count()

    def __init__(self) -> None:
        super().__init__(weights=f"w{next(self.opened)}")


class Pupil(Painter):
    """Can be given the true answer."""

    def predict_teacher_forced(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> list[Prediction]:
        assert all(sample.answer for sample in samples)
        return self.predict(
            image, [sample.answer.text for sample in samples if sample.answer]
        )


class Timed(Painter):
    """Keeps to a timeout by itself."""

    timeout: float | None = None

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        raise ModelError(f"gave up after {self.timeout} s")


class WrongSize:
    """Masks of another size than the image."""

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        return [
            Prediction(regions=[PredictedRegion(visible=Mask.empty(3, 3))])
            for _ in questions
        ]
