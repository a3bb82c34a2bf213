"""`load_model`: any model, asked about one image after another."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, overload

from PIL import Image

from maskwise.errors import MaskwiseError, ModelError
from maskwise.harness.predictor import (
    Encoding,
    GroundTruthPredictor,
    Model,
    Predictor,
    check_predictions,
    domain_warning,
    encode_image,
    model_spec,
)
from maskwise.harness.registry import make_predictor
from maskwise.images import ImageSource, open_image
from maskwise.schema import Prediction, attach


class ImageEncoding:
    """An image that a model has encoded. Questions about it reuse that work."""

    def __init__(self, model: "LoadedModel", image: Image.Image) -> None:
        self.model = model
        self.image = image
        self._encoding: Encoding = model._guard(
            encode_image, model._question_predictor(), image
        )

    @overload
    def ask(self, question: str) -> Prediction: ...

    @overload
    def ask(self, question: list[str] | tuple[str, ...]) -> list[Prediction]: ...

    def ask(
        self, question: str | list[str] | tuple[str, ...]
    ) -> Prediction | list[Prediction]:
        """The prediction for one question, or a list of predictions for a list of questions.

        Example: prediction = encoded.ask("the whole cup, hidden part included")
        """
        questions = _check_questions(
            [question] if isinstance(question, str) else question
        )
        returned = self.model._guard(self._encoding.answer, questions)
        sizes = [(self.image.height, self.image.width)] * len(questions)
        predictions: list[Prediction] = self.model._guard(
            check_predictions, returned, sizes
        )
        for prediction, text in zip(predictions, questions):
            attach(prediction, image=self.image, question=text)
        return predictions[0] if isinstance(question, str) else predictions

    @property
    def domain_warning(self) -> str | None:
        """The model's warning if the image is unlike those it was made for, such as a photograph for `tiny`."""
        return domain_warning(self.model.predictor, self.image)

    def __repr__(self) -> str:
        return f"ImageEncoding({self.image.width} x {self.image.height}, model={self.model.name!r})"

    def _repr_png_(self) -> bytes | None:
        png: bytes | None = self.image._repr_png_()
        return png


class LoadedModel:
    """A model that is ready to be asked.

    `spec` and `options`: how it was loaded; `by_name`: whether they suffice to load it again, on any machine.
    `predictor`: the object that predicts. Use the model in a `with` block, or call `close`, to end one that runs in
    another process.
    """

    def __init__(
        self,
        predictor: Model,
        spec: str,
        options: dict[str, Any],
        *,
        by_name: bool = True,
    ) -> None:
        self.predictor = predictor
        self.spec = spec
        self.options = options
        self.by_name = by_name

    @property
    def name(self) -> str:
        """The name of the model in reports."""
        return str(getattr(self.predictor, "name", None) or self.spec)

    def encode(self, image: ImageSource) -> ImageEncoding:
        """Encode an image, to ask questions about it.

        image: a path, encoded bytes, a PIL image or an array (height, width, 3) of uint8.
        """
        return ImageEncoding(self, open_image(image))

    def predict(self, image: ImageSource, questions: Sequence[str]) -> list[Prediction]:
        """One prediction per question about an image, in order; an empty list for no questions."""
        return self.encode(image).ask(list(questions))

    @overload
    def ask(self, image: ImageSource, question: str) -> Prediction: ...

    @overload
    def ask(
        self, image: ImageSource, question: list[str] | tuple[str, ...]
    ) -> list[Prediction]: ...

    def ask(
        self, image: ImageSource, question: str | list[str] | tuple[str, ...]
    ) -> Prediction | list[Prediction]:
        """Encode an image and ask one question about it, or several."""
        return self.encode(image).ask(question)

    def close(self) -> None:
        """Release what the model holds: a process, a connection."""
        close = getattr(self.predictor, "close", None)
        if callable(close):
            close()

    def __enter__(self) -> "LoadedModel":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        options = "".join(f", {key}={value!r}" for key, value in self.options.items())
        return f"LoadedModel({self.spec!r}{options})"

    def _question_predictor(self) -> Predictor:
        if not isinstance(self.predictor, Predictor):
            raise ModelError(
                f"model {self.name!r} needs the ground truth of a sample and cannot be asked about an image; "
                "evaluate it on a dataset"
            )
        return self.predictor

    def _guard(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call the model; whatever it raises becomes a ModelError."""
        try:
            return function(*arguments)
        except MaskwiseError:
            raise
        except Exception as error:
            raise ModelError(
                f"model {self.name!r} failed: {type(error).__name__}: {error}"
            ) from error


def load_model(model: "str | Model | LoadedModel", **options: Any) -> LoadedModel:
    """Load a model.

    model: a name (`list_models`), `package.module:factory`, `command: program`, `http://address`, or an object with
    `predict(image, questions)`. options: passed to the factory of the model.

    Example: model = load_model("tiny")
    """
    if isinstance(model, str):
        return LoadedModel(make_predictor(model, **options), model, options)
    if isinstance(model, type) or not isinstance(
        model, Predictor | GroundTruthPredictor
    ):
        raise ModelError(
            f"expected the name of a model or an object with predict(image, questions), not {_kind(model)}"
        )
    if isinstance(model, LoadedModel) and not options:
        return model
    if options:
        raise ModelError(
            "options are for a model that is loaded by name, not for one that is loaded already"
        )
    return LoadedModel(model, model_spec(model), {}, by_name=False)


def _check_questions(questions: Any) -> list[str]:
    try:
        listed = list(questions)
    except TypeError:
        raise ModelError(
            f"expected a question or a list of questions, not {_kind(questions)}"
        ) from None
    for question in listed:
        if not isinstance(question, str):
            raise ModelError(f"a question must be text, not {_kind(question)}")
        if not question.strip():
            raise ModelError("the question is empty; ask something about the image")
    return listed


def _kind(value: object) -> str:
    return f"a value of type {type(value).__name__}"
