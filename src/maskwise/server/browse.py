"""Datasets and runs to look at: samples filtered by text and slice, sorted by score, page by page.

Filters work on columns, so that a dataset of hundreds of thousands of samples answers at once; records are made only
for the samples of a page.
"""

import functools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow.compute as pc

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.datasets import find_dataset
from maskwise.report.gallery import match_colors
from maskwise.report.run_data import RunData, RunPaths, load_run_data
from maskwise.runs import Run, load_run
from maskwise.schema import MASK_TYPES, Prediction
from maskwise.store import Codes, Dataset

MAX_VALUES = 60
"""A tag with more values is not offered as a filter."""


class SampleQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which samples of a dataset, in which order.

    text: words that question, answer or id contain. slices: value of each slicing. run, protocol: whose scores count.
    status: of the sample under the protocol. sort: `order`, `score` or `-score`.
    """

    text: str = ""
    slices: dict[str, str] = {}
    run: str | None = None
    protocol: str | None = None
    status: str | None = None
    sort: str = "order"


@dataclass(frozen=True)
class BrowsedRun:
    """A run with its predictions. rows: row of each sample of the dataset in the run, -1 where it has none."""

    key: str
    run: Run
    data: RunData
    rows: Int64Array

    @property
    def title(self) -> str:
        """The name of the model, with that of the folder where it differs."""
        if self.run.name == self.run.model_name:
            return self.run.model_name
        return f"{self.run.model_name} ({self.run.name})"

    def describe(self) -> dict[str, Any]:
        """Title, notices, and the gIoU under each protocol, None where it is not defined."""
        scores = {}
        for protocol in self.run:
            giou = self.run[protocol]["giou"]
            scores[protocol] = None if giou is None else float(giou)
        return {
            "key": self.key,
            "title": self.title,
            "notices": self.run.notices,
            "protocols": scores,
            "main_protocol": self.run.main_protocol(),
        }

    def values(self, protocol: str) -> Float64Array:
        """gIoU of each sample of the dataset, NaN where it has none."""
        values = self.run.rows(protocol).value
        if not len(values):
            return np.full(len(self.rows), np.nan)
        return np.where(self.rows < 0, np.nan, values[self.rows])

    def statuses(self, protocol: str) -> list[str | None]:
        """Status of each sample of the dataset; None where the run has no such sample."""
        codes, names = self.run.rows(protocol).status
        return [
            None if row < 0 else str(names[codes[row]]) for row in self.rows.tolist()
        ]

    def slices(self, protocol: str) -> dict[str, Codes]:
        """The slicings of the run, for the samples of the dataset: code -1 where the run has no such sample."""
        slices = {}
        for name, (codes, values) in self.run.rows(protocol).slices.items():
            spread = np.where(self.rows < 0, -1, codes[self.rows])
            slices[name] = Codes(spread.astype(np.int32), values)
        return slices

    def prediction(self, row: int) -> Prediction | None:
        """The prediction for a sample of the dataset; None where the run has no such sample."""
        row_in_run = int(self.rows[row])
        return None if row_in_run < 0 else self.data.prediction(row_in_run)


@dataclass
class BrowsedDataset:
    """A dataset and the runs on it."""

    key: str
    dataset: Dataset
    runs: dict[str, BrowsedRun] = field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        """Name, counts, slicings with their values, and runs with their protocols and scores."""
        slices = {}
        for name, codes in self.slices.items():
            slices[name] = [str(value) for value in codes.names]
        return {
            "key": self.key,
            "name": self.dataset.name,
            "samples": len(self.dataset),
            "images": len(self.dataset.images),
            "slices": slices,
            "runs": [run.describe() for run in self.runs.values()],
        }

    @functools.cached_property
    def slices(self) -> dict[str, Codes]:
        """The slicings of the samples: mask type, those of the runs, and tags, where values differ."""
        samples = self.dataset.samples
        slices = {"mask_type": Codes(samples.mask_type.astype(np.int32), MASK_TYPES)}
        # Where runs and tags have slicings of the same name, the first one counts.
        for run in self.runs.values():
            for name, slicing in run.slices(run.run.main_protocol()).items():
                slices.setdefault(name, slicing)
        for name in samples.tag_names:
            codes, values = samples.tag(name)
            texts = tuple("untagged" if value is None else value for value in values)
            slices.setdefault(name, Codes(codes, texts))
        offered = {}
        for name, slicing in slices.items():
            differs = len(np.unique(slicing.codes)) > 1
            if differs and len(slicing.names) <= MAX_VALUES:
                offered[name] = slicing
        return offered

    def select(self, query: SampleQuery) -> Int64Array:
        """Rows of the samples of a query, in its order. KeyError names an unknown run, protocol or slicing."""
        keep = self._matches_text(query.text)
        for name, value in query.slices.items():
            codes, values = self.slices[name]
            wanted = [code for code, text in enumerate(values) if str(text) == value]
            keep &= np.isin(codes, wanted)
        run = None if query.run is None else self.runs[query.run]
        if run is None:
            return np.flatnonzero(keep)
        protocol = run.run.main_protocol(query.protocol)
        if query.status is not None:
            statuses = run.statuses(protocol)
            keep &= np.array([status == query.status for status in statuses], np.bool_)
        rows = np.flatnonzero(keep)
        if query.sort == "order":
            return rows
        return _sort_by_score(rows, run.values(protocol), query.sort)

    def _matches_text(self, text: str) -> BoolArray:
        """Of each sample whether its question, answer or id contains every word, in any case."""
        keep = np.ones(len(self.dataset), np.bool_)
        table = self.dataset.samples.table
        for word in text.split():
            contained = np.zeros(len(keep), np.bool_)
            for column in ("question", "answer", "id"):
                matches = pc.match_substring(table[column], word, ignore_case=True)
                contained |= pc.fill_null(matches, False).to_numpy()
            keep &= contained
        return keep

    def summaries(
        self, rows: Sequence[int], query: SampleQuery
    ) -> list[dict[str, Any]]:
        """One line per sample, without masks. scores: of every run, under the query's protocol where it has it."""
        samples = self.dataset.samples
        values_by_run = {}
        for key, run in self.runs.items():
            wanted = query.protocol if query.protocol in list(run.run) else None
            values_by_run[key] = run.values(run.run.main_protocol(wanted))
        offsets = samples.targets.offsets
        summaries = []
        for row in rows:
            scores = {
                key: _number(values[row]) for key, values in values_by_run.items()
            }
            summary = {
                "row": row,
                "id": samples.id[row],
                "image": int(samples.image[row]),
                "question": samples.question[row],
                "mask_type": MASK_TYPES[samples.mask_type[row]],
                "targets": int(offsets[row + 1] - offsets[row]),
                "scores": scores,
            }
            summaries.append(summary)
        return summaries

    def sample(self, row: int) -> dict[str, Any]:
        """A sample with its masks, and the prediction of every run with the color and IoU of each region."""
        sample = self.dataset[row]
        image = self.dataset.image(sample.image_id)
        return {
            "row": row,
            "sample": sample,
            "image": {
                "row": self.dataset.images.row[image.id],
                "width": image.width,
                "height": image.height,
            },
            "predictions": [
                self._describe_prediction(run, row) for run in self.runs.values()
            ],
        }

    def _describe_prediction(self, run: BrowsedRun, row: int) -> dict[str, Any]:
        prediction = run.prediction(row)
        colors: list[int] = []
        overlaps: list[float] = []
        if prediction is not None:
            colors, overlaps = match_colors(self.dataset[row], prediction.regions)
        scores = {name: _number(run.values(name)[row]) for name in run.run}
        return {
            "run": run.key,
            "title": run.title,
            "prediction": prediction,
            "colors": colors,
            "iou": overlaps,
            "scores": scores,
            "status": {name: run.statuses(name)[row] for name in run.run},
        }


