"""`maskwise get`: from a local server to verified weights and a dataset folder, with consent."""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from PIL import Image

import maskwise as mw
from maskwise.datasets import find_dataset
from maskwise.downloads import local_files as local
from maskwise.downloads.get import Consent, get_dataset, get_weights
from maskwise.downloads.local_files import find_weights
from maskwise.downloads.table import (
    GROUPS,
    Download,
    FileVersion,
    HostedFile,
    find_download,
    list_downloads,
)
from maskwise.downloads.unpack import unpack
from maskwise.errors import DownloadError, StoreError, UnknownNameError
from tests.cli.commands import fail, run
from tests.downloads.file_server import FileServer, serving
from tests.downloads.test_unpack import make_zip
from tests.shared import shared

CONTENT = b"weights" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MASKWISE_WEIGHTS", str(tmp_path / "weights"))
    monkeypatch.setenv("MASKWISE_DATA", str(tmp_path / "data"))
    return tmp_path


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving(CONTENT) as found:
        yield found


def weights(server: FileServer, **changes: Any) -> Download:
    """A download of weights from the local server."""
    file = HostedFile(
        file="m.onnx",
        urls=(server.url,),
        versions=(FileVersion(sha256=SHA256, bytes=len(CONTENT), source="test"),),
    )
    download = Download(
        name="m.onnx",
        kind="weights",
        title="a model",
        license="MIT",
        permissive=True,
        page="p",
        files=(file,),
    )
    return msgspec.structs.replace(download, **changes)


def without_versions(download: Download) -> Download:
    return msgspec.structs.replace(
        download, files=(msgspec.structs.replace(download.files[0], versions=()),)
    )


def use(monkeypatch: pytest.MonkeyPatch, *downloads: Download) -> None:
    """Make these the table of downloads."""
    table = {download.name: download for download in downloads}
    # The table comes last: importing the others must not bind the replacement.
    for place in (
        "maskwise.datasets",
        "maskwise.downloads.table",
    ):
        monkeypatch.setattr(f"{place}.list_downloads", lambda: table)


# -- the table


def test_the_table_is_complete() -> None:
    readers = {*mw.list_formats(), *mw.list_benchmarks()}
    for download in list_downloads().values():
        assert download.license
        assert urlsplit(download.page).scheme == "https", download.name
        assert download.instructions or not download.by_hand, download.name
        assert (download.reader in readers) == (download.kind == "dataset"), (
            download.name
        )
        assert len(download.files) == 1 or download.kind == "dataset", download.name


def test_a_permissive_license_is_one_that_allows_any_use() -> None:
    permissive = {
        download.license
        for download in list_downloads().values()
        if download.permissive
    }
    assert permissive <= {"Apache-2.0", "MIT", "CC BY 4.0"}


def test_addresses_without_encryption_are_only_used_for_files_with_a_known_hash() -> (
    None
):
    for download in list_downloads().values():
        for file in download.files:
            assert file.versions or all(
                url.startswith("https://") for url in file.urls
            ), file.file


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"yolox_nano\.onnx"):
        find_download("yolo")


