"""Evaluate a model on a dataset: predict, score, and write a report.

    run = evaluate("tiny", "world", "runs/world-tiny")
    run["strict"]["giou"]

`maskwise eval` and `maskwise.evaluate` are this function. Without a folder everything stays in memory and no file is
written. With one, `maskwise.harness.predict` keeps the predictions so that any interrupted run can be resumed.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from maskwise.engines import EngineName, EngineOptions
from maskwise.errors import ProtocolError
from maskwise.harness.loaded_model import LoadedModel
from maskwise.harness.predict import open_session, warn_about_failures
from maskwise.harness.predictor import Model
from maskwise.harness.progress import OnProgress, OnStage, shown_progress
from maskwise.harness.run_record import result_to_run
from maskwise.harness.score import default_threads, list_rules, write_run_report
from maskwise.harness.scoring import compute_scores
from maskwise.protocols import Protocol, find_protocol
from maskwise.runs import Run
from maskwise.runs.files import PREDICTIONS, write_errors
from maskwise.runs.schema import IntervalOptions
from maskwise.runs.writer import write_scores
from maskwise.schema import Prediction
from maskwise.store import Dataset


def evaluate(
    model: str | Model | LoadedModel,
    data: str | os.PathLike[str] | Dataset,
    out: str | os.PathLike[str] | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    protocols: str | Protocol | Sequence[str | Protocol] | None = None,
    images: str | os.PathLike[str] | None = None,
    limit: int | None = None,
    seed: int = 0,
    teacher_forced: bool = False,
    engine: EngineName | EngineOptions = "local",
    timeout: float | None = None,
    retry_failed: bool = False,
    interval_options: IntervalOptions | None = None,
    threads: int | None = None,
    fail_fast: bool = False,
    keep_going: bool = False,
    report: bool = True,
    progress: bool = True,
    on_progress: OnProgress = lambda progress: None,
    on_stage: OnStage = lambda stage: None,
) -> Run:
    """Ask a model every question of a dataset, score its predictions and write a report.

    model: as for `load_model`; options: passed to a model given by name. data: as for `load_dataset`; images: the
    folder of its images, if they were moved. out: the run folder, with report.html; the same call continues a run that
    was interrupted. Without it the run stays in memory.

    protocols: names (`list_protocols`), `package.module:function` or Protocol objects; all built-in ones if None.
    limit: only this many images, drawn with `seed`, with all their questions. teacher_forced: give the model the true
    answer, for official protocols that need it.

    engine: `local`, `ray`, or EngineOptions. timeout: seconds per question. retry_failed: ask failed questions
    again. threads: for scoring; one per core, at most 8, if None. report: write report.html into the folder.
    progress: show a bar, or lines every 30 s where standard error is a file. on_progress: called after every image.
    on_stage: called with the name of the current stage. None of these affects the result.

    A question that fails is counted and the run goes on, with a warning at the end. ModelError if all questions fail.
    It also stops a run whose first five questions fail, unless `keep_going`, and at the first failure if `fail_fast`.
    The folder keeps what was predicted, and errors.txt has the traceback of every distinct error.

    Example: run = evaluate("tiny", "world", out="runs/tiny")
    """
    rules = list_rules(protocols)
    check_protocols(rules, teacher_forced=teacher_forced)
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
        predictions: Path | list[Prediction]
        if session.folder is None:
            evaluation = session.begin_attempt(None, 0)
            summary, predictions = session.predict_in_memory()
        else:
            evaluation = None  # run.json has it
            summary = session.predict_in_folder()
            predictions = session.folder / PREDICTIONS
        session.failures.check_summary(summary)
        result = compute_scores(
            predictions,
            session.view,
            rules,
            interval_options=interval_options,
            threads=threads or default_threads(),
            on_stage=show_stage,
        )
        run = result_to_run(result, evaluation=evaluation)
        if session.folder is not None:
            with write_errors(session.folder):
                run = write_scores(session.folder, run)
            if report:
                show_stage("writing the report")
                write_run_report(run, result)
        run.summary = summary
    warn_about_failures(summary, session.failures)
    return run


def check_protocols(
    protocols: Sequence[str | Protocol] | None, *, teacher_forced: bool
) -> None:
    """Refuse unknown protocols, and `strict` for predictions made with the true answer in the prompt."""
    names = [find_protocol(rule).name for rule in protocols or ()]
    if teacher_forced and "strict" in names:
        raise ProtocolError(
            "strict does not score teacher-forced predictions: the true answer was in the prompt; omit one of the two"
        )
