"""The tables of a run: scores.arrow (one row per protocol and sample) and metrics.arrow (one row per sample)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from maskwise.arrays import NumberArray
from maskwise.errors import StoreError
from maskwise.protocols.metrics import SCORED, STATUSES, Scores
from maskwise.store import Codes
from maskwise.store.atomic import atomic_write

MAIN_METRICS = ("giou", "ciou")
"""The metrics that every protocol has. They are given for every slice and have columns of their own in scores.arrow."""

SCORE_COLUMNS = (
    "protocol",
    "status",
    "value",
    "weight",
    "numerator",
    "intersection",
    "union",
    "reason",
)
METRIC_COLUMNS = ("sample", "image")
"""The columns without which scores.arrow and metrics.arrow cannot be used; slices and metrics vary."""

SLICE = "slice:"
"""What the names of the columns of slices begin with."""


@dataclass(frozen=True)
class ScoredSamples:
    """What both tables say about the samples. ids: [n]; image: int64 [n], positions in images; slices: by name."""

    ids: Sequence[str]
    image: NDArray[np.int64]
    images: Sequence[str]
    slices: Mapping[str, Codes]


@dataclass(frozen=True)
class ScoreRows:
    """All samples under one protocol, in the dataset's order.

    value: float64 [n], gIoU of each sample, NaN where it has none. numerator, weight: float64 [n], its terms of gIoU.
    intersection, union: int64 [n], its terms of cIoU. status, reason: Codes. slices: {name: Codes}.
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


# -- making ------------------------------------------------------------------------------------------------------------


def make_score_table(samples: ScoredSamples, scores: Mapping[str, Scores]) -> pa.Table:
    """scores.arrow: one batch per protocol; all share their dictionaries."""
    return pa.Table.from_batches(list(_score_batches(samples, scores)))


def make_metric_table(samples: ScoredSamples, scores: Mapping[str, Scores]) -> pa.Table:
    """metrics.arrow: numerator and denominator of every metric that scores.arrow does not contain."""
    columns = {
        "sample": pa.array(list(samples.ids), pa.string()),
        "image": _dictionary(samples.image, list(samples.images)),
    }
    for protocol, protocol_scores in scores.items():
        for name, metric in protocol_scores.metrics.items():
            if name in MAIN_METRICS:
                continue
            columns[f"{protocol}/{name}/numerator"] = _numbers(
                metric.numerator, np.float64
            )
            columns[f"{protocol}/{name}/denominator"] = _numbers(
                metric.denominator, np.float64
            )
    return pa.table(columns)


def _score_batches(
    samples: ScoredSamples, scores: Mapping[str, Scores]
) -> Iterator[pa.RecordBatch]:
    names = list(scores)
    # All batches of a file share the dictionary of a column, so it has the reasons of every protocol.
    every_reason = [
        text
        for protocol_scores in scores.values()
        for text in protocol_scores.statuses.reasons
        if text
    ]
    reasons = list(dict.fromkeys(every_reason))
    shared = {
        "sample": _dictionary(np.arange(len(samples.ids)), list(samples.ids)),
        "image": _dictionary(samples.image, list(samples.images)),
    }
    slices = {
        f"{SLICE}{name}": _dictionary(
            codes.codes, [str(label) for label in codes.names]
        )
        for name, codes in samples.slices.items()
    }
    for item, protocol_scores in enumerate(scores.values()):
        statuses = protocol_scores.statuses.status
        columns = {
            "protocol": _dictionary(np.full(len(protocol_scores), item), names),
            **shared,
            "status": _dictionary(statuses, list(STATUSES)),
            **_terms(protocol_scores),
            "reason": _reasons(protocol_scores, reasons),
            **slices,
        }
        yield pa.record_batch(columns)


def _terms(scores: Scores) -> dict[str, pa.Array]:
    giou = scores.metrics["giou"]
    ciou = scores.metrics["ciou"]
    return {
        "value": pa.array(scores.value, mask=scores.statuses.status != SCORED),
        "weight": _numbers(giou.denominator, np.float64),
        "numerator": _numbers(giou.numerator, np.float64),
        "intersection": _numbers(ciou.numerator, np.int64),
        "union": _numbers(ciou.denominator, np.int64),
    }


def _numbers(column: NumberArray, dtype: type) -> pa.Array:
    """A column as Arrow, sharing its memory if it has the dtype already."""
    return pa.array(column.astype(dtype, copy=False))


def _reasons(scores: Scores, reasons: list[str]) -> pa.Array:
    place = {text: item for item, text in enumerate(reasons)}
    codes = np.array([place.get(text, 0) for text in scores.statuses.reasons], np.int32)
    return _dictionary(
        codes[scores.statuses.reason], reasons, mask=scores.statuses.reason == 0
    )


def _dictionary(codes: Any, names: list[str], mask: Any = None) -> pa.Array:
    indices = pa.array(np.asarray(codes, np.int32), mask=mask)
    return pa.DictionaryArray.from_arrays(indices, pa.array(names, pa.string()))


# -- files -------------------------------------------------------------------------------------------------------------


def write_table(path: Path, table: pa.Table) -> None:
    """Write an Arrow IPC file, compressed, completely or not at all."""
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with (
        atomic_write(path) as file,
        pa.ipc.new_file(file, table.schema, options=options) as writer,
    ):
        writer.write_table(table)


def read_table(path: Path, columns: Sequence[str]) -> pa.Table:
    """An Arrow IPC file with at least these columns; StoreError if it is damaged."""
    try:
        with pa.memory_map(str(path)) as file:
            table = pa.ipc.open_file(file).read_all()
        table.validate(full=True)
        names = table.column_names
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        # Arrow decodes the names of columns when they are asked for: in a damaged file they may be no text.
        raise StoreError(
            f"{path} cannot be read: {error}; score the run again"
        ) from None
    missing = [name for name in columns if name not in names]
    if missing:
        raise StoreError(f"{path} has no column {missing[0]!r}; score the run again")
    return table


# -- reading -----------------------------------------------------------------------------------------------------------


def select_rows(table: pa.Table, protocol: str) -> pa.Table:
    """The rows of scores.arrow of one protocol."""
    return table.filter(pc.equal(table["protocol"], protocol))


def table_to_rows(table: pa.Table) -> ScoreRows:
    """The rows of one protocol as arrays."""
    slices = {
        name.removeprefix(SLICE): column_codes(table[name])
        for name in table.column_names
        if name.startswith(SLICE)
    }
    return ScoreRows(
        value=column_numbers(table["value"]),
        numerator=column_numbers(table["numerator"]),
        weight=column_numbers(table["weight"]),
        intersection=column_numbers(table["intersection"]),
        union=column_numbers(table["union"]),
        status=column_codes(table["status"]),
        reason=column_codes(table["reason"]),
        slices=slices,
    )


def column_numbers(column: pa.ChunkedArray) -> NDArray[Any]:
    """A column as an array; nulls are NaN."""
    numbers: NDArray[Any] = column.to_numpy()
    return numbers


def column_texts(column: pa.ChunkedArray) -> list[str]:
    """A text column as a list."""
    texts: list[str] = column.to_pylist()
    return texts


def column_codes(column: pa.ChunkedArray) -> Codes:
    """A text column as codes in order of first appearance; null is a name of its own."""
    plain = (
        pc.cast(column, pa.string()) if pa.types.is_dictionary(column.type) else column
    )
    encoded = pc.dictionary_encode(plain, null_encoding="encode").combine_chunks()
    return Codes(encoded.indices.to_numpy(), tuple(encoded.dictionary.to_pylist()))
