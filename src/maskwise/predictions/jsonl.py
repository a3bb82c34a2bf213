"""maskwise's own format: one `schema.Prediction` per line, read directly into columns.

Lines are decoded in blocks into small structs and converted to columns at once; masks are validated later, all
together. This is several times faster than one record at a time, and memory contains the columns and one block.
"""

import gc
import warnings
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

from maskwise.arrays import Int64Array
from maskwise.errors import StoreError
from maskwise.masks import Masks
from maskwise.predictions.loaded import LoadedPredictions, align
from maskwise.protocols.columns import Phrases, no_masks
from maskwise.protocols.ground_truth import GroundTruth
from maskwise.protocols.mask_geometry import MaskGeometry, RegionGeometry, measure_masks
from maskwise.protocols.prediction_columns import (
    FAILED,
    MALFORMED,
    PREDICTED,
    UNSTATED,
    PredictionColumns,
)
from maskwise.protocols.ragged import counts_to_offsets
from maskwise.runs.schema import ReadOptions
from maskwise.schema import MaskType, Phrase
from maskwise.store import MASK_TYPES, Codes, MaskColumn

BLOCK_BYTES = 2**19
"""Small enough for the records to stay in the cache until they are converted: larger blocks take twice the time."""
MAX_LINE_BYTES = 2**30
"""The longest line that is read, so that a file without newlines does not fill the memory."""

MAX_SIDE = 2**31 - 1
"""The largest side of a mask: sizes are int32 columns."""


class _Lean(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """Records without reference cycles, which the garbage collector does not have to track."""


class _Mask(_Lean, gc=False):
    size: tuple[int, int]
    counts: str


class _Region(_Lean, gc=False):
    visible: _Mask | None = None
    amodal: _Mask | None = None
    score: float = 1.0
    name: str | None = None


class _Answer(_Lean, gc=False):
    text: str
    phrases: list[Phrase] = []


class _Line(_Lean, gc=False):
    sample: str
    answer: _Answer | None = None
    mask_type: MaskType | None = None
    regions: list[_Region] = []
    no_target: bool = False
    error: str | None = None
    forced: bool = False


class _Sample(msgspec.Struct, gc=False):
    """Of a line only the sample it is about."""

    sample: str


def read_jsonl(
    path: Path, truth: GroundTruth, options: ReadOptions
) -> LoadedPredictions:
    """The predictions of a JSONL file, in the dataset's order. An incomplete last line is dropped with a warning."""
    with open(path, "rb") as file:
        return _read_blocks(_blocks(file, path), path, truth)


def read_lines(path: Path, lines: Int64Array, truth: GroundTruth) -> LoadedPredictions:
    """Some lines of a JSONL file, as `find_lines` found them: int64 [lines, 2] of where each begins and ends."""
    with open(path, "rb") as file:
        return _read_blocks(_some_blocks(file, lines), path, truth)


def find_lines(path: Path) -> Iterator[tuple[list[str], Int64Array]]:
    """The sample of every prediction and its place in the file, block by block: int64 [lines, 2], first byte and end.

    Invalid JSON is an error that names the line; an incomplete last line is dropped with a warning.
    """
    first = 0
    before = 0
    with open(path, "rb") as file, _collector_off():
        for block in _blocks(file, path):
            lines = block.splitlines(keepends=True)
            ends = first + np.cumsum([len(line) for line in lines])
            filled = np.array([bool(line.strip()) for line in lines])
            try:
                records: Sequence[_Line | _Sample] = _SAMPLE_DECODER.decode_lines(block)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                records = _decode_slowly(block, path, before)
            starts = np.concatenate([[first], ends[:-1]])
            # Of an incomplete last line there is no record.
            places = np.stack([starts[filled], ends[filled]], 1)[: len(records)]
            yield [record.sample for record in records], places
            first += len(block)
            before += len(records)


def _read_blocks(
    blocks: Iterable[bytes], path: Path, truth: GroundTruth
) -> LoadedPredictions:
    with _collector_off(), ThreadPoolExecutor(1) as pool:
        columns = _Columns(path, pool)
        for block in blocks:
            columns.add(_decode(block, path, len(columns.samples)))
        return align(truth, columns.samples, columns.finish(), str(path))


def _some_blocks(file: BinaryIO, lines: Int64Array) -> Iterator[bytes]:
    """Whole lines, about BLOCK_BYTES at a time."""
    # Lines that follow each other are read at once.
    begins = np.ones(len(lines), bool)
    begins[1:] = lines[1:, 0] != lines[:-1, 1]
    size = np.cumsum(lines[:, 1] - lines[:, 0])
    begins[1:] |= size[1:] // BLOCK_BYTES != size[:-1] // BLOCK_BYTES
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(lines)) - 1
    for start, stop in zip(lines[first, 0].tolist(), lines[last, 1].tolist()):
        file.seek(start)
        yield file.read(stop - start)


