"""Layouts on disk: the right split is found, and an error names what is missing."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from maskwise.benchmarks import find_benchmark, find_reader
from maskwise.errors import FormatError, UnknownNameError
from maskwise.formats import Diagnostics, find_format
from maskwise.formats.file_layout import FileLayout, find_annotations
from maskwise.registry import FORMATS
from tests.formats import layouts
from tests.formats.reading import read, reasons

LAYOUT = FileLayout(annotations=("annotations/x_{split}.json", "x_{split}.json"))


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def test_the_only_split_needs_no_name(tmp_path: Path) -> None:
    touch(tmp_path, "x_val.json", "y_train.json")
    assert find_annotations(tmp_path, LAYOUT, None) == ("val", tmp_path / "x_val.json")


def test_of_several_splits_one_has_to_be_chosen(tmp_path: Path) -> None:
    touch(tmp_path, "x_val.json", "x_train.json")
    with pytest.raises(FormatError, match="choose a split; found: train, val"):
        find_annotations(tmp_path, LAYOUT, None)
    assert find_annotations(tmp_path, LAYOUT, "train")[1].name == "x_train.json"
    with pytest.raises(FormatError, match="no split 'test'; found: train, val"):
        find_annotations(tmp_path, LAYOUT, "test")


def test_earlier_patterns_win(tmp_path: Path) -> None:
    touch(tmp_path, "x_val.json", "annotations/x_val.json")
    assert (
        find_annotations(tmp_path, LAYOUT, "val")[1]
        == tmp_path / "annotations/x_val.json"
    )


def test_a_file_can_be_named_itself(tmp_path: Path) -> None:
    touch(tmp_path, "x_val.json", "other.json")
    assert find_annotations(tmp_path / "x_val.json", LAYOUT, None)[0] == "val"
    assert find_annotations(tmp_path / "other.json", LAYOUT, None)[0] == "other"
    assert find_annotations(tmp_path / "other.json", LAYOUT, "mine")[0] == "mine"


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(
        FormatError, match=r"no annotations of this format(?s:.)*x_\{split\}\.json"
    ):
        find_annotations(tmp_path, LAYOUT, None)
    with pytest.raises(FormatError, match="does not exist"):
        find_annotations(tmp_path / "gone", LAYOUT, None)


def test_images_may_lie_elsewhere(tmp_path: Path) -> None:
    layouts.coco(tmp_path / "a")
    (tmp_path / "a/val2017").rename(tmp_path / "photos")
    scenes, diagnostics = read("coco", tmp_path / "a")
    assert scenes == []
    assert reasons(diagnostics) == ["missing image"] * 2
    scenes, diagnostics = read("coco", tmp_path / "a", images=tmp_path / "photos")
    assert [scene.image.path for scene in scenes] == ["1.jpg", "2.jpg"]
    with pytest.raises(FormatError, match="gone is not a folder"):
        read("coco", tmp_path / "a", images=tmp_path / "gone")


@pytest.mark.posix
def test_a_link_out_of_the_image_root_is_not_followed(tmp_path: Path) -> None:
    layouts.coco(tmp_path / "a")
    (tmp_path / "a/val2017").rename(tmp_path / "photos")
    (tmp_path / "a/val2017").symlink_to(tmp_path / "photos")
    scenes, diagnostics = read("coco", tmp_path / "a")
    assert scenes == []
    assert reasons(diagnostics) == ["image outside its folder"] * 2


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(
        UnknownNameError, match="format 'coca'; known: ade20k, coco, cocoa"
    ):
        find_format("coca")
    with pytest.raises(
        UnknownNameError,
        match="benchmark 'coco'; known: amodalreasonseg, fp-refcoco",
    ):
        find_benchmark("coco")
    with pytest.raises(
        UnknownNameError,
        match=r"benchmark or format 'x'; known: ade20k, amodalreasonseg",
    ):
        find_reader("x")


def test_another_package_can_add_a_format(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint("mine", "maskwise.formats.coco:COCO", "maskwise.formats")]
    monkeypatch.setattr("maskwise.registry.entry_points", lambda group: points)
    monkeypatch.setattr(FORMATS, "_plug_ins", None)
    assert "mine" in FORMATS.list()
    assert find_reader("mine") is find_format("coco")


@pytest.mark.parametrize(
    "name", sorted(layouts.SOURCES.keys() | layouts.BENCHMARKS.keys())
)
def test_an_empty_folder_is_refused_by_every_reader(name: str, tmp_path: Path) -> None:
    reader = find_reader((layouts.SOURCES | layouts.BENCHMARKS)[name][0])
    with pytest.raises(FormatError, match="no annotations of this format"):
        reader.open(tmp_path, Diagnostics())
