"""Small models for tests: what they do depends on the question."""

import sys
import threading
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from PIL import Image

from maskwise.masks import Mask
from maskwise.schema import Answer, PredictedRegion, Prediction


class Whole:
    """Answers with the whole image."""

    name = "whole"
    weights_hash = "abc"
    config: ClassVar = {"side": 3}

    def __init__(self) -> None:
        self.asked: list[tuple[tuple[int, int], list[str]]] = []
        self.started, self.go_on = threading.Event(), threading.Event()
        self.closed = False

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        self.asked.append((image.size, list(questions)))
        if "wait" in questions:
            self.started.set()
            self.go_on.wait(300)
        if "raise" in questions:
            raise RuntimeError("CUDA out of memory")
        if "exit" in questions:
            sys.exit(1)
        if "few" in questions:
            return []
        mask = Mask.from_dense(np.ones((image.height, image.width), np.bool_))
        region = PredictedRegion(visible=mask, score=0.5, name="all")
        return [Prediction(sample="", answer=Answer(text=text), regions=(region,)) for text in questions]

    def close(self) -> None:
        self.closed = True