def open_browsed(
    datasets: Sequence[Path], runs: Sequence[Path]
) -> dict[str, BrowsedDataset]:
    """Dataset folders and run folders by the keys of their addresses; the dataset of a run is opened with it."""
    browsed: dict[str, BrowsedDataset] = {}
    for path in datasets:
        _add_dataset(browsed, find_dataset(path))
    for path in runs:
        _add_run(browsed, load_run(path))
    return browsed


def _add_dataset(browsed: dict[str, BrowsedDataset], path: Path) -> BrowsedDataset:
    """Open a dataset, unless it is open."""
    folder = path.resolve()
    for known in browsed.values():
        if known.dataset.path.resolve() == folder:
            return known
    dataset = Dataset.open(folder)
    key = _unused_key(dataset.name, browsed)
    browsed[key] = BrowsedDataset(key, dataset)
    return browsed[key]


def _add_run(browsed: dict[str, BrowsedDataset], run: Run) -> None:
    data = load_run_data(run, RunPaths())
    dataset = _add_dataset(browsed, data.dataset.path)
    row_of = {id: row for row, id in enumerate(run.ids)}
    ids = dataset.dataset.samples.id
    rows = np.array([row_of.get(id, -1) for id in ids], np.int64)
    key = _unused_key(run.name, dataset.runs)
    dataset.runs[key] = BrowsedRun(key, run, data, rows)


def _sort_by_score(rows: Int64Array, values: Float64Array, sort: str) -> Int64Array:
    """By score, samples without one last."""
    scores = values[rows]
    keys = -scores if sort == "-score" else scores
    last = np.where(np.isnan(scores), np.inf, keys)
    return rows[np.argsort(last, kind="stable")]


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _unused_key(name: str, known: Collection[str]) -> str:
    """A key for an address: the name, with a number where it is taken."""
    plain = "".join(sign if sign.isalnum() or sign in "-_." else "-" for sign in name)
    key = plain or "unnamed"
    number = 1
    while key in known:
        number += 1
        key = f"{plain or 'unnamed'}-{number}"
    return key
