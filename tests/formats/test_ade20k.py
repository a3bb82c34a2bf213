"""ADE20K: what PNG values mean, parts of parts, and the real street scenes against Pillow."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.formats import layouts
from tests.formats.reading import read, reasons
from tests.shared import shared


def test_values_are_visible_occluded_background(tmp_path: Path) -> None:
    layouts.ade20k(tmp_path)
    (scene,), _ = read("ade20k", tmp_path)
    masks = [
        (region.visible and region.visible.area, region.amodal and region.amodal.area)
        for region in scene.regions
    ]
    assert masks == [(9, 9), (6, 12), (0, 9)]
    assert [region.part_of for region in scene.regions] == [None, None, "0"]
    assert [region.order for region in scene.regions] == [None, None, None]


def change_object(path: Path, number: int, **fields: Any) -> None:
    value = json.loads(path.read_text())
    value["annotation"]["object"][number] |= fields
    layouts.write_json(path, value)


@pytest.mark.parametrize(
    "fields",
    [
        {"instance_mask": "ADE_1/gone.png"},
        {"instance_mask": "../../../secret.png"},
        {"instance_mask": "/etc/passwd"},
        {"instance_mask": "ADE_1.jpg"},
        {"instance_mask": "ADE_1/small.png"},
        {"instance_mask": "ADE_1/deep.png"},
        {"instance_mask": 7},
        {"id": "x"},
        {"parts": {"ispartof": "x"}},
    ],
)
def test_a_bad_object_is_skipped_alone(fields: dict[str, Any], tmp_path: Path) -> None:
    path = layouts.ade20k(tmp_path)
    Image.new("L", (3, 3), 255).save(path.parent / "ADE_1/small.png")
    Image.fromarray(np.zeros((10, 12), np.uint16)).save(path.parent / "ADE_1/deep.png")
    change_object(path, 1, **fields)
    (scene,), diagnostics = read("ade20k", tmp_path)
    assert [region.id for region in scene.regions] == ["0", "2"]
    assert len(reasons(diagnostics)) == 1


def test_a_bad_file_is_skipped_alone(tmp_path: Path) -> None:
    path = layouts.ade20k(tmp_path)
    (path.parent / "ADE_0.json").write_text("nonsense")
    (path.parent / "ADE_2.json").write_text(
        '{"annotation": {"filename": "ADE_1.jpg", "imsize": [10], "object": []}}'
    )
    scenes, diagnostics = read("ade20k", tmp_path)
    assert [scene.image.id for scene in scenes] == ["ADE_1"]
    assert reasons(diagnostics) == [
        "fields of another type",
        "image size out of bounds",
    ]


def test_latin_files_are_read(tmp_path: Path) -> None:
    path = layouts.ade20k(tmp_path)
    change_object(path, 0, name="caf\u00e9")
    path.write_bytes(
        path.read_text().encode().decode("unicode_escape").encode("latin-1")
    )
    (scene,), diagnostics = read("ade20k", tmp_path)
    assert scene.regions[0].name == "caf\u00e9"
    assert diagnostics == []


def test_real_scenes_against_pillow() -> None:
    root = shared("data", "ade20k")
    scenes, diagnostics = read("ade20k", root)
    assert [len(scene.regions) for scene in scenes] == [70, 37, 32]
    assert diagnostics == []
    for scene in scenes:
        folder = (root / str(scene.image.path)).parent
        objects = json.loads((folder / f"{scene.image.id}.json").read_text())[
            "annotation"
        ]["object"]
        for region, wanted in list(zip(scene.regions, objects))[::4]:
            with Image.open(folder / wanted["instance_mask"]) as image:
                grey = np.asarray(image)
            assert region.visible is not None
            assert region.amodal is not None
            assert region.visible.area == np.count_nonzero(grey == 255)
            assert region.amodal.area == np.count_nonzero(grey)
            whole = wanted["parts"]["ispartof"]
            assert (region.name, region.part_of) == (
                wanted["name"],
                None if whole == [] else str(whole),
            )
            assert np.array_equal(region.visible.to_dense(), grey == 255)
