"""Read a run folder."""

import os
from functools import partial
from pathlib import Path, PureWindowsPath

import msgspec

from maskwise.errors import StoreError
from maskwise.runs.files import (
    LADDER,
    METRIC_TABLE,
    PREDICTIONS,
    PROBES,
    RUN,
    SCORE_TABLE,
    SCORES,
    read_json,
    read_run_file,
)
from maskwise.runs.ladder import LADDER_FORMAT, Ladder
from maskwise.runs.probe_results import ProbesFile, read_probes
from maskwise.runs.run import Run
from maskwise.runs.schema import SCORES_FORMAT, PredictionsInfo, ScoresFile, SliceGroup
from maskwise.runs.tables import MAIN_METRICS, METRIC_COLUMNS, SCORE_COLUMNS, read_table


def load_run(run: "str | os.PathLike[str] | Run") -> Run:
    """Open a run folder that `evaluate`, `score` or the command line wrote; a run is returned as it is.

    StoreError if the folder is missing or damaged, or if its run is not scored yet.

    Example: run = load_run("runs/tiny")
    """
    if isinstance(run, Run):
        return run
    if not isinstance(run, str | os.PathLike):
        raise StoreError(
            f"expected a run or its folder, not a value of type {type(run).__name__}"
        )
    folder = Path(run)
    info = read_run_file(folder)
    if info is None:
        problem = (
            f"is not a finished run: it has no {RUN}"
            if folder.is_dir()
            else "does not exist"
        )
        raise StoreError(
            f"{folder} {problem}; make one with: maskwise score ... --out {folder}"
        )
    if info.state != "scored":
        raise StoreError(
            f"{folder} is {info.state}, not scored: repeat the `maskwise eval` command that made it"
        )
    if info.predictions is None:
        raise StoreError(
            f"{folder / RUN} does not say which predictions were scored; score the run again"
        )
    predictions = _locate_predictions(folder, info.predictions)
    return Run(
        msgspec.structs.replace(info, predictions=predictions),
        _read_scores(folder / SCORES),
        load_scores=partial(read_table, folder / SCORE_TABLE, SCORE_COLUMNS),
        load_metrics=partial(read_table, folder / METRIC_TABLE, METRIC_COLUMNS),
        load_ladder=partial(_read_ladder, folder / LADDER),
        load_probes=partial(_read_probes, folder / PROBES),
        folder=folder,
    )


def _locate_predictions(folder: Path, recorded: PredictionsInfo) -> PredictionsInfo:
    """The predictions with the place where they are now.

    A run folder may have been moved or copied, so its own file comes before the recorded place. Predictions of another
    name were scored from elsewhere.
    """
    own = folder / PREDICTIONS
    # The name on any system: PureWindowsPath separates at both slashes.
    name = PureWindowsPath(recorded.path or "").name
    if name != PREDICTIONS or not own.is_file():
        return recorded
    return msgspec.structs.replace(recorded, path=str(own.resolve()))


def _read_ladder(path: Path) -> Ladder | None:
    if not path.is_file():
        return None
    ladder = read_json(path, Ladder, LADDER_FORMAT)
    for run in ladder.runs:
        for rule in ladder.rules:
            values = run.values.get(rule.name)
            if values is None or not values.metrics.keys() >= set(MAIN_METRICS):
                raise StoreError(
                    f"{path} is damaged: run {run.name!r} lacks values of the rule {rule.name!r}; delete it and run "
                    "`maskwise ladder` again"
                )
    return ladder


def _read_probes(path: Path) -> ProbesFile | None:
    return read_probes(path) if path.is_file() else None


def _read_scores(path: Path) -> ScoresFile:
    scores = read_json(path, ScoresFile, SCORES_FORMAT)
    for protocol, result in scores.protocols.items():
        missing = [name for name in MAIN_METRICS if name not in result.metrics]
        if missing:
            raise StoreError(
                f"{path}: protocol {protocol!r} has no metric {missing[0]!r}; score the run again"
            )
        _check_slices(path, protocol, result.slices)
    return scores


def _check_slices(
    path: Path, protocol: str, slices: dict[str, list[SliceGroup]]
) -> None:
    for slicing, groups in slices.items():
        for group in groups:
            missing = [name for name in MAIN_METRICS if name not in group.metrics]
            if missing:
                raise StoreError(
                    f"{path}: protocol {protocol!r}, slice {slicing!r}, group {group.name!r} has no metric "
                    f"{missing[0]!r}; score the run again"
                )
