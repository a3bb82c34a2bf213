"""The runs whose predictions people judge: compare two of them, blind, or rate one by one."""

import hashlib
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from maskwise.arrays import Int64Array
from maskwise.errors import StoreError
from maskwise.report.run_data import RunData, RunPaths, load_run_data
from maskwise.review.records import Mode
from maskwise.runs import Run
from maskwise.runs.reader import load_run
from maskwise.schema import Prediction
from maskwise.store import Dataset

MAX_RUNS = 26
"""Runs of one review: pairs grow with the square of this number."""

FEWEST: dict[Mode, int] = {"compare": 2, "rate": 1}
"""Runs that a mode needs."""


class JudgedItem(NamedTuple):
    """What people look at: the row of a sample, and one or two runs (`right` is None where one is rated)."""

    row: int
    left: int
    right: int | None


class JudgedRuns:
    """Runs on the same dataset. dataset: the questions that all of them answered. names: of the runs, all different."""

    def __init__(self, runs: Sequence[Run], mode: Mode) -> None:
        if len(runs) < FEWEST[mode]:
            raise StoreError(
                f"to {mode} predictions, name {FEWEST[mode]} runs or more, not {len(runs)}"
            )
        if len(runs) > MAX_RUNS:
            raise StoreError(
                f"{len(runs)} runs are too many to judge together; name at most {MAX_RUNS}"
            )
        self.mode = mode
        self.runs = list(runs)
        self.names = _unique_names(runs)
        _check_same_dataset(runs)
        self._data = [load_run_data(run, RunPaths()) for run in runs]
        self.dataset = _shared_dataset(self._data)
        # The row of each shared question in each run.
        self.rows = [
            [data.dataset.samples.row[id] for id in self.dataset.samples.id]
            for data in self._data
        ]

    @property
    def images(self) -> Int64Array:
        """The image of each question as a number, int64 [questions]."""
        return self.dataset.samples.image.astype(np.int64)

    @property
    def hash(self) -> str:
        """Changes with the dataset, the mode, and the name or predictions of any run."""
        facts = [
            self.mode,
            self.runs[0].info.dataset.sha256,
            *(
                (name, run.predictions_info.sha256)
                for name, run in zip(self.names, self.runs)
            ),
        ]
        return hashlib.sha256(msgspec.json.encode(facts)).hexdigest()[:32]

    def prediction(self, run: int, row: int) -> Prediction | None:
        """What a run predicts for the question of a row; None if it is missing."""
        return self._data[run].prediction(self.rows[run][row])

    def list_items(self, rows: Sequence[int]) -> tuple[list[JudgedItem], list[int]]:
        """All items of these questions, and how many each run lost because another one predicts the same.

        Two equal predictions cannot be compared; both can be rated.
        """
        items: list[JudgedItem] = []
        identical = [0] * len(self.runs)
        numbers = range(len(self.runs))
        for row in rows:
            if self.mode == "rate":
                items += [JudgedItem(row, run, None) for run in numbers]
                continue
            predictions = [self.prediction(run, row) for run in numbers]
            for left, right in combinations(numbers, 2):
                if predictions[left] == predictions[right]:
                    identical[left] += 1
                    identical[right] += 1
                else:
                    items.append(JudgedItem(row, left, right))
        return items, identical


def open_judged_runs(folders: Sequence[str | Path], mode: Mode) -> JudgedRuns:
    """Open run folders to judge their predictions; StoreError says which cannot be judged together."""
    return JudgedRuns([load_run(Path(folder)) for folder in folders], mode)


def _unique_names(runs: Sequence[Run]) -> list[str]:
    """The names of the folders; their paths where two have the same name."""
    names = [run.name for run in runs]
    if len(set(names)) < len(names):
        names = [run.location for run in runs]
    if len(set(names)) < len(names):
        raise StoreError("a run is named twice; name different runs")
    return names


def _check_same_dataset(runs: Sequence[Run]) -> None:
    for run in runs[1:]:
        if run.info.dataset.sha256 != runs[0].info.dataset.sha256:
            raise StoreError(
                f"{runs[0].location} is on {runs[0].info.dataset.path} and {run.location} on {run.info.dataset.path}: "
                "runs that are judged together need the same dataset, in the same version"
            )


def _shared_dataset(data: Sequence[RunData]) -> Dataset:
    """The questions that all runs have: each may be on a subset of the dataset."""
    first = data[0].dataset
    shared = set(first.samples.id)
    for other in data[1:]:
        shared &= set(other.dataset.samples.id)
    if not shared:
        raise StoreError("the runs have no question in common")
    rows = [row for row, id in enumerate(first.samples.id) if id in shared]
    return first if len(rows) == len(first) else first.take(np.array(rows, np.int64))