@pytest.mark.parametrize(
    "name",
    [
        "mobile_sam_encoder.onnx",
        "mobile_sam_decoder.onnx",
        "yolox_nano.onnx",
        "u2netp.onnx",
    ],
)
def test_the_weights_of_the_photo_model_are_found_by_name(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shared("weights")
    monkeypatch.setenv("MASKWISE_WEIGHTS", str(folder))
    assert find_weights(name) == folder / name


# -- weights


def test_weights_are_downloaded_once_and_found_by_name(
    server: FileServer, monkeypatch: pytest.MonkeyPatch, folders: Path
) -> None:
    use(monkeypatch, weights(server))
    path = get_weights(find_download("m.onnx"))
    assert path == folders / "weights" / "m.onnx" == find_weights("m.onnx")
    get_weights(find_download("m.onnx"))
    assert len(server.requests) == 1


def test_missing_weights_say_what_to_run(
    server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, weights(server))
    with pytest.raises(DownloadError) as error:
        find_weights("m.onnx")
    for part in ("maskwise get m.onnx", server.url, "License: MIT", SHA256):
        assert part in str(error.value)


def test_weights_that_are_exported_say_what_is_needed() -> None:
    with pytest.raises(DownloadError, match=r"maskwise\[train\]") as error:
        find_weights("mobile_sam_encoder.onnx")
    assert "Run: maskwise get mobile_sam_encoder.onnx" in str(error.value)
    with pytest.raises(DownloadError, match=r"exported from mobile_sam\.pt"):
        get_weights(find_download("mobile_sam_encoder.onnx"))


def photo_downloads(server: FileServer) -> list[Download]:
    """The downloads of the model photo, with stand-ins from the local server."""
    template = weights(server)
    downloads = []
    for name in ("yolox_nano.onnx", "u2netp.onnx", "mobile_sam.pt"):
        file = msgspec.structs.replace(template.files[0], file=name)
        downloads.append(msgspec.structs.replace(template, name=name, files=(file,)))
    for name in ("mobile_sam_encoder.onnx", "mobile_sam_decoder.onnx"):
        file = HostedFile(file=name)
        downloads.append(
            msgspec.structs.replace(
                template, name=name, files=(file,), exported_from="mobile_sam.pt"
            )
        )
    return downloads


def use_stand_in_export(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the name of a file and its checkpoint instead of a network."""

    def export(name: str, checkpoint: Path, path: Path) -> None:
        path.write_bytes(name.encode() + checkpoint.read_bytes()[:7])

    pytest.importorskip("torch", reason="the export needs torch")
    monkeypatch.setattr(
        "maskwise.training.mobile_sam.weights_export.export_file", export
    )


def test_one_command_fetches_all_files_of_the_photo_model(
    server: FileServer, monkeypatch: pytest.MonkeyPatch, folders: Path
) -> None:
    use(monkeypatch, *photo_downloads(server))
    use_stand_in_export(monkeypatch)
    output = run("get", "photo").output.replace("\n", "")
    for name in GROUPS["photo"]:
        assert str(find_weights(name)) in output
    exported = folders / "weights" / "mobile_sam_encoder.onnx"
    assert exported.read_bytes() == b"mobile_sam_encoder.onnxweights"
    # Two networks, and the checkpoint once for both exports.
    assert len(server.requests) == 3
    result = json.loads(run("get", "photo", "--json").output)
    assert len(result["files"]) == 4
    assert len(server.requests) == 3


def test_a_checkpoint_with_another_hash_is_not_exported(
    server: FileServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    folders: Path,
) -> None:
    downloads = photo_downloads(server)
    use_stand_in_export(monkeypatch)
    checkpoint = downloads[2]
    version = FileVersion(sha256="0" * 64, bytes=len(CONTENT), source="test")
    file = msgspec.structs.replace(checkpoint.files[0], versions=(version,))
    downloads[2] = msgspec.structs.replace(checkpoint, files=(file,))
    use(monkeypatch, *downloads)
    assert "expected " + "0" * 64 in fail(capsys, monkeypatch, "get", "photo")
    assert not (folders / "weights" / "mobile_sam_encoder.onnx").exists()


def test_files_of_the_photo_model_are_taken_from_a_folder(
    server: FileServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    folders: Path,
) -> None:
    use(monkeypatch, *photo_downloads(server))
    use_stand_in_export(monkeypatch)
    source = folders / "given"
    source.mkdir()
    for name in ("yolox_nano.onnx", "u2netp.onnx", "mobile_sam.pt"):
        (source / name).write_bytes(CONTENT)
    run("get", "photo", "--from", str(source))
    assert server.requests == []
    message = fail(capsys, monkeypatch, "get", "photo", "--from", source / "m.pt")
    assert "needs a folder" in message
    message = fail(capsys, monkeypatch, "get", "photo", "--out", folders / "x")
    assert "several files" in message


def test_exported_files_of_another_machine_need_no_torch(
    server: FileServer, monkeypatch: pytest.MonkeyPatch, folders: Path
) -> None:
    use(monkeypatch, *photo_downloads(server))
    monkeypatch.setitem(sys.modules, "maskwise.training.weights_exports", None)
    source = folders / "given"
    source.mkdir()
    for name in GROUPS["photo"]:
        (source / name).write_bytes(CONTENT)
    run("get", "photo", "--from", str(source), "--accept-unverified")
    for name in GROUPS["photo"]:
        assert find_weights(name).read_bytes() == CONTENT
    assert server.requests == []


def test_another_file_of_the_same_name_is_refused(
    server: FileServer, monkeypatch: pytest.MonkeyPatch, folders: Path
) -> None:
    use(monkeypatch, weights(server))
    (folders / "weights").mkdir()
    (folders / "weights" / "m.onnx").write_bytes(b"other")
    with pytest.raises(DownloadError, match="is not the expected file: it has 5 bytes"):
        find_weights("m.onnx")


def test_an_own_export_is_used_once_the_user_trusts_it(
    server: FileServer, monkeypatch: pytest.MonkeyPatch, folders: Path
) -> None:
    use(monkeypatch, weights(server))
    own = folders / "export.onnx"
    own.write_bytes(b"own export")
    with pytest.raises(DownloadError, match="no known version"):
        get_weights(find_download("m.onnx"), source=own)
    get_weights(find_download("m.onnx"), source=own, consent=Consent(unverified=True))
    assert find_weights("m.onnx").read_bytes() == b"own export"
    find_weights("m.onnx").write_bytes(b"changed")
    with pytest.raises(DownloadError, match="is not the expected file"):
        find_weights("m.onnx")


def test_the_hash_is_computed_once(
    server: FileServer, monkeypatch: pytest.MonkeyPatch, folders: Path
) -> None:
    use(monkeypatch, weights(server))
    get_weights(find_download("m.onnx"))
    find_weights("m.onnx")
    before = local._hash.cache_info().hits
    find_weights("m.onnx")
    assert local._hash.cache_info().hits == before + 1


def test_a_file_without_a_known_hash_needs_consent(
    server: FileServer, folders: Path
) -> None:
    download = without_versions(weights(server))
    with pytest.raises(DownloadError, match="--accept-unverified"):
        get_weights(download)
    with pytest.raises(DownloadError, match="expected 0000"):
        get_weights(download, consent=Consent(sha256="0" * 64))
    get_weights(download, consent=Consent(sha256=SHA256))
    assert (folders / "weights" / "m.onnx.sha256").read_text() == f"{SHA256}  m.onnx\n"


def test_a_license_that_is_not_permissive_has_to_be_accepted(
    server: FileServer,
) -> None:
    download = weights(server, license="research only", permissive=False)
    with pytest.raises(DownloadError, match="research only"):
        get_weights(download)
    assert not server.requests
    get_weights(download, consent=Consent(license=True))


def test_offline_the_message_says_what_to_fetch_and_where_to_put_it(
    server: FileServer, folders: Path
) -> None:
    server.script = [lambda handler: handler.reply(404, b"")]
    with pytest.raises(DownloadError) as error:
        get_weights(weights(server))
    assert f"fetch {server.url} and put it at {folders / 'weights' / 'm.onnx'}" in str(
        error.value
    )
    assert "--from FILE" in str(error.value)
    assert "Run: maskwise get" not in str(error.value)


def test_a_folder_that_cannot_be_written_is_named(
    server: FileServer, folders: Path
) -> None:
    (folders / "weights").write_text("a file")
    with pytest.raises(DownloadError, match="cannot write"):
        get_weights(weights(server))


# -- datasets


def coco_archive(path: Path) -> bytes:
    """A COCO dataset of one image, as an archive."""
    path.mkdir()
    Image.new("RGB", (8, 6), "red").save(path / "1.png")
    annotations = {
        "images": [{"id": 1, "width": 8, "height": 6, "file_name": "1.png"}],
        "categories": [{"id": 1, "name": "cup"}],
        "annotations": [
            {
                "id": 1,
                "image_id": 1,
                "category_id": 1,
                "segmentation": [[1, 1, 5, 1, 5, 4, 1, 4]],
            }
        ],
    }
    members = {
        "annotations/instances_val.json": json.dumps(annotations).encode(),
        "val/1.png": (path / "1.png").read_bytes(),
    }
    return make_zip(path / "coco.zip", members).read_bytes()


def dataset(server: FileServer, **changes: Any) -> Download:
    sha256 = hashlib.sha256(server.content).hexdigest()
    version = FileVersion(sha256=sha256, bytes=len(server.content), source="test")
    file = HostedFile(file="coco.zip", urls=(server.url,), versions=(version,))
    return weights(
        server,
        name="tiny_set",
        kind="dataset",
        reader="coco",
        split="val",
        files=(file,),
        **changes,
    )


def test_a_dataset_is_downloaded_unpacked_and_converted(
    server: FileServer, monkeypatch: pytest.MonkeyPatch, folders: Path
) -> None:
    server.content = coco_archive(folders / "made")
    use(monkeypatch, dataset(server))
    with pytest.raises(StoreError, match="maskwise get tiny_set"):
        find_dataset("tiny_set")
    told: list[str] = []
    summary = get_dataset(
        find_download("tiny_set"), progress=lambda what, *_: told.append(what)
    )
    assert summary.kept["regions"] == 1
    assert list(dict.fromkeys(told)) == [
        "downloading coco.zip",
        "unpacking coco.zip",
        "converting tiny_set",
    ]
    opened = mw.load_dataset(find_dataset("tiny_set"))
    assert opened.open_image("1").size == (8, 6)


def test_files_that_are_there_are_not_downloaded(
    server: FileServer, folders: Path
) -> None:
    server.content = coco_archive(folders / "made")
    (folders / "data").mkdir()
    (folders / "data" / "coco.zip").write_bytes(server.content)
    get_dataset(dataset(server), out=folders / "out")
    assert not server.requests
    assert (folders / "out" / "manifest.json").is_file()


def test_an_archive_of_another_hash_is_not_unpacked(
    server: FileServer, folders: Path
) -> None:
    server.content = coco_archive(folders / "made")
    (folders / "data").mkdir()
    (folders / "data" / "coco.zip").write_bytes(b"other")
    with pytest.raises(DownloadError, match="is not the expected file"):
        get_dataset(dataset(server))


def test_files_put_in_place_by_hand_are_converted(
    server: FileServer, folders: Path
) -> None:
    content = coco_archive(folders / "made")
    by_hand = dataset(server, instructions="ask the authors")
    by_hand = msgspec.structs.replace(by_hand, files=())
    with pytest.raises(DownloadError, match="ask the authors") as error:
        get_dataset(by_hand)
    raw = folders / "data" / "raw" / "tiny_set"
    assert f"Put the files in {raw}" in str(error.value)
    (folders / "coco.zip").write_bytes(content)
    unpack(folders / "coco.zip", raw)
    assert get_dataset(by_hand).kept["images"] == 1


@pytest.mark.parametrize("given", ["made/coco.zip", "made"])
def test_a_dataset_is_taken_from_files_of_the_user(
    given: str, server: FileServer, monkeypatch: pytest.MonkeyPatch, folders: Path
) -> None:
    server.content = coco_archive(folders / "made")
    use(monkeypatch, dataset(server))
    found = json.loads(
        run("get", "tiny_set", "--from", folders / given, "--json").output
    )
    assert found["regions"] == 1
    assert not server.requests


def test_only_files_of_the_dataset_are_taken(server: FileServer, folders: Path) -> None:
    server.content = coco_archive(folders / "made")
    one = dataset(server)
    two = msgspec.structs.replace(
        one, files=(*one.files, msgspec.structs.replace(one.files[0], file="notes.txt"))
    )
    (folders / "other.zip").write_bytes(server.content)
    with pytest.raises(
        DownloadError, match=r"expected coco\.zip or notes\.txt.*found .*other\.zip"
    ):
        get_dataset(two, source=folders / "other.zip")
    with pytest.raises(DownloadError, match="no known version of coco"):
        get_dataset(one, source=folders / "made" / "1.png")
    with pytest.raises(DownloadError, match="no files that --from could take"):
        get_dataset(
            msgspec.structs.replace(one, files=()), source=folders / "other.zip"
        )
    with pytest.raises(DownloadError, match="does not exist"):
        get_dataset(one, source=folders / "nothing.zip")
    get_dataset(two, source=folders / "made")
    assert len(server.requests) == 1


def test_files_of_the_user_do_not_replace_those_that_are_unpacked(
    server: FileServer, folders: Path
) -> None:
    server.content = coco_archive(folders / "made")
    get_dataset(dataset(server))
    with pytest.raises(
        DownloadError,
        match=r"raw/tiny_set has the files of tiny_set already; remove it",
    ):
        get_dataset(dataset(server), source=folders / "made", overwrite=True)


def test_an_interrupted_unpacking_is_repeated(
    server: FileServer, folders: Path
) -> None:
    server.content = coco_archive(folders / "made")
    left = folders / "data" / "raw" / ".tiny_set.partial"
    (left / "annotations").mkdir(parents=True)
    (left / "annotations" / "instances_val.json").write_text("half")
    assert get_dataset(dataset(server)).kept["regions"] == 1


# -- the command


def test_the_command_names_the_license(
    server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, weights(server))
    assert "license: MIT (p)" in run("get", "m.onnx").output
    assert json.loads(run("get", "m.onnx", "--json").output)["license"] == "MIT"


def test_the_command_without_a_name_lists_downloads() -> None:
    output = run("get").output
    assert "yolox_nano.onnx" in output
    assert "Apache-2.0" in output
    listed = json.loads(run("get", "--json").output)
    assert {entry["name"] for entry in listed} == set(list_downloads())
    assert "yolox_nano.onnx" in run("ls", "downloads").output


def test_the_list_is_readable_in_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("get").output.splitlines()
    for name, download in list_downloads().items():
        (first,) = (
            number for number, line in enumerate(lines) if line.split()[:1] == [name]
        )
        rows = 1 + next(
            n for n, line in enumerate(lines[first + 1 :]) if not line.startswith("  ")
        )
        assert rows <= 4, (name, download.license)
        shown = "".join(lines[first : first + rows]).replace(" ", "")
        assert shown.endswith(download.license.replace(" ", ""))


def test_the_command_copies_weights_to_a_file(
    server: FileServer, monkeypatch: pytest.MonkeyPatch, folders: Path
) -> None:
    use(monkeypatch, weights(server))
    run("get", "m.onnx", "--out", folders / "copy.onnx")
    assert (folders / "copy.onnx").read_bytes() == CONTENT


def test_a_refused_license_is_an_error(
    server: FileServer,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(monkeypatch, weights(server, permissive=False))
    assert "--accept-license" in fail(capsys, monkeypatch, "get", "m.onnx")
