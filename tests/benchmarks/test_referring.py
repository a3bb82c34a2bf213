"""gRefCOCO and RefCOCOm: no targets, several sentences, and what counts as foreground."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from maskwise.errors import FormatError
from tests.formats import layouts
from tests.formats.reading import read, reasons


def test_grefcoco_has_none_one_and_many_targets(tmp_path: Path) -> None:
    layouts.grefcoco(tmp_path)
    (scene,), _ = read("grefcoco", tmp_path, split="val")
    found = [
        (sample.id, sample.question, [region.id for region in sample.targets])
        for sample in scene.samples
    ]
    assert found == [
        ("1/1", "Both", ["7", "8"]),
        ("2/2", "cow", []),
        ("3/3", "dog", ["8"]),
        ("3/4", "pup", ["8"]),
    ]
    assert [(region.id, region.name) for region in scene.regions] == [
        ("7", "cat"),
        ("8", "dog"),
    ]


def test_grefcoco_splits_lie_in_one_file(tmp_path: Path) -> None:
    path = layouts.grefcoco(tmp_path)
    (scene,), _ = read("grefcoco", tmp_path, split="train")
    assert [sample.question for sample in scene.samples] == ["cat"]
    for root in (tmp_path, path):
        with pytest.raises(FormatError, match="choose a split"):
            read("grefcoco", root)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"ann_id": [99]}, "question about a skipped region"),
        ({"ann_id": [7, -1]}, "question about a skipped region"),
        ({"image_id": 5}, "reference to an unknown image"),
        ({"sentences": [{"sent_id": 1, "sent": " "}]}, "empty question"),
        ({"sentences": "text"}, "fields of another type"),
        ({"ann_id": None}, "fields of another type"),
        (
            {"ref_id": 2, "sentences": [{"sent_id": 2, "sent": "again"}]},
            "duplicate sample id",
        ),
    ],
)
def test_grefcoco_bad_references(
    fields: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    path = layouts.grefcoco(tmp_path)
    references = json.loads(path.read_text())
    references.append(references[2] | {"ref_id": 9} | fields)
    layouts.write_json(path, references)
    (scene,), diagnostics = read("grefcoco", tmp_path, split="val")
    assert len(scene.samples) == 4
    assert set(reasons(diagnostics)) == {reason}


def test_grefcoco_never_opens_a_pickle(tmp_path: Path) -> None:
    path = layouts.grefcoco(tmp_path)
    path.rename(path.with_suffix(".p"))
    with pytest.raises(FormatError, match="A pickle grefs"):
        read("grefcoco", tmp_path, split="val")


def test_grefcoco_says_that_the_masks_are_missing(tmp_path: Path) -> None:
    path = layouts.grefcoco(tmp_path)
    path.with_name("instances.json").unlink()
    with pytest.raises(FormatError, match=r"instances\.json is missing"):
        read("grefcoco", tmp_path, split="val")


def test_refcocom_counts_only_255(tmp_path: Path) -> None:
    layouts.refcocom(tmp_path)
    (scene,), _ = read("refcocom", tmp_path)
    (region,) = scene.regions
    assert region.visible is not None
    assert np.array_equal(region.visible.to_dense(), layouts.FRONT > 0)
    assert [(sample.id, sample.question) for sample in scene.samples] == [
        ("31/0", "left ear"),
        ("31/1", "ear"),
    ]
    assert all(sample.targets == (region,) for sample in scene.samples)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P", "1"])
def test_refcocom_masks_of_other_modes(mode: str, tmp_path: Path) -> None:
    layouts.refcocom(tmp_path)
    white = Image.fromarray((layouts.FRONT * 255).astype(np.uint8))
    white.convert(mode).save(tmp_path / "masks/31.png")
    (scene,), diagnostics = read("refcocom", tmp_path)
    assert scene.regions[0].visible is not None
    assert np.array_equal(scene.regions[0].visible.to_dense(), layouts.FRONT > 0)
    assert diagnostics == []


@pytest.mark.parametrize("segment", [32, "../31", "a/b", None])
def test_refcocom_masks_that_are_not_there(segment: Any, tmp_path: Path) -> None:
    path = layouts.refcocom(tmp_path)
    records = json.loads(path.read_text())
    layouts.write_json(path, [*records, records[0] | {"segment_id": segment}])
    (scene,), diagnostics = read("refcocom", tmp_path)
    assert len(scene.samples) == 2
    assert reasons(diagnostics)


def test_refcocom_in_the_folders_that_mmr_uses(tmp_path: Path) -> None:
    layouts.refcocom(tmp_path / "made")
    (tmp_path / "refer_seg/RefCOCOm").mkdir(parents=True)
    (tmp_path / "refer_seg/Refcocom").mkdir()
    (tmp_path / "refer_seg/images/mscoco/images").mkdir(parents=True)
    (tmp_path / "made/annotations").rename(tmp_path / "refer_seg/RefCOCOm/annotations")
    (tmp_path / "made/masks").rename(tmp_path / "refer_seg/Refcocom/masks")
    (tmp_path / "made/train2014").rename(
        tmp_path / "refer_seg/images/mscoco/images/train2014"
    )
    scenes, diagnostics = read("refcocom", tmp_path)
    assert (len(scenes), diagnostics) == (1, [])


def test_refcocom_says_that_masks_are_missing(tmp_path: Path) -> None:
    layouts.refcocom(tmp_path)
    (tmp_path / "masks").rename(tmp_path / "elsewhere")
    with pytest.raises(FormatError, match="no folder of masks"):
        read("refcocom", tmp_path)
