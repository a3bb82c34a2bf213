"""Unpack zip and tar archives safely: plain files only, below one folder, in bounded number and size.

Refused are names that are absolute or contain `..`, links, devices, encrypted members and names that occur twice. The
size is counted while it is written; what the archive says about itself is not believed.
"""

import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from maskwise.errors import DownloadError, ImageError
from maskwise.images import check_relative

MAX_MEMBERS = 1_000_000
MAX_BYTES = 2**38
MAX_RATIO = 200
"""How much larger than its archive the content may be; images hardly shrink, annotations by a factor of ten."""

FREE_BYTES = 2**28
"""Content up to this size is not compared with the archive."""

BLOCK = 2**20

BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    OSError,
    ValueError,
)
"""What reading a damaged archive raises."""

SKIPPED = ("__MACOSX", ".DS_Store")
"""Members that some systems add."""


class _Member(NamedTuple):
    """A member of an archive: its name, why it is refused (None: a plain file), and how it is opened."""

    name: str
    fault: str | None
    open: Callable[[], IO[bytes]]


def is_archive(path: Path) -> bool:
    """Whether the name is that of an archive that can be unpacked."""
    return path.name.endswith((".zip", ".tar", ".tar.gz", ".tgz"))


def unpack(
    archive: Path, folder: Path, progress: Callable[[int], object] = lambda done: None
) -> int:
    """Unpack an archive into a folder; returns the number of files. progress(bytes) is called while writing."""
    try:
        if archive.name.endswith(".zip"):
            with zipfile.ZipFile(archive) as opened:
                return _write_members(_zip_members(opened), archive, folder, progress)
        with tarfile.open(archive, "r:*") as tar:
            return _write_members(_tar_members(tar), archive, folder, progress)
    except BROKEN as error:
        raise DownloadError(f"{archive} cannot be unpacked: {error}") from None


def _zip_members(archive: zipfile.ZipFile) -> Iterator[_Member]:
    for info in archive.infolist():
        kind = stat.S_IFMT(info.external_attr >> 16)
        if info.filename.endswith("/"):
            continue
        fault = None
        if kind not in (0, stat.S_IFREG):
            fault = "is a link or a special file"
        elif info.flag_bits & 1:
            fault = "is encrypted"
        yield _Member(info.filename, fault, lambda info=info: archive.open(info))  # type: ignore[misc]


def _tar_members(archive: tarfile.TarFile) -> Iterator[_Member]:
    for info in archive:
        if info.isdir():
            continue
        fault = None if info.isreg() else "is a link or a special file"
        yield _Member(info.name, fault, lambda info=info: _open_tar(archive, info))  # type: ignore[misc]


def _open_tar(archive: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    file = archive.extractfile(info)
    assert file is not None
    return file


def _write_members(
    members: Iterator[_Member],
    archive: Path,
    folder: Path,
    progress: Callable[[int], object],
) -> int:
    packed = archive.stat().st_size
    limit = min(MAX_BYTES, max(FREE_BYTES, packed * MAX_RATIO))
    seen: set[str] = set()
    done = 0
    for member in members:
        if any(part in SKIPPED for part in member.name.split("/")):
            continue
        _check(member, archive, seen)
        target = folder / member.name
        target.parent.mkdir(parents=True, exist_ok=True)
        with member.open() as source, open(target, "xb") as file:
            while block := source.read(BLOCK):
                done += len(block)
                if done > limit:
                    raise DownloadError(
                        f"{archive} holds more than {limit} bytes, which is not plausible"
                    )
                if shutil.disk_usage(folder).free < len(block):
                    raise DownloadError(
                        f"{folder}: the disk is full after {done} bytes of {archive.name}"
                    )
                file.write(block)
                progress(done)
    return len(seen)


def _check(member: _Member, archive: Path, seen: set[str]) -> None:
    """Raise DownloadError for a member that is not a plain file at a new name below the folder."""
    fault = member.fault
    try:
        check_relative(member.name)
    except ImageError as error:
        fault = str(error)
    if fault is None and member.name in seen:
        fault = "occurs twice"
    seen.add(member.name)
    if len(seen) > MAX_MEMBERS:
        fault = f"is one of more than {MAX_MEMBERS} files"
    if fault is not None:
        raise DownloadError(f"{archive}: member {member.name!r} is refused: {fault}")
