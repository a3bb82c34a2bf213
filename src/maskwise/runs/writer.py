"""Write a run folder."""

from pathlib import Path

import msgspec

from maskwise.errors import StoreError
from maskwise.runs.files import (
    LADDER,
    METRIC_TABLE,
    PREDICTIONS,
    RUN,
    SCORE_TABLE,
    SCORES,
    list_foreign_files,
    lock_run,
    read_run_file,
    write_errors,
    write_json,
)
from maskwise.runs.run import Run
from maskwise.runs.schema import RUN_FORMAT, DatasetInfo, EvaluationInfo, RunFile, State
from maskwise.runs.tables import write_table
from maskwise.store.atomic import atomic_write


def write_run(folder: str | Path, run: Run) -> Run:
    """Write a scored run; run.json comes last. Existing scores are replaced, any other content is refused.

    The folder of an evaluation keeps its record and takes only the scores of its own predictions. Predictions in memory
    are written as predictions.jsonl. Returns the run as it is in the folder.
    """
    out = Path(folder)
    with lock_run(out):
        existing = (out / RUN).exists() or (out / SCORES).exists()
        if not existing and list_foreign_files(out):
            raise StoreError(
                f"{out} contains something that is not a run; choose another folder"
            )
        info = read_run_file(out) if existing else None
        if info is not None and info.evaluation is not None:
            _check_own_predictions(out, run)
        with write_errors(out):
            return write_scores(out, _write_predictions(out, run))


def write_scores(folder: Path, run: Run) -> Run:
    """Write the scores of a run into a folder whose lock the caller holds; run.json comes last.

    Returns the run as it is in the folder.
    """
    evaluation = _begin_scores(folder, run) or run.info.evaluation
    write_json(folder / SCORES, run.scores)
    write_table(folder / SCORE_TABLE, run.score_table)
    write_table(folder / METRIC_TABLE, run.metric_table)
    _write_ladder(folder, run)
    info = msgspec.structs.replace(run.info, evaluation=evaluation)
    write_json(folder / RUN, info)
    return _copy(run, info, folder)


def _write_ladder(folder: Path, run: Run) -> None:
    """Write ladder.json, or remove that of earlier scores if the run has none."""
    path = folder / LADDER
    if run.ladder is None:
        path.unlink(missing_ok=True)
    else:
        write_json(path, run.ladder)


def write_state(
    folder: Path, evaluation: EvaluationInfo, state: State, dataset: DatasetInfo
) -> None:
    """Write the run.json of an evaluation that is not scored, or no longer."""
    write_json(
        folder / RUN,
        RunFile(format=RUN_FORMAT, state=state, dataset=dataset, evaluation=evaluation),
    )


def _begin_scores(folder: Path, run: Run) -> EvaluationInfo | None:
    """Take back the state `scored`; returns the record of the evaluation that made the predictions, if any."""
    info = read_run_file(folder)
    if info is None or info.evaluation is None:
        (folder / RUN).unlink(missing_ok=True)
        return None
    _check_own_predictions(folder, run)
    write_state(folder, info.evaluation, "predicted", run.info.dataset)
    return info.evaluation


def _check_own_predictions(folder: Path, run: Run) -> None:
    path = run.predictions_info.path
    if path is None or Path(path) != (folder / PREDICTIONS).resolve():
        raise StoreError(
            f"{folder} is the record of an evaluation and keeps its own scores; choose another folder"
        )


def _write_predictions(folder: Path, run: Run) -> Run:
    """Write predictions that are in memory; returns the run with their path."""
    if run.predictions is None or run.predictions_info.path is not None:
        return run
    path = folder / PREDICTIONS
    with atomic_write(path) as file:
        for prediction in run.predictions:
            file.write(msgspec.json.encode(prediction) + b"\n")
    place = msgspec.structs.replace(
        run.predictions_info, path=str(path.resolve()), format="jsonl"
    )
    return _copy(run, msgspec.structs.replace(run.info, predictions=place), folder)


def _copy(run: Run, info: RunFile, folder: Path) -> Run:
    return Run(
        info,
        run.scores,
        load_scores=lambda: run.score_table,
        load_metrics=lambda: run.metric_table,
        load_ladder=lambda: run.ladder,
        folder=folder,
        dataset=run.dataset,
        predictions=run.predictions,
    )
