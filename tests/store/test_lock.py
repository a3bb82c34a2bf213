"""Why a lock is not to be had is said plainly."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from maskwise.errors import StoreError
from maskwise.store import lock
from maskwise.store.lock import locked

pytestmark = pytest.mark.skipif(lock.fcntl is None, reason="needs flock")


def test_a_folder_is_locked_once(tmp_path: Path) -> None:
    with (
        locked(tmp_path, "taken"),
        pytest.raises(StoreError, match=r"^taken$"),
        locked(tmp_path, "taken"),
    ):
        pass
    with locked(tmp_path, "taken"):
        pass


def test_a_disk_without_locks_is_not_taken_for_another_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(lock.fcntl, "flock", refuse)
    with (
        pytest.raises(StoreError, match=r"cannot be locked: .*No locks available"),
        locked(tmp_path, "taken"),
    ):
        pass


def test_a_folder_that_may_not_be_opened_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, flags: int) -> int:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(os, "open", refuse)
    with (
        pytest.raises(StoreError, match=r"cannot be locked: .*Permission denied"),
        locked(tmp_path, "taken"),
    ):
        pass
