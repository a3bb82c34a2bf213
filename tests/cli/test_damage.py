"""Damaged images, numbers that are none, full disks: a clear line, and everything else goes on."""

import contextlib
import json
import resource
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import yaml
from typer.testing import CliRunner

from maskwise.cli.main import app
from maskwise.errors import StoreError
from maskwise.images import ImageError, check_complete
from maskwise.review.database import ReviewDatabase
from maskwise.review.export import export_review
from maskwise.review.queue import Reviewer
from maskwise.review.records import NewDecision
from maskwise.review.review import Review
from maskwise.store import Dataset
from tests.builder.release.made import make_card, make_dataset
from tests.cli.commands import fail, run
from tests.formats.layouts import coco, write_image
from tests.review.datasets import write_samples


def test_a_truncated_photo_is_skipped_by_read_and_found_by_validate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    coco(tmp_path / "coco")
    out = tmp_path / "out"
    arguments = ("read", "coco", tmp_path / "coco", "--split", "val2017", "--out", out)
    run(*arguments)
    photo = write_image(tmp_path / "coco" / "val2017" / "2.jpg", 12, 10)
    photo.write_bytes(photo.read_bytes()[:-4])
    findings = json.loads(fail_json("validate", out))
    assert "2.jpg" in str(findings)
    said = json.loads(run(*arguments, "--overwrite", "--json").stdout)
    assert said["skipped"] == {"damaged image": 1}
    assert said["kept"]["images"] == 1
    assert "2.jpg" in (out / "diagnostics.jsonl").read_text()


def fail_json(*arguments: object) -> str:
    """What a command prints as JSON although it ends with another code than 0."""
    return CliRunner().invoke(app, [*map(str, arguments), "--json"]).stdout


@pytest.mark.parametrize("ending", ["jpg", "png", "gif", "webp", "tif"])
def test_complete_files_of_every_format_pass(ending: str, tmp_path: Path) -> None:
    photo = write_image(tmp_path / f"photo.{ending}", 60, 50)
    check_complete(photo)
    check_complete(photo.read_bytes())
    filled = photo.read_bytes() + bytes(100)
    check_complete(filled)
    for size in (0, 10, len(photo.read_bytes()) // 2):
        with pytest.raises(ImageError):
            check_complete(photo.read_bytes()[:size])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"none\.jpg"):
        check_complete(tmp_path / "none.jpg")


def test_an_annotation_with_nan_is_skipped_alone(tmp_path: Path) -> None:
    file = coco(tmp_path / "coco")
    content = json.loads(file.read_text())
    content["categories"][0]["name"] = 'a "NaN" cat'
    content["annotations"][1]["segmentation"] = [[1.0, float("nan"), 5.0, 1, 5, 5]]
    bad = content["annotations"][1] | {"id": 9, "segmentation": [[float("-inf")] * 6]}
    content["annotations"].append(bad)
    file.write_text(json.dumps(content))
    arguments = ("read", "coco", tmp_path / "coco", "--split", "val2017")
    said = json.loads(run(*arguments, "--out", tmp_path / "out", "--json").stdout)
    assert sum(said["skipped"].values()) == 2
    assert said["kept"]["regions"] == 1
    [region] = Dataset.open(tmp_path / "out").regions_of(0)
    assert region.name == 'a "NaN" cat'


# -- full disks and folders that cannot be written


@contextlib.contextmanager
def small_disk(bytes: int) -> Iterator[None]:
    """No file may be larger: writing fails as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_named_and_nothing_is_left_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    coco(tmp_path / "coco")
    make_dataset(tmp_path / "data")
    card = tmp_path / "card.yaml"
    card.write_text(yaml.safe_dump(make_card()), encoding="utf-8")
    out = tmp_path / "new" / "out"
    commands = {
        "build": ("build", "mmr", "world", "--limit", 4),
        "read": ("read", "coco", tmp_path / "coco", "--split", "val2017"),
        "release": ("release", tmp_path / "data", "--version", "1", "--card", card),
    }
    for command in commands.values():
        with small_disk(900):
            said = fail(capsys, monkeypatch, *command, "--out", out)
        assert f"{out} cannot be written: File too large; make room" in said
        assert len(said.strip().splitlines()) == 1
        assert [*out.parent.iterdir()] == []


def test_the_export_of_a_review_names_a_full_disk(tmp_path: Path) -> None:
    review = Review(
        write_samples(tmp_path / "data", 3), ReviewDatabase(tmp_path / "review.sqlite")
    )
    review.create()
    review.add_reviewer("ada")
    for item in range(3):
        decision = NewDecision(id=uuid4(), item=item, verdict="accept")
        review.decide(Reviewer("ada", "reviewer"), decision)
    with small_disk(900), pytest.raises(StoreError, match="cannot be written"):
        export_review(review, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(StoreError, match="choose another folder"):
        export_review(review, tmp_path / "data", overwrite=True)
    export_review(review, tmp_path / "out")
    assert len(Dataset.open(tmp_path / "out")) == 3


def test_a_file_in_place_of_a_folder_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "out"
    arguments = ("build", "mmr", "world", "--limit", 1, "--out", out)
    assert f"{out} cannot be written" in fail(capsys, monkeypatch, *arguments)
