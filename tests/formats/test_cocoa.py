"""COCOA: flat polygons, fully visible regions, orders with gaps, several annotators; and real photos."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pycocotools import mask as coco_mask

from tests.formats import layouts
from tests.formats.reading import read, reasons
from tests.shared import shared


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return layouts.cocoa(tmp_path)


def with_regions(path: Path, *regions: dict[str, Any], **annotation: Any) -> None:
    value = json.loads(path.read_text())
    value["annotations"][0] |= {"regions": list(regions)} | annotation
    layouts.write_json(path, value)


REGION = {"segmentation": layouts.SQUARE[0], "name": "phone", "order": 1}


def test_a_missing_visible_mask_means_fully_visible(tmp_path: Path, path: Path) -> None:
    (scene,), _ = read("cocoa", tmp_path)
    phone, table = scene.regions
    assert phone.visible == phone.amodal
    assert phone.occluded is not None
    assert phone.occluded.area == 0
    assert (
        table.visible and table.visible.area,
        table.amodal and table.amodal.area,
    ) == (8, 36)


def test_depth_goes_by_order_with_gaps(tmp_path: Path, path: Path) -> None:
    (scene,), _ = read("cocoa", tmp_path)
    assert [region.order for region in scene.regions] == [1, 4]


def test_stuff_is_left_out_on_request(tmp_path: Path, path: Path) -> None:
    grass = REGION | {"name": "grass", "order": 2, "isStuff": 1}
    with_regions(path, REGION | {"isStuff": 0}, grass, depth_constraint="1-2")
    (scene,), _ = read("cocoa", tmp_path)
    assert [region.name for region in scene.regions] == ["phone", "grass"]
    (scene,), diagnostics = read("cocoa", tmp_path, options={"stuff": "skip"})
    assert [region.name for region in scene.regions] == ["phone"]
    assert reasons(diagnostics, kept=True) == []


def test_a_hidden_region_has_an_empty_visible_mask(tmp_path: Path, path: Path) -> None:
    with_regions(
        path,
        REGION | {"visible_mask": layouts.rle(layouts.FRONT * 0)},
        depth_constraint="",
    )
    (scene,), diagnostics = read("cocoa", tmp_path)
    assert scene.regions[0].visible is not None
    assert scene.regions[0].visible.area == 0
    assert diagnostics == []


def test_annotators_of_one_image_stay_apart(tmp_path: Path, path: Path) -> None:
    value = json.loads(path.read_text())
    value["annotations"].append(
        value["annotations"][0]
        | {"id": 378, "regions": [REGION], "depth_constraint": ""}
    )
    layouts.write_json(path, value)
    scenes, diagnostics = read("cocoa", tmp_path)
    assert [(scene.image.id, len(scene.regions)) for scene in scenes] == [
        ("1@377", 2),
        ("1@378", 1),
    ]
    assert len({scene.image.path for scene in scenes}) == 1
    assert diagnostics == []


def test_spaces_around_names_are_stripped_with_a_warning(
    tmp_path: Path, path: Path
) -> None:
    with_regions(path, REGION | {"name": "dougnut "}, depth_constraint="")
    (scene,), diagnostics = read("cocoa", tmp_path)
    assert scene.regions[0].name == "dougnut"
    assert reasons(diagnostics, kept=True) == ["spaces around a name"]


@pytest.mark.parametrize("constraint", ["1-9", "1,4", "x", "1-4,", "-1-4"])
def test_depth_constraints_are_checked_against_orders(
    constraint: str, tmp_path: Path, path: Path
) -> None:
    value = json.loads(path.read_text())
    value["annotations"][0]["depth_constraint"] = constraint
    layouts.write_json(path, value)
    (scene,), diagnostics = read("cocoa", tmp_path)
    assert len(scene.regions) == 2
    assert set(reasons(diagnostics, kept=True)) <= {"invalid depth constraint"}
    assert bool(diagnostics) == (constraint != "1-4,")


def test_visible_outside_amodal_is_kept_with_a_warning(
    tmp_path: Path, path: Path
) -> None:
    outside = layouts.plane(*["." * 12] * 8, "." * 8 + "####")
    with_regions(
        path, REGION | {"visible_mask": layouts.rle(outside)}, depth_constraint=""
    )
    (scene,), (diagnostic,) = read("cocoa", tmp_path)
    assert scene.regions[0].visible is not None
    assert np.array_equal(scene.regions[0].visible.to_dense(), outside > 0)
    assert (diagnostic.reason, diagnostic.kept) == ("visible not inside amodal", True)
    assert diagnostic.found == "4 of 4 pixels outside"


BAD_REGIONS = [
    REGION | {"segmentation": layouts.SQUARE},
    REGION | {"segmentation": [1, 2, 3, 4]},
    REGION | {"segmentation": []},
    REGION | {"visible_mask": None},
    REGION | {"visible_mask": "text"},
    REGION | {"visible_mask": {"size": [5, 5], "counts": [25]}},
    REGION | {"name": 3},
    {"name": "phone"},
]


@pytest.mark.parametrize("region", BAD_REGIONS)
def test_a_bad_region_is_skipped_alone(
    region: dict[str, Any], tmp_path: Path, path: Path
) -> None:
    with_regions(path, REGION, region, depth_constraint="")
    (scene,), diagnostics = read("cocoa", tmp_path)
    assert [region.id for region in scene.regions] == ["0"]
    assert len(reasons(diagnostics)) == 1
    assert "regions[1]" in diagnostics[0].record


@pytest.mark.parametrize("order", [0, -3, 2**40])
def test_an_order_that_is_no_depth_is_left_out(
    order: int, tmp_path: Path, path: Path
) -> None:
    with_regions(path, REGION | {"order": order}, depth_constraint="")
    (scene,), diagnostics = read("cocoa", tmp_path)
    assert scene.regions[0].order is None
    assert reasons(diagnostics, kept=True) == ["order is not a depth"]


def test_real_photos_against_pycocotools(tmp_path: Path) -> None:
    """The five demo photos, put together as the published file is."""
    folder = shared("data", "cocoa")
    annotations = [
        json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))
    ]
    images = []
    for number, annotation in enumerate(annotations, 1):
        (tmp_path / "val2014").mkdir(exist_ok=True)
        (tmp_path / f"val2014/{number}.jpg").write_bytes(
            (folder / f"{number}.jpg").read_bytes()
        )
        with Image.open(folder / f"{number}.jpg") as image:
            width, height = image.size
        images.append(
            {
                "id": annotation["image_id"],
                "file_name": f"{number}.jpg",
                "width": width,
                "height": height,
            }
        )
    layouts.write_json(
        tmp_path / "COCO_amodal_val2014.json",
        {"images": images, "annotations": annotations},
    )
    scenes, diagnostics = read("cocoa", tmp_path)
    assert sum(len(scene.regions) for scene in scenes) == 48
    assert reasons(diagnostics) == []
    assert set(reasons(diagnostics, kept=True)) <= {
        "spaces around a name",
        "visible not inside amodal",
    }
    for scene, annotation in zip(scenes, annotations):
        for region, wanted in zip(scene.regions, annotation["regions"]):
            size = (scene.image.height, scene.image.width)
            amodal = coco_mask.decode(
                coco_mask.frPyObjects([wanted["segmentation"]], *size)
            )[..., 0]
            visible = (
                coco_mask.decode(wanted["visible_mask"])
                if "visible_mask" in wanted
                else amodal
            )
            assert region.amodal is not None
            assert region.visible is not None
            assert np.array_equal(region.amodal.to_dense(), amodal)
            assert np.array_equal(region.visible.to_dense(), visible)
            assert (region.order, region.name) == (
                wanted["order"],
                wanted["name"].strip(),
            )
