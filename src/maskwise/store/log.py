"""Append-only logs of records, one JSON object per line, that survive a kill at any byte."""

import os
import threading
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from maskwise.errors import MaskError, RecordError, StoreError
from maskwise.store.lock import close_locked, take_lock

T = TypeVar("T")


class Log(Generic[T]):
    """Records of one type, one JSON object per line, only ever appended.

    When `append` returns, the line was handed to the operating system (and flushed to the disk, if `sync`). A kill may
    truncate the last line: reading drops it with a warning and the next writer cuts it off. No other line can be lost.
    One process writes at a time, any number may read. `type` is a record whose JSON form is an object.
    """

    def __init__(
        self, path: str | os.PathLike[str], type: type[T], *, sync: bool = False
    ) -> None:
        self.path = Path(path)
        self.sync = sync
        self._decoder = msgspec.json.Decoder(type)
        self._encoder = msgspec.json.Encoder()
        self._descriptor: int | None = None
        self._end = 0
        self._mutex = threading.Lock()

    def __enter__(self) -> "Log[T]":
        with self._mutex:
            if self._descriptor is None:
                self._open()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def append(self, record: T) -> None:
        """Write one line. Opens the log if it is closed; it stays open, and locked, until `close`."""
        self.extend((record,))

    def extend(self, records: Iterable[T]) -> None:
        """Write one line per record: all of them or, if the disk fails, none. Otherwise like `append`."""
        line = b"".join(self._encoder.encode(record) + b"\n" for record in records)
        with self._mutex:
            if self._descriptor is None:
                self._open()
            assert self._descriptor is not None
            try:
                self._write(self._descriptor, line)
            except OSError as error:
                # A full disk may accept half a line. Cut it off, so that the next line does not continue it.
                os.ftruncate(self._descriptor, self._end)
                raise StoreError(f"{self.path}: could not append: {error}") from error
            self._end += len(line)

    def cut(self, end: int) -> None:
        """Keep only the first `end` bytes, which must end with a line."""
        with self._mutex:
            if self._descriptor is None:
                self._open()
            assert self._descriptor is not None
            os.ftruncate(self._descriptor, end)
            self._end = end

    def close(self) -> None:
        """Release the lock. A log that was not opened for writing has nothing to close."""
        with self._mutex:
            if self._descriptor is not None:
                close_locked(self._descriptor)
                self._descriptor = None

    def read(self) -> list[T]:
        """All records; an empty list if the file does not exist."""
        return list(self)

    def __iter__(self) -> Iterator[T]:
        if not self.path.exists():
            return
        with open(self.path, "rb") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield self._decoder.decode(line)
                except (
                    msgspec.DecodeError,
                    UnicodeDecodeError,
                    RecursionError,
                    RecordError,
                    MaskError,
                ) as error:
                    if not line.endswith(b"\n"):
                        warnings.warn(
                            f"{self.path}: dropped the truncated last line (line {number})",
                            stacklevel=2,
                        )
                        return
                    raise StoreError(f"{self.path}, line {number}: {error}") from error

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self.path, flags, 0o666)
        try:
            take_lock(descriptor, f"{self.path} is being written by another process")
            self._end = self._repair(descriptor)
        except BaseException:
            close_locked(descriptor)
            raise
        self._descriptor = descriptor

    def _repair(self, descriptor: int) -> int:
        """Make the file end with a complete line and return its length. A missing last newline is added."""
        size = os.fstat(descriptor).st_size
        start, tail = _last_line(descriptor, size)
        if not tail:
            return size
        try:
            self._decoder.decode(tail)
        except Exception:
            warnings.warn(
                f"{self.path}: cut off the truncated last line ({len(tail)} bytes)",
                stacklevel=4,
            )
            os.ftruncate(descriptor, start)
            return start
        self._write(descriptor, b"\n")
        return size + 1

    def _write(self, descriptor: int, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        if self.sync:
            os.fsync(descriptor)


def _last_line(descriptor: int, size: int) -> tuple[int, bytes]:
    """The position after the last newline, and the bytes that follow it."""
    tail = b""
    position = size
    while position and b"\n" not in tail:
        step = min(position, 2**16)
        position -= step
        os.lseek(descriptor, position, os.SEEK_SET)
        tail = os.read(descriptor, step) + tail
    cut = tail.rfind(b"\n") + 1
    return position + cut, tail[cut:]
