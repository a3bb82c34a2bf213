"""Archives are unpacked below one folder; hostile ones are refused."""

import contextlib
import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwise.downloads import unpack as module
from maskwise.downloads.unpack import unpack
from maskwise.errors import DownloadError


def make_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return path


def make_tar(
    path: Path,
    members: dict[str, bytes],
    change: Callable[[tarfile.TarInfo], None] = id,
) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            change(info)
            archive.addfile(info, io.BytesIO(content))
    return path


@pytest.mark.parametrize("make", [make_zip, make_tar])
def test_files_come_out_below_the_folder(
    tmp_path: Path, make: Callable[..., Path]
) -> None:
    archive = make(
        tmp_path / ("a.zip" if make is make_zip else "a.tar.gz"),
        {"a/b.txt": b"1", "c": b"22"},
    )
    assert unpack(archive, tmp_path / "out") == 2
    assert (tmp_path / "out" / "a" / "b.txt").read_bytes() == b"1"
    assert (tmp_path / "out" / "c").read_bytes() == b"22"


@pytest.mark.parametrize(
    "name", ["../a", "/a", "a/../../b", "a\\b", "C:/a", "a/..", ""]
)
@pytest.mark.parametrize("make", [make_zip, make_tar])
def test_names_that_leave_the_folder_are_refused(
    tmp_path: Path, make: Callable[..., Path], name: str
) -> None:
    archive = make(
        tmp_path / ("a.zip" if make is make_zip else "a.tar.gz"), {name: b"1"}
    )
    with pytest.raises(DownloadError, match="is refused"):
        unpack(archive, tmp_path / "out")
    assert not [
        path for path in tmp_path.rglob("*") if path.is_file() and path != archive
    ]


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE]
)
def test_links_and_devices_in_tar_are_refused(tmp_path: Path, kind: bytes) -> None:
    def change(info: tarfile.TarInfo) -> None:
        info.type = kind
        info.linkname = "/etc/passwd"
        info.size = 0

    archive = make_tar(tmp_path / "a.tar.gz", {"link": b""}, change)
    with pytest.raises(DownloadError, match="a link or a special file"):
        unpack(archive, tmp_path / "out")


def test_links_in_zip_are_refused(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(DownloadError, match="a link or a special file"):
        unpack(tmp_path / "a.zip", tmp_path / "out")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a", "1")
        archive.writestr("a", "2")
    with pytest.raises(DownloadError, match="occurs twice"):
        unpack(tmp_path / "a.zip", tmp_path / "out")


def test_a_file_that_is_also_a_folder_is_refused(tmp_path: Path) -> None:
    archive = make_zip(tmp_path / "a.zip", {"a": b"1", "a/b": b"2"})
    with pytest.raises(DownloadError, match="cannot be unpacked"):
        unpack(archive, tmp_path / "out")


def test_a_bomb_is_stopped_while_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FREE_BYTES", 1000)
    archive = make_zip(tmp_path / "a.zip", {"zeros": bytes(2**24)})
    with pytest.raises(DownloadError, match="not plausible"):
        unpack(archive, tmp_path / "out")


def test_the_number_of_files_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_MEMBERS", 3)
    archive = make_zip(tmp_path / "a.zip", {str(number): b"" for number in range(5)})
    with pytest.raises(DownloadError, match="more than 3 files"):
        unpack(archive, tmp_path / "out")


def test_what_other_systems_add_is_left_out(tmp_path: Path) -> None:
    archive = make_zip(
        tmp_path / "a.zip", {"a": b"1", "__MACOSX/._a": b"2", "b/.DS_Store": b"3"}
    )
    assert unpack(archive, tmp_path / "out") == 1


@given(data=st.binary(max_size=200), position=st.integers(0, 200))
def test_damaged_archives_are_an_error(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, position: int
) -> None:
    folder = tmp_path_factory.mktemp("damaged")
    archive = make_zip(folder / "a.zip", {"a/b": b"1" * 50, "c": b"2"})
    content = bytearray(archive.read_bytes())
    content[position : position + len(data)] = data
    archive.write_bytes(content)
    with contextlib.suppress(DownloadError):
        unpack(archive, folder / "out")
    assert all(path.is_relative_to(folder) for path in folder.rglob("*"))


def test_a_file_that_is_no_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz").write_bytes(b"not an archive")
    with pytest.raises(DownloadError, match=r"a\.tar\.gz cannot be unpacked"):
        unpack(tmp_path / "a.tar.gz", tmp_path / "out")
