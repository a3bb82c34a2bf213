"""The worker of an evaluation: an open dataset and model predict an image's questions.

Engines run it here or in other processes.
"""

import contextlib
import queue
import re
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from PIL import Image

from maskwise.errors import MaskwiseError, ModelError, ModelGoneError
from maskwise.harness.plan import PlannedImage
from maskwise.harness.predictor import (
    Model,
    call_batch,
    call_model,
    find_batch_size,
    find_predict_mode,
)
from maskwise.harness.registry import make_predictor
from maskwise.schema import Prediction, Sample
from maskwise.store import Dataset

MAX_ERROR_LENGTH = 500
"""Characters that are kept of why a question failed."""

ADDRESS = re.compile(r" at 0x[0-9a-f]+", re.IGNORECASE)
"""An object's address in memory, as Python prints it."""

DATASET_ERRORS = (MaskwiseError, MemoryError, OSError, pa.ArrowException)
"""What reading a damaged dataset raises: the sample fails."""

MAX_TRACEBACK_LENGTH = 20_000
"""Characters that are kept of a traceback: those of a deep recursion have 1,000 frames."""

MAX_TRACEBACKS = 100
"""Distinct errors of which a worker passes on the traceback: more would be texts with an id in them."""

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

    @property
    def readable_samples(self) -> list[Sample]:
        """The samples that can be predicted; none if the image could not be read."""
        if isinstance(self.image, str):
            return []
        return [sample for sample in self.samples if isinstance(sample, Sample)]

    def is_predicted(self, by_id: Mapping[str, Prediction]) -> bool:
        """Whether these are predictions for all samples that can be predicted."""
        return all(sample.id in by_id for sample in self.readable_samples)


class PredictedImage(msgspec.Struct, frozen=True):
    """One prediction per question of an image, in order.

    tracebacks: by error of a failed prediction, where the worker meets this error for the first time.
    """

    predictions: list[Prediction]
    tracebacks: dict[str, str] = {}


