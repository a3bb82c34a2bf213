"""Ask a model every question of a dataset, with a record that can be resumed after any interruption.

    summary = predict_dataset("tiny", "world", "runs/world-tiny")

The run folder (docs/reference/runs.md) contains run.json from the beginning, and predictions.jsonl as it grows: one
line per sample in the order of the plan, image by image. The same call resumes: an incomplete line or image is removed
and predicted again. The result is the same, byte for byte, however often a run was interrupted.
"""

import contextlib
import logging
import os
import shutil
import warnings
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from maskwise import __version__
from maskwise.datasets import find_dataset, load_dataset
from maskwise.engines import EngineName, EngineOptions, check_engine, run_job
from maskwise.errors import MaskwiseError, ModelGoneError, StoreError
from maskwise.harness.failures import Failures
from maskwise.harness.inputs import check_inputs, check_tables, hash_view, stamp_tables
from maskwise.harness.loaded_model import LoadedModel, load_model
from maskwise.harness.plan import Plan
from maskwise.harness.prediction_job import PredictionJob
from maskwise.harness.predictor import Model, describe_model, domain_warning
from maskwise.harness.progress import OnProgress, OnStage, Progress, shown_progress
from maskwise.harness.resume import (
    Completed,
    find_completed,
    find_failed,
    is_replaced,
    replace_lines,
)
from maskwise.harness.run_record import describe_dataset
from maskwise.harness.worker import PredictedImage, Worker, WorkerConfig
from maskwise.runs import PredictionSummary
from maskwise.runs.environment import describe_attempt
from maskwise.runs.files import (
    PREDICTIONS,
    hash_path,
    lock_run,
    read_run_file,
    write_errors,
)
from maskwise.runs.schema import (
    DatasetInfo,
    DomainCheck,
    EvaluationInfo,
    EvaluationInputs,
    Subset,
)
from maskwise.runs.writer import write_state
from maskwise.schema import Prediction
from maskwise.store import Dataset, Log
from maskwise.store.folder import MANIFEST

logger = logging.getLogger(__name__)

RETRY = "retry.jsonl"
"""Failed samples are predicted again in this file. When all are done, their lines replace the old ones."""

DOMAIN_IMAGES = 32
"""Images that a model checks, at most, to find out whether the dataset is in its domain."""

SHARDS = "shards"
"""Folder for predictions that an engine made before it was their turn, one folder per log."""


def predict_dataset(
    model: str | Model | LoadedModel,
    data: str | os.PathLike[str] | Dataset,
    out: str | os.PathLike[str],
    *,
    options: Mapping[str, Any] | None = None,
    images: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    seed: int = 0,
    teacher_forced: bool = False,
    engine: EngineName | EngineOptions = "local",
    timeout: float | None = None,
    retry_failed: bool = False,
    fail_fast: bool = False,
    keep_going: bool = False,
    progress: bool = True,
    on_progress: OnProgress = lambda progress: None,
    on_stage: OnStage = lambda stage: None,
) -> PredictionSummary:
    """Predict what the run folder `out` does not contain yet. `evaluate` describes the arguments, and also scores."""
    display = shown_progress(on_progress, on_stage, shown=progress)
    with (
        display as (show_progress, show_stage),
        open_session(
            model,
            data,
            out,
            options=options,
            images=images,
            limit=limit,
            seed=seed,
            teacher_forced=teacher_forced,
            engine=engine,
            timeout=timeout,
            retry_failed=retry_failed,
            fail_fast=fail_fast,
            keep_going=keep_going,
            on_progress=show_progress,
        ) as session,
    ):
        show_stage("predicting")
        summary = session.predict_in_folder()
    session.failures.check_summary(summary)
    warn_about_failures(summary, session.failures)
    return summary


def warn_about_failures(summary: PredictionSummary, failures: Failures) -> None:
    """Warn with the count and the first reason if questions failed."""
    if summary.failed:
        warnings.warn(
            f"{summary.failed:,} of {summary.samples:,} questions failed; the first: "
            f"{summary.first_error}{failures.place}",
            stacklevel=3,
        )


