"""The files of a run folder: names, JSON reading and writing, the folder's lock, hashes."""

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec

from maskwise.errors import StoreError
from maskwise.runs.schema import RUN_FORMAT, RunFile
from maskwise.store.atomic import PARTIAL, atomic_write
from maskwise.store.lock import locked

RUN = "run.json"
SCORES = "scores.json"
PREDICTIONS = "predictions.jsonl"
SCORE_TABLE = "scores.arrow"
METRIC_TABLE = "metrics.arrow"
LADDER = "ladder.json"
REPORT = "report.html"
ERRORS = "errors.txt"
PROBES = "probes.json"
"""The files of a run folder; docs/reference/runs.md describes them."""

MAX_JSON_BYTES = 2**27
"""The largest run.json or scores.json that is read: 128 MB, so that a wrong file does not fill the memory."""


class HasFormat(Protocol):
    """A file that states its format."""

    @property
    def format(self) -> str:
        """Name and version."""


T = TypeVar("T", bound=HasFormat)


def read_json(
    path: Path, kind: type[T], format: str, remedy: str = "score the run again"
) -> T:
    """A JSON file of a run; StoreError, with the remedy, if it is too large, malformed or of another format."""
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise StoreError(
                f"{path} has {path.stat().st_size} bytes; a run has at most {MAX_JSON_BYTES}"
            )
        text = path.read_bytes()
        # The version comes first: fields of another version would only give a confusing message.
        stated = msgspec.json.decode(text, type=_Format).format
        if stated != format:
            raise StoreError(
                f"{path} has format {stated!r}, expected {format!r}; {remedy}"
            )
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, OSError) as error:
        raise StoreError(f"{path} cannot be read: {error}; {remedy}") from None


def write_json(path: Path, content: msgspec.Struct) -> None:
    """Write a file of a run, completely or not at all."""
    with atomic_write(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")


def read_run_file(folder: Path) -> RunFile | None:
    """The run.json of a folder in any state; None if there is none yet."""
    return (
        read_json(folder / RUN, RunFile, RUN_FORMAT)
        if (folder / RUN).exists()
        else None
    )


def list_foreign_files(folder: Path) -> list[str]:
    """The names of what a folder without run.json contains, except files whose writing was interrupted."""
    return sorted(
        entry.name for entry in folder.iterdir() if not entry.name.endswith(PARTIAL)
    )


@contextlib.contextmanager
def lock_run(folder: Path) -> Iterator[None]:
    """Create a run folder if necessary and keep other processes from writing it. An empty one is removed at the end."""
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"{folder} is a file; expected a folder for the run")
    with write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(
        folder,
        f"{folder} is being written by another process; wait for it, or choose another folder",
    ):
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                folder.rmdir()


@contextlib.contextmanager
def write_errors(folder: Path) -> Iterator[None]:
    """Turn an OSError into a StoreError that says that the folder's content is intact."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be written: {error}. Its content is intact: repeat the command when it can be"
        ) from error


def hash_path(path: Path) -> str:
    """SHA-256 of a file, or of the sorted names and hashes of a folder's files."""
    if not path.is_dir():
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    whole = hashlib.sha256()
    for member in sorted(item for item in path.rglob("*") if item.is_file()):
        whole.update(
            f"{member.relative_to(path).as_posix()} {hash_path(member)}\n".encode()
        )
    return whole.hexdigest()


class _Format(msgspec.Struct):
    format: str
