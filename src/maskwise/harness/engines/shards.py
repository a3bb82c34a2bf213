"""Answers that came before their turn: kept on disk until it comes, so that a kill loses none of them.

Workers side by side finish out of order, predictions.jsonl has the order of the plan. What is early is written here the
moment it arrives, one line an image, and read back when the images before it are done. A run that is continued takes
over what it finds.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from maskwise.errors import MaskError, RecordError
from maskwise.harness.engines.worker import ImagePredictions
from maskwise.harness.plan import Plan
from maskwise.harness.record import writing
from maskwise.schema import Prediction

FULL = 1000
"""Images in one file. It is removed when all of them had their turn."""


class ShardLine(msgspec.Struct, frozen=True, kw_only=True):
    """The answers to one image, as a line of JSON. image: its row in the dataset."""

    image: int
    predictions: list[Prediction]
    ious: list[float | None]


class _Place(NamedTuple):
    path: Path
    start: int
    length: int


_DECODER = msgspec.json.Decoder(ShardLine)


def encode_line(image: int, answered: ImagePredictions) -> bytes:
    """One line of JSON, with its newline."""
    finished = ShardLine(image=image, predictions=answered.predictions, ious=answered.ious)
    return msgspec.json.encode(finished) + b"\n"


def decode_line(line: bytes) -> ImagePredictions:
    """What `encode_line` was given, equal to the last bit."""
    finished = _DECODER.decode(line)
    return ImagePredictions(finished.predictions, finished.ious)


class Shards:
    """A folder of early answers; memory holds where they are, a few bytes an image. It is made when one comes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._places: dict[int, _Place] = {}
        self._waiting: Counter[Path] = Counter()
        self._path: Path | None = None
        self._size = self._lines = 0

    def __contains__(self, image: int) -> bool:
        return image in self._places

    def recall(self, plan: Plan, ids: Sequence[str]) -> None:
        """Take over what an earlier session left, as far as the plan has it; ids: of all samples of the dataset.

        A torn line, or one that is not for the samples the plan has there, is left out.
        """
        for path in self._paths():
            start = 0
            with open(path, "rb") as file:
                for line in file:
                    self._recall_line(_Place(path, start, len(line)), line, plan, ids=ids)
                    start += len(line)
            self._drop_if_done(path)

    def keep(self, image: int, line: bytes) -> None:
        """Write down an early answer. StoreError where the disk refuses."""
        with writing(self.folder):
            if self._path is None or self._lines == FULL:
                self._begin_file()
            assert self._path is not None
            with open(self._path, "ab") as file:
                file.write(line)
        self._add(image, _Place(self._path, self._size, len(line)))
        self._size, self._lines = self._size + len(line), self._lines + 1

    def take(self, image: int) -> ImagePredictions:
        """Give back an answer, once."""
        path, start, length = self._places.pop(image)
        with open(path, "rb") as file:
            file.seek(start)
            line = file.read(length)
        self._waiting[path] -= 1
        self._drop_if_done(path)
        return decode_line(line)

    def _paths(self) -> list[Path]:
        return sorted(self.folder.glob(f"{'[0-9]' * 6}.jsonl")) if self.folder.is_dir() else []

    def _recall_line(self, place: _Place, line: bytes, plan: Plan, *, ids: Sequence[str]) -> None:
        try:
            finished = _DECODER.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecordError, MaskError):
            return
        item = int(np.searchsorted(plan.images, finished.image))
        if item == len(plan) or plan.images[item] != finished.image or finished.image in self:
            return
        if [reply.sample for reply in finished.predictions] == [ids[row] for row in plan[item].rows]:
            self._add(finished.image, place)

    def _add(self, image: int, place: _Place) -> None:
        self._places[image] = place
        self._waiting[place.path] += 1

    def _begin_file(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        last = max((int(path.stem) for path in self._paths()), default=0)
        full, self._path = self._path, self.folder / f"{last + 1:06}.jsonl"
        self._path.touch(exist_ok=False)
        self._size = self._lines = 0
        if full is not None:
            self._drop_if_done(full)

    def _drop_if_done(self, path: Path) -> None:
        if not self._waiting[path] and path != self._path:
            path.unlink(missing_ok=True)