@contextlib.contextmanager
def open_session(
    model: str | Model | LoadedModel,
    data: str | os.PathLike[str] | Dataset,
    out: str | os.PathLike[str] | None,
    *,
    options: Mapping[str, Any] | None,
    images: str | os.PathLike[str] | None,
    limit: int | None,
    seed: int,
    teacher_forced: bool,
    engine: EngineName | EngineOptions,
    timeout: float | None,
    retry_failed: bool,
    fail_fast: bool,
    keep_going: bool,
    on_progress: OnProgress,
) -> Iterator["PredictionSession"]:
    """Lock the run folder, and open the dataset and the model. The arguments are those of `evaluate`."""
    if timeout is not None and not timeout > 0:
        raise MaskwiseError(
            f"timeout is {timeout}; expected a number of seconds above 0"
        )
    # A model may change the working directory, so every path is made absolute before the model is opened.
    working_folder = Path.cwd()
    folder = None if out is None else Path(out).absolute()
    image_root = None if images is None else Path(images).absolute()
    if not isinstance(data, Dataset):
        data = find_dataset(data).absolute()
    dataset = load_dataset(data, images=image_root)
    loaded = _load_unless_named(model, options or {})
    is_named = loaded is None or loaded.by_name
    if isinstance(engine, str):
        engine = EngineOptions(engine=engine)
    elif engine.engine == "local" and (engine.workers or 1) > 1:
        # Several models on one machine, each with a GPU of its own, run on a Ray that is started here.
        engine = EngineOptions(engine="ray", workers=engine.workers)
    if engine.engine != "local" and (
        folder is None or not is_named or isinstance(data, Dataset)
    ):
        raise MaskwiseError(
            f"engine {engine.engine} needs a run folder, and a model and a dataset given by name or path"
        )
    check_engine(engine)
    config = WorkerConfig(
        dataset=dataset.path,
        model=str(model) if loaded is None else loaded.spec,
        images=image_root,
        options=dict(options or {}) if loaded is None else loaded.options,
        teacher_forced=teacher_forced,
        timeout=timeout,
    )
    with contextlib.ExitStack() as stack:
        if folder is not None:
            stack.enter_context(lock_run(folder))
        worker = Worker(
            config, dataset=dataset, model=None if loaded is None else loaded.predictor
        )
        stack.enter_context(contextlib.closing(worker))
        plan = Plan.from_dataset(dataset, limit=limit, seed=seed)
        if not plan.samples:
            raise StoreError(
                f"{dataset.path} has no samples, so there is nothing to evaluate; "
                f"`maskwise build RECIPE {dataset.path}` writes questions about annotated images"
            )
        yield PredictionSession(
            worker=worker,
            plan=plan,
            engine=engine,
            subset=None if limit is None else Subset(limit=limit, seed=seed),
            folder=folder,
            working_folder=working_folder,
            retry_failed=retry_failed,
            failures=Failures(folder, fail_fast=fail_fast, keep_going=keep_going),
            on_progress=on_progress,
        )


def _load_unless_named(
    model: str | Model | LoadedModel, options: Mapping[str, Any]
) -> LoadedModel | None:
    """The loaded model; None for a name, which the worker opens itself: it can open it again if a call hangs."""
    if isinstance(model, str):
        return None
    return load_model(model, **options)


