"""The worker of an evaluation: an open dataset and model predict an image's questions.

Engines run it here or in other processes.
"""

import contextlib
import queue
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from PIL import Image

from maskwise.errors import MaskwiseError, ModelError, ModelGoneError
from maskwise.harness.plan import PlannedImage
from maskwise.harness.predictor import Model, call_model, find_predict_mode
from maskwise.harness.registry import make_predictor
from maskwise.schema import Prediction, Sample
from maskwise.store import Dataset

MAX_ERROR_LENGTH = 500
"""Characters that are kept of why a question failed."""

ADDRESS = re.compile(r" at 0x[0-9a-f]+", re.IGNORECASE)
"""An object's address in memory, as Python prints it."""

DATASET_ERRORS = (MaskwiseError, MemoryError, OSError, pa.ArrowException)
"""What reading a damaged dataset raises: the sample fails."""

MAX_HUNG = 16
"""Calls that may hang at the same time before the run stops."""


@dataclass(frozen=True)
class WorkerConfig:
    """What a worker has to know, on any machine. timeout: seconds per question."""

    dataset: Path
    model: str
    images: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    teacher_forced: bool = False
    timeout: float | None = None


@dataclass(frozen=True)
class LoadedImage:
    """A decoded image and its samples; a text in place of one says why it could not be read."""

    image: Image.Image | str
    samples: list[Sample | str]
    ids: list[str]


