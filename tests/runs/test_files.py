"""The files of a run folder: read safely, written whole, locked, hashed."""

import json
import os
from pathlib import Path

import msgspec
import pytest

from maskwise.errors import StoreError
from maskwise.runs import files
from maskwise.runs.files import (
    hash_path,
    list_foreign_files,
    lock_run,
    read_json,
    read_run_file,
    write_errors,
    write_json,
)


class Note(msgspec.Struct):
    format: str
    text: str = ""


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "note.json"
    write_json(path, Note("note 1", "größer"))
    assert read_json(path, Note, "note 1") == Note("note 1", "größer")
    assert path.read_bytes().endswith(b"}\n")
    assert b"\n  " in path.read_bytes(), "people can read it"
    write_json(path, Note("note 1", "again"))
    assert read_json(path, Note, "note 1").text == "again"
    assert [item.name for item in tmp_path.iterdir()] == ["note.json"]


def test_a_file_of_another_version_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "note.json"
    write_json(path, Note("note 1"))
    with pytest.raises(StoreError, match=r"'note 1', expected 'note 2'; score the run"):
        read_json(path, Note, "note 2")


def test_a_missing_or_huge_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "note.json"
    with pytest.raises(StoreError, match=r"note\.json cannot be read"):
        read_json(path, Note, "note 1")
    write_json(path, Note("note 1", "x" * 200))
    monkeypatch.setattr(files, "MAX_JSON_BYTES", 100)
    with pytest.raises(StoreError, match="at most 100"):
        read_json(path, Note, "note 1")


@pytest.mark.parametrize("field", ["format", "text"])
def test_fields_of_another_type_are_refused(tmp_path: Path, field: str) -> None:
    path = tmp_path / "note.json"
    path.write_text(json.dumps({"format": "note 1", "text": "a"} | {field: [1]}))
    with pytest.raises(StoreError, match=r"cannot be read.*Expected `str`"):
        read_json(path, Note, "note 1")


def test_a_folder_without_run_json_has_no_record_yet(tmp_path: Path) -> None:
    assert read_run_file(tmp_path) is None


def test_leftovers_of_an_interrupted_write_are_not_foreign(tmp_path: Path) -> None:
    (tmp_path / f"scores.json{files.PARTIAL}").write_text("")
    assert list_foreign_files(tmp_path) == []
    (tmp_path / "thesis.tex").write_text("")
    (tmp_path / "data").mkdir()
    assert list_foreign_files(tmp_path) == ["data", "thesis.tex"]


def test_a_run_folder_is_locked_and_removed_if_it_stays_empty(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "run"
    with lock_run(folder):
        assert folder.is_dir()
        with (
            pytest.raises(StoreError, match="written by another process"),
            lock_run(folder),
        ):
            pass
    assert not folder.exists()
    with lock_run(folder):
        (folder / "run.json").write_text("{}")
    assert (folder / "run.json").exists()
    with lock_run(folder):
        pass
    assert folder.exists(), "a folder with content stays"


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with (
        pytest.raises(StoreError, match="is a file; expected a folder"),
        lock_run(tmp_path / "run"),
    ):
        pass


def test_a_full_disk_is_reported_with_what_to_do(tmp_path: Path) -> None:
    with (
        pytest.raises(StoreError, match=r"No space left.*content is intact: repeat"),
        write_errors(tmp_path),
    ):
        raise OSError(28, "No space left on device")


def test_the_hash_of_a_folder_is_that_of_names_and_contents(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "1.png").write_bytes(b"one")
        (tmp_path / name / "2.png").write_bytes(b"two")
    assert hash_path(tmp_path / "a") == hash_path(tmp_path / "b")
    os.rename(tmp_path / "b" / "2.png", tmp_path / "b" / "3.png")
    assert hash_path(tmp_path / "a") != hash_path(tmp_path / "b")
    empty = hash_path(tmp_path / "a" / "deep" / "1.png")
    assert len(empty) == 64
    assert hash_path(tmp_path / "a" / "2.png") != empty
