"""Small models for tests: what they do depends on the question."""

import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from PIL import Image

from maskwise.harness.predictor import describe_model
from maskwise.masks import Mask
from maskwise.schema import Answer, PredictedRegion, Prediction
from maskwise.server.encoding_cache import EncodingCache
from maskwise.server.model_process import (
    AskRequest,
    ModelRequest,
    answer_question,
    answer_request,
    read_response,
)


class Whole:
    """Answers with the whole image."""

    name = "whole"
    weights_hash = "abc"
    config: ClassVar = {"side": 3}

    def __init__(self, pids: str | None = None) -> None:
        self.asked: list[tuple[tuple[int, int], list[str]]] = []
        self.started = threading.Event()
        self.go_on = threading.Event()
        self.closed = False
        if pids is not None:
            with Path(pids).open("a") as file:
                file.write(f"{os.getpid()}\n")

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        self.asked.append((image.size, list(questions)))
        if "wait" in questions:
            self.started.set()
            self.go_on.wait(300)
        if "hang" in questions:
            time.sleep(600)
        if "die" in questions:
            os._exit(9)
        if "raise" in questions:
            raise RuntimeError(f"no weights in {__file__}\x1b[2J")
        if "exit" in questions:
            sys.exit(1)
        if "few" in questions:
            return []
        mask = Mask.from_dense(np.ones((image.height, image.width), np.bool_))
        region = PredictedRegion(visible=mask, score=0.5, name="all")
        return [
            Prediction(sample="", answer=Answer(text=text), regions=(region,))
            for text in questions
        ]

    def close(self) -> None:
        self.closed = True


class InThisProcess:
    """Serves a model object without a child process, so that a test can look at it."""

    def __init__(self, model: Any, max_pixels: int) -> None:
        self.model = model
        self.max_pixels = max_pixels
        self.facts = describe_model(model, "fake", {})
        self.images = EncodingCache(model, max_pixels)

    def predict(self, request: ModelRequest) -> bytes:
        return read_response(answer_request(self.model, request, self.max_pixels))

    def ask(self, request: AskRequest) -> bytes:
        return read_response(answer_question(self.images, request))

    def interrupt(self) -> None:
        """A model in this process cannot be interrupted."""

    def close(self) -> None:
        if hasattr(self.model, "close"):
            self.model.close()
