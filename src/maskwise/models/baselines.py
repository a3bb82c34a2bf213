"""Baselines: any model with one input removed or its amodal masks replaced, to put its metrics into proportion.

    maskwise eval world --model text-blind                                  of `tiny`
    maskwise eval photos --model text-blind --model-option of=photo
    maskwise eval world --model image-blind --model-option of=vlm --model-option checkpoint=runs/joint
    mw.evaluate(mw.baseline(my_model, "shuffled-questions"), "world")

| baseline | what it changes | a model that scores no better |
|---|---|---|
| `text-blind` | every question is empty | does not read |
| `turn-blind` | earlier turns of a dialogue are left out | does not use what was said before |
| `image-blind` | every image is gray | does not look |
| `shuffled-questions` | every question is another one | does not read, but needs some question |
| `visible-copy` | amodal masks are its visible masks | completes nothing |
| `convex-hull` | amodal masks are hulls of its visible masks | completes no better than geometry |
| `whole-image` | one region, the whole image; needs no model | |

`of` names the model, as `--model` does; all other options are passed on to it, except `seed` and `data` of
`shuffled-questions`. Predictions depend on the options and the image only, so that runs can be resumed and spread.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
from PIL import Image

from maskwise.arrays import BoolArray
from maskwise.datasets import load_dataset
from maskwise.errors import ModelError, UnknownNameError
from maskwise.harness.loaded_model import LoadedModel, load_model
from maskwise.harness.predictor import (
    Encoding,
    Model,
    Predictor,
    describe_model,
    encode_image,
)
from maskwise.language.intent import classify_intent
from maskwise.masks import Mask
from maskwise.models.convex_hull import fill_hull
from maskwise.schema import PredictedRegion, Prediction

DEFAULT_MODEL = "tiny"
"""The model of a baseline for which none is named: it is bundled."""


class Baseline(ABC):
    """A predictor that asks another model in another way, or changes its predictions.

    Name, config and weights identify the inner model too: a run of one cannot be continued with the other.
    """

    baseline: str

    def __init__(self, model: LoadedModel) -> None:
        if not isinstance(model.predictor, Predictor):
            raise ModelError(
                f"{self.baseline} needs a model that is given questions; {model.name!r} is given the ground truth"
            )
        self.model: Predictor = model.predictor
        self._loaded = model

    @property
    def name(self) -> str:
        return f"{self.baseline} of {self._loaded.name}"

    @property
    def weights_hash(self) -> str | None:
        weights: str | None = getattr(self.model, "weights_hash", None)
        return weights

    @property
    def config(self) -> dict[str, Any]:
        inner = describe_model(self.model, self._loaded.spec, self._loaded.options)
        return {"baseline": self.baseline, "model": msgspec.to_builtins(inner)}

    @property
    def timeout(self) -> float | None:
        """Only if the inner model has one, because a model with this attribute enforces it itself."""
        seconds: float | None = self.model.timeout  # type: ignore[attr-defined]
        return seconds

    @timeout.setter
    def timeout(self, seconds: float | None) -> None:
        self.model.timeout = seconds  # type: ignore[attr-defined]

    @property
    def domain_warning(self) -> Callable[[Image.Image], str | None]:
        """Only if the inner model has one."""
        check: Callable[[Image.Image], str | None]
        check = self.model.domain_warning  # type: ignore[attr-defined]
        return check

    def encode(self, image: Image.Image) -> "BaselineEncoding":
        """Encode an image once for all questions, if the inner model can."""
        return BaselineEncoding(self, image, encode_image(self.model, image))

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        """One prediction per question, in order."""
        return self.encode(image).answer(questions)

    def close(self) -> None:
        """Close the inner model."""
        self._loaded.close()

    @abstractmethod
    def answer(
        self, image: Image.Image, encoding: Encoding, questions: Sequence[str]
    ) -> list[Prediction]:
        """One prediction per question about an image that the inner model has encoded."""


class BaselineEncoding:
    """An image that the inner model has encoded, asked through a baseline."""

    def __init__(
        self, baseline: Baseline, image: Image.Image, encoding: Encoding
    ) -> None:
        self.baseline = baseline
        self.image = image
        self.encoding = encoding

    def answer(self, questions: Sequence[str]) -> list[Prediction]:
        """One prediction per question, in order."""
        return self.baseline.answer(self.image, self.encoding, questions)


class TextBlind(Baseline):
    """Every question is replaced by an empty one."""

    baseline = "text-blind"

    def answer(
        self, image: Image.Image, encoding: Encoding, questions: Sequence[str]
    ) -> list[Prediction]:
        return list(encoding.answer([""] * len(questions)))


class TurnBlind(Baseline):
    """Questions of a dialogue lose the turns before them."""

    baseline = "turn-blind"

    def answer(
        self, image: Image.Image, encoding: Encoding, questions: Sequence[str]
    ) -> list[Prediction]:
        # `str` of a question with turns is its text alone.
        return list(encoding.answer([str(question) for question in questions]))


class ImageBlind(Baseline):
    """Every image is replaced by a gray one of its size."""

    baseline = "image-blind"
    domain_warning = None  # type: ignore[assignment]  # gray images are meant to be unlike all others

    def __init__(self, model: LoadedModel) -> None:
        super().__init__(model)
        # All gray images of one size are equal, so the last one need not be encoded again.
        self._gray: tuple[tuple[int, int], Encoding] | None = None

    def encode(self, image: Image.Image) -> BaselineEncoding:
        if self._gray is None or self._gray[0] != image.size:
            gray = Image.new("RGB", image.size, "gray")
            self._gray = (image.size, encode_image(self.model, gray))
        return BaselineEncoding(self, image, self._gray[1])

    def answer(
        self, image: Image.Image, encoding: Encoding, questions: Sequence[str]
    ) -> list[Prediction]:
        return list(encoding.answer(questions))


class ShuffledQuestions(Baseline):
    """Every question is replaced by another one.

    data: a dataset, by name or folder, from whose questions the other one is drawn, by seed, image and question.
    Without it the questions of an image change places, by seed and image, and the only question of an image becomes an
    empty one: give `data` where most images have a single question.
    """

    baseline = "shuffled-questions"

    def __init__(
        self, model: LoadedModel, seed: int = 0, data: str | None = None
    ) -> None:
        super().__init__(model)
        self.seed = seed
        self.data = data
        # Sorted, so that the draw does not depend on the order of the dataset.
        self._pool = sorted(set(load_dataset(data).samples.question)) if data else []

    @property
    def config(self) -> dict[str, Any]:
        pool_hash = hashlib.sha256(msgspec.json.encode(self._pool)).hexdigest()
        return {**super().config, "seed": self.seed, "questions": pool_hash}

    def answer(
        self, image: Image.Image, encoding: Encoding, questions: Sequence[str]
    ) -> list[Prediction]:
        if self.data is None:
            replaced = self._shuffle(image, questions)
        else:
            replaced = [self._draw(image, question) for question in questions]
        return list(encoding.answer(replaced))

    def _shuffle(self, image: Image.Image, questions: Sequence[str]) -> list[str]:
        """Each question in the place of the one before it in a random circle, so that none keeps its place."""
        if len(questions) == 1:
            return [""]
        circle = self._random(image).permutation(len(questions))
        shuffled = list(questions)
        for place, source in zip(circle, np.roll(circle, 1)):
            shuffled[place] = questions[source]
        return shuffled

    def _draw(self, image: Image.Image, question: str) -> str:
        others = [text for text in self._pool if text != question]
        if not others:
            return ""
        return others[int(self._random(image, question).integers(len(others)))]

    def _random(self, image: Image.Image, question: str = "") -> np.random.Generator:
        """A generator that depends on the seed, the pixels and the question: the same in every attempt and worker."""
        digest = hashlib.sha256(f"{self.seed} {image.size} {question}".encode())
        digest.update(image.tobytes())
        return np.random.default_rng(int.from_bytes(digest.digest()[:8]))


class VisibleCopy(Baseline):
    """Amodal masks are replaced by the visible ones."""

    baseline = "visible-copy"

    def answer(
        self, image: Image.Image, encoding: Encoding, questions: Sequence[str]
    ) -> list[Prediction]:
        return [
            _replace_amodal(prediction, lambda visible: visible)
            for prediction in encoding.answer(questions)
        ]


class ConvexHull(Baseline):
    """Amodal masks are replaced by the convex hulls of the visible ones.

    If the inner model tells which objects it sees (`visible_objects`), a hull is clipped to them: an object continues
    only behind others.
    """

    baseline = "convex-hull"

    def answer(
        self, image: Image.Image, encoding: Encoding, questions: Sequence[str]
    ) -> list[Prediction]:
        list_objects = getattr(encoding, "visible_objects", None)
        complete: Callable[[Mask], Mask] = _complete_by_hull
        if callable(list_objects):
            objects = [mask.to_dense() for mask in list_objects()]
            complete = partial(_complete_behind, objects=objects)
        return [
            _replace_amodal(prediction, complete)
            for prediction in encoding.answer(questions)
        ]


class WholeImage:
    """One region, the whole image, with the mask type that the words want. Needs no model."""

    name = "whole-image"

    def predict(self, image: Image.Image, questions: Sequence[str]) -> list[Prediction]:
        """One prediction per question, in order."""
        everything = Mask.from_dense(np.ones((image.height, image.width), np.bool_))
        regions = (PredictedRegion(visible=everything, amodal=everything),)
        return [
            Prediction(mask_type=intent.mask_type, regions=regions)
            for intent in classify_intent(questions)
        ]


BASELINES: dict[str, Callable[..., Baseline]] = {
    kind.baseline: kind
    for kind in (
        TextBlind,
        TurnBlind,
        ImageBlind,
        ShuffledQuestions,
        VisibleCopy,
        ConvexHull,
    )
}


def baseline(
    model: "str | Model | LoadedModel", name: str, **options: Any
) -> LoadedModel:
    """A model with one input removed or its amodal masks replaced, to compare it with.

    model: as for `load_model`. name: `text-blind`, `turn-blind`, `image-blind`, `shuffled-questions` (options `seed`
    and `data`, the dataset whose questions are drawn), `visible-copy` or `convex-hull`.

    Example: run = evaluate(baseline("photo", "text-blind"), "photos")
    """
    if name not in BASELINES:
        raise UnknownNameError("baseline", name, BASELINES)
    loaded = load_model(model)
    try:
        predictor = BASELINES[name](loaded, **options)
    except TypeError as error:
        raise ModelError(f"baseline {name!r}: {error}") from None
    spec_options = {"of": loaded.spec, **loaded.options, **options}
    return LoadedModel(predictor, name, spec_options, by_name=loaded.by_name)


def text_blind(of: str = DEFAULT_MODEL, **options: Any) -> Baseline:
    """Every question is replaced by an empty one. of: the model; options: passed on to it."""
    return TextBlind(load_model(of, **options))


def turn_blind(of: str = DEFAULT_MODEL, **options: Any) -> Baseline:
    """For `--model turn-blind`."""
    return TurnBlind(load_model(of, **options))


def image_blind(of: str = DEFAULT_MODEL, **options: Any) -> Baseline:
    """Every image is replaced by a gray one. of: the model; options: passed on to it."""
    return ImageBlind(load_model(of, **options))


def shuffled_questions(
    of: str = DEFAULT_MODEL, seed: int = 0, data: str | None = None, **options: Any
) -> Baseline:
    """Every question is replaced by another one. of: the model; options: passed on to it."""
    return ShuffledQuestions(load_model(of, **options), seed, data)


def visible_copy(of: str = DEFAULT_MODEL, **options: Any) -> Baseline:
    """Amodal masks are replaced by the visible ones. of: the model; options: passed on to it."""
    return VisibleCopy(load_model(of, **options))


def convex_hull(of: str = DEFAULT_MODEL, **options: Any) -> Baseline:
    """Amodal masks are replaced by hulls of the visible ones. of: the model; options: passed on to it."""
    return ConvexHull(load_model(of, **options))


def _replace_amodal(
    prediction: Prediction, complete: Callable[[Mask], Mask]
) -> Prediction:
    """Every amodal mask computed from its visible one; empty where a region has no visible mask."""
    regions = []
    for region in prediction.regions:
        if region.visible is not None:
            amodal = complete(region.visible)
        else:
            assert region.amodal is not None  # a region has at least one mask
            amodal = region.amodal - region.amodal
        regions.append(msgspec.structs.replace(region, amodal=amodal))
    return msgspec.structs.replace(prediction, regions=tuple(regions))


def _complete_by_hull(visible: Mask) -> Mask:
    return Mask.from_dense(fill_hull(visible.to_dense()))


def _complete_behind(visible: Mask, objects: Sequence[BoolArray]) -> Mask:
    """The visible mask and the part of its hull that is covered by other objects. objects: bool [height, width]."""
    own = visible.to_dense()
    # An object does not occlude itself: the object that a mask lies on is left out.
    occluders = [plane for plane in objects if not (plane & own).any()]
    if not occluders:
        return visible
    return Mask.from_dense(own | (fill_hull(own) & np.any(occluders, 0)))
