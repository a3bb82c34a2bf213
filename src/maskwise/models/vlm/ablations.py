"""The model with one input removed, to put its metrics into proportion: `--model-option baseline=image-blind`."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
from PIL import Image

from maskwise.errors import UnknownNameError
from maskwise.schema import Prediction


class QuestionPredictor(Protocol):
    """What a baseline needs of a model."""

    name: str
    weights_hash: str | None
    config: dict[str, Any]

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        """One prediction per question."""


class AblatedModel:
    """A model that is asked in another way, or whose predictions are changed."""

    def __init__(self, model: QuestionPredictor, baseline: str) -> None:
        if baseline not in BASELINES:
            raise UnknownNameError("baseline", baseline, BASELINES)
        self.model = model
        self._predict = BASELINES[baseline]
        self.name = f"{model.name}, {baseline}"
        self.weights_hash = model.weights_hash
        self.config = model.config | {"baseline": baseline}

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        """One prediction per question."""
        return self._predict(self.model, image, questions)


def _text_blind(
    model: QuestionPredictor, image: Image.Image, questions: Sequence[str]
) -> list[Prediction]:
    return model.predict(image, [""] * len(questions))


def _image_blind(
    model: QuestionPredictor, image: Image.Image, questions: Sequence[str]
) -> list[Prediction]:
    return model.predict(Image.new("RGB", image.size, "grey"), questions)


def _visible_copy(
    model: QuestionPredictor, image: Image.Image, questions: Sequence[str]
) -> list[Prediction]:
    return [
        msgspec.structs.replace(
            one,
            regions=tuple(
                msgspec.structs.replace(region, amodal=region.visible)
                for region in one.regions
            ),
        )
        for one in model.predict(image, questions)
    ]


BASELINES: dict[
    str, Callable[[QuestionPredictor, Image.Image, Sequence[str]], list[Prediction]]
] = {
    "text-blind": _text_blind,
    "image-blind": _image_blind,
    "visible-copy": _visible_copy,
}
"""Empty questions; grey images; amodal masks replaced by the visible ones."""