class _Numbering(dict[str | None, int]):
    """Names numbered in the order of their first lookup."""

    def __missing__(self, name: str | None) -> int:
        self[name] = number = len(self)
        return number


class _MaskParts:
    """One mask column, extended block by block. Masks are measured in a thread while the next block is decoded."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._measured: list[Future[tuple[MaskGeometry, NDArray[np.int64]]]] = []
        self._blocks: list[MaskColumn] = []

    def add(self, masks: list[_Mask | None]) -> NDArray[np.bool_]:
        """Returns which of them are present."""
        known = [mask for mask in masks if mask is not None]
        counts = [mask.counts for mask in known]
        if len(known) == len(masks):
            present = np.ones(len(masks), bool)
        else:
            present = np.fromiter(
                (mask is not None for mask in masks), bool, len(masks)
            )
        lengths = np.zeros(len(masks), np.int64)
        lengths[present] = np.fromiter(map(len, counts), np.int64, len(known))
        size = np.zeros((len(masks), 2), np.int32)
        size[present] = _clip_sizes([mask.size for mask in known])
        # One byte per character: other characters than ASCII make a malformed mask.
        data = np.frombuffer("".join(counts).encode("latin-1", "replace"), np.uint8)
        stop = np.cumsum(lengths)
        block = MaskColumn(Masks(data, stop - lengths, stop, size), present)
        self._blocks.append(block)
        self._measured.append(self._pool.submit(measure_masks, block, present, 1))
        return present

    def column(self) -> MaskColumn:
        if not self._blocks:
            return no_masks(0)
        masks = Masks.concat([block.masks for block in self._blocks])
        return MaskColumn(
            masks, np.concatenate([block.present for block in self._blocks])
        )

    def geometry(self) -> tuple[MaskGeometry, NDArray[np.int64]]:
        """The geometry of all masks, and the rows of those that are malformed."""
        parts = [waiting.result() for waiting in self._measured]
        starts = counts_to_offsets([len(geometry.area) for geometry, _ in parts])
        bad = [start + rows for start, (_, rows) in zip(starts, parts)]
        return MaskGeometry.concat([geometry for geometry, _ in parts]), np.concatenate(
            [np.zeros(0, np.int64), *bad]
        )


class _Columns:
    """The columns of all lines read so far."""

    def __init__(self, path: Path, pool: ThreadPoolExecutor) -> None:
        self.path = path
        self.samples: list[str] = []
        self._answers: list[str | None] = []
        self._reasons: dict[int, str] = {}
        self._visible = _MaskParts(pool)
        self._amodal = _MaskParts(pool)
        self._names = _Numbering()
        self._words = _Numbering()
        self._phrases: list[tuple[int, list[int], int]] = []
        self._regions = 0
        self._parts: list[dict[str, NDArray[Any]]] = []

    def add(self, lines: list[_Line]) -> None:
        """Convert lines to columns; a failed prediction keeps no regions."""
        first = len(self.samples)
        first_region = self._regions
        count = len(lines)
        state = np.full(count, PREDICTED, np.int8)
        said = np.full(count, UNSTATED, np.int8)
        no_target = np.zeros(count, bool)
        forced = np.zeros(count, bool)
        counts = []
        for row, line in enumerate(lines):
            if line.forced:
                forced[row] = True
            if line.error is not None:
                state[row] = FAILED
                self._reasons[first + row] = line.error
                line.regions = []
                line.answer = None
                counts.append(0)
                continue
            if line.answer is not None and line.answer.phrases:
                self._add_phrases(first + row, line, first_region)
            if line.mask_type is not None:
                said[row] = MASK_TYPES.index(line.mask_type)
            if line.no_target:
                no_target[row] = True
            counts.append(len(line.regions))
            first_region += counts[-1]
        self._regions = first_region
        self.samples += [line.sample for line in lines]
        self._answers += [
            None if line.answer is None else line.answer.text for line in lines
        ]
        regions = [region for line in lines for region in line.regions]
        score = np.fromiter(
            (region.score for region in regions), np.float64, len(regions)
        )
        names = np.fromiter(
            map(self._names.__getitem__, [region.name for region in regions]),
            np.int32,
            len(regions),
        )
        masked = self._visible.add([region.visible for region in regions])
        masked = masked | self._amodal.add([region.amodal for region in regions])
        self._check(lines, masked, score)
        self._parts.append(
            {
                "counts": np.array(counts, np.int64),
                "state": state,
                "said": said,
                "no_target": no_target,
                "forced": forced,
                "score": score,
                "names": names,
            }
        )

    def finish(self) -> PredictionColumns:
        """All columns, in the order of the file."""
        if not self._parts:
            self.add([])
        whole = {
            name: np.concatenate([part[name] for part in self._parts])
            for name in self._parts[0]
        }
        visible, bad_visible = self._visible.geometry()
        amodal, bad_amodal = self._amodal.geometry()
        columns = PredictionColumns(
            state=whole["state"],
            reasons=self._reasons,
            offsets=counts_to_offsets(whole["counts"]),
            visible=self._visible.column(),
            amodal=self._amodal.column(),
            score=whole["score"],
            names=Codes(whole["names"], tuple(self._names)),
            mask_type=whole["said"],
            no_target=whole["no_target"],
            forced=whole["forced"],
            answers=self._answers,
            phrases=self._phrase_columns(),
            measured=RegionGeometry(visible, amodal),
        )
        bad = np.union1d(bad_visible, bad_amodal)
        return columns.fail(dict.fromkeys(columns.sample[bad].tolist(), MALFORMED))

    def _check(
        self, lines: list[_Line], masked: NDArray[np.bool_], score: NDArray[np.float64]
    ) -> None:
        """Refuse a region without a mask or with a score outside [0, 1]."""
        wrong = np.flatnonzero(~masked | ~((score >= 0.0) & (score <= 1.0)))
        if len(wrong):
            owner = [line.sample for line in lines for _ in line.regions][wrong[0]]
            raise StoreError(
                f"{self.path}: prediction for sample {owner!r}: a region needs a visible or an amodal mask and a score "
                f"within 0 and 1, not {score[wrong[0]]}"
            )

    def _phrase_columns(self) -> Phrases | None:
        if not self._phrases:
            return None
        rows, member_lists, words = zip(*self._phrases)
        return Phrases(
            np.array(rows, np.int64),
            counts_to_offsets([len(members) for members in member_lists]),
            np.array(list(chain.from_iterable(member_lists)), np.int64),
            Codes(np.array(words, np.int32), tuple(self._words)),
        )

    def _add_phrases(self, row: int, line: _Line, first: int) -> None:
        answer = line.answer
        for phrase in answer.phrases if answer else ():
            inside = answer is not None and 0 <= phrase.start < phrase.stop <= len(
                answer.text
            )
            if (
                answer is None
                or not inside
                or any(not 0 <= member < len(line.regions) for member in phrase.regions)
            ):
                raise StoreError(
                    f"{self.path}: prediction for sample {line.sample!r}: phrase [{phrase.start}, {phrase.stop}) of "
                    f"masks {phrase.regions} lies outside its answer or its {len(line.regions)} regions"
                )
            words = answer.text[phrase.start : phrase.stop]
            members = [first + member for member in phrase.regions]
            self._phrases.append((row, members, self._words[words]))


def _clip_sizes(sizes: list[tuple[int, int]]) -> NDArray[np.int64]:
    """Sizes int64 [n, 2] within int32; one that was not stays a malformed mask."""
    sides = list(chain.from_iterable(sizes))
    try:
        numbers = np.fromiter(sides, np.int64, len(sides))
    except OverflowError:  # JSON has integers of any length
        numbers = np.array([max(-1, min(side, MAX_SIDE)) for side in sides], np.int64)
    return numbers.reshape(-1, 2).clip(-1, MAX_SIDE)


def _blocks(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """Whole lines, about BLOCK_BYTES at a time; the last block may lack its newline."""
    rest = b""
    while block := file.read(BLOCK_BYTES):
        cut = block.rfind(b"\n") + 1
        if cut:
            yield rest + block[:cut]
            rest = block[cut:]
        else:
            rest += block
        if len(rest) > MAX_LINE_BYTES:
            raise StoreError(
                f"{path}: a line is longer than {MAX_LINE_BYTES} bytes; expected one prediction per line"
            )
    if rest:
        yield rest


def _decode(block: bytes, path: Path, before: int) -> list[_Line]:
    """The records of a block; before: how many records precede it."""
    try:
        return _DECODER.decode_lines(block)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode_slowly(block, path, before)


def _decode_slowly(block: bytes, path: Path, before: int) -> list[_Line]:
    """Like `_decode`, line by line, to report the invalid line. An incomplete last line is dropped."""
    lines = []
    for number, text in enumerate(block.splitlines(keepends=True), before + 1):
        try:
            if text.strip():
                lines.append(_DECODER.decode(text))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if not text.endswith(b"\n"):
                warnings.warn(
                    f"{path}: dropped the incomplete last line (line {number})",
                    stacklevel=2,
                )
                break
            raise StoreError(f"{path}, line {number}: {error}") from None
    return lines


@contextmanager
def _collector_off() -> Iterator[None]:
    """Searching for cycles among millions of records that have none doubles the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


_DECODER = msgspec.json.Decoder(_Line)
_SAMPLE_DECODER = msgspec.json.Decoder(_Sample)