@dataclass(frozen=True)
class PredictionSession:
    """Everything that is open while predictions are made. folder: None if they stay in memory."""

    worker: Worker
    plan: Plan
    engine: EngineOptions
    subset: Subset | None
    folder: Path | None
    working_folder: Path
    retry_failed: bool
    failures: Failures
    on_progress: OnProgress

    @property
    def view(self) -> Dataset:
        """The samples of the plan, in the dataset's order."""
        dataset = self.worker.dataset
        if self.subset is None:
            return dataset
        return dataset.take(np.sort(self.plan.rows))

    def predict_in_memory(self) -> tuple[PredictionSummary, list[Prediction]]:
        """Predict the whole plan; predictions are in its order."""
        progress = Progress(self.plan.samples)
        predictions: list[Prediction] = []
        self.on_progress(progress)
        with contextlib.closing(self._run_plan(self.plan, shards=Path())) as images:
            for result in images:
                predictions += result.predictions
                progress.add(result.predictions)
                self.failures.add(result, progress)
                self.on_progress(progress)
        return self._summarize(progress, resumed=0), predictions

    def predict_in_folder(self) -> PredictionSummary:
        """Complete predictions.jsonl, and predict failed samples again if asked."""
        assert self.folder is not None
        folder = self.folder
        path = folder / PREDICTIONS
        retry = folder / RETRY
        evaluation = check_inputs(folder, self._inputs())
        if evaluation is not None:
            check_tables(self.worker.dataset, evaluation.tables)
        with write_errors(folder):
            completed = find_completed(path, self.plan, self._sample_ids)
            is_complete = completed.images == len(self.plan)
            if is_complete and retry.exists() and is_replaced(path, retry):
                retry.unlink()
        if is_complete:
            _remove_shards(folder, path)
        progress = _progress_after(completed, self.plan)
        if not is_complete or (self.retry_failed and completed.failed):
            evaluation = self.begin_attempt(evaluation, completed.samples)
            with write_errors(folder):
                write_state(folder, evaluation, "predicting", self._dataset_info)
            progress = self._complete_log(path, self.plan, completed)
            if self.retry_failed:
                progress = self._retry(path, retry, progress)
        if retry.exists():
            warnings.warn(
                f"{retry} is an unfinished retry: --retry-failed finishes it",
                stacklevel=2,
            )
        self.worker.dataset.check_unchanged()
        self._record_predicted(evaluation)
        return self._summarize(progress, resumed=completed.samples)

    def begin_attempt(
        self, before: EvaluationInfo | None, done_before: int
    ) -> EvaluationInfo:
        """The record of a run that is started or resumed now. done_before: samples predicted before."""
        attempt = describe_attempt(
            engine=self.engine.engine,
            timeout=self.worker.config.timeout,
            done_before=done_before,
            working_folder=self.working_folder,
        )
        earlier_attempts = before.attempts if before else ()
        return EvaluationInfo(
            inputs=self._inputs(),
            samples=self.plan.samples,
            images=len(self.plan),
            attempts=(*earlier_attempts, attempt),
            tables=stamp_tables(self.worker.dataset),
            domain=before.domain if before else self._check_domain(),
        )

    def _run_plan(
        self, plan: Plan, *, shards: Path
    ) -> Generator[PredictedImage, None, None]:
        """The predictions for each image of a plan, made by the engine."""
        job = PredictionJob.of(self.worker)
        return run_job(job, plan, self.engine, worker=self.worker, shards=shards)

    @property
    def _sample_ids(self) -> list[str]:
        return self.worker.dataset.samples.id

    @property
    def _dataset_info(self) -> DatasetInfo:
        return describe_dataset(
            self.worker.dataset, samples=self.plan.samples, images=len(self.plan)
        )

    def _inputs(self) -> EvaluationInputs:
        """What determines the predictions."""
        config = self.worker.config
        dataset = self.worker.dataset
        return EvaluationInputs(
            maskwise=__version__,
            dataset=hash_path(dataset.path / MANIFEST),
            model=describe_model(self.worker.model, config.model, config.options),
            teacher_forced=config.teacher_forced,
            subset=self.subset,
            samples=hash_view(dataset),
        )

    def _check_domain(self) -> DomainCheck | None:
        """Let a model that can do so check some images of the plan; None if it cannot."""
        model = self.worker.model
        if not callable(getattr(model, "domain_warning", None)):
            return None
        step = max(1, len(self.plan) // DOMAIN_IMAGES)
        checked = 0
        warning_texts = []
        for index in range(0, len(self.plan), step)[:DOMAIN_IMAGES]:
            image = self.worker.load(self.plan[index]).image
            if isinstance(image, str):  # why it could not be read
                continue
            checked += 1
            text = domain_warning(model, image)
            if text is not None:
                warning_texts.append(text)
        return DomainCheck(
            checked=checked,
            outside=len(warning_texts),
            warning=warning_texts[0] if warning_texts else None,
        )

    def _complete_log(
        self, path: Path, plan: Plan, completed: Completed, *, is_retry: bool = False
    ) -> Progress:
        """Predict the images of a plan that a log does not contain, and append them, one whole image at a time."""
        assert self.folder is not None
        folder = self.folder
        ids = self._sample_ids
        with contextlib.ExitStack() as stack:
            with write_errors(folder):
                log = stack.enter_context(Log(path, Prediction))
                log.cut(completed.end)
            rest = plan[completed.images :]
            logger.info(
                "%s contains %d of %d images; engine %s predicts the rest",
                path,
                completed.images,
                len(plan),
                self.engine.engine,
            )
            progress = _progress_after(completed, plan)
            self.on_progress(progress)
            stream = self._run_plan(rest, shards=_shards(folder, path))
            images = stack.enter_context(contextlib.closing(stream))
            try:
                for planned, result in zip(rest, images, strict=True):
                    predictions = result.predictions
                    expected = [ids[row] for row in planned.rows]
                    if [prediction.sample for prediction in predictions] != expected:
                        raise StoreError(
                            f"engine {self.engine.engine} returned samples in a wrong order; please report this"
                        )
                    progress.add(predictions)
                    self.failures.add(result, progress, is_retry=is_retry)
                    log.extend(predictions)
                    self.on_progress(progress)
            except ModelGoneError as error:
                raise ModelGoneError(
                    f"{error}. {progress.done} of {progress.total} predictions are kept in {folder}: "
                    "repeat the command to continue"
                ) from error
        _remove_shards(folder, path)
        return progress

    def _retry(self, path: Path, retry: Path, progress: Progress) -> Progress:
        """Predict the failed samples again, then replace their lines."""
        assert self.folder is not None
        with write_errors(self.folder):
            failed = find_failed(path)
        if not failed:
            return progress
        plan = self.plan.only(failed)
        with write_errors(self.folder):
            completed = find_completed(retry, plan, self._sample_ids)
        retried = self._complete_log(retry, plan, completed, is_retry=True)
        with write_errors(self.folder):
            replace_lines(path, retry, failed)
        # Every failed line was replaced, so the failures that remain are those of the retry.
        return Progress(
            progress.total, progress.done, retried.failed, retried.first_error
        )

    def _record_predicted(self, evaluation: EvaluationInfo | None) -> None:
        """Set the state of run.json to `predicted`, unless the run was scored before and nothing has changed."""
        assert self.folder is not None
        info = read_run_file(self.folder)
        if evaluation is not None and info is not None and info.state == "predicting":
            with write_errors(self.folder):
                write_state(self.folder, evaluation, "predicted", self._dataset_info)

    def _summarize(self, progress: Progress, *, resumed: int) -> PredictionSummary:
        return PredictionSummary(
            samples=progress.done,
            images=len(self.plan),
            failed=progress.failed,
            first_error=progress.first_error,
            resumed=resumed,
        )


def _progress_after(completed: Completed, plan: Plan) -> Progress:
    """The progress of a plan of which a log already contains a part."""
    return Progress(
        plan.samples, completed.samples, completed.failed, completed.first_error
    )


def _shards(folder: Path, path: Path) -> Path:
    return folder / SHARDS / path.stem


def _remove_shards(folder: Path, path: Path) -> None:
    """Remove the shards of a log that is complete."""
    shards = _shards(folder, path)
    if shards.exists():
        with write_errors(folder):
            shutil.rmtree(shards)
    # The parent stays if another log has shards in it.
    with contextlib.suppress(OSError):
        shards.parent.rmdir()
