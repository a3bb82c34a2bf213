"""What every engine is made of: a dataset and a model, open, and how an image with its questions is answered."""

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
from maskwise.harness.registry import load_model
from maskwise.harness.running import union_ious
from maskwise.schema import Prediction, Sample
from maskwise.store import Dataset

MAX_REASON = 500
"""Characters kept of why a question failed."""

ADDRESS = re.compile(r" at 0x[0-9a-f]+", re.IGNORECASE)
"""Where an object lies in memory, as Python shows it."""

READING = (MaskwiseError, MemoryError, OSError, pa.ArrowException)
"""What a damaged dataset raises: a failed sample."""

FAILING = (Exception, SystemExit)
"""What a model may raise: a failed sample. One that calls sys.exit() must not end the run as if all were done."""

MAX_HUNG = 16
"""Calls left hanging at one time before the run stops."""


@dataclass(frozen=True)
class WorkerConfig:
    """What a worker needs to know, wherever it is. timeout: seconds a question may take."""

    dataset: Path
    model: str
    images: Path | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    teacher_forced: bool = False
    timeout: float | None = None


@dataclass(frozen=True)
class LoadedImage:
    """An image and its samples, read; a text in place of one says why it could not be."""

    image: Image.Image | str
    samples: list[Sample | str]
    ids: list[str]


@dataclass(frozen=True)
class ImagePredictions:
    """The predictions to one image's questions, in order, and what each adds to the running gIoU, if anything."""

    predictions: list[Prediction]
    ious: list[float | None]


class Worker:
    """A dataset and a model, open. `load` may run in another thread than `answer`; neither raises for a bad sample."""

    def __init__(self, job: WorkerConfig) -> None:
        self.job = job
        self.dataset = Dataset.open(job.dataset, image_root=job.images)
        self.model = self._open_model()
        self._hung: list[threading.Thread] = []
        self._closed = False
        try:
            self.mode = find_predict_mode(self.model, teacher_forced=job.teacher_forced)
        except BaseException:
            self.close()
            raise

    def load(self, work: PlannedImage) -> LoadedImage:
        """Read and decode an image and the samples asked about it."""
        try:
            image: Image.Image | str = self.dataset.open_image(work.image)
        except READING as error:
            image = _reason(error)
        return self._load_samples(work, image)

    def fail(self, work: PlannedImage, reason: str) -> ImagePredictions:
        """The answer to an image nobody should ask about."""
        return self.answer(self._load_samples(work, reason))

    def answer(self, loaded: LoadedImage) -> ImagePredictions:
        """Ask the model all questions of an image together. What fails is an answer with an error.

        Where the questions fail together each is asked again alone, so that one bad question does not fail the others.
        """
        if isinstance(loaded.image, str):
            failed = [self._failed(sample, loaded.image) for sample in loaded.ids]
            return ImagePredictions(failed, union_ious(loaded.samples, failed))
        asked = [sample for sample in loaded.samples if isinstance(sample, Sample)]
        replies = {reply.sample: reply for reply in self._ask(loaded.image, asked)}
        predictions = [
            replies[id] if isinstance(sample, Sample) else self._failed(id, sample)
            for id, sample in zip(loaded.ids, loaded.samples)
        ]
        return ImagePredictions(predictions, union_ious(loaded.samples, predictions))

    def close(self) -> None:
        """Close the model, once; what goes wrong then changes no result."""
        if not self._closed:
            self._closed = True
            with contextlib.suppress(Exception):
                getattr(self.model, "close", lambda: None)()

    def _load_samples(self, work: PlannedImage, image: Image.Image | str) -> LoadedImage:
        samples: list[Sample | str] = []
        for row in work.rows:
            try:
                samples.append(self.dataset[row])
            except READING as error:
                samples.append(_reason(error))
        return LoadedImage(image, samples, [self.dataset.samples.id[row] for row in work.rows])

    def _ask(self, image: Image.Image, samples: Sequence[Sample]) -> list[Prediction]:
        if not samples:
            return []
        try:
            return self._call(image, samples)
        except ModelGoneError:
            raise
        except FAILING as error:
            if len(samples) == 1:
                return [self._failed(samples[0].id, _reason(error))]
        return [prediction for sample in samples for prediction in self._ask(image, [sample])]

    def _failed(self, sample: str, reason: str) -> Prediction:
        return Prediction(sample=sample, error=reason, forced=self.mode == "teacher_forced")

    def _call(self, image: Image.Image, samples: Sequence[Sample]) -> list[Prediction]:
        if self.job.timeout is None or hasattr(self.model, "timeout"):
            return call_model(self.model, self.mode, image, samples)
        return self._call_in_time(image, samples, self.job.timeout * len(samples))

    def _call_in_time(
        self, image: Image.Image, samples: Sequence[Sample], seconds: float
    ) -> list[Prediction]:
        """Ask in a thread and wait for it that long. A thread cannot be ended: one that hangs is left to itself, with
        the model it holds, and a fresh model takes over.
        """
        done: queue.SimpleQueue[list[Prediction] | BaseException] = queue.SimpleQueue()

        def work(model: Model) -> None:
            try:
                done.put(call_model(model, self.mode, image, samples))
            except FAILING as error:
                done.put(error)

        thread = threading.Thread(target=work, args=(self.model,), daemon=True, name="model")
        thread.start()
        try:
            found = done.get(timeout=seconds)
        except queue.Empty:
            self._replace_model(thread)
            raise ModelError(f"no reply within {seconds:g} s") from None
        if isinstance(found, BaseException):
            raise found
        return found

    def _replace_model(self, hung: threading.Thread) -> None:
        self._hung = [thread for thread in [*self._hung, hung] if thread.is_alive()]
        if len(self._hung) > MAX_HUNG:
            raise ModelGoneError(
                f"{len(self._hung)} calls of model {self.job.model!r} hang; run it as a `command:` model, which can be "
                "ended (docs/adapters.md)"
            )
        before, self.model = self.model, self._open_model()
        if getattr(self.model, "weights_hash", None) != getattr(before, "weights_hash", None):
            raise ModelGoneError(
                f"model {self.job.model!r} has other weights now than when it was first opened"
            )

    def _open_model(self) -> Model:
        model = load_model(self.job.model, **self.job.options)
        if self.job.timeout is not None and hasattr(model, "timeout"):
            model.timeout = self.job.timeout
        return model


def _reason(error: BaseException) -> str:
    """Why something failed, on one line of bounded length, without addresses, which differ from process to process."""
    if isinstance(error, MemoryError):
        return f"out of memory: {error}" if str(error) else "out of memory"
    text = str(error) if isinstance(error, MaskwiseError) else f"{type(error).__name__}: {error}"
    # Half a character, which Python keeps where a text was not UTF-8, cannot be written.
    text = text.encode("utf-8", "replace").decode()
    return " ".join(ADDRESS.sub("", text).split())[:MAX_REASON]
