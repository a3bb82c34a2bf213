"""One writer at a time, by flock. The system releases a lock when the process that holds it ends."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from maskwise.errors import StoreError

try:
    import fcntl
except ImportError:  # Windows has no flock: two writers are not detected there
    fcntl = None  # type: ignore[assignment]


def take_lock(descriptor: int, refusal: str, name: str | os.PathLike[str] = "a file") -> None:
    """Lock an open file or folder until it is closed; raises StoreError(refusal) if it is locked already."""
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(refusal) from None
        except OSError as error:
            raise StoreError(f"{name} cannot be locked: {error}") from error


@contextlib.contextmanager
def locked(folder: Path, refusal: str) -> Iterator[None]:
    """Hold the lock of a folder during the block."""
    if fcntl is None:
        yield
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise StoreError(f"{folder} cannot be locked: {error}") from error
    try:
        take_lock(descriptor, refusal, folder)
        # Between opening and locking, the previous holder may have moved the folder away.
        if not folder.exists() or not os.path.samestat(os.fstat(descriptor), folder.stat()):
            raise StoreError(refusal)
        yield
    finally:
        os.close(descriptor)
