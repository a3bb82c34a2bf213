"""What a model is to the harness: anything that answers questions about an image.

    class Mine:
        def predict(self, image, questions):            # a PIL image, upright RGB, and texts
            ...                                           # the image is encoded once for all its questions
            return [Prediction(sample="", regions=(...)) for question in questions]

One prediction a question, in order; `sample` is left empty, the harness fills it. A question that went wrong may come
back as Prediction(sample="", error="why"); an exception fails the question and the run goes on. Where several questions
were asked together and that fails, each is asked again alone. ModelGoneError stops the run, to be continued later.

What a model may have besides:

| attribute | |
|---|---|
| `name: str` | what reports call it; the name it was asked for by, if absent |
| `weights_hash: str or None` | changed weights are then told from the old ones, and not mixed with them |
| `config: dict` | recorded with the run, compared when it is continued |
| `timeout: float or None` | seconds a question may take; a run with `--timeout` sets it. A model that has this |
| | attribute keeps to it by itself and raises ModelError where more have passed |
| `close()` | called once, at the end |

An oracle has `predict_with_ground_truth(image, samples)` instead of `predict`; its runs and reports say so. A model
that supports teacher forcing (the true answer is part of its prompt) has `predict_teacher_forced(image, samples)`.
It is called only if the run asks for teacher forcing.
"""

import hashlib
import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec
import numpy as np
from PIL import Image

from maskwise.errors import MaskwiseError, ModelError
from maskwise.schema import Prediction, Sample

PredictMode = Literal["predict", "predict_with_ground_truth", "teacher_forced"]
"""How a model is called: with the questions alone, with the truth, or with the true answer in the prompt."""

METHODS: dict[PredictMode, str] = {
    "predict": "predict",
    "predict_with_ground_truth": "predict_with_ground_truth",
    "teacher_forced": "predict_teacher_forced",
}


@runtime_checkable
class Predictor(Protocol):
    """A model that is asked."""

    def predict(self, image: Image.Image, questions: Sequence[str]) -> Sequence[Prediction]:
        """One prediction a question, in order."""


@runtime_checkable
class GroundTruthPredictor(Protocol):
    """A model that is told the truth: an oracle, or a baseline made from it."""

    def predict_with_ground_truth(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> Sequence[Prediction]:
        """One prediction a sample, in order."""


@runtime_checkable
class TeacherForcedPredictor(Protocol):
    """A model that can be given the true answer in its prompt, where an official protocol needs that."""

    def predict_teacher_forced(self, image: Image.Image, samples: Sequence[Sample]) -> Sequence[Prediction]:
        """One prediction a sample, in order."""


Model = Predictor | GroundTruthPredictor


class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a run records of its model, and compares when it is continued. `spec`: how it was asked for."""

    spec: str
    name: str
    weights_hash: str | None = None
    options: dict[str, Any] = {}
    config: dict[str, Any] = {}
    source: str | None = None
    """SHA-256 of the file its class is written in."""
    uses_ground_truth: bool = False


def describe_model(model: Model, spec: str, options: Mapping[str, Any]) -> ModelInfo:
    """The facts of an open model, as they are once written and read again."""
    weights = getattr(model, "weights_hash", None)
    if not isinstance(weights, str | None):
        raise ModelError(
            f"model {spec!r}: its weights_hash is of type {type(weights).__name__}; expected a text or None"
        )
    return ModelInfo(
        spec=spec,
        name=str(getattr(model, "name", None) or spec),
        weights_hash=weights,
        options=_to_json(options, f"model {spec!r}: its options"),
        config=_to_json(getattr(model, "config", {}), f"model {spec!r}: its config"),
        source=_hash_source(type(model)),
        uses_ground_truth=not isinstance(model, Predictor),
    )


def _hash_source(model: type) -> str | None:
    """None for our own, which our version tells, and for what is written in no file."""
    if model.__module__.partition(".")[0] == __name__.partition(".")[0]:
        return None
    try:
        return hashlib.sha256(Path(inspect.getfile(model)).read_bytes()).hexdigest()
    except (TypeError, OSError):
        return None


def _to_json(content: Any, what: str) -> dict[str, Any]:
    """What JSON makes of it: tuples are lists then, NaN is null."""
    try:
        found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(dict(content)))
    except (TypeError, ValueError) as error:
        raise ModelError(f"{what} cannot be written as JSON: {error}") from None
    return found


def find_predict_mode(model: Model, *, teacher_forced: bool = False) -> PredictMode:
    """How to call a model. Teacher forcing has to be asked for, and the model has to offer it."""
    if not teacher_forced:
        return "predict" if isinstance(model, Predictor) else "predict_with_ground_truth"
    if not isinstance(model, TeacherForcedPredictor):
        raise ModelError(
            "this model cannot be given the true answer in its prompt: it has no predict_teacher_forced(image, samples)"
        )
    return "teacher_forced"


def call_model(
    model: Model, mode: PredictMode, image: Image.Image, samples: Sequence[Sample]
) -> list[Prediction]:
    """Call a model once for all samples of an image: predictions in order, with the samples' ids.

    Whatever the model raises comes through; ModelError where it returns something else than predictions.
    """
    method = getattr(model, METHODS[mode])
    told = [sample.question for sample in samples] if mode == "predict" else samples
    found = list(method(image, told))
    if len(found) != len(samples):
        raise ModelError(f"the model gave {len(found)} predictions to {len(samples)} questions")
    return [_signed(one, sample.id, mode) for one, sample in zip(found, samples)]


def _signed(prediction: Any, sample: str, mode: PredictMode) -> Prediction:
    if not isinstance(prediction, Prediction):
        raise ModelError(f"the model returned a {type(prediction).__name__}; expected a Prediction")
    try:
        # Python checks no types. What cannot be written and read again would end the run, or never be scored.
        checked = _PREDICTIONS.decode(msgspec.json.encode(prediction, enc_hook=_plain))
    except (TypeError, ValueError, MaskwiseError) as error:
        raise ModelError(f"the model returned a prediction that cannot be recorded: {error}") from None
    return msgspec.structs.replace(checked, sample=sample, forced=mode == "teacher_forced")


def _plain(value: Any) -> Any:
    """A number of NumPy's, as models reckon with them, is a number."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(
        f"objects of type {type(value).__module__}.{type(value).__name__} have no place in a prediction"
    )


_PREDICTIONS = msgspec.json.Decoder(Prediction)
