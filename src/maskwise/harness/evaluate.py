"""Evaluate a model on a dataset: predict, score, and keep a record that can be continued after any kill.

    done = evaluate(EvaluationConfig("world", "tiny"), "runs/world-tiny")
    done.result.scores["strict"].headline()["giou"]

The run folder (docs/runs.md) holds run.json from the first moment and predictions.jsonl as it grows, one line a sample
in the order of the plan, whole images at a time. Calling again continues: a torn line or a half-written image is
cut off and asked again, nothing else is. What comes out is the same, byte for byte, however often it was cut short.
"""

import contextlib
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from maskwise import __version__
from maskwise.benchmarks import list_benchmarks
from maskwise.errors import ModelGoneError, ProtocolError, StoreError
from maskwise.harness.engines import Engine, Worker, WorkerConfig, find_engine
from maskwise.harness.plan import Plan
from maskwise.harness.predictor import describe_model
from maskwise.harness.progress import (
    Done,
    Progress,
    find_done,
    find_failed,
    is_replaced,
    replace_lines,
)
from maskwise.harness.record import (
    PREDICTIONS,
    Asked,
    Draw,
    EvaluationFacts,
    check_asked,
    read_record,
    write_record,
    writing,
)
from maskwise.harness.runs import describe_truth, fill_run, hash_path
from maskwise.harness.score import IntervalOptions, Result, score
from maskwise.harness.session import describe_session
from maskwise.protocols import get
from maskwise.schema import Prediction
from maskwise.store import Dataset, Log
from maskwise.store.folder import MANIFEST
from maskwise.store.lock import locked
from maskwise.world import bundled

RETRY = "retry.jsonl"
"""Where failed samples are predicted again, until all are and their lines are put in place."""

SHARDS = "shards"
"""A folder for what an engine has answered before its turn, one folder a log."""

NAMED = {"world": bundled}
"""Datasets that come with the package."""


@dataclass(frozen=True)
class EvaluationConfig:
    """What is to be predicted. dataset: a folder, or `world`; model, options: as `load_model`; images: where they
    lie, if they were moved; limit, seed: that many images, drawn by the seed, with all their questions.
    """

    dataset: str | Path
    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    images: Path | None = None
    limit: int | None = None
    seed: int = 0
    teacher_forced: bool = False


@dataclass(frozen=True)
class ExecutionOptions:
    """How it is done, which decides no prediction. timeout: seconds a question may take; retry_failed: ask the samples
    that failed once more.
    """

    engine: str = "local"
    engine_options: Mapping[str, Any] = field(default_factory=dict)
    timeout: float | None = None
    retry_failed: bool = False


@dataclass(frozen=True)
class EvaluationSummary:
    """A run that has predicted everything. failed: samples without a reply; result: None where no score was wanted;
    before: samples that had been predicted when it was continued.
    """

    folder: Path
    samples: int
    images: int
    failed: int
    result: Result | None = None
    before: int = 0


@dataclass(frozen=True)
class _Run:
    """All that is open while a run goes on."""

    folder: Path
    config: EvaluationConfig
    execution: ExecutionOptions
    plan: Plan
    worker: Worker
    engine: Engine
    watch: Callable[[Progress], None]

    @property
    def dataset(self) -> Dataset:
        return self.worker.dataset

    @property
    def truth(self) -> dict[str, Any]:
        return describe_truth(self.dataset, samples=self.plan.samples, images=len(self.plan))


def evaluate(
    config: EvaluationConfig,
    out: str | Path,
    *,
    execution: ExecutionOptions | None = None,
    protocols: Sequence[str] | None = None,
    predict_only: bool = False,
    interval_options: IntervalOptions | None = None,
    threads: int = 1,
    watch: Callable[[Progress], None] = lambda progress: None,
    say: Callable[[str], None] = lambda stage: None,
) -> EvaluationSummary:
    """Predict what the run folder does not hold yet, then score.

    protocols: all of them if None. watch: told after every image how far the run is; say: what is being done.
    """
    check_protocols(protocols, teacher_forced=config.teacher_forced)
    folder = Path(out)
    say("opening")
    with _claimed(folder), _opened(folder, config, execution or ExecutionOptions(), watch) as run:
        say("predicting")
        before, done = _predict(run)
        result = None
        if not predict_only:
            view = run.dataset if config.limit is None else run.dataset.take(np.sort(run.plan.rows))
            result = score(
                view,
                folder / PREDICTIONS,
                protocols,
                interval_options=interval_options,
                threads=threads,
                say=say,
            )
            with writing(folder):
                fill_run(folder, result, view, predictions=folder / PREDICTIONS)
        return EvaluationSummary(folder, done.samples, done.images, done.failed, result, before)


def find_dataset(name: str | Path) -> Path:
    """The folder of a dataset, given by path or, for what comes with the package, by name."""
    if str(name) in NAMED:
        return NAMED[str(name)]()
    if not Path(name).exists() and str(name).lower() in list_benchmarks():
        short = str(name).lower()
        raise StoreError(
            f"the files of benchmark {short} do not come with maskwise: turn them into a dataset folder first, "
            f"`maskwise read {short} PATH --out {short}_val`, and evaluate on that folder"
        )
    if not Path(name).exists():
        raise StoreError(f"{name} is neither a dataset folder nor one of: {', '.join(NAMED)}")
    return Path(name)


