"""Evaluate a model on a dataset: predict, score, and keep a record that can be resumed after any interruption.

    summary = evaluate(EvaluationConfig("world", "tiny"), "runs/world-tiny")
    summary.run.scores.protocols["strict"].metrics["giou"].value

Without a folder everything stays in memory and no file is written. The run folder (docs/runs.md) contains run.json from
the beginning, and predictions.jsonl as it grows: one line per sample in the order of the plan, image by image. Calling
`evaluate` again resumes: an incomplete line or image is removed and predicted again. The result is the same, byte for
byte, however often a run was interrupted.
"""

import contextlib
import shutil
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from maskwise import __version__
from maskwise.datasets import find_dataset
from maskwise.engines import EngineOptions, check_engine, run_job
from maskwise.errors import (
    MaskwiseError,
    ModelGoneError,
    ProtocolError,
    StoreError,
)
from maskwise.harness.inputs import check_inputs, check_tables, hash_view, stamp_tables
from maskwise.harness.plan import Plan
from maskwise.harness.prediction_job import PredictionJob
from maskwise.harness.predictor import Model, describe_model, domain_warning, model_spec
from maskwise.harness.progress import Progress
from maskwise.harness.resume import (
    Completed,
    find_completed,
    find_failed,
    is_replaced,
    replace_lines,
)
from maskwise.harness.score import describe_dataset, result_to_run, score
from maskwise.harness.worker import Worker, WorkerConfig
from maskwise.protocols import Protocol, find_protocol
from maskwise.runs import Run
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
    IntervalOptions,
    Subset,
)
from maskwise.runs.writer import write_scores, write_state
from maskwise.schema import Prediction
from maskwise.store import Dataset, Log
from maskwise.store.folder import MANIFEST

RETRY = "retry.jsonl"
"""Failed samples are predicted again in this file. When all are done, their lines replace the old ones."""

DOMAIN_IMAGES = 32
"""Images that a model checks, at most, to find out whether the dataset is in its domain."""

SHARDS = "shards"
"""Folder for predictions that an engine made before it was their turn, one folder per log."""


@dataclass(frozen=True)
class EvaluationConfig:
    """What is predicted.

    dataset: a folder, `world`, or an open dataset. model, options: as for `load_model`, or a model object; spec: how a
    model object was loaded, if it was. images: the folder of the images, if they were moved. limit, seed: that many
    images, drawn with this seed, with all their questions.
    """

    dataset: str | Path | Dataset
    model: str | Model
    options: Mapping[str, Any] = field(default_factory=dict)
    images: Path | None = None
    limit: int | None = None
    seed: int = 0
    teacher_forced: bool = False
    spec: str | None = None


@dataclass(frozen=True)
class ExecutionOptions:
    """How predictions are made; none of this affects them. timeout: seconds per question. retry_failed: predict the
    failed samples again.
    """

    engine: EngineOptions = field(default_factory=EngineOptions)
    timeout: float | None = None
    retry_failed: bool = False

    def __post_init__(self) -> None:
        if self.timeout is not None and not self.timeout > 0:
            raise MaskwiseError(
                f"timeout is {self.timeout}; expected a number of seconds above 0"
            )


@dataclass(frozen=True)
class EvaluationSummary:
    """A finished evaluation. folder: None in memory. failed: samples without a prediction; first_error: why the first
    one failed. run: None if scoring was not asked for. resumed: samples that were predicted by earlier attempts.
    """

    folder: Path | None
    samples: int
    images: int
    failed: int
    first_error: str | None = None
    run: Run | None = None
    resumed: int = 0


