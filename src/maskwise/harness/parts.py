"""Score predictions in parts, in a fraction of the memory of all at once, here or on Ray.

    result = compute_scores_in_parts(path, dataset, ["strict"], parts=50)

A part is consecutive questions, with all those of its images. Each part is read and scored by itself, in one process
after the other or by workers of Ray. What remains of it are the columns of its questions. These are joined in the order
of the dataset, and intervals and slices are computed from the whole. So the scores are those of `compute_scores`, digit
for digit. The columns are in temporary files that are mapped, roughly 3 KB per question under all protocols: where the
folder of temporary files is on a disk, the system can take their memory for other things.

Values that are no sums over questions need all predictions at once (average precision, running float32 sums): such
protocols are refused. There is no ladder.
"""

import math
import pickle
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from maskwise.arrays import (
    BoolArray,
    Float64Array,
    Int8Array,
    Int64Array,
    NumberArray,
    UInt8Array,
)
from maskwise.arrow import arrow_to_numpy
from maskwise.engines import EngineOptions, map_chunks
from maskwise.errors import ProtocolError, StoreError
from maskwise.harness.scoring import (
    ScoreResult,
    summarize_scores,
    warn_of_merged_pixels,
)
from maskwise.predictions import LoadedPredictions
from maskwise.predictions.jsonl import find_lines, read_lines
from maskwise.protocols import (
    GroundTruth,
    Protocol,
    Scores,
    ScoringInput,
    find_protocol,
)
from maskwise.protocols import concat as concat_scores
from maskwise.protocols.columns import encode_strings, no_masks
from maskwise.protocols.metrics import Join, share_columns
from maskwise.protocols.prediction_columns import PredictionColumns
from maskwise.protocols.risk_coverage import question_confidence
from maskwise.protocols.slices import slice_masks, slice_truth
from maskwise.registry import DEFAULT_PROTOCOLS
from maskwise.runs.schema import IntervalOptions, ReadOptions
from maskwise.store import Codes, Dataset

PART_QUESTIONS = 50_000
"""Questions of a part: under all protocols these take about 250 MB."""

MAPPED_BYTES = 1 << 26
"""Bytes of joined columns that are mapped together: every map keeps a file open, and a process may open 256 on some
systems."""

ALIGNMENT = 64
"""Bytes; columns in the temporary files begin at multiples of it."""


@dataclass(frozen=True)
class Part:
    """Consecutive questions: rows [first, stop) of the dataset, and where their predictions are in the file."""

    first: int
    stop: int
    lines: Int64Array


@dataclass(frozen=True)
class PartScores:
    """What remains of a part: columns of its questions, and by protocol the scores or why there are none."""

    scores: Mapping[str, Scores]
    skipped: Mapping[str, str]
    slices: Mapping[str, Codes]
    state: Int8Array
    reasons: Mapping[int, str]
    mask_type: Int8Array
    no_target: BoolArray
    forced: BoolArray
    confidence: Float64Array


@dataclass(frozen=True)
class PartScorer:
    """Scores parts; it is sent to the processes that do the work. skips: a protocol that cannot score is left out."""

    predictions: Path
    dataset: Path
    protocols: Sequence[Protocol]
    options: Mapping[str, Mapping[str, Any]]
    skips: bool
    threads: int

    def __call__(self, parts: Sequence[Part]) -> list[PartScores]:
        """The scores of each part."""
        return [self._score(part) for part in parts]

    def _score(self, part: Part) -> PartScores:
        dataset = _open(self.dataset)[part.first : part.stop]
        truth = GroundTruth.from_dataset(dataset)
        loaded = read_lines(self.predictions, part.lines, truth).predictions
        inputs = ScoringInput(truth, loaded, threads=self.threads)
        scores = {}
        skipped = {}
        for protocol in self.protocols:
            options = self.options.get(protocol.name, {})
            try:
                scores[protocol.name] = protocol.score(inputs, **options)
            except ProtocolError as error:
                if not self.skips:
                    raise
                skipped[protocol.name] = str(error)
        for name, protocol_scores in scores.items():
            _expect_sums(name, protocol_scores)
        return PartScores(
            scores=_share(scores),
            skipped=skipped,
            slices=slice_masks(inputs),
            state=loaded.state,
            reasons=dict(loaded.reasons),
            mask_type=loaded.mask_type,
            no_target=loaded.no_target,
            forced=loaded.forced,
            confidence=question_confidence(loaded),
        )


