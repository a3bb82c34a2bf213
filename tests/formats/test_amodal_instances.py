"""COCOA-cls, D2SA, KINS, MUVA and PACO-LVIS: which field is which mask, and no mask made up."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskwise.errors import FormatError
from maskwise.schema import Region
from tests.formats import layouts
from tests.formats.reading import read, reasons


def areas(region: Region) -> tuple[int | None, int | None]:
    return (
        region.visible and region.visible.area,
        region.amodal and region.amodal.area,
    )


def change_annotation(path: Path, number: int, **fields: Any) -> None:
    value = json.loads(path.read_text())
    annotation = value["annotations"][number]
    annotation |= fields
    value["annotations"][number] = {
        key: item for key, item in annotation.items() if item != "DELETE"
    }
    layouts.write_json(path, value)


@pytest.mark.parametrize("name", ["cocoa_cls", "d2sa", "muva"])
def test_segmentation_is_amodal(name: str, tmp_path: Path) -> None:
    layouts.SOURCES[name][1](tmp_path)
    (scene,), _ = read(name, tmp_path)
    assert [areas(region) for region in scene.regions] == [(9, 9), (6, 12)]
    assert [region.name for region in scene.regions] == ["cat", "dog"]


@pytest.mark.parametrize("name", ["cocoa_cls", "d2sa"])
@pytest.mark.parametrize(
    "visible", ["DELETE", None, [], 0, "text", [[1, 1]], {"size": [1, 1]}]
)
def test_a_visible_mask_that_is_none_never_becomes_the_amodal_one(
    name: str, visible: Any, tmp_path: Path
) -> None:
    path = layouts.SOURCES[name][1](tmp_path)
    change_annotation(path, 1, visible_mask=visible)
    (scene,), diagnostics = read(name, tmp_path)
    assert [region.id for region in scene.regions] == ["1"]
    assert len(reasons(diagnostics)) == 1


def test_d2sa_needs_no_occlude_rate(tmp_path: Path) -> None:
    path = layouts.d2sa(tmp_path)
    assert "occlude_rate" not in path.read_text()
    assert read("d2sa", tmp_path)[1] == []


def test_kins_of_2019(tmp_path: Path) -> None:
    layouts.kins_2019(tmp_path)
    (scene,), _ = read("kins", tmp_path)
    assert [areas(region) for region in scene.regions] == [(9, 9), (6, 12)]
    assert [region.order for region in scene.regions] == [None, None]
    assert scene.image.path == "testing/image_2/1.png"


def test_kins_of_2020_knows_the_order_in_a_cluster(tmp_path: Path) -> None:
    layouts.kins_2020(tmp_path)
    (scene,), _ = read("kins", tmp_path)
    assert [areas(region) for region in scene.regions] == [(9, 9), (6, 12)]
    assert [region.order for region in scene.regions] == [None, 2]
    assert scene.image.path == "training/image_2/1.png"


@pytest.mark.parametrize(
    ("make", "field"),
    [(layouts.kins_2019, "inmodal_seg"), (layouts.kins_2020, "i_segm")],
)
def test_kins_makes_up_no_mask(make: Any, field: str, tmp_path: Path) -> None:
    change_annotation(make(tmp_path), 0, **{field: "DELETE"})
    (scene,), diagnostics = read("kins", tmp_path)
    assert [region.id for region in scene.regions] == ["2"]
    assert reasons(diagnostics) == ["invalid mask"]


def test_muva_reads_by_a_mapping(tmp_path: Path) -> None:
    path = layouts.muva(tmp_path)
    text = (
        path.read_text()
        .replace('"segmentation"', '"whole"')
        .replace('"visible_mask"', '"seen"')
    )
    path.write_text(text)
    with pytest.raises(
        FormatError, match=r"no field 'segmentation'.*muva\.yaml.*seen, whole"
    ):
        read("muva", tmp_path)
    mapping = tmp_path / "mine.yaml"
    mapping.write_text("amodal: whole\nvisible: seen\n")
    (scene,), diagnostics = read("muva", tmp_path, mapping=mapping)
    assert [areas(region) for region in scene.regions] == [(9, 9), (6, 12)]
    assert diagnostics == []


@pytest.mark.parametrize(
    "text",
    [
        "amodal: whole",
        "amodal: a\nvisible: b\nother: c",
        "[",
        "7",
        "amodal: id\nvisible: id",
    ],
)
def test_a_bad_mapping_is_an_error_that_names_it(text: str, tmp_path: Path) -> None:
    layouts.muva(tmp_path)
    mapping = tmp_path / "mine.yaml"
    mapping.write_text(text)
    with pytest.raises(FormatError, match=r"mine\.yaml"):
        read("muva", tmp_path, mapping=mapping)


def test_paco_parts_know_their_object(tmp_path: Path) -> None:
    path = layouts.paco_lvis(tmp_path)
    (scene,), _ = read("paco_lvis", tmp_path)
    cat, tail = scene.regions
    assert (cat.part_of, tail.part_of, tail.name) == (None, "1", "cat:tail")
    assert (cat.amodal, tail.amodal) == (None, None)
    change_annotation(path, 0, segmentation=[])
    (scene,), diagnostics = read("paco_lvis", tmp_path)
    assert [(region.id, region.part_of) for region in scene.regions] == [("2", None)]
    assert reasons(diagnostics, kept=True) == ["part of an unknown region"]


def test_parts_in_a_circle_are_parted(tmp_path: Path) -> None:
    path = layouts.paco_lvis(tmp_path)
    change_annotation(path, 0, obj_ann_id=2)
    (scene,), diagnostics = read("paco_lvis", tmp_path)
    assert "part of an unknown region" in reasons(diagnostics, kept=True)
    whole = [region for region in scene.regions if region.part_of is None]
    assert whole
    assert len(scene.regions) == 2


def test_visible_outside_amodal_is_kept_with_a_warning(tmp_path: Path) -> None:
    path = layouts.cocoa_cls(tmp_path)
    change_annotation(path, 1, visible_mask=layouts.rle(np.ones((10, 12))))
    (scene,), (diagnostic,) = read("cocoa_cls", tmp_path)
    assert areas(scene.regions[1]) == (120, 12)
    assert (diagnostic.reason, diagnostic.record, diagnostic.kept) == (
        "visible not inside amodal",
        "annotation 2",
        True,
    )
    assert diagnostic.found == "108 of 120 pixels outside"
