"""COCOA-cls from COCOA regions and COCO instances: what matches, what does not, and what is reported."""

import json
from pathlib import Path

import numpy as np
import pytest

from maskwise.builder.cocoa_cls import match_regions, rebuild_cocoa_cls
from maskwise.errors import RecordError, StoreError
from maskwise.masks import Mask
from maskwise.schema import ImageInfo, Region
from maskwise.store import Dataset, DatasetWriter
from tests.builder.sources import HEIGHT, WIDTH, box, read_photos, thing
from tests.cli.commands import run


def write(path: Path, split: str, **images: list[Region]) -> Dataset:
    with DatasetWriter(path, name=path.name, about={"split": split}) as writer:
        for id, regions in images.items():
            writer.add_image(ImageInfo(id=id, width=WIDTH, height=HEIGHT), regions)
    return Dataset.open(path)


def test_the_instance_of_largest_iou_is_used_once() -> None:
    regions = [
        thing("near", "a dog", box(10, 10, 50, 50)),
        thing("exact", "dog", box(10, 10, 48, 50)),
        thing("elsewhere", "tree", box(100, 10, 140, 50)),
        thing("half", "cat", box(60, 60, 100, 80)),
    ]
    instances = [
        thing("7", "dog", box(10, 10, 48, 50)),
        thing("8", "cat", box(60, 60, 80, 80)),
    ]
    matches = match_regions("1", regions, instances, 0.75)
    assert [match.matched for match in matches] == [False, True, False, False]
    assert [match.instance for match in matches] == ["7", "7", None, "8"]
    assert [match.iou for match in matches] == [0.95, 1.0, 0.0, 0.5]


def test_visible_masks_are_compared_and_amodal_ones_are_kept(tmp_path: Path) -> None:
    whole = box(10, 10, 90, 50)
    shown = box(10, 10, 40, 50)
    dog = thing("0", "big dog", shown, whole)
    crowd = Region(id="9", name="person", visible=box(100, 10, 140, 50), crowd=True)
    people = thing("1", "people", box(100, 10, 140, 50))
    cocoa = write(tmp_path / "cocoa", "val", **{"1": [dog, people], "2": [dog]})
    coco = write(
        tmp_path / "coco", "val2014", **{"1": [thing("7", "dog", shown), crowd]}
    )
    summary = rebuild_cocoa_cls(cocoa, coco, tmp_path / "out")
    built = Dataset.open(tmp_path / "out")
    # A crowd is no object, and the second image has no instances.
    assert built.images.id == ["1"]
    assert built.regions_of("1") == (thing("7", "dog", shown, whole),)
    assert (summary.regions, summary.matched, summary.unknown_images) == (2, 1, 1)
    assert summary.categories == {"dog": 1}
    assert summary.published == 3_799
    assert sum(summary.best_iou.values()) == summary.regions
    lines = (tmp_path / "out" / "matches.jsonl").read_text().splitlines()
    assert [json.loads(line)["matched"] for line in lines] == [True, False]


def test_what_cannot_be_matched_is_an_error(tmp_path: Path) -> None:
    region = thing("0", "dog", box(10, 10, 50, 50))
    cocoa = write(tmp_path / "cocoa", "val", **{"1": [region]})
    with pytest.raises(StoreError, match="1 of 1 images have no instances"):
        rebuild_cocoa_cls(
            cocoa, write(tmp_path / "no", "", **{"2": []}), tmp_path / "a"
        )
    other = Mask.from_dense(np.ones((20, 30), np.bool_))
    with DatasetWriter(tmp_path / "small", name="small") as writer:
        info = ImageInfo(id="1", width=30, height=20)
        writer.add_image(info, [Region(id="5", name="dog", visible=other)])
    with pytest.raises(RecordError, match="same edition"):
        rebuild_cocoa_cls(cocoa, Dataset.open(tmp_path / "small"), tmp_path / "b")
    with pytest.raises(RecordError, match="smallest IoU"):
        rebuild_cocoa_cls(cocoa, cocoa, tmp_path / "c", min_iou=0.3)


def test_real_regions_drawn_again_match(tmp_path: Path) -> None:
    """COCO instances made from every second region of COCOA: exactly those match."""
    cocoa = read_photos("cocoa", tmp_path / "cocoa")
    with DatasetWriter(tmp_path / "coco", name="coco") as writer:
        for row in range(len(cocoa.images)):
            info = cocoa.image(row)
            instances = [
                Region(id=region.id, name="thing", visible=region.visible)
                for region in cocoa.regions_of(row)[::2]
            ]
            writer.add_image(info, instances)
    run(
        *("build", "cocoa-cls", tmp_path / "cocoa", "--instances", tmp_path / "coco"),
        *("--out", tmp_path / "out"),
    )
    built = Dataset.open(tmp_path / "out")
    regions = [region for row in range(5) for region in cocoa.regions_of(row)[::2]]
    assert len(built.regions) == len(regions)
    occluded = [
        region for region in regions if region.occluded and region.occluded.area
    ]
    assert occluded
    for row in range(len(built.images)):
        built.open_image(row)