class Worker:
    """An open dataset and an open model, an `EngineWorker`.

    `load` may run in another thread than `run`; they do not raise. batch_size: questions that the model gets in one
    call, 1 if it gets the questions of one image at a time.

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
        self._known_errors: set[str] = set()
        self._tracebacks: dict[str, str] = {}
        try:
            self.mode = find_predict_mode(
                self.model, teacher_forced=config.teacher_forced
            )
            batch_size = find_batch_size(self.model)
            self._is_batching = batch_size is not None and self.mode == "predict"
            self.batch_size = (batch_size or 1) if self._is_batching else 1
        except BaseException:
            self.close()
            raise

    def load(self, item: PlannedImage) -> LoadedImage:
        """Read and decode an image and its samples. StoreError if the dataset was changed since it was opened."""
        self.dataset.check_unchanged()
        try:
            image: Image.Image | str = self.dataset.open_image(item.image)
        except DATASET_ERRORS as error:
            image = describe_error(error)
        return self._load_samples(item, image)

    def give_up(self, item: PlannedImage, crashes: int) -> PredictedImage:
        """Failed predictions for an image at which so many processes died."""
        reason = f"the model's process died {crashes} times at this image"
        return self.run(self._load_samples(item, reason))

    def is_result_of(self, result: PredictedImage, item: PlannedImage) -> bool:
        """Whether these are predictions for the questions of this image, in order."""
        predicted_ids = [prediction.sample for prediction in result.predictions]
        planned_ids = [self.dataset.samples.id[row] for row in item.rows]
        return predicted_ids == planned_ids

    def run(self, loaded: LoadedImage) -> PredictedImage:
        """One prediction per question of an image, in order. A failure becomes a prediction with an error.

        The model gets all questions in one call. If that fails, it gets each question alone, so that one bad question
        does not fail the others.
        """
        (result,) = self.run_all([loaded])
        return result

    def run_all(self, loaded_images: Iterable[LoadedImage]) -> Iterator[PredictedImage]:
        """What `run` returns for each image, in order. A model that takes batches gets full ones, across images.

        Images are taken until a batch is full. If a batch fails, each of its questions is predicted alone, so the
        result does not depend on what else is in the batch.
        """
        if not self._is_batching:
            for loaded in loaded_images:
                readable = loaded.readable_samples
                predicted = self._predict(loaded, readable) if readable else []
                yield self._collect(loaded, {item.sample: item for item in predicted})
            return
        waiting: deque[LoadedImage] = deque()
        pairs: list[tuple[Image.Image, Sample]] = []
        by_id: dict[str, Prediction] = {}
        for loaded in loaded_images:
            waiting.append(loaded)
            for sample in loaded.readable_samples:
                assert isinstance(loaded.image, Image.Image)
                pairs.append((loaded.image, sample))
            while len(pairs) >= self.batch_size:
                by_id |= self._predict_batch(pairs[: self.batch_size])
                del pairs[: self.batch_size]
            while waiting and waiting[0].is_predicted(by_id):
                yield self._collect(waiting.popleft(), by_id)
        if pairs:
            by_id |= self._predict_batch(pairs)
        for loaded in waiting:
            yield self._collect(loaded, by_id)

    def _collect(
        self, loaded: LoadedImage, by_id: dict[str, Prediction]
    ) -> PredictedImage:
        """The predictions of an image, taken from those by sample id; what was not readable has failed."""
        predictions = []
        for id, sample in zip(loaded.ids, loaded.samples):
            if isinstance(loaded.image, str):
                predictions.append(self._failed(id, loaded.image))
            elif isinstance(sample, str):  # why it could not be read
                predictions.append(self._failed(id, sample))
            else:
                predictions.append(by_id.pop(id))
        tracebacks = self._tracebacks
        self._tracebacks = {}
        return PredictedImage(predictions, tracebacks)

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
        self, loaded: LoadedImage, samples: Sequence[Sample]
    ) -> list[Prediction]:
        """One prediction per sample of an image; the samples are not empty."""
        image = loaded.image
        assert isinstance(image, Image.Image)
        predictions = self._try(
            lambda model: call_model(model, self.mode, image, samples), samples
        )
        if predictions is not None:
            return predictions
        return [
            prediction
            for sample in samples
            for prediction in self._predict(loaded, [sample])
        ]

    def _predict_batch(
        self, pairs: Sequence[tuple[Image.Image, Sample]]
    ) -> dict[str, Prediction]:
        """The predictions of a batch by sample id; the batch is not empty."""
        images = [image for image, _ in pairs]
        samples = [sample for _, sample in pairs]
        predictions = self._try(
            lambda model: call_batch(model, images, samples), samples
        )
        if predictions is not None:
            return {prediction.sample: prediction for prediction in predictions}
        by_id: dict[str, Prediction] = {}
        for pair in pairs:
            by_id |= self._predict_batch([pair])
        return by_id

    def _try(
        self, call: Callable[[Model], list[Prediction]], samples: Sequence[Sample]
    ) -> list[Prediction] | None:
        """The predictions of a call for these samples; None if it failed and there are several of them."""
        try:
            return self._call(call, len(samples))
        except (ModelGoneError, KeyboardInterrupt):
            raise
        except (
            BaseException
        ) as error:  # sys.exit() or asyncio.CancelledError must not end the run either
            if len(samples) > 1:
                return None
            reason = describe_error(error)
            self._keep_traceback(reason, error)
            return [self._failed(samples[0].id, reason)]

    def _keep_traceback(self, reason: str, error: BaseException) -> None:
        """Pass the traceback of an error on with the next result, if the error is new."""
        if reason in self._known_errors or len(self._known_errors) == MAX_TRACEBACKS:
            return
        self._known_errors.add(reason)
        text = "".join(traceback.format_exception(error))
        # Surrogates, which Python keeps where a text was not UTF-8, cannot be written.
        text = text.encode("utf-8", "replace").decode()
        if len(text) > MAX_TRACEBACK_LENGTH:
            half = MAX_TRACEBACK_LENGTH // 2
            text = f"{text[:half]}\n[...]\n{text[-half:]}"
        self._tracebacks[reason] = text

    def _failed(self, sample: str, reason: str) -> Prediction:
        return Prediction(
            sample=sample, error=reason, forced=self.mode == "teacher_forced"
        )

    def _call(
        self, call: Callable[[Model], list[Prediction]], questions: int
    ) -> list[Prediction]:
        if self.config.timeout is None or hasattr(self.model, "timeout"):
            return call(self.model)
        return self._call_with_timeout(call, self.config.timeout * questions)

    def _call_with_timeout(
        self, call: Callable[[Model], list[Prediction]], seconds: float
    ) -> list[Prediction]:
        """Call the model in a thread and wait. A thread cannot be killed: one that hangs keeps its model, and a new
        model replaces it.
        """
        done: queue.SimpleQueue[list[Prediction] | BaseException] = queue.SimpleQueue()

        def work(model: Model) -> None:
            try:
                done.put(call(model))
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
                f"{len(self._hung)} calls of model {self.config.model!r} hang (a call asks all questions of an image, "
                "or one of them again); run it as a `command:` model, which can be killed "
                "(docs/guides/model_exchange.md)"
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
