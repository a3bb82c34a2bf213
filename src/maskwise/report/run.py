"""A run folder, open: what was scored, what came out, and per sample its part in every figure (see docs/runs.md).

run = Run.open("runs/m2sa")
run.scores.protocols["strict"].metrics["giou"].value
run.rows("strict").value                       # one number a sample
run.metrics("strict")["giou"]                  # numerator and denominator of every sample
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from maskwise.errors import StoreError, UnknownNameError
from maskwise.harness.predictions import ReadOptions
from maskwise.harness.record import FORMAT, RUN, EvaluationFacts, read_json, read_record
from maskwise.protocols import Metric
from maskwise.store import Codes

SCORES_FORMAT = "maskwise scores 2"
SCORE_COLUMNS = ("protocol", "status", "value", "weight", "numerator", "intersection", "union", "reason")


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure with its interval; None where it is undefined. `exact` stands beside a legacy float32 value."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    unit: Literal["fraction", "count"] = "fraction"
    epsilon: float = 0.0
    exact: float | None = None
    gate: float | None = None
    """Where an official rule has one: the sum that has to be positive, or the figure is a fixed one."""

    @property
    def gated(self) -> bool:
        """Whether the figure is the fixed one."""
        return self.gate is not None and not self.gate > 0


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """One group of a slicing."""

    name: str
    samples: int
    images: int
    metrics: dict[str, Figure]


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How many samples there were, what became of them, and why."""

    samples: int
    scored: int
    failed: int
    missing: int
    excluded: int
    reasons: dict[str, int] = {}


class Confusion(msgspec.Struct, frozen=True, kw_only=True):
    """Mask types wanted (rows) and said (columns)."""

    rows: list[str]
    columns: list[str]
    counts: list[list[int]]


class Bin(msgspec.Struct, frozen=True, kw_only=True):
    """Predicted regions whose confidence lies in one range: how many, mean confidence, hits, mean IoU."""

    low: float
    high: float
    count: int
    score: float
    precision: float
    iou: float


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What one protocol says."""

    rule: str
    counts: Counts
    metrics: dict[str, Figure]
    options: dict[str, Any] = {}
    slices: dict[str, list[Group]] = {}
    confusion: Confusion | None = None
    calibration: list[Bin] = []


class ReadCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Predictions read, those with a sample, and those without."""

    read: int
    matched: int
    unknown: int


class ScoresFile(msgspec.Struct, frozen=True, kw_only=True):
    """`scores.json`."""

    format: str
    protocols: dict[str, Result]
    predictions: ReadCounts | None = None
    skipped: dict[str, str] = {}


class TruthFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The dataset a run was scored on."""

    path: str
    name: str
    sha256: str
    samples: int
    images: int


class PredictionFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The predictions a run scored, and how they were read."""

    path: str
    format: str
    sha256: str
    settings: ReadOptions = ReadOptions()
    forced: bool = False
    """Whether a reply says that it was made with the true answer in the prompt."""


class ProtocolFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A protocol and its options."""

    name: str
    options: dict[str, Any] = {}


class IntervalFacts(msgspec.Struct, frozen=True, kw_only=True):
    """How intervals were made."""

    resamples: int = 1000
    seed: int = 0
    level: float = 0.95
    cluster: str = "image"


class RunFile(msgspec.Struct, frozen=True, kw_only=True):
    """`run.json`."""

    format: str
    maskwise: str
    truth: TruthFacts
    predictions: PredictionFacts
    protocols: list[ProtocolFacts]
    kernel: str = ""
    intervals: IntervalFacts = IntervalFacts()
    evaluation: EvaluationFacts | None = None
    """Who made the predictions and how, where `maskwise eval` made them."""


@dataclass(frozen=True)
class Rows:
    """All samples under one protocol, in the dataset's order.

    value: float64 [n], gIoU of each, NaN where the table has none; numerator, weight: float64 [n], its part in gIoU;
    intersection, union: int64 [n], its part in cIoU; status, reason: Codes; slices: {name: Codes}.
    """

    value: NDArray[np.float64]
    numerator: NDArray[np.float64]
    weight: NDArray[np.float64]
    intersection: NDArray[np.int64]
    union: NDArray[np.int64]
    status: Codes
    reason: Codes
    slices: dict[str, Codes]

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Whether each sample has a value, bool [n]."""
        return ~np.isnan(self.value)


