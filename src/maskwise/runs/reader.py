"""Read a run folder."""

from functools import partial
from pathlib import Path

from maskwise.errors import StoreError
from maskwise.runs.files import (
    METRIC_TABLE,
    RUN,
    SCORE_TABLE,
    SCORES,
    read_json,
    read_run_file,
)
from maskwise.runs.run import Run
from maskwise.runs.schema import SCORES_FORMAT, ScoresFile, SliceGroup
from maskwise.runs.tables import MAIN_METRICS, METRIC_COLUMNS, SCORE_COLUMNS, read_table


def read_run(path: str | Path) -> Run:
    """The run of a folder that `maskwise eval` or `maskwise score --out` wrote; StoreError unless it is scored."""
    folder = Path(path)
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
    return Run(
        info,
        _read_scores(folder / SCORES),
        load_scores=partial(read_table, folder / SCORE_TABLE, SCORE_COLUMNS),
        load_metrics=partial(read_table, folder / METRIC_TABLE, METRIC_COLUMNS),
        folder=folder,
    )


def _read_scores(path: Path) -> ScoresFile:
    scores = read_json(path, ScoresFile, SCORES_FORMAT)
    for protocol, found in scores.protocols.items():
        missing = [name for name in MAIN_METRICS if name not in found.metrics]
        if missing:
            raise StoreError(
                f"{path}: protocol {protocol!r} has no metric {missing[0]!r}; score the run again"
            )
        _check_slices(path, protocol, found.slices)
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
