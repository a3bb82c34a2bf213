"""Score predictions in parts, in a third of the memory of all at once, here or on Ray.

    result = compute_scores_in_parts(path, dataset, ["strict"], parts=50)

A part is consecutive questions, with all those of its images. Each part is read and scored by itself, in one process
after the other or by workers of Ray. What remains of it are the columns of its questions, which are kept in a temporary
file; they are joined in the order of the dataset, and intervals and slices are computed from the whole. So the scores
are those of `compute_scores`, digit for digit. Joining takes most memory: 1.6 KB for each question under all
protocols.

Values that are no sums over questions need all predictions at once (average precision, running float32 sums): such
protocols are refused. There is no ladder.
"""

import pickle
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import IO, Any

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int8Array, Int64Array
from maskwise.engines import EngineOptions, map_chunks
from maskwise.errors import ProtocolError, StoreError
from maskwise.harness.scoring import ScoreResult, summarize_scores
from maskwise.predictions import LoadedPredictions
from maskwise.predictions.jsonl import find_lines, read_lines
from maskwise.predictions.loaded import no_masks
from maskwise.protocols import (
    GroundTruth,
    Protocol,
    Scores,
    ScoringInput,
    find_protocol,
)
from maskwise.protocols import concat as concat_scores
from maskwise.protocols.columns import encode_strings
from maskwise.protocols.metrics import share_columns
from maskwise.protocols.prediction_columns import PredictionColumns
from maskwise.protocols.risk_coverage import question_confidence
from maskwise.protocols.slices import slice_samples, slice_truth
from maskwise.registry import DEFAULT_PROTOCOLS
from maskwise.runs.schema import IntervalOptions, ReadOptions
from maskwise.store import Codes, Dataset

PART_QUESTIONS = 50_000
"""Questions of a part: under all protocols these take about 250 MB."""

ALIGNMENT = 64
"""Bytes; columns in the temporary file begin at multiples of it."""


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
    sizes: Codes
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
            sizes=slice_samples(inputs)["size"],
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
    on_stage("reading")
    read = _place_predictions(predictions, dataset)
    scorer = PartScorer(
        predictions, dataset.path, wanted, options or {}, protocols is None, threads
    )
    count = parts or 1 + len(dataset) // PART_QUESTIONS
    made = divide(dataset, read.places, count)
    on_stage("parts")
    with tempfile.TemporaryFile() as file:
        results = map_chunks(scorer, made, engine or EngineOptions(), size=1)
        kept = _keep(results, file)
        return _join(
            kept,
            scorer,
            dataset,
            read,
            read_options=read_options,
            interval_options=interval_options,
            threads=threads,
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
    row_of = dataset.samples.row
    places = np.full((len(dataset), 2), -1, np.int64)
    read = 0
    matched = 0
    first_unknown = None
    for samples, lines in find_lines(path):
        rows = np.array([row_of.get(sample, -1) for sample in samples], np.int64)
        known = np.flatnonzero(rows >= 0)
        taken = places[rows[known], 0] >= 0
        if taken.any() or len(np.unique(rows[known])) < len(known):
            raise StoreError(
                f"{path}: two predictions for a sample in bytes {lines[0, 0]} to {lines[-1, 1]}; keep one"
            )
        places[rows[known]] = lines[known]
        read += len(samples)
        matched += len(known)
        if first_unknown is None and len(known) < len(samples):
            first_unknown = samples[int(np.flatnonzero(rows < 0)[0])]
    if not read:
        raise ProtocolError(
            f"{path} contains no predictions; a model that finds nothing says so for each sample"
        )
    return _Places(places, read, matched, first_unknown)


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


def _join(
    kept: Sequence[PartScores],
    scorer: PartScorer,
    dataset: Dataset,
    read: _Places,
    *,
    read_options: ReadOptions | None,
    interval_options: IntervalOptions | None,
    threads: int,
) -> ScoreResult:
    """The scores of the whole."""
    truth = GroundTruth.from_dataset(dataset)
    firsts = np.cumsum([0, *(len(part.state) for part in kept)]).tolist()
    skipped: dict[str, str] = {}
    for part in kept:
        skipped = {**part.skipped, **skipped}
    joined: dict[tuple[int, ...], Any] = {}
    scores = {
        protocol.name: concat_scores(
            [part.scores[protocol.name] for part in kept], joined
        )
        for protocol in scorer.protocols
        if protocol.name not in skipped
    }
    sizes = Codes(
        np.concatenate([part.sizes.codes for part in kept]), kept[0].sizes.names
    )
    loaded = LoadedPredictions(
        _without_regions(kept, firsts), read.read, read.matched, read.first_unknown
    )
    return summarize_scores(
        dataset,
        scorer.predictions,
        truth=truth,
        loaded=loaded,
        confidence=np.concatenate([part.confidence for part in kept]),
        rules={protocol.name: protocol.description for protocol in scorer.protocols},
        scores=scores,
        skipped=skipped,
        read_options=read_options,
        interval_options=interval_options,
        slices=slice_truth(truth, sizes, threads=threads),
        threads=threads,
    )


def _without_regions(
    kept: Sequence[PartScores], firsts: Sequence[int]
) -> PredictionColumns:
    """The predictions of all parts without their regions, which no part returns."""
    reasons = {
        first + row: reason
        for part, first in zip(kept, firsts)
        for row, reason in part.reasons.items()
    }
    return PredictionColumns(
        state=np.concatenate([part.state for part in kept]),
        reasons=reasons,
        offsets=np.zeros(firsts[-1] + 1, np.int64),
        visible=no_masks(0),
        amodal=no_masks(0),
        score=np.zeros(0),
        names=encode_strings([]),
        mask_type=np.concatenate([part.mask_type for part in kept]),
        no_target=np.concatenate([part.no_target for part in kept]),
        forced=np.concatenate([part.forced for part in kept]),
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
