"""A dataset folder holds what the reader found; the rest is in diagnostics.jsonl."""

import json
from pathlib import Path
from typing import Any

import pytest

from maskwise.benchmarks import find_reader
from maskwise.errors import FormatError, StoreError
from maskwise.formats import ReadSummary, convert_annotations
from maskwise.store import Dataset
from tests.formats import layouts
from tests.formats.reading import read

ALL = layouts.SOURCES | layouts.BENCHMARKS


def convert_layout(
    layout: str, root: Path, **options: Any
) -> tuple[ReadSummary, Dataset]:
    name, make = ALL[layout]
    make(root / "in")
    split = {"grefcoco": "val"}.get(layout)
    summary = convert_annotations(
        find_reader(name), root / "in", root / "out", split=split, **options
    )
    return summary, Dataset.open(root / "out")


@pytest.mark.parametrize("layout", ALL)
def test_all_records_are_stored(layout: str, tmp_path: Path) -> None:
    summary, dataset = convert_layout(layout, tmp_path)
    scenes, _ = read(
        ALL[layout][0], tmp_path / "in", split={"grefcoco": "val"}.get(layout)
    )
    for scene in scenes:
        assert dataset.image(scene.image.id) == scene.image
        assert tuple(dataset.regions_of(scene.image.id)) == scene.regions
        assert dataset.open_image(scene.image.id).size == (
            scene.image.width,
            scene.image.height,
        )
    assert list(dataset) == [sample for scene in scenes for sample in scene.samples]
    assert summary.kept["images"] == len(scenes)
    assert summary.kept["questions"] == len(dataset)
    assert summary.kept["targets"] == sum(len(sample.targets) for sample in dataset)
    assert (summary.skipped, summary.warnings) == ({}, {})
    assert (tmp_path / "out/diagnostics.jsonl").read_bytes() == b""
    dataset.verify()


def test_images_can_be_embedded(tmp_path: Path) -> None:
    _, dataset = convert_layout("mmr", tmp_path, embed=True)
    (tmp_path / "in/train2017/1.jpg").unlink()
    assert dataset.open_image("5").size == (12, 10)
    assert dataset.image("5").path is None


def test_images_can_be_left_out(tmp_path: Path) -> None:
    _, dataset = convert_layout("mmr", tmp_path, with_images=False)
    assert dataset.image("5").path is None
    with pytest.raises(FormatError, match="embedded and left out"):
        convert_layout("mmr", tmp_path / "b", with_images=False, embed=True)


def spoil(path: Path) -> None:
    records = json.loads(path.read_text())
    records[0]["answers"][0][0]["segmentation"]["size"] = [1, 1]
    records.append(records[0] | {"image_id": 6, "file_name": "train2017/gone.jpg"})
    layouts.write_json(path, records)


def test_every_problem_is_a_line(tmp_path: Path) -> None:
    spoil(layouts.mmr(tmp_path / "in"))
    summary = convert_annotations(find_reader("mmr"), tmp_path / "in", tmp_path / "out")
    lines = [
        json.loads(line)
        for line in (tmp_path / "out/diagnostics.jsonl").read_text().splitlines()
    ]
    lines.sort(key=lambda line: line["reason"])
    assert [line["reason"] for line in lines] == [
        "invalid mask",
        "missing image",
        "question about a skipped region",
    ]
    assert lines[0] == {
        "reason": "invalid mask",
        "file": "MMR_val.json",
        "record": "[0], answers[0][0]",
        "expected": "a segmentation",
        "found": "a mask of (1, 1) in an image of height and width (10, 12)",
        "kept": False,
    }
    assert summary.skipped == dict.fromkeys([line["reason"] for line in lines], 1)
    assert summary.kept == {"images": 1, "regions": 2, "questions": 1, "targets": 2}


def test_strict_stops_and_leaves_nothing(tmp_path: Path) -> None:
    spoil(layouts.mmr(tmp_path / "in"))
    with pytest.raises(
        FormatError, match=r"MMR_val\.json, \[0\], answers\[0\]\[0\]: invalid mask"
    ):
        convert_annotations(
            find_reader("mmr"), tmp_path / "in", tmp_path / "out", strict=True
        )
    assert not (tmp_path / "out").exists()


def test_nothing_usable_is_an_error_that_says_why(tmp_path: Path) -> None:
    layouts.mmr(tmp_path / "in")
    (tmp_path / "in/train2017/1.jpg").unlink()
    with pytest.raises(
        FormatError,
        match=r"missing image \(1\) below(?s:.)*--images(?s:.)*MMR_\{split\}\.json",
    ):
        convert_annotations(find_reader("mmr"), tmp_path / "in", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_older_dataset_is_replaced_only_with_overwrite(tmp_path: Path) -> None:
    convert_layout("r2sm", tmp_path)
    reader = find_reader("r2sm")
    with pytest.raises(StoreError, match="exists already"):
        convert_annotations(reader, tmp_path / "in", tmp_path / "out")
    convert_annotations(reader, tmp_path / "in", tmp_path / "out", overwrite=True)


def test_sizes_are_compared_with_the_published_ones(tmp_path: Path) -> None:
    summary, _ = convert_layout("mmr", tmp_path)
    by_what = {
        (item.published.split, item.published.what): item for item in summary.compared
    }
    assert by_what["val", "questions"].published.count == 8_194
    assert by_what["val", "questions"].found == 2
    assert by_what[None, "questions"].found is None
    assert all(split in (None, "val") for split, _ in by_what)


def test_progress_ends_at_the_total(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    convert_layout(
        "coco", tmp_path, progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(1, 2), (2, 2), (2, 2)]


def test_the_manifest_says_what_it_is(tmp_path: Path) -> None:
    _, dataset = convert_layout("d2sa", tmp_path)
    assert dataset.name == "d2sa validation"
    assert dataset.manifest.about["license"] == "CC BY-NC-SA 4.0 (MVTec)"


@pytest.mark.parametrize("layout", ["cocoa", "mmr", "reasonseg"])
def test_reading_again_gives_the_same_bytes(layout: str, tmp_path: Path) -> None:
    convert_layout(layout, tmp_path)
    name, _ = ALL[layout]
    convert_annotations(find_reader(name), tmp_path / "in", tmp_path / "again")
    for file in sorted((tmp_path / "out").iterdir()):
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes(), (
            file.name
        )
