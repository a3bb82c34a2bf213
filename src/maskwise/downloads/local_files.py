"""Files that are already here: the folders they are kept in, and their verification.

    MASKWISE_WEIGHTS    folder of weights; default ~/.cache/maskwise/weights
    MASKWISE_DATA       folder of downloaded datasets; default ~/.cache/maskwise/data

A file that the user decided to trust has a file `NAME.sha256` beside it, in the format of `sha256sum`.
"""

import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from maskwise.downloads.table import Download, FileVersion, HostedFile, find_download
from maskwise.errors import DownloadError
from maskwise.store.atomic import atomic_write
from maskwise.store.folder import file_facts

TRUSTED = ".sha256"
"""Suffix of the file that holds the sha256 of a file the user trusts."""


def weights_folder() -> Path:
    """The folder of weights."""
    return _folder("MASKWISE_WEIGHTS", "weights")


def data_folder() -> Path:
    """The folder of downloaded datasets."""
    return _folder("MASKWISE_DATA", "data")


def _folder(variable: str, name: str) -> Path:
    given = os.environ.get(variable)
    if given:
        return Path(given).expanduser()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "maskwise" / name


def find_weights(name: str) -> Path:
    """The path of a file of weights, verified by its sha256.

    DownloadError says exactly what to run if the file is missing or is another one.
    """
    download = find_download(name)
    if download.kind != "weights":
        raise DownloadError(f"{name} is a dataset, not a file of weights")
    path = weights_folder() / download.files[0].file
    if not path.is_file():
        raise DownloadError(
            f"the weights {name} are not in {path.parent}.\n{explain(download)}"
        )
    check_file(path, download, download.files[0])
    return path


def find_all_weights(names: Sequence[str]) -> list[Path]:
    """The paths of several files of weights, verified. DownloadError names all that are missing and what to run."""
    folder = weights_folder()
    missing = []
    for name in names:
        download = find_download(name)
        if not (folder / download.files[0].file).is_file():
            missing.append(download)
    # `find_weights` speaks of a single one.
    if len(missing) > 1:
        listed = ", ".join(download.name for download in missing)
        steps = [f"{download.name}: {explain(download)}" for download in missing]
        text = "\n\n".join(steps)
        raise DownloadError(f"the weights {listed} are not in {folder}.\n\n{text}")
    return [find_weights(name) for name in names]


def check_file(path: Path, download: Download, file: HostedFile) -> None:
    """Raise DownloadError unless the file is a known version, or one that the user trusts."""
    facts = path.stat()
    sha256 = _hash(path, facts.st_size, facts.st_mtime_ns)
    is_known = any(matches(version, facts.st_size, sha256) for version in file.versions)
    if not is_known and sha256 != trusted(path):
        raise DownloadError(
            f"{path} is not the expected file: it has {facts.st_size} bytes and sha256 {sha256}; expected "
            f"{describe_versions(file)}. Remove it, or, if you made it yourself, trust it: "
            f"maskwise get {download.name} --from {path} --accept-unverified"
        )


def matches(version: FileVersion, size: int, sha256: str) -> bool:
    """Whether a file of this size and hash is the given version."""
    return sha256 == version.sha256 and version.bytes in (None, size)


def describe_versions(file: HostedFile) -> str:
    """Sizes and hashes of the accepted versions, for messages."""
    descriptions = []
    for version in file.versions:
        size = "an unknown number of" if version.bytes is None else version.bytes
        descriptions.append(f"{size} bytes and sha256 {version.sha256}")
    return " or ".join(descriptions) or "a file with a given sha256"


def trusted(path: Path) -> str | None:
    """The sha256 that the user trusts for this file, if any."""
    record = path.with_name(path.name + TRUSTED)
    try:
        return record.read_text(encoding="utf-8")[:64] if record.is_file() else None
    except (OSError, UnicodeDecodeError):
        return None


def trust(path: Path, sha256: str) -> None:
    """Record that the user trusts this file."""
    with atomic_write(path.with_name(path.name + TRUSTED)) as file:
        file.write(f"{sha256}  {path.name}\n".encode())


@lru_cache(maxsize=64)
def _hash(path: Path, size: int, changed: int) -> str:
    """The sha256 of a file, computed once for each size and time of change."""
    return file_facts(path).sha256


def explain(download: Download) -> str:
    """What to run or to fetch from where, where to put it, and the license: for messages."""
    lines = [f"{download.title}. License: {download.license}. Page: {download.page}"]
    if not download.by_hand:
        lines.append(f"Run: maskwise get {download.name}")
    lines += [download.instructions] if download.instructions else []
    if download.images_from:
        lines.append(
            f"Images are needed too: {download.images_from}; give their folder with --images."
        )
    lines += [_explain_file(download, file) for file in download.files]
    if download.kind == "dataset" and download.by_hand:
        where = data_folder() / "raw" / download.name
        lines.append(
            f"Put the files in {where}, then run: maskwise get {download.name}"
        )
    return "\n".join(lines)


def explain_offline(download: Download, file: HostedFile) -> str:
    """What to do with another machine after a file could not be downloaded here: for messages."""
    folder = weights_folder() if download.kind == "weights" else data_folder()
    lines = [
        f"Without a connection: on a machine that has one, fetch {' or '.join(file.urls)} and put it at "
        f"{folder / file.file} on this one, or give it with: maskwise get {download.name} --from FILE. "
        f"Expected are {describe_versions(file)}."
    ]
    lines += [download.instructions] if download.instructions else []
    return "\n".join(lines)


def _explain_file(download: Download, file: HostedFile) -> str:
    folder = weights_folder() if download.kind == "weights" else data_folder()
    by_hand = (
        f"By hand: fetch {' or '.join(file.urls)} and put it at"
        if file.urls
        else "Its place is"
    )
    return f"{by_hand} {folder / file.file}; expected are {describe_versions(file)}."
