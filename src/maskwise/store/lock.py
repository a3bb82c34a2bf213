"""One writer at a time. A lock ends with the process that holds it, however that ends."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from maskwise.errors import StoreError

try:
    import fcntl
except ImportError:  # Windows has no flock: two writers are then not told apart
    fcntl = None  # type: ignore[assignment]


def take_lock(descriptor: int, refusal: str, name: str | os.PathLike[str] = "a file") -> None:
    """Lock an open file or folder until it is closed; raises StoreError(refusal) where another holds it."""
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(refusal) from None
        except OSError as error:
            raise StoreError(f"{name} cannot be locked: {error}") from error


@contextlib.contextmanager
def locked(folder: Path, refusal: str) -> Iterator[None]:
    """Hold the lock of a folder."""
    if fcntl is None:
        yield
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise StoreError(f"{folder} cannot be locked: {error}") from error
    try:
        take_lock(descriptor, refusal, folder)
        # Between opening and locking, its last holder may have moved the folder away.
        if not folder.exists() or not os.path.samestat(os.fstat(descriptor), folder.stat()):
            raise StoreError(refusal)
        yield
    finally:
        os.close(descriptor)
