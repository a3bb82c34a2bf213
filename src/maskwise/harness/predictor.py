"""The interface of a model: anything that answers questions about an image.

    class Mine:
        def predict(self, image, questions):              # a PIL image, upright, RGB, and a list of strings
            ...                                           # encode the image once for all its questions
            return [Prediction(sample="", regions=(...)) for question in questions]

A question of a dialogue is a string with the earlier turns: `schema.earlier_turns(question)` gives them, each with its
question and answer. A model that reads one question at a time need not know.

It returns one prediction per question, in order; `sample` stays empty, the harness fills it in. A prediction may also
be masks, detections or a dict: `maskwise.predictions.conversion` lists what is accepted. A question that fails may be
Prediction(error="why"). An exception fails the question and the run goes on. If a call with several
questions fails, each question is tried alone. ModelGoneError stops the run, which can be resumed later.

Optional attributes:

| attribute | meaning |
|---|---|
| `name: str` | the model's name in reports; by default the name it was loaded by |
| `weights_hash: str or None` | identifies the weights, so that predictions of other weights are not mixed with these |
| `config: dict` | recorded with the run and compared when it is resumed |
| `timeout: float or None` | seconds per question; `--timeout` sets it. A model with this attribute enforces it |
| | itself and raises ModelError when the time is over |
| `domain_warning(image) -> str or None` | a warning if the image is unlike those the model was made for |
| `mask_type_probability(question) -> float or None` | how sure the model is of the mask type it chooses, in [0, 1] |
| `encode(image)` | the image, encoded for any number of questions: an object with `answer(questions)`, which returns |
| | what `predict` would. It may have `visible_objects()`: the visible masks of all objects found, for `convex-hull` |
| `close()` | called once, at the end |
| `predict_batch(images, questions)` | questions about several images in one call; see below |
| `loss_gradient(image, samples)` | the gradient of its loss by the image's values, (height, width, 3), for attacks |
| `batch_size: int` | how many questions `predict_batch` gets in one call, at most; 8 if it is not given |

`predict_batch(images, questions)` gets two lists of the same length: image i belongs to question i. It returns one
prediction per question, in order. An image with several questions is in the list several times, as the same object.
Evaluation calls it instead of `predict` and fills every batch across images; the last one may be smaller. If a batch
fails, each of its questions is predicted alone, in a batch of one: only the questions that fail alone have failed. The
predictions of a question must not depend on the rest of its batch; then the run is the same, byte for byte, for any
batch size and after any interruption. `predict` is still needed, for `ask` and the web page.

An oracle has `predict_with_ground_truth(image, samples)` instead of `predict`; its runs and reports say so. A model
that supports teacher forcing (the true answer is part of its prompt) has `predict_teacher_forced(image, samples)`. It
is called only if the run asks for teacher forcing.
"""

import hashlib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec
import numpy as np
from PIL import Image

from maskwise.arrays import Float64Array
from maskwise.errors import MaskError, MaskwiseError, ModelError, RecordError
from maskwise.predictions.conversion import to_prediction
from maskwise.runs.schema import ModelInfo
from maskwise.schema import Prediction, Sample
from maskwise.terminal import count_noun

PredictMode = Literal["predict", "predict_with_ground_truth", "teacher_forced"]
"""What a model is given: the questions, the samples with their ground truth, or the samples with the true answers."""

METHODS: dict[PredictMode, str] = {
    "predict": "predict",
    "predict_with_ground_truth": "predict_with_ground_truth",
    "teacher_forced": "predict_teacher_forced",
}


DEFAULT_BATCH_SIZE = 8
"""Questions per call of a model with `predict_batch` that does not say: fits most models of 7 billion parameters."""


@runtime_checkable
class Predictor(Protocol):
    """A model that is given questions."""

    def predict(
        self, image: Image.Image, questions: Sequence[str]
    ) -> Sequence[Prediction]:
        """One prediction per question, in order."""


