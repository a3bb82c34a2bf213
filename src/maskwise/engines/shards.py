"""Shards: results made before it is their turn, kept on disk in case of a kill.

Parallel workers finish out of order; results are written in the order of the items.
Early results are written here when they arrive, one line per item, and read back when
the items before them are done. A resumed job uses the shards that it finds.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from maskwise.runs.files import write_errors

MAX_LINES = 1000
"""Items per file. A file is removed when all of its items are done, so this bounds what
stays on disk behind one slow item."""


class ShardLine(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one item, as a line of JSON. key: of the item (`Job.key`)."""

    key: int
    result: msgspec.Raw


class _Location(NamedTuple):
    path: Path
    start: int
    length: int


_DECODER = msgspec.json.Decoder(ShardLine)


class Shards:
    """A folder of early results, created with the first one.

    Memory contains their locations only.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._locations: dict[int, _Location] = {}
        self._remaining: Counter[Path] = Counter()
        self._path: Path | None = None
        self._size = 0
        self._lines = 0

    def __contains__(self, key: int) -> bool:
        return key in self._locations

    def recover(self, accept: Callable[[int, bytes], bool]) -> None:
        """Use what an earlier attempt wrote.

        accept: whether an encoded result is one of the item with this key, and the item
        is still to be done. An incomplete line, or one that is not accepted, is ignored.
        """
        for path in self._paths():
            start = 0
            with open(path, "rb") as file:
                for line in file:
                    location = _Location(path, start, len(line))
                    self._recover_line(location, line, accept)
                    start += len(line)
            self._remove_if_done(path)

    def add(self, key: int, result: bytes) -> None:
        """Write an early result, encoded as JSON. StoreError if the disk refuses."""
        shard_line = ShardLine(key=key, result=msgspec.Raw(result))
        line = msgspec.json.encode(shard_line) + b"\n"
        with write_errors(self.folder):
            if self._path is None or self._lines == MAX_LINES:
                self._begin_file()
            assert self._path is not None
            with open(self._path, "ab") as file:
                file.write(line)
        self._register(key, _Location(self._path, self._size, len(line)))
        self._size += len(line)
        self._lines += 1

    def pop(self, key: int) -> bytes:
        """Return the encoded result of an item and forget it. KeyError if unknown."""
        path, start, length = self._locations.pop(key)
        with open(path, "rb") as file:
            file.seek(start)
            line = file.read(length)
        self._remaining[path] -= 1
        self._remove_if_done(path)
        return bytes(_DECODER.decode(line).result)

    def _paths(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        six_digits = "[0-9]" * 6
        return sorted(self.folder.glob(f"{six_digits}.jsonl"))

    def _recover_line(
        self, location: _Location, line: bytes, accept: Callable[[int, bytes], bool]
    ) -> None:
        try:
            shard_line = _DECODER.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        if shard_line.key in self:
            return
        if accept(shard_line.key, bytes(shard_line.result)):
            self._register(shard_line.key, location)

    def _register(self, key: int, location: _Location) -> None:
        self._locations[key] = location
        self._remaining[location.path] += 1

    def _begin_file(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        last = max((int(path.stem) for path in self._paths()), default=0)
        full = self._path
        self._path = self.folder / f"{last + 1:06}.jsonl"
        self._path.touch(exist_ok=False)
        self._size = 0
        self._lines = 0
        if full is not None:
            self._remove_if_done(full)

    def _remove_if_done(self, path: Path) -> None:
        # The file that is being written stays, even if all of its items are done.
        if not self._remaining[path] and path != self._path:
            path.unlink(missing_ok=True)
