"""Get a download: take what is here, fetch and verify the rest, unpack it and convert it to a dataset folder."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from maskwise.benchmarks import find_reader
from maskwise.downloads.fetch import fetch
from maskwise.downloads.hub import read_hub_dataset
from maskwise.downloads.local_files import (
    check_file,
    data_folder,
    explain,
    explain_offline,
    matches,
    trust,
    weights_folder,
)
from maskwise.downloads.table import GROUPS, Download, HostedFile, find_download
from maskwise.downloads.unpack import is_archive, unpack
from maskwise.errors import DownloadError
from maskwise.formats import ReadSummary, convert_annotations
from maskwise.store.atomic import PARTIAL, atomic_write
from maskwise.store.folder import file_facts
from maskwise.store.lock import locked

Progress = Callable[[str, int, int | None], object]
"""Called with what is being done, how much of it is done, and the whole, if it is known."""

Exporter = Callable[[str, Path, Path], None]
"""Writes the file of a name, from a checkpoint, to a path."""


class Consent(msgspec.Struct, frozen=True, kw_only=True):
    """What the user agreed to. `sha256`: the hash of a file that the table does not know."""

    license: bool = False
    unverified: bool = False
    sha256: str | None = None


def get_weights(
    download: Download,
    *,
    out: Path | None = None,
    source: Path | None = None,
    consent: Consent = Consent(),
    progress: Progress = lambda what, done, total: None,
    pause: Callable[[float], object] = time.sleep,
    export: Exporter | None = None,
) -> Path:
    """The file of weights in the weights folder; it is downloaded, or copied from `source`, if it is not there.

    out: also copy it to this file. source: the file, or a folder that holds it. export: makes a file whose authors
    publish the checkpoint only; the checkpoint is downloaded and verified, and the file is trusted from then on.
    """
    check_consent(download, consent)
    path = weights_folder() / download.files[0].file
    if source is not None:
        _take_all(source, weights_folder(), download, consent)
    if download.exported_from is not None and export is not None and not path.exists():
        checkpoint = get_weights(
            find_download(download.exported_from),
            consent=consent,
            progress=progress,
            pause=pause,
        )
        progress(f"exporting {path.name}", 0, None)
        export(path.name, checkpoint, path)
        trust(path, file_facts(path).sha256)
    _ensure(
        path,
        download,
        download.files[0],
        consent=consent,
        progress=progress,
        pause=pause,
    )
    if out is None:
        return path
    _copy(path, out)
    return out


def get_group(
    name: str,
    *,
    source: Path | None = None,
    consent: Consent = Consent(),
    progress: Progress = lambda what, done, total: None,
    pause: Callable[[float], object] = time.sleep,
    export: Exporter | None = None,
) -> list[Path]:
    """The files of weights of a group, as `get_weights` gets each. source: a folder with some of them, or with the
    checkpoints that they are made from.
    """
    paths = []
    for member in GROUPS[name]:
        download = find_download(member)
        paths.append(
            get_weights(
                download,
                source=_given(source, download, consent),
                consent=consent,
                progress=progress,
                pause=pause,
                export=export,
            )
        )
    return paths


def _given(source: Path | None, download: Download, consent: Consent) -> Path | None:
    """The folder `source` if it has the file of a download; its checkpoint is taken at once."""
    if source is None:
        return None
    if not source.is_dir():
        raise DownloadError(
            f"--from of several files needs a folder that has them, found {source}"
        )
    if download.exported_from is not None:
        checkpoint = find_download(download.exported_from)
        if (source / checkpoint.files[0].file).is_file():
            _take_all(source, weights_folder(), checkpoint, consent)
    return source if (source / download.files[0].file).is_file() else None


def get_dataset(
    download: Download,
    *,
    out: Path | None = None,
    source: Path | None = None,
    images: Path | None = None,
    with_images: bool = True,
    embed: bool = False,
    overwrite: bool = False,
    consent: Consent = Consent(),
    progress: Progress = lambda what, done, total: None,
    pause: Callable[[float], object] = time.sleep,
) -> ReadSummary:
    """Download the files that are not in the data folder, unpack them, and convert them to the dataset folder `out`.

    out: `NAME` in the data folder if None, where commands find it by name. source: a file of the download, or a folder
    that holds some of them, to copy instead of downloading. images: the folder of images that are not part of the
    download.
    """
    check_consent(download, consent)
    assert download.reader is not None
    if download.hub is not None and source is None:
        return _stream(
            download,
            out or data_folder() / download.name,
            overwrite=overwrite,
            consent=consent,
            progress=progress,
        )
    raw = data_folder() / "raw" / download.name
    if source is not None:
        if raw.exists():
            raise DownloadError(
                f"{raw} has the files of {download.name} already; remove it to take them from {source}"
            )
        _take_all(source, data_folder(), download, consent)
    if not raw.is_dir():
        _unpack_all(download, raw, consent=consent, progress=progress, pause=pause)
    return convert_annotations(
        find_reader(download.reader),
        raw,
        out or data_folder() / download.name,
        split=download.split,
        images=images,
        with_images=with_images,
        embed=embed,
        overwrite=overwrite,
        progress=lambda done, total: progress(
            f"converting {download.name}", done, total
        ),
    )


def _stream(
    download: Download,
    out: Path,
    *,
    overwrite: bool,
    consent: Consent,
    progress: Progress,
) -> ReadSummary:
    """Convert a dataset of the hub."""
    if not consent.unverified:
        raise DownloadError(
            f"no sha256 of the files of hf:{download.hub} is known, so they cannot be verified. Accept whatever the "
            "hub sends with --accept-unverified"
        )
    return read_hub_dataset(
        f"hf:{download.hub}",
        out,
        split=download.split,
        reader=download.reader,
        overwrite=overwrite,
        progress=lambda done, total: progress(
            f"converting {download.name}", done, total
        ),
    )


def check_consent(download: Download, consent: Consent) -> None:
    """Refuse to go on before the user accepted a license that restricts use or is not known."""
    if not (download.permissive or consent.license):
        raise DownloadError(
            f"{download.name} is not under a permissive license: {download.license}. Read {download.page}, and if "
            f"you agree: maskwise get {download.name} --accept-license"
        )


def _unpack_all(
    download: Download,
    raw: Path,
    *,
    consent: Consent,
    progress: Progress,
    pause: Callable[[float], object],
) -> None:
    """Fetch all files and unpack them into the folder `raw`, which exists when all of it is there."""
    if not download.files:
        raise DownloadError(
            f"{download.name} has to be fetched by hand.\n{explain(download)}"
        )
    paths = [data_folder() / file.file for file in download.files]
    for path, file in zip(paths, download.files):
        _ensure(path, download, file, consent=consent, progress=progress, pause=pause)
    partial = raw.with_name(f".{raw.name}{PARTIAL}")
    partial.mkdir(parents=True, exist_ok=True)
    with locked(partial, f"{raw} is being written by another process"):
        for entry in partial.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        for path in paths:
            if is_archive(path):
                unpack(path, partial, _unpacking_progress(path, progress))
            else:
                _copy(path, partial / path.name)
        partial.rename(raw)


def _unpacking_progress(path: Path, progress: Progress) -> Callable[[int], None]:
    def show(done: int) -> None:
        progress(f"unpacking {path.name}", done, None)

    return show


def _ensure(
    path: Path,
    download: Download,
    file: HostedFile,
    *,
    consent: Consent,
    progress: Progress,
    pause: Callable[[float], object],
) -> None:
    """Make sure that a verified file is at `path`."""
    if path.is_file():
        if consent.unverified and not file.versions:
            trust(path, file_facts(path).sha256)
        check_file(path, download, file)
        return
    if not file.urls:
        problem = "has to be fetched by hand"
        if download.exported_from is not None:
            problem = f"has to be exported from {download.exported_from}"
        raise DownloadError(f"{file.file} {problem}.\n{explain(download)}")
    given = (consent.sha256,) if consent.sha256 else ()
    expected = tuple(version.sha256 for version in file.versions) or given
    if not expected and not consent.unverified:
        raise DownloadError(
            f"the sha256 of {file.file} is not known, so it cannot be verified. Give it with --sha256, or accept "
            "whatever the server sends with --accept-unverified"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        sha256 = fetch(
            file.urls,
            path,
            bytes=file.bytes,
            sha256=expected,
            progress=lambda done, total: progress(
                f"downloading {file.file}", done, total
            ),
            pause=pause,
        )
    except DownloadError as error:
        raise DownloadError(f"{error}\n{explain_offline(download, file)}") from None
    except OSError as error:
        raise DownloadError(f"cannot write {path}: {error.strerror or error}") from None
    if all(version.sha256 != sha256 for version in file.versions):
        trust(path, sha256)


def _take_all(source: Path, folder: Path, download: Download, consent: Consent) -> None:
    """Copy the files of a download that the user has to their places in `folder`."""
    for path, file in _given_files(source, download):
        _take(path, folder / file.file, file, consent)


def _given_files(source: Path, download: Download) -> list[tuple[Path, HostedFile]]:
    """The files of a download that the user has. source: one of them, or a folder with files of the published names."""
    if not source.exists():
        raise DownloadError(f"{source} does not exist")
    if not download.files:
        raise DownloadError(
            f"{download.name} has no files that --from could take.\n{explain(download)}"
        )
    if source.is_file() and len(download.files) == 1:
        return [(source, download.files[0])]
    known = {file.file: file for file in download.files}
    places = [source] if source.is_file() else [source / name for name in known]
    given_files = [
        (path, known[path.name])
        for path in places
        if path.is_file() and path.name in known
    ]
    if not given_files:
        raise DownloadError(
            f"expected {' or '.join(known)}, or a folder with such files, found {source}"
        )
    return given_files


def _take(source: Path, path: Path, file: HostedFile, consent: Consent) -> None:
    """Copy a file that the user has to its place; one that the table does not know only if the user trusts it."""
    facts = file_facts(source)
    known = any(
        matches(version, facts.bytes, facts.sha256) for version in file.versions
    )
    if not known and consent.sha256 != facts.sha256 and not consent.unverified:
        raise DownloadError(
            f"{source} has {facts.bytes} bytes and sha256 {facts.sha256}, which is no known version of {file.file}. "
            f"If you trust it, repeat with --sha256 {facts.sha256} or --accept-unverified"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    if not (path.exists() and path.samefile(source)):
        _copy(source, path)
    if not known:
        trust(path, facts.sha256)


def _copy(source: Path, target: Path) -> None:
    try:
        with open(source, "rb") as opened, atomic_write(target) as file:
            shutil.copyfileobj(opened, file)
    except OSError as error:
        raise DownloadError(
            f"cannot copy {source} to {target}: {error.strerror or error}"
        ) from None
