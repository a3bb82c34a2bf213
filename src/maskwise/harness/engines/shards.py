"""Shards: predictions made before it is their turn, kept on disk so that a kill does not lose them.

Parallel workers finish out of order; predictions.jsonl has the order of the plan. Early predictions are written here
when they arrive, one line per image, and read back when the images before them are done. A resumed run uses the shards
that it finds.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from maskwise.errors import MaskwiseError
from maskwise.harness.plan import Plan
from maskwise.runs.files import write_errors
from maskwise.schema import Prediction

MAX_LINES = 1000
"""Images per file. A file is removed when all of its images are done."""


class ShardLine(msgspec.Struct, frozen=True, kw_only=True):
    """The predictions for one image, as a line of JSON. image: its row in the dataset."""

    image: int
    predictions: list[Prediction]


class _Location(NamedTuple):
    path: Path
    start: int
    length: int


_DECODER = msgspec.json.Decoder(ShardLine)


def encode_line(image: int, predictions: list[Prediction]) -> bytes:
    """One line of JSON, with its newline."""
    return msgspec.json.encode(ShardLine(image=image, predictions=predictions)) + b"\n"


def decode_line(line: bytes) -> list[Prediction]:
    """The predictions that `encode_line` was given."""
    return _DECODER.decode(line).predictions


class Shards:
    """A folder of early predictions, created with the first one. Memory contains their locations only."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._locations: dict[int, _Location] = {}
        self._remaining: Counter[Path] = Counter()
        self._path: Path | None = None
        self._size = self._lines = 0

    def __contains__(self, image: int) -> bool:
        return image in self._locations

    def recover(self, plan: Plan, ids: Sequence[str]) -> None:
        """Use what an earlier attempt wrote, if it is part of the plan. ids: of all samples of the dataset.

        An incomplete line, or one for other samples than the plan has, is ignored.
        """
        for path in self._paths():
            start = 0
            with open(path, "rb") as file:
                for line in file:
                    self._recover_line(
                        _Location(path, start, len(line)), line, plan, ids=ids
                    )
                    start += len(line)
            self._remove_if_done(path)

    def add(self, image: int, line: bytes) -> None:
        """Write early predictions. StoreError if the disk refuses."""
        with write_errors(self.folder):
            if self._path is None or self._lines == MAX_LINES:
                self._begin_file()
            assert self._path is not None
            with open(self._path, "ab") as file:
                file.write(line)
        self._register(image, _Location(self._path, self._size, len(line)))
        self._size = self._size + len(line)
        self._lines = self._lines + 1

    def pop(self, image: int) -> list[Prediction]:
        """Return the predictions for an image and forget them."""
        path, start, length = self._locations.pop(image)
        with open(path, "rb") as file:
            file.seek(start)
            line = file.read(length)
        self._remaining[path] -= 1
        self._remove_if_done(path)
        return decode_line(line)

    def _paths(self) -> list[Path]:
        return (
            sorted(self.folder.glob(f"{'[0-9]' * 6}.jsonl"))
            if self.folder.is_dir()
            else []
        )

    def _recover_line(
        self, location: _Location, line: bytes, plan: Plan, *, ids: Sequence[str]
    ) -> None:
        try:
            found = _DECODER.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, MaskwiseError):
            return
        item = int(np.searchsorted(plan.images, found.image))
        if item == len(plan) or plan.images[item] != found.image or found.image in self:
            return
        if [prediction.sample for prediction in found.predictions] == [
            ids[row] for row in plan[item].rows
        ]:
            self._register(found.image, location)

    def _register(self, image: int, location: _Location) -> None:
        self._locations[image] = location
        self._remaining[location.path] += 1

    def _begin_file(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        last = max((int(path.stem) for path in self._paths()), default=0)
        full = self._path
        self._path = self.folder / f"{last + 1:06}.jsonl"
        self._path.touch(exist_ok=False)
        self._size = self._lines = 0
        if full is not None:
            self._remove_if_done(full)

    def _remove_if_done(self, path: Path) -> None:
        if not self._remaining[path] and path != self._path:
            path.unlink(missing_ok=True)
