"""Differences between two datasets or releases."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner, Result

from maskwise.builder.release.diff import MaskChange, SplitMove, diff_datasets
from maskwise.builder.release.release import SplitOptions, plan_release, write_release
from maskwise.cli import main as cli
from maskwise.cli.main import app
from maskwise.schema import ImageInfo, Region, Sample, Turn
from maskwise.store import Dataset, DatasetWriter
from tests.builder.release.made import (
    encode,
    make_card,
    make_cup,
    make_dataset,
    rectangle,
)


@pytest.fixture
def old(tmp_path: Path) -> Dataset:
    return make_dataset(tmp_path / "old", 10)


def diff(*arguments: object) -> Result:
    return CliRunner().invoke(
        cli.app, ["diff", *map(str, arguments)], catch_exceptions=False
    )


def test_a_dataset_equals_itself_and_its_copies(old: Dataset, tmp_path: Path) -> None:
    assert diff_datasets(old, old).same
    assert diff_datasets(old, make_dataset(tmp_path / "copy", 10)).same
    old.to_parquet(tmp_path / "parquet")
    assert diff_datasets(old, Dataset.open(tmp_path / "parquet")).same


def test_images_and_samples_are_added_and_removed(old: Dataset, tmp_path: Path) -> None:
    found = diff_datasets(old, make_dataset(tmp_path / "new", 10, first=2))
    assert found.images.removed == ["image0", "image1"]
    assert found.images.added == ["image10", "image11"]
    assert found.samples.removed == ["sample0", "sample1"]
    assert found.samples.added == ["sample10", "sample11"]
    assert found.regions.removed == [
        "image0 cup",
        "image0 handle",
        "image1 cup",
        "image1 handle",
    ]
    assert not found.samples.changed


def test_changed_turns_of_a_dialogue_are_named(tmp_path: Path) -> None:
    versions = []
    for name, question in (("old", "the cup"), ("new", "the red cup")):
        with DatasetWriter(tmp_path / name, name=name) as writer:
            writer.add_image(ImageInfo(id="1", width=4, height=4))
            turns = (Turn(question=question),)
            sample = Sample(id="1", image_id="1", question="And its lid?", turns=turns)
            writer.add_sample(sample)
        versions.append(Dataset.open(tmp_path / name))
    assert diff_datasets(*versions).samples.changed == {"1": ["turns"]}


def test_changed_questions_and_tags_are_named(old: Dataset, tmp_path: Path) -> None:
    new = make_dataset(
        tmp_path / "new",
        10,
        question=lambda number: "which cup?" if number == 3 else f"the cup {number}",
        tags=lambda number: {"level": "hard"} if number in (3, 4) else {},
    )
    found = diff_datasets(old, new)
    assert found.samples.changed == {
        "sample3": ["question", "tags"],
        "sample4": ["tags"],
    }
    assert found.samples.fields == {"tags": 2, "question": 1}
    assert not found.masks


def test_changed_masks_have_their_iou(old: Dataset, tmp_path: Path) -> None:
    def region(number: int) -> Region:
        changes = {
            1: {"visible": rectangle(1, 1, 5, 2)},
            2: {"amodal": None},
            5: {"name": "mug"},
        }
        return replace(make_cup(number), **changes.get(number, {}))

    found = diff_datasets(old, make_dataset(tmp_path / "new", 10, region=region))
    assert found.masks == [
        MaskChange(image="image2", region="cup", kind="amodal", iou=None),
        MaskChange(image="image1", region="cup", kind="visible", iou=0.5),
    ]
    assert found.regions.changed == {
        "image1 cup": ["visible"],
        "image2 cup": ["amodal"],
        "image5 cup": ["name"],
    }
    assert found.samples.changed == {"sample1": ["masks"], "sample2": ["masks"]}


def test_changed_image_files_are_found(old: Dataset, tmp_path: Path) -> None:
    assert not diff_datasets(
        old, make_dataset(tmp_path / "by_path", 10, embed=False)
    ).images.changed
    new = make_dataset(
        tmp_path / "new", 10, data=lambda number: encode(9 if number == 7 else number)
    )
    assert diff_datasets(old, new).images.changed == {"image7": ["file"]}


def test_moves_between_splits_are_no_change_of_the_sample(tmp_path: Path) -> None:
    one = make_dataset(tmp_path / "one", 4, tags=lambda number: {"split": "train"})
    two = make_dataset(
        tmp_path / "two",
        4,
        tags=lambda number: {"split": "test" if number == 2 else "train"},
    )
    found = diff_datasets(one, two)
    assert found.moves == [SplitMove(image="image2", old="train", new="test")]
    assert not found.samples.changed
    assert not found.same


def test_releases_are_compared_with_their_cards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASKWISE_DATA", str(tmp_path / "data"))
    for version, images in (("1.0.0", 20), ("1.1.0", 24)):
        dataset = make_dataset(tmp_path / f"cups{images}", images)
        card = make_card()
        card["purpose_and_intended_users"]["goal"] = f"Measure {images} cups."
        write_release(
            plan_release(dataset, SplitOptions()),
            tmp_path / version,
            card,
            version=version,
        )
    result = diff(tmp_path / "1.0.0", tmp_path / "1.1.0", "--json")
    assert result.exit_code == 1
    found = json.loads(result.output)
    assert len(found["samples"]["added"]) == 4
    assert found["moves"] == []
    changed = {change["field"]: change["new"] for change in found["card"]}
    assert changed["purpose_and_intended_users.goal"] == "Measure 24 cups."
    measured = {
        change["field"]: (change["old"], change["new"]) for change in found["measured"]
    }
    assert measured["data.statistics.mask type asked for"] == (
        "amodal (20)",
        "amodal (24)",
    )
    assert "data.size" in measured
    assert not measured.keys() & changed.keys()
    printed = diff(tmp_path / "1.0.0", tmp_path / "1.1.0", "--list", "2").output
    assert "Cups 1.0.0 -> Cups 1.1.0" in printed
    assert "and 2 more" in printed
    assert printed.index("purpose_and_intended_users.goal") < printed.index(
        "measured by maskwise"
    )


def test_license_and_creators_of_releases_are_compared(
    old: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASKWISE_DATA", str(tmp_path / "data"))
    changed = make_card(license="cc-by-nc-4.0", creators=["The mug group"])
    for name, card in (("1", make_card()), ("1b", make_card()), ("2", changed)):
        write_release(plan_release(old), tmp_path / name, card, version="1.0.0")
    assert diff(tmp_path / "1", tmp_path / "1b").exit_code == 0
    result = diff(tmp_path / "1", tmp_path / "2")
    assert result.exit_code == 1
    assert "release.license: 'cc-by-4.0' -> 'cc-by-nc-4.0'" in result.output
    assert "release.creators: ['The cup group'] -> ['The mug group']" in result.output


def test_the_exit_code_says_whether_something_differs(
    old: Dataset, tmp_path: Path
) -> None:
    same = diff(old.path, old.path)
    assert (same.exit_code, same.output.strip()) == (0, "cups and cups are equal")
    assert diff(old.path, make_dataset(tmp_path / "new", 9).path).exit_code == 1


def test_changed_words_are_shown(tmp_path: Path) -> None:
    old = make_dataset(tmp_path / "old", images=3)
    new = make_dataset(
        tmp_path / "new",
        images=3,
        question=lambda number: (
            "the old mug 1 there" if number == 1 else f"the cup {number}"
        ),
    )
    [change] = diff_datasets(old, new).words
    assert (change.field, change.old) == ("question", "the cup 1")
    assert change.marked == "the [-cup-]{+old mug+} 1 {+there+}"
    said = CliRunner().invoke(app, ["diff", str(old.path), str(new.path)]).stdout
    assert "words changed (1)" in said
    assert "the [-cup-]{+old mug+} 1 {+there+}" in said