@runtime_checkable
class GroundTruthPredictor(Protocol):
    """A model that is given the ground truth: an oracle, or a baseline made from it."""

    def predict_with_ground_truth(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> Sequence[Prediction]:
        """One prediction per sample, in order."""


@runtime_checkable
class TeacherForcedPredictor(Protocol):
    """A model whose prompt can contain the true answer, for official protocols that need it."""

    def predict_teacher_forced(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> Sequence[Prediction]:
        """One prediction per sample, in order."""


Model = Predictor | GroundTruthPredictor


@runtime_checkable
class DifferentiableModel(Protocol):
    """A model that tells how its loss depends on the image, for attacks with a gradient."""

    def loss_gradient(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> Float64Array:
        """The gradient of the loss by the values of the image, (height, width, 3)."""


@runtime_checkable
class Encoding(Protocol):
    """An image that is ready for any number of questions."""

    def answer(self, questions: Sequence[str]) -> Sequence[Prediction]:
        """One prediction per question, in order."""


class UnencodedImage:
    """An image of a model that encodes and predicts in one call."""

    def __init__(self, model: Predictor, image: Image.Image) -> None:
        self.model = model
        self.image = image

    def answer(self, questions: Sequence[str]) -> Sequence[Prediction]:
        """One prediction per question, in order."""
        return self.model.predict(self.image, questions)


def encode_image(model: Predictor, image: Image.Image) -> Encoding:
    """Encode an image now, if the model can do that apart from predicting; else keep it for the questions."""
    encode = getattr(model, "encode", None)
    if callable(encode):
        encoded = encode(image)
        # A method of the same name may return something else, as in the example of docs/guides/adapters.md.
        if isinstance(encoded, Encoding):
            return encoded
    return UnencodedImage(model, image)


def model_spec(model: Model) -> str:
    """How runs refer to a model that was passed as an object: the path of its class."""
    return f"{type(model).__module__}:{type(model).__qualname__}"


def describe_model(model: Model, spec: str, options: Mapping[str, Any]) -> ModelInfo:
    """What a run records about an open model, in the form in which JSON returns it."""
    weights = _attribute(model, spec, "weights_hash", None)
    if not isinstance(weights, str | None):
        raise ModelError(
            f"model {spec!r}: its weights_hash is of type {type(weights).__name__}; expected a string or None"
        )
    return ModelInfo(
        spec=spec,
        name=str(_attribute(model, spec, "name", None) or spec),
        weights_hash=weights,
        options=_to_json(options, f"model {spec!r}: its options"),
        config=_to_json(
            _attribute(model, spec, "config", {}), f"model {spec!r}: its config"
        ),
        source=_hash_source(type(model)),
        uses_ground_truth=not isinstance(model, Predictor),
    )


def _attribute(model: Model, spec: str, name: str, default: Any) -> Any:
    try:
        return getattr(model, name, default)
    except Exception as error:  # an attribute may be a property
        raise ModelError(
            f"model {spec!r}: its {name} raises {type(error).__name__}: {error}"
        ) from error


def _hash_source(model: type) -> str | None:
    """SHA-256 of the file of a class; None without a file, and for maskwise's own, which its version identifies."""
    if model.__module__.partition(".")[0] == __name__.partition(".")[0]:
        return None
    try:
        return hashlib.sha256(Path(inspect.getfile(model)).read_bytes()).hexdigest()
    except (TypeError, OSError):
        return None


def _to_json(content: Any, what: str) -> dict[str, Any]:
    """The value that JSON returns: tuples become lists, NaN becomes null."""
    try:
        encoded = msgspec.json.encode(dict(content))
    except (TypeError, ValueError) as error:
        raise ModelError(f"{what} cannot be written as JSON: {error}") from None
    decoded: dict[str, Any] = msgspec.json.decode(encoded)
    return decoded


def domain_warning(model: Model, image: Image.Image) -> str | None:
    """The warning of a model that can tell when an image is out of its domain, else None."""
    check = getattr(model, "domain_warning", None)
    if not callable(check):
        return None
    try:
        warning = check(image)
    except Exception:  # a model may raise anything; a failed check is no reason to stop
        return None
    return warning if isinstance(warning, str) else None


def mask_type_probability(
    model: Model, question: str, prediction: Prediction
) -> float | None:
    """The probability of the mask type that a prediction states; None where the model does not tell."""
    ask = getattr(model, "mask_type_probability", None)
    if not callable(ask) or prediction.mask_type is None:
        return None
    probability = ask(question)
    if not isinstance(probability, int | float) or not 0.0 <= probability <= 1.0:
        return None
    return float(probability)


def find_predict_mode(model: Model, *, teacher_forced: bool = False) -> PredictMode:
    """How to call a model. Teacher forcing has to be asked for, and the model has to support it."""
    if not teacher_forced:
        return (
            "predict" if isinstance(model, Predictor) else "predict_with_ground_truth"
        )
    if not isinstance(model, TeacherForcedPredictor):
        raise ModelError(
            "this model does not support teacher forcing: it has no predict_teacher_forced(image, samples)"
        )
    return "teacher_forced"


def call_model(
    model: Model, mode: PredictMode, image: Image.Image, samples: Sequence[Sample]
) -> list[Prediction]:
    """Call a model once for all samples of an image: predictions in order, with the samples' ids.

    Exceptions of the model are passed on; ModelError if it returns something other than predictions.
    """
    method = getattr(model, METHODS[mode])
    questions = [sample.asked for sample in samples]
    returned = method(image, questions if mode == "predict" else samples)
    forced = mode == "teacher_forced"
    sizes = [(image.height, image.width)] * len(samples)
    predictions = check_predictions(returned, sizes)
    return [
        msgspec.structs.replace(prediction, sample=sample.id, forced=forced)
        for prediction, sample in zip(predictions, samples)
    ]


def find_batch_size(model: Model) -> int | None:
    """How many questions a model with `predict_batch` gets in one call; None if it has no such method."""
    if not callable(getattr(model, "predict_batch", None)):
        return None
    batch_size = getattr(model, "batch_size", DEFAULT_BATCH_SIZE)
    if not isinstance(batch_size, int) or batch_size < 1:
        raise ModelError(
            f"the model's batch_size is {batch_size!r}; expected a number of questions, 1 or more"
        )
    return batch_size


def call_batch(
    model: Model, images: Sequence[Image.Image], samples: Sequence[Sample]
) -> list[Prediction]:
    """Call a model once for questions about several images, one image per sample: predictions in order, with ids.

    Exceptions of the model are passed on; ModelError if it returns something other than predictions.
    """
    questions = [sample.asked for sample in samples]
    returned = model.predict_batch(list(images), questions)  # type: ignore[union-attr]
    sizes = [(image.height, image.width) for image in images]
    predictions = check_predictions(returned, sizes)
    return [
        msgspec.structs.replace(prediction, sample=sample.id)
        for prediction, sample in zip(predictions, samples)
    ]


def check_predictions(
    returned: Iterable[Any], sizes: Sequence[tuple[int, int]]
) -> list[Prediction]:
    """What a model returned, as valid records; ModelError unless it is one prediction per question.

    sizes: height and width of the image of each question.
    """
    predictions = list(returned)
    if len(predictions) != len(sizes):
        raise ModelError(
            f"the model returned {count_noun(len(predictions), 'prediction')} for {count_noun(len(sizes), 'question')}"
        )
    return [
        _check_prediction(prediction, size)
        for prediction, size in zip(predictions, sizes)
    ]


def _check_prediction(returned: Any, size: tuple[int, int]) -> Prediction:
    try:
        prediction = to_prediction(returned, size=size)
    except (MaskError, RecordError) as error:
        raise ModelError(
            f"the model returned a value of type {type(returned).__name__}; expected a Prediction or masks: {error}"
        ) from None
    try:
        # Python checks no types. What cannot be written and read again would end the run, or never be scored.
        encoded = msgspec.json.encode(prediction, enc_hook=_to_number)
        return _PREDICTIONS.decode(encoded)
    except (TypeError, ValueError, MaskwiseError) as error:
        raise ModelError(
            f"the model returned a prediction that cannot be recorded: {error}"
        ) from None


def _to_number(value: Any) -> Any:
    """NumPy scalars, which models compute with, become numbers."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(
        f"a prediction cannot contain a {type(value).__module__}.{type(value).__name__}"
    )


_PREDICTIONS = msgspec.json.Decoder(Prediction)