@dataclass(frozen=True)
class _Session:
    """Everything that is open while predictions are made."""

    config: EvaluationConfig
    execution: ExecutionOptions
    plan: Plan
    worker: Worker
    working_folder: Path
    on_progress: Callable[[Progress], None]

    @property
    def dataset(self) -> Dataset:
        return self.worker.dataset

    @property
    def view(self) -> Dataset:
        """The samples of the plan, in the dataset's order."""
        return (
            self.dataset
            if self.config.limit is None
            else self.dataset.take(np.sort(self.plan.rows))
        )

    @property
    def dataset_info(self) -> DatasetInfo:
        return describe_dataset(
            self.dataset, samples=self.plan.samples, images=len(self.plan)
        )

    def inputs(self) -> EvaluationInputs:
        """What determines the predictions."""
        config = self.config
        return EvaluationInputs(
            maskwise=__version__,
            dataset=hash_path(self.dataset.path / MANIFEST),
            model=describe_model(
                self.worker.model, self.worker.config.model, config.options
            ),
            teacher_forced=config.teacher_forced,
            subset=None
            if config.limit is None
            else Subset(limit=config.limit, seed=config.seed),
            samples=hash_view(self.dataset),
        )

    def predict(
        self, plan: Plan, *, shards: Path
    ) -> Generator[list[Prediction], None, None]:
        """The predictions for each image of a plan, made by the engine."""
        job = PredictionJob.of(self.worker)
        return run_job(
            job, plan, self.execution.engine, worker=self.worker, shards=shards
        )

    def begin_attempt(self, before: EvaluationInfo | None, done: int) -> EvaluationInfo:
        """The record of a run that is started or resumed now. done: samples predicted before."""
        execution = self.execution
        attempt = describe_attempt(
            engine=execution.engine.engine,
            timeout=execution.timeout,
            done_before=done,
            working_folder=self.working_folder,
        )
        return EvaluationInfo(
            inputs=self.inputs(),
            samples=self.plan.samples,
            images=len(self.plan),
            attempts=(*(before.attempts if before else ()), attempt),
            tables=stamp_tables(self.dataset),
            domain=before.domain if before else self._check_domain(),
        )

    def _check_domain(self) -> DomainCheck | None:
        """Let a model that can do so check some images of the plan; None if it cannot."""
        model = self.worker.model
        if not callable(getattr(model, "domain_warning", None)):
            return None
        step = max(1, len(self.plan) // DOMAIN_IMAGES)
        chosen = range(0, len(self.plan), step)[:DOMAIN_IMAGES]
        images = [self.worker.load(self.plan[index]).image for index in chosen]
        found = [
            domain_warning(model, image)
            for image in images
            if not isinstance(image, str)
        ]
        outside = [warning for warning in found if warning is not None]
        return DomainCheck(
            checked=len(found),
            outside=len(outside),
            warning=outside[0] if outside else None,
        )


def evaluate(
    config: EvaluationConfig,
    out: str | Path | None = None,
    *,
    execution: ExecutionOptions | None = None,
    protocols: Sequence[str | Protocol] | None = None,
    predict_only: bool = False,
    interval_options: IntervalOptions | None = None,
    threads: int = 1,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    on_stage: Callable[[str], None] = lambda stage: None,
) -> EvaluationSummary:
    """Predict what the run folder does not contain yet, then score. Without `out` no file is written.

    protocols: names, `package.module:function` or Protocol objects; None for all
    built-in ones. on_progress: called after every image. on_stage: called with the
    current stage.
    """
    check_protocols(protocols, teacher_forced=config.teacher_forced)
    # A model may change the working directory, so every path is made absolute before it is opened.
    config = _with_absolute_paths(config)
    folder = None if out is None else Path(out).absolute()
    on_stage("opening")
    with contextlib.ExitStack() as stack:
        if folder is not None:
            stack.enter_context(lock_run(folder))
        session = stack.enter_context(
            _opened(config, execution or ExecutionOptions(), folder, on_progress)
        )
        on_stage("predicting")
        predictions: Path | list[Prediction]
        if folder is None:
            evaluation = session.begin_attempt(None, 0)
            summary, predictions = _predict_in_memory(session)
        else:
            summary = _predict_in_folder(session, folder)
            predictions = folder / PREDICTIONS
            evaluation = None
        if predict_only:
            return summary
        result = score(
            session.view,
            predictions,
            protocols,
            interval_options=interval_options,
            threads=threads,
            on_stage=on_stage,
        )
        run = result_to_run(result, evaluation=evaluation)
        if folder is not None:
            run = _write_scores(folder, run)
        return replace(summary, run=run)


def check_protocols(
    protocols: Sequence[str | Protocol] | None, *, teacher_forced: bool
) -> None:
    """Refuse unknown protocols, and `strict` for predictions made with the true answer in the prompt."""
    names = [find_protocol(rule).name for rule in protocols or ()]
    if teacher_forced and "strict" in names:
        raise ProtocolError(
            "strict does not score teacher-forced predictions: the true answer was in the prompt; omit one of the two"
        )


def _with_absolute_paths(config: EvaluationConfig) -> EvaluationConfig:
    dataset = config.dataset
    if not isinstance(dataset, Dataset):
        dataset = find_dataset(dataset).absolute()
    images = None if config.images is None else Path(config.images).absolute()
    return replace(config, dataset=dataset, images=images)


@contextlib.contextmanager
def _opened(
    config: EvaluationConfig,
    execution: ExecutionOptions,
    folder: Path | None,
    on_progress: Callable[[Progress], None],
) -> Iterator[_Session]:
    by_name = isinstance(config.model, str) and not isinstance(config.dataset, Dataset)
    engine = execution.engine.engine
    if engine != "local" and (folder is None or not by_name):
        raise MaskwiseError(
            f"engine {engine} needs a run folder, and a model and a dataset given by name or path"
        )
    check_engine(execution.engine)
    here = Path.cwd()
    dataset = config.dataset if isinstance(config.dataset, Dataset) else None
    worker_config = WorkerConfig(
        dataset=dataset.path if dataset is not None else Path(str(config.dataset)),
        model=config.model
        if isinstance(config.model, str)
        else config.spec or model_spec(config.model),
        images=config.images,
        options=dict(config.options),
        teacher_forced=config.teacher_forced,
        timeout=execution.timeout,
    )
    model = None if isinstance(config.model, str) else config.model
    with contextlib.closing(
        Worker(worker_config, dataset=dataset, model=model)
    ) as worker:
        plan = Plan.from_dataset(worker.dataset, limit=config.limit, seed=config.seed)
        if not plan.samples:
            raise StoreError(
                f"{worker.dataset.path} has no samples, so there is nothing to evaluate"
            )
        yield _Session(config, execution, plan, worker, here, on_progress)


def _predict_in_memory(session: _Session) -> tuple[EvaluationSummary, list[Prediction]]:
    progress = Progress(session.plan.samples)
    predictions = list[Prediction]()
    session.on_progress(progress)
    stream = session.predict(session.plan, shards=Path())
    with contextlib.closing(stream) as images:
        for found in images:
            predictions += found
            progress.add(found)
            session.on_progress(progress)
    images_done = len(session.plan)
    return EvaluationSummary(
        None, progress.done, images_done, progress.failed, progress.first_error
    ), predictions


def _predict_in_folder(session: _Session, folder: Path) -> EvaluationSummary:
    """Complete predictions.jsonl, and predict failed samples again if asked."""
    path = folder / PREDICTIONS
    retry = folder / RETRY
    ids = session.dataset.samples.id
    evaluation = check_inputs(folder, session.inputs())
    if evaluation is not None:
        check_tables(session.dataset, evaluation.tables)
    with write_errors(folder):
        completed = find_completed(path, session.plan, ids)
        if (
            completed.images == len(session.plan)
            and retry.exists()
            and is_replaced(path, retry)
        ):
            retry.unlink()
    resumed = completed.samples
    if completed.images == len(session.plan):
        _remove_shards(folder, path)
    if completed.images < len(session.plan) or (
        session.execution.retry_failed and completed.failed
    ):
        evaluation = session.begin_attempt(evaluation, completed.samples)
        with write_errors(folder):
            write_state(folder, evaluation, "predicting", session.dataset_info)
        _append(session, folder, session.plan, path)
        if session.execution.retry_failed:
            _retry(session, folder, path, retry)
        with write_errors(folder):
            completed = find_completed(path, session.plan, ids)
    if retry.exists():
        warnings.warn(
            f"{retry} is an unfinished retry: --retry-failed finishes it", stacklevel=2
        )
    _record_predicted(session, folder, evaluation)
    return _summary(folder, completed, resumed)


def _summary(folder: Path, completed: Completed, resumed: int) -> EvaluationSummary:
    return EvaluationSummary(
        folder,
        completed.samples,
        completed.images,
        completed.failed,
        completed.first_error,
        resumed=resumed,
    )


def _record_predicted(
    session: _Session, folder: Path, evaluation: EvaluationInfo | None
) -> None:
    info = read_run_file(folder)
    if evaluation is not None and info is not None and info.state == "predicting":
        with write_errors(folder):
            write_state(folder, evaluation, "predicted", session.dataset_info)


def _write_scores(folder: Path, run: Run) -> Run:
    with write_errors(folder):
        return write_scores(folder, run)


def _append(session: _Session, folder: Path, plan: Plan, path: Path) -> None:
    """Complete a log of the predictions of a plan, complete images at a time."""
    ids = session.dataset.samples.id
    with contextlib.ExitStack() as stack:
        with write_errors(folder):
            log = stack.enter_context(Log(path, Prediction))
            completed = find_completed(path, plan, ids)
            log.cut(completed.end)
        rest = plan[completed.images :]
        progress = Progress(
            plan.samples, completed.samples, completed.failed, completed.first_error
        )
        session.on_progress(progress)
        shards = folder / SHARDS / path.stem
        stream = session.predict(rest, shards=shards)
        images = stack.enter_context(contextlib.closing(stream))
        try:
            for planned, predictions in zip(rest, images, strict=True):
                if [prediction.sample for prediction in predictions] != [
                    ids[row] for row in planned.rows
                ]:
                    raise StoreError(
                        f"engine {session.execution.engine.engine} returned samples in a "
                        "wrong order; please report this"
                    )
                log.extend(predictions)
                progress.add(predictions)
                session.on_progress(progress)
        except ModelGoneError as error:
            raise ModelGoneError(
                f"{error}. {progress.done} of {progress.total} predictions are kept in {folder}: "
                "repeat the command to continue"
            ) from error
    _remove_shards(folder, path)


def _remove_shards(folder: Path, path: Path) -> None:
    """Remove the shards of a log that is complete."""
    shards = folder / SHARDS / path.stem
    if shards.exists():
        with write_errors(folder):
            shutil.rmtree(shards)
    with contextlib.suppress(OSError):
        shards.parent.rmdir()


def _retry(session: _Session, folder: Path, path: Path, retry: Path) -> None:
    """Predict the failed samples again, then replace their lines."""
    with write_errors(folder):
        failed = find_failed(path)
    if failed:
        _append(session, folder, session.plan.only(failed), retry)
        with write_errors(folder):
            replace_lines(path, retry, failed)