def compute_scores_in_parts(
    predictions: Path,
    dataset: Dataset,
    protocols: Sequence[str | Protocol] | None = None,
    *,
    parts: int | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    read_options: ReadOptions | None = None,
    interval_options: IntervalOptions | None = None,
    threads: int = 1,
    engine: EngineOptions | None = None,
    on_stage: Callable[[str], None] = lambda stage: None,
) -> ScoreResult:
    """As `compute_scores`, for a JSONL file and a whole dataset, in `parts` parts of about as many questions; None: of
    PART_QUESTIONS.
    """
    wanted = [
        find_protocol(rule)
        for rule in (DEFAULT_PROTOCOLS if protocols is None else protocols)
    ]
    if len(dataset) != dataset.manifest.counts.get("samples"):
        raise ProtocolError("only a whole dataset is scored in parts, not a view of it")
    warn_of_merged_pixels(dataset, [protocol.name for protocol in wanted])
    on_stage("reading")
    read = _place_predictions(predictions, dataset)
    scorer = PartScorer(
        predictions, dataset.path, wanted, options or {}, protocols is None, threads
    )
    count = parts or 1 + len(dataset) // PART_QUESTIONS
    made = divide(dataset, read.places, count)
    on_stage("parts")
    results = map_chunks(scorer, made, engine or EngineOptions(), size=1)
    with tempfile.TemporaryFile() as file, tempfile.TemporaryFile() as joined:
        try:
            kept = _keep(results, file)
        finally:
            # The columns of the dataset that the parts needed are not needed any more.
            _open.cache_clear()
        whole = _join(kept, scorer, ColumnFile(joined))
    truth = GroundTruth.from_dataset(dataset, masks=False)
    return summarize_scores(
        dataset,
        predictions,
        truth=truth,
        loaded=LoadedPredictions(
            whole.columns, read.read, read.matched, read.first_unknown
        ),
        confidence=whole.confidence,
        rules={protocol.name: protocol.description for protocol in wanted},
        scores=whole.scores,
        skipped=whole.skipped,
        read_options=read_options,
        interval_options=interval_options,
        slices=slice_truth(truth, whole.slices, threads=threads),
    )


def divide(dataset: Dataset, places: Int64Array, parts: int) -> list[Part]:
    """Parts of about as many questions, each with all questions of its images, on which `muse` depends.

    places: int64 [samples, 2], first byte and end of the prediction for each sample, -1 where there is none.
    """
    count = len(dataset)
    image = np.asarray(dataset.samples.image)
    begins = np.flatnonzero(np.diff(image, prepend=-1))
    if len(begins) > len(np.unique(image)):
        raise ProtocolError(
            f"{dataset.name}: the questions of an image do not follow each other; score it without parts"
        )
    wanted = np.linspace(0, count, parts + 1)[1:-1]
    bounds = np.unique(
        [0, *begins[np.searchsorted(begins, wanted).clip(0, len(begins) - 1)], count]
    )
    made = []
    for first, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist()):
        known = places[first:stop]
        known = known[known[:, 0] >= 0]
        made.append(Part(first, stop, known[np.argsort(known[:, 0])]))
    return made


@dataclass(frozen=True)
class _Places:
    """Where the prediction for each sample is, int64 [samples, 2], and how many predictions there are."""

    places: Int64Array
    read: int
    matched: int
    first_unknown: str | None


def _place_predictions(path: Path, dataset: Dataset) -> _Places:
    blocks = []
    lines = [np.zeros((0, 2), np.int64)]
    for block_samples, block_lines in find_lines(path):
        blocks.append(pa.array(block_samples, pa.string()))
        lines.append(block_lines)
    samples = pa.chunked_array(blocks, pa.string())
    if not len(samples):
        raise ProtocolError(
            f"{path} contains no predictions; a model that finds nothing says so for each sample"
        )
    # As text in one piece: a Python string for every sample, and a dict of them, take 160 bytes more per sample.
    row_of_line = pc.index_in(samples, value_set=dataset.samples.table["id"])
    rows = arrow_to_numpy(pc.fill_null(row_of_line, -1))
    line_of = np.concatenate(lines)
    known = np.flatnonzero(rows >= 0)
    counts = np.bincount(rows[known], minlength=len(dataset))
    if counts.max(initial=0) > 1:
        twice = np.flatnonzero(rows == np.argmax(counts > 1))
        (first, first_end), (second, second_end) = line_of[twice[:2]].tolist()
        raise StoreError(
            f"{path}: two predictions for sample {samples[int(twice[0])].as_py()!r}, in bytes {first} to {first_end} "
            f"and {second} to {second_end}; keep one"
        )
    places = np.full((len(dataset), 2), -1, np.int64)
    places[rows[known]] = line_of[known]
    unknown = np.flatnonzero(rows < 0)
    return _Places(
        places,
        read=len(samples),
        matched=len(known),
        first_unknown=samples[int(unknown[0])].as_py() if len(unknown) else None,
    )


