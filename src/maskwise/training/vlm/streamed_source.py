"""A source of training samples that is read from the Hugging Face hub while training goes on."""

import shutil
import weakref
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from threading import Lock

import pyarrow as pa

from maskwise.downloads.hub import PREFIX, convert_rows, parse_spec, stream_rows
from maskwise.errors import ConfigError
from maskwise.models.vlm.batch import ImageQuestions
from maskwise.store import Dataset
from maskwise.training.vlm.dataset_sources import DatasetSource, ItemSize

ROWS_AT_ONCE = 128
"""Rows of a stream that are at hand at a time: with photographs about 25 MB."""

KEPT_WINDOWS = 3
"""Windows that are kept: batches that are made ahead, and those of other processes, are near each other."""


class StreamedSource:
    """A split of a dataset of the Hugging Face hub that is read while training goes on, and not stored.

    Windows of rows are read in order and converted as `maskwise read hf:OWNER/NAME` does it. A window before the last
    one begins the stream again, as each epoch and each continued run does. rows: of the split.
    """

    window: int | None = ROWS_AT_ONCE

    def __init__(self, stream: str, split: str, rows: int) -> None:
        self.name = parse_spec(stream)
        self.split = split
        self.rows = rows
        self._lock = Lock()
        self._batches: Iterator[pa.Table] = iter(())
        # The window that `_batches` gives next.
        self._next = -1
        self._windows: OrderedDict[int, DatasetSource] = OrderedDict()
        # The first window now: a stream that cannot be read is an error before training.
        first = self._open(0)
        self.samples = round(rows * first.samples / len(first))

    def __len__(self) -> int:
        return self.rows

    def size_of(self, index: int) -> ItemSize:
        """That of the first row: others are not known before they are read."""
        return self._open(0).size_of(0)

    def __getitem__(self, index: int) -> ImageQuestions:
        number, place = divmod(index, ROWS_AT_ONCE)
        with self._lock:
            source = self._open(number)
        # Rows that the reader skips, and those of an image that had one already, leave fewer items.
        return source[place % len(source)]

    def _open(self, number: int) -> DatasetSource:
        if number in self._windows:
            return self._windows[number]
        if self._next > number or self._next < 0:
            self._batches = stream_rows(
                self.name,
                self.split,
                first=number * ROWS_AT_ONCE,
                at_once=ROWS_AT_ONCE,
            )
            self._next = number
        rows = None
        while self._next <= number:
            rows = next(self._batches, None)
            self._next += 1
        if rows is None:
            self._next = -1
            raise ConfigError(
                f"{PREFIX}{self.name}: the split {self.split} has no row {number * ROWS_AT_ONCE:,}; expected_images "
                f"says {self.rows:,}"
            )
        window = _to_source(self.name, self.split, rows)
        self._windows[number] = window
        if len(self._windows) > KEPT_WINDOWS:
            self._windows.popitem(last=False)
        return window


def _to_source(name: str, split: str, rows: pa.Table) -> DatasetSource:
    """Some rows of a stream as a dataset folder, which is removed with the source."""
    if "image" not in rows.column_names:
        raise ConfigError(
            f"{PREFIX}{name}: the rows have no column `image`; convert the dataset with `maskwise read` and its "
            "images, and name the folder as `dataset`"
        )
    folder = Path(mkdtemp(prefix="maskwise-stream-"))
    try:
        convert_rows(name, split, iter([rows]), folder / "rows")
        source = DatasetSource(Dataset.open(folder / "rows"))
        if not len(source):
            raise ConfigError(f"{PREFIX}{name}: {len(rows)} rows without a question")
    except BaseException:
        shutil.rmtree(folder)
        raise
    # Other threads may still read items of a window that is no longer kept.
    weakref.finalize(source, shutil.rmtree, folder, ignore_errors=True)
    return source