def check_protocols(protocols: Sequence[str] | None, *, teacher_forced: bool) -> None:
    """Refuse unknown protocols, and `strict` for replies made with the true answer in the prompt."""
    names = [get(name).name for name in protocols or ()]
    if teacher_forced and "strict" in names:
        raise ProtocolError(
            "strict does not score teacher-forced replies: the true answer was in the prompt; leave out one of the two"
        )


@contextlib.contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """Hold a run folder: it is there, and no other process writes it. One that stays empty is removed."""
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"{folder} is a file; expected a folder for the run")
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(
        folder, f"{folder} is being written by another process; wait for it, or choose another folder"
    ):
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                folder.rmdir()


@contextlib.contextmanager
def _opened(
    folder: Path, config: EvaluationConfig, execution: ExecutionOptions, watch: Callable[[Progress], None]
) -> Iterator[_Run]:
    engine = find_engine(execution.engine, **execution.engine_options)
    place = find_dataset(config.dataset)
    job = WorkerConfig(
        dataset=place,
        model=config.model,
        images=config.images,
        options=dict(config.options),
        teacher_forced=config.teacher_forced,
        timeout=execution.timeout,
    )
    with contextlib.closing(Worker(job)) as worker:
        plan = Plan.from_dataset(worker.dataset, limit=config.limit, seed=config.seed)
        if not plan.samples:
            raise StoreError(f"{place} has no samples, so there is nothing to evaluate")
        yield _Run(folder, config, execution, plan, worker, engine, watch)


def _predict(run: _Run) -> tuple[int, Done]:
    """Complete predictions.jsonl, and ask failed samples again where that is wanted. Returns how many samples had been
    predicted before, and what there is now.
    """
    path, again, ids = run.folder / PREDICTIONS, run.folder / RETRY, run.dataset.samples.id
    evaluation = check_asked(run.folder, _asked(run))
    with writing(run.folder):
        done = find_done(path, run.plan, ids)
        if done.images == len(run.plan) and again.exists() and is_replaced(path, again):
            again.unlink()
    before = done.samples
    if done.images == len(run.plan):
        _remove_shards(run.folder, path)
    if done.images < len(run.plan) or (run.execution.retry_failed and done.failed):
        evaluation = _begin_session(run, evaluation, done)
        _append(run, run.plan, path)
        if run.execution.retry_failed:
            _retry(run, path, again)
        with writing(run.folder):
            done = find_done(path, run.plan, ids)
    if again.exists():
        warnings.warn(f"{again} is a retry that was cut short: --retry-failed finishes it", stacklevel=2)
    record = read_record(run.folder)
    if evaluation is not None and record is not None and record.state == "predicting":
        with writing(run.folder):
            write_record(run.folder, evaluation, "predicted", run.truth)
    return before, done


def _asked(run: _Run) -> Asked:
    return Asked(
        maskwise=__version__,
        dataset=hash_path(run.dataset.path / MANIFEST),
        model=describe_model(run.worker.model, run.config.model, run.config.options),
        teacher_forced=run.config.teacher_forced,
        draw=None if run.config.limit is None else Draw(limit=run.config.limit, seed=run.config.seed),
    )


def _begin_session(run: _Run, before: EvaluationFacts | None, done: Done) -> EvaluationFacts:
    """Record that the run goes on, here and now. From now on it counts as not scored."""
    execution = run.execution
    session = describe_session(engine=execution.engine, timeout=execution.timeout, done_before=done.samples)
    evaluation = EvaluationFacts(
        asked=_asked(run),
        samples=run.plan.samples,
        images=len(run.plan),
        sessions=(*(before.sessions if before else ()), session),
    )
    with writing(run.folder):
        write_record(run.folder, evaluation, "predicting", run.truth)
    return evaluation


def _append(run: _Run, plan: Plan, path: Path) -> None:
    """Complete a log of the predictions of a plan, whole images at a time."""
    ids = run.dataset.samples.id
    with contextlib.ExitStack() as stack:
        with writing(run.folder):
            log = stack.enter_context(Log(path, Prediction))
            done = find_done(path, plan, ids)
            log.cut(done.end)
        rest = plan[done.images :]
        progress = Progress(plan.samples, done.samples, done.failed)
        run.watch(progress)
        shards = run.folder / SHARDS / path.stem
        stream = run.engine(run.worker.job, rest, run.worker, shards=shards)
        answers = stack.enter_context(contextlib.closing(stream))
        try:
            for work, answered in zip(rest, answers, strict=True):
                if [prediction.sample for prediction in answered.predictions] != [
                    ids[row] for row in work.rows
                ]:
                    raise StoreError(f"engine {run.execution.engine} mixed up the order of the samples")
                log.extend(answered.predictions)
                progress.add(answered)
                run.watch(progress)
        except ModelGoneError as error:
            raise ModelGoneError(
                f"{error}. {progress.done} of {progress.total} predictions are kept in {run.folder}: "
                "repeat the command to continue"
            ) from error
    _remove_shards(run.folder, path)


def _remove_shards(folder: Path, path: Path) -> None:
    """Remove what was answered before its turn, now that the log has it."""
    place = folder / SHARDS / path.stem
    if place.exists():
        with writing(folder):
            shutil.rmtree(place)
    with contextlib.suppress(OSError):
        place.parent.rmdir()


def _retry(run: _Run, path: Path, again: Path) -> None:
    """Ask the failed samples again, then put the new lines in the place of theirs."""
    with writing(run.folder):
        failed = find_failed(path)
    if failed:
        _append(run, run.plan.only(failed), again)
        with writing(run.folder):
            replace_lines(path, again, failed)