class ColumnFile:
    """Columns in a file, which are mapped read-only: they take no memory of the process itself."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._mapped: UInt8Array = np.zeros(0, np.uint8)
        self._mapped_from = 0
        # The parts are kept as well, so that their ids stay their own.
        self._joined: dict[
            tuple[int, ...], tuple[Sequence[NumberArray], NumberArray]
        ] = {}

    def join(self, parts: Sequence[NumberArray]) -> NumberArray:
        """The parts as one column; the same array for the same parts."""
        key = tuple(map(id, parts))
        if key not in self._joined:
            self._joined[key] = (parts, self._write(parts))
        _, column = self._joined[key]
        return column

    def _write(self, parts: Sequence[NumberArray]) -> NumberArray:
        rows = sum(len(part) for part in parts)
        shape = (rows, *parts[0].shape[1:])
        dtype = np.result_type(*parts)
        if not rows:
            return np.zeros(shape, dtype)
        self._file.seek(-self._file.tell() % ALIGNMENT, 1)
        first = self._file.tell()
        size = dtype.itemsize * math.prod(shape)
        if first + size > self._mapped_from + len(self._mapped):
            self._map(first, max(size, MAPPED_BYTES))
        for part in parts:
            self._file.write(np.ascontiguousarray(part, dtype).data)
        self._file.flush()
        start = first - self._mapped_from
        return self._mapped[start : start + size].view(dtype).reshape(shape)

    def _map(self, first: int, size: int) -> None:
        """Map the next bytes of the file, which are written afterwards."""
        self._file.truncate(first + size)
        self._mapped = np.asarray(np.memmap(self._file, np.uint8, "r", first, (size,)))
        self._mapped_from = first
        # Mapping has moved to the end of the file.
        self._file.seek(first)


def _keep(results: Iterable[PartScores], file: IO[bytes]) -> list[PartScores]:
    """The results with their arrays in a file, mapped read-only."""
    pickled = []
    for result in results:
        buffers: list[pickle.PickleBuffer] = []
        text = pickle.dumps(result, protocol=5, buffer_callback=buffers.append)
        spans = []
        for buffer in buffers:
            file.seek(-file.tell() % ALIGNMENT, 1)
            first = file.tell()
            file.write(buffer.raw())
            spans.append((first, file.tell()))
        pickled.append((text, spans))
    file.write(b"\0")  # An empty file cannot be mapped.
    file.flush()
    mapped = np.memmap(file, np.uint8, "r").data
    return [
        pickle.loads(text, buffers=[mapped[first:stop] for first, stop in spans])
        for text, spans in pickled
    ]


@dataclass(frozen=True)
class _Whole:
    """The parts as one: their scores, the slicings that need masks, and the predictions without their regions."""

    scores: Mapping[str, Scores]
    skipped: Mapping[str, str]
    slices: Mapping[str, Codes]
    columns: PredictionColumns
    confidence: Float64Array


def _join(
    kept: Sequence[PartScores], scorer: PartScorer, columns: ColumnFile
) -> _Whole:
    skipped: dict[str, str] = {}
    for part in kept:
        skipped = {**part.skipped, **skipped}
    scores = {
        protocol.name: concat_scores(
            [part.scores[protocol.name] for part in kept], columns.join
        )
        for protocol in scorer.protocols
        if protocol.name not in skipped
    }
    slices = {
        name: Codes(columns.join([part.slices[name].codes for part in kept]), names)
        for name, (_, names) in kept[0].slices.items()
    }
    return _Whole(
        scores,
        skipped,
        slices,
        _without_regions(kept, columns.join),
        columns.join([part.confidence for part in kept]),
    )


def _without_regions(kept: Sequence[PartScores], join: Join) -> PredictionColumns:
    """The predictions of all parts without their regions, which no part returns."""
    firsts = np.cumsum([0, *(len(part.state) for part in kept)]).tolist()
    reasons = {
        first + row: reason
        for part, first in zip(kept, firsts)
        for row, reason in part.reasons.items()
    }
    return PredictionColumns(
        state=join([part.state for part in kept]),
        reasons=reasons,
        offsets=np.zeros(firsts[-1] + 1, np.int64),
        visible=no_masks(0),
        amodal=no_masks(0),
        score=np.zeros(0),
        names=encode_strings([]),
        mask_type=join([part.mask_type for part in kept]),
        no_target=join([part.no_target for part in kept]),
        forced=join([part.forced for part in kept]),
    )


def _share(scores: Mapping[str, Scores]) -> dict[str, Scores]:
    """The same scores; equal columns of protocols are one array, which is kept once."""
    metrics = {
        (name, key): terms
        for name, protocol_scores in scores.items()
        for key, terms in protocol_scores.metrics.items()
    }
    shared = share_columns(metrics)
    return {
        name: replace(
            protocol_scores,
            metrics={key: shared[name, key] for key in protocol_scores.metrics},
        )
        for name, protocol_scores in scores.items()
    }


def _expect_sums(name: str, scores: Scores) -> None:
    values = [*scores.legacy, *scores.plain]
    if values:
        raise ProtocolError(
            f"{name} computes {', '.join(values)} from all predictions at once; score it without parts"
        )


@cache
def _open(path: Path) -> Dataset:
    """A process opens the dataset once for all its parts."""
    return Dataset.open(path)