class Worker:
    """An open dataset and an open model, an `EngineWorker`.

    `load` may run in another thread than `run`; they do not raise.

    dataset, model: already open ones, which take precedence over the config's names. A model that was passed in is not
    closed.
    """

    def __init__(
        self,
        config: WorkerConfig,
        *,
        dataset: Dataset | None = None,
        model: Model | None = None,
    ) -> None:
        self.config = config
        self.dataset = (
            dataset
            if dataset is not None
            else Dataset.open(config.dataset, image_root=config.images)
        )
        self._owns_model = model is None
        self.model = model if model is not None else self._open_model()
        self._hung: list[threading.Thread] = []
        self._closed = False
        try:
            self.mode = find_predict_mode(
                self.model, teacher_forced=config.teacher_forced
            )
        except BaseException:
            self.close()
            raise

    def load(self, item: PlannedImage) -> LoadedImage:
        """Read and decode an image and its samples."""
        try:
            image: Image.Image | str = self.dataset.open_image(item.image)
        except DATASET_ERRORS as error:
            image = describe_error(error)
        return self._load_samples(item, image)

    def give_up(self, item: PlannedImage, crashes: int) -> list[Prediction]:
        """Failed predictions for an image at which so many processes died."""
        reason = f"the model's process died {crashes} times at this image"
        return self.run(self._load_samples(item, reason))

    def is_result_of(self, result: list[Prediction], item: PlannedImage) -> bool:
        """Whether these are predictions for the questions of this image, in order."""
        predicted_ids = [prediction.sample for prediction in result]
        planned_ids = [self.dataset.samples.id[row] for row in item.rows]
        return predicted_ids == planned_ids

    def run(self, loaded: LoadedImage) -> list[Prediction]:
        """One prediction per question of an image, in order. A failure becomes a prediction with an error.

        The model gets all questions in one call. If that fails, it gets each question alone, so that one bad question
        does not fail the others.
        """
        if isinstance(loaded.image, str):
            return [self._failed(sample, loaded.image) for sample in loaded.ids]
        readable = [sample for sample in loaded.samples if isinstance(sample, Sample)]
        predicted = self._predict(loaded.image, readable)
        by_id = {prediction.sample: prediction for prediction in predicted}
        predictions = []
        for id, sample in zip(loaded.ids, loaded.samples):
            if isinstance(sample, Sample):
                predictions.append(by_id[id])
            else:  # why it could not be read
                predictions.append(self._failed(id, sample))
        return predictions

    def close(self) -> None:
        """Close the model, once. An error at this point does not affect the run."""
        if not self._closed:
            self._closed = True
            if self._owns_model:
                with contextlib.suppress(Exception):
                    getattr(self.model, "close", lambda: None)()

    def _load_samples(
        self, planned: PlannedImage, image: Image.Image | str
    ) -> LoadedImage:
        samples: list[Sample | str] = []
        for row in planned.rows:
            try:
                samples.append(self.dataset[row])
            except DATASET_ERRORS as error:
                samples.append(describe_error(error))
        return LoadedImage(
            image, samples, [self.dataset.samples.id[row] for row in planned.rows]
        )

    def _predict(
        self, image: Image.Image, samples: Sequence[Sample]
    ) -> list[Prediction]:
        if not samples:
            return []
        try:
            return self._call(image, samples)
        except (ModelGoneError, KeyboardInterrupt):
            raise
        except (
            BaseException
        ) as error:  # sys.exit() or asyncio.CancelledError must not end the run either
            if len(samples) == 1:
                return [self._failed(samples[0].id, describe_error(error))]
        return [
            prediction
            for sample in samples
            for prediction in self._predict(image, [sample])
        ]

    def _failed(self, sample: str, reason: str) -> Prediction:
        return Prediction(
            sample=sample, error=reason, forced=self.mode == "teacher_forced"
        )

    def _call(self, image: Image.Image, samples: Sequence[Sample]) -> list[Prediction]:
        if self.config.timeout is None or hasattr(self.model, "timeout"):
            return call_model(self.model, self.mode, image, samples)
        return self._call_with_timeout(
            image, samples, self.config.timeout * len(samples)
        )

    def _call_with_timeout(
        self, image: Image.Image, samples: Sequence[Sample], seconds: float
    ) -> list[Prediction]:
        """Call the model in a thread and wait. A thread cannot be killed: one that hangs keeps its model, and a new
        model replaces it.
        """
        done: queue.SimpleQueue[list[Prediction] | BaseException] = queue.SimpleQueue()

        def work(model: Model) -> None:
            try:
                done.put(call_model(model, self.mode, image, samples))
            except BaseException as error:
                done.put(error)

        thread = threading.Thread(
            target=work, args=(self.model,), daemon=True, name="model"
        )
        thread.start()
        try:
            outcome = done.get(timeout=seconds)
        except queue.Empty:
            self._replace_model(thread)
            raise ModelError(f"no prediction within {seconds:g} s") from None
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def _replace_model(self, hung: threading.Thread) -> None:
        self._hung = [thread for thread in [*self._hung, hung] if thread.is_alive()]
        if len(self._hung) > MAX_HUNG:
            raise ModelGoneError(
                f"{len(self._hung)} calls of model {self.config.model!r} hang; run it as a `command:` model, which can "
                "be killed (docs/adapters.md)"
            )
        if not self._owns_model:
            raise ModelGoneError(
                f"a call of model {self.config.model!r} hangs; pass the model by name, so that it can be opened again"
            )
        before = self.model
        self.model = self._open_model()
        if getattr(self.model, "weights_hash", None) != getattr(
            before, "weights_hash", None
        ):
            raise ModelGoneError(
                f"model {self.config.model!r} has other weights now than when it was first opened"
            )

    def _open_model(self) -> Model:
        model = make_predictor(self.config.model, **self.config.options)
        if self.config.timeout is not None and hasattr(model, "timeout"):
            model.timeout = self.config.timeout
        return model


def describe_error(error: BaseException) -> str:
    """An error on one line of limited length, without memory addresses, which differ between processes."""
    if isinstance(error, MemoryError):
        return f"out of memory: {error}" if str(error) else "out of memory"
    text = (
        str(error)
        if isinstance(error, MaskwiseError)
        else f"{type(error).__name__}: {error}"
    )
    # Surrogates, which Python keeps where a text was not UTF-8, cannot be written.
    text = text.encode("utf-8", "replace").decode()
    return " ".join(ADDRESS.sub("", text).split())[:MAX_ERROR_LENGTH]