class Run:
    """A run folder. Tables are opened when asked for."""

    def __init__(self, path: Path, facts: RunFile, scores: ScoresFile) -> None:
        self.path, self.facts, self.scores = path, facts, scores
        self._rows: dict[str, Rows] = {}

    @classmethod
    def open(cls, path: str | Path) -> "Run":
        """Open a folder that `maskwise eval` or `maskwise score --out` left; one that is not scored is refused."""
        folder = Path(path)
        if not (folder / RUN).is_file():
            state = f"is not a finished run: it has no {RUN}" if folder.is_dir() else "does not exist"
            raise StoreError(f"{folder} {state}; make one with: maskwise score ... --out {folder}")
        record = read_record(folder)
        if record is not None and record.state != "scored":
            raise StoreError(
                f"{folder} is {record.state}, not scored: repeat the `maskwise eval` command that made it"
            )
        facts = read_json(folder / RUN, RunFile, FORMAT)
        return cls(folder, facts, read_json(folder / "scores.json", ScoresFile, SCORES_FORMAT))

    @property
    def name(self) -> str:
        """What people call it: the folder's name."""
        return self.path.resolve().name

    @property
    def speaker(self) -> str:
        """Who made the predictions: the model's name where it is known, else the name of the file."""
        if self.facts.evaluation is not None:
            return self.facts.evaluation.asked.model.name
        return self.facts.predictions.path.replace("\\", "/").rstrip("/").rpartition("/")[2]

    @property
    def uses_ground_truth(self) -> bool:
        """Whether the model was told the truth."""
        return self.facts.evaluation is not None and self.facts.evaluation.asked.model.uses_ground_truth

    @property
    def forced(self) -> bool:
        """Whether the true answer was in the prompt: as the run was asked for, the replies say, or the user said."""
        evaluation, predictions = self.facts.evaluation, self.facts.predictions
        asked = evaluation is not None and evaluation.asked.teacher_forced
        return asked or predictions.forced or predictions.settings.forced

    @property
    def marks(self) -> list[str]:
        """What a reader has to know before the figures: a model that was told something, a part of the dataset."""
        draw = self.facts.evaluation.asked.draw if self.facts.evaluation is not None else None
        marks = {
            "This model knows the truth: its figures test the metrics, not a model.": self.uses_ground_truth,
            "Teacher-forced: the true answer was in the prompt.": self.forced,
        }
        drawn = [f"A part of the dataset: {draw.limit} images drawn with seed {draw.seed}."] if draw else []
        return [text for text, holds in marks.items() if holds] + drawn

    def main_protocol(self, wanted: str | None = None) -> str:
        """The protocol asked for, else `strict` where it ran, else the first."""
        known = list(self.scores.protocols)
        if not known:
            raise StoreError(f"{self.path}: no protocol ran, so there is nothing to show")
        if wanted is not None and wanted not in known:
            raise UnknownNameError(f"protocol of run {self.path}", wanted, known)
        return wanted or ("strict" if "strict" in known else known[0])

    @cached_property
    def ids(self) -> list[str]:
        """The samples' ids, in the dataset's order."""
        return _texts(self._metrics_table["sample"])

    @cached_property
    def clusters(self) -> NDArray[np.int64]:
        """The image of each sample as a number, int64 [n]."""
        return _codes(self._metrics_table["image"]).codes.astype(np.int64)

    def rows(self, protocol: str) -> Rows:
        """All samples under one protocol."""
        if protocol not in self._rows:
            table = self._scores_table.filter(pc.equal(self._scores_table["protocol"], protocol))
            if table.num_rows != len(self.ids):
                raise StoreError(
                    f"{self.path / 'scores.arrow'}: {table.num_rows} rows of {protocol}, but {len(self.ids)} samples"
                )
            self._rows[protocol] = _rows(table)
        return self._rows[protocol]

    def metrics(self, protocol: str) -> dict[str, Metric]:
        """Every figure of a protocol with each sample's part in it."""
        figures, rows = self.scores.protocols[protocol].metrics, self.rows(protocol)
        parts = {"giou": (rows.numerator, rows.weight), "ciou": (rows.intersection, rows.union)}
        for name in figures:
            if name not in parts:
                parts[name] = (
                    self._part(f"{protocol}/{name}/numerator"),
                    self._part(f"{protocol}/{name}/denominator"),
                )
        return {
            name: Metric(*parts[name], epsilon=figure.epsilon, unit=figure.unit)
            for name, figure in figures.items()
        }

    def _part(self, column: str) -> NDArray[np.float64]:
        if column not in self._metrics_table.column_names:
            raise StoreError(f"{self.path / 'metrics.arrow'} has no column {column!r}; score the run again")
        return _numbers(self._metrics_table[column])

    @cached_property
    def _scores_table(self) -> pa.Table:
        return _open_table(self.path / "scores.arrow", SCORE_COLUMNS)

    @cached_property
    def _metrics_table(self) -> pa.Table:
        return _open_table(self.path / "metrics.arrow", ("sample", "image"))


def largest(groups: Sequence[Group], count: int) -> list[Group]:
    """The groups with most samples, in the order given."""
    ranked = sorted(range(len(groups)), key=lambda item: -groups[item].samples)[:count]
    return [groups[item] for item in sorted(ranked)]


def _open_table(path: Path, columns: Sequence[str]) -> pa.Table:
    try:
        with pa.memory_map(str(path)) as file:
            table = pa.ipc.open_file(file).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"{path} cannot be read: {error}; score the run again") from None
    missing = [name for name in columns if name not in table.column_names]
    if missing:
        raise StoreError(f"{path} has no column {missing[0]!r}; score the run again")
    return table


def _rows(table: pa.Table) -> Rows:
    slices = {
        name.removeprefix("slice:"): _codes(table[name])
        for name in table.column_names
        if name.startswith("slice:")
    }
    return Rows(
        value=_numbers(table["value"]),
        numerator=_numbers(table["numerator"]),
        weight=_numbers(table["weight"]),
        intersection=_numbers(table["intersection"]),
        union=_numbers(table["union"]),
        status=_codes(table["status"]),
        reason=_codes(table["reason"]),
        slices=slices,
    )


def _numbers(column: pa.ChunkedArray) -> NDArray[Any]:
    """A column as an array; nulls are NaN."""
    return column.to_numpy()


def _texts(column: pa.ChunkedArray) -> list[str]:
    return column.to_pylist()


def _codes(column: pa.ChunkedArray) -> Codes:
    plain = pc.cast(column, pa.string()) if pa.types.is_dictionary(column.type) else column
    encoded = pc.dictionary_encode(plain, null_encoding="encode").combine_chunks()
    return Codes(encoded.indices.to_numpy(), tuple(encoded.dictionary.to_pylist()))
