"""Write a file so that its path holds the old content or the new one, never a part, even after a power failure."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

PARTIAL = ".partial"
"""Suffix of a file that is being written. One left behind by a kill is overwritten by the next attempt."""


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A binary file beside `path` that takes its place when the block ends without an error.

    Content and folder entry are flushed to the disk (fsync). If the block raises, `path` is left as it was.
    """
    target = Path(path)
    partial = target.with_name(target.name + PARTIAL)
    try:
        with open(partial, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to the disk, where the system can (POSIX)."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
