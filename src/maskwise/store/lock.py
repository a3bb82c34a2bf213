"""One writer at a time, by flock. The system releases a lock when the process that holds it ends.

The system keeps a lock while any process has its file open. A process that is forked while a lock is held (by
multiprocessing, for example) therefore drops it at once: otherwise it would keep the lock after its owner was killed.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from maskwise.errors import StoreError

try:
    import fcntl
except ImportError:  # Windows has no flock: two writers are not detected there
    fcntl = None  # type: ignore[assignment]


_LOCKED: set[int] = set()
"""Descriptors of this process that hold a lock."""


def take_lock(
    descriptor: int, refusal: str, name: str | os.PathLike[str] = "a file"
) -> None:
    """Lock an open file or folder until it is closed; raises StoreError(refusal) if it is locked already."""
    if fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(refusal) from None
        except OSError as error:
            raise StoreError(f"{name} cannot be locked: {error}") from error
        _LOCKED.add(descriptor)


def close_locked(descriptor: int) -> None:
    """Close a file or folder, and so release its lock."""
    _LOCKED.discard(descriptor)
    os.close(descriptor)


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
        if not folder.exists() or not os.path.samestat(
            os.fstat(descriptor), folder.stat()
        ):
            raise StoreError(refusal)
        yield
    finally:
        close_locked(descriptor)


def _drop_locks_in_fork() -> None:
    """Replace the locked files by /dev/null, so that their numbers stay valid in the forked process."""
    if _LOCKED:
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in _LOCKED:
            os.dup2(nothing, descriptor, inheritable=False)
        os.close(nothing)
        _LOCKED.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drop_locks_in_fork)
