"""COCO and LVIS instances: hand-made oddities, and real files against pycocotools."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from pycocotools.coco import COCO

from maskwise.errors import FormatError
from maskwise.formats import AnnotatedImage
from maskwise.masks import Masks
from tests.formats import layouts
from tests.formats.reading import read, reasons
from tests.shared import shared


def change(path: Path, **parts: Any) -> None:
    layouts.write_json(path, json.loads(path.read_text()) | parts)


def test_objects_with_their_visible_masks(tmp_path: Path) -> None:
    layouts.coco(tmp_path)
    (first, second), _ = read("coco", tmp_path)
    assert (first.image.id, first.image.path) == ("1", "val2017/1.jpg")
    cat, crowd = first.regions
    assert (cat.id, cat.name, cat.crowd, cat.amodal) == ("7", "cat", False, None)
    assert cat.visible is not None
    assert cat.visible.area == 16
    assert (crowd.name, crowd.crowd) == ("dog", True)
    assert second.regions == ()


BAD_IMAGES = [
    ({"id": 3, "file_name": "3.jpg", "width": 12, "height": 10}, "missing image"),
    (
        {"id": 3, "file_name": "../val2017/1.jpg", "width": 12, "height": 10},
        "image outside its folder",
    ),
    (
        {"id": 3, "file_name": "/etc/passwd", "width": 12, "height": 10},
        "image outside its folder",
    ),
    (
        {"id": 3, "file_name": "a\u0000b.jpg", "width": 12, "height": 10},
        "image outside its folder",
    ),
    ({"id": 3, "width": 12, "height": 10}, "image outside its folder"),
    (
        {"id": 3, "file_name": "1.jpg", "width": 10, "height": 12},
        "image of another size",
    ),
    (
        {"id": 3, "file_name": "1.jpg", "width": 0, "height": 12},
        "image size out of bounds",
    ),
    (
        {"id": 3, "file_name": "1.jpg", "width": 10**9, "height": 10**9},
        "image size out of bounds",
    ),
    (
        {"id": 3, "file_name": "1.jpg", "width": "12", "height": 10},
        "fields of another type",
    ),
    (
        {"id": 3, "file_name": "broken.jpg", "width": 12, "height": 10},
        "unreadable image",
    ),
    ({"id": 1, "file_name": "1.jpg", "width": 12, "height": 10}, "duplicate image id"),
    (
        {"id": "1", "file_name": "1.jpg", "width": 12, "height": 10},
        "duplicate image id",
    ),
    (None, "fields of another type"),
]


@pytest.mark.parametrize(("image", "reason"), BAD_IMAGES)
def test_a_bad_image_is_skipped(image: Any, reason: str, tmp_path: Path) -> None:
    path = layouts.coco(tmp_path)
    (tmp_path / "val2017/broken.jpg").write_bytes(b"no image")
    change(path, images=[*layouts.images("1.jpg", "2.jpg"), image])
    scenes, diagnostics = read("coco", tmp_path)
    assert [scene.image.id for scene in scenes] == ["1", "2"]
    assert reasons(diagnostics) == [reason]
    assert diagnostics[0].file == "instances_val2017.json"
    with pytest.raises(FormatError, match=reason):
        read("coco", tmp_path, strict=True)


GOOD = {"id": 9, "image_id": 1, "category_id": 1, "segmentation": layouts.SQUARE}
BAD_ANNOTATIONS = [
    (GOOD | {"image_id": 77}, "annotation of an unknown image"),
    (GOOD | {"id": 7}, "duplicate annotation id"),
    (GOOD | {"id": "7"}, "duplicate region id"),
    (GOOD | {"segmentation": [[1, 2, 3, 4]]}, "invalid mask"),
    (GOOD | {"segmentation": {"size": [12, 10], "counts": [120]}}, "invalid mask"),
    (GOOD | {"category_id": [1]}, "fields of another type"),
    ({"id": 9, "image_id": 1, "category_id": 1}, "fields of another type"),
    ("text", "fields of another type"),
]


@pytest.mark.parametrize(("annotation", "reason"), BAD_ANNOTATIONS)
def test_a_bad_annotation_is_skipped(
    annotation: Any, reason: str, tmp_path: Path
) -> None:
    path = layouts.coco(tmp_path)
    good = json.loads(path.read_text())["annotations"]
    change(path, annotations=[*good, annotation])
    scenes, diagnostics = read("coco", tmp_path)
    assert [region.id for region in scenes[0].regions] == ["7", "8"]
    assert reasons(diagnostics) == [reason]


def test_an_unknown_category_is_kept_with_a_warning(tmp_path: Path) -> None:
    path = layouts.coco(tmp_path)
    change(path, annotations=[GOOD | {"category_id": 5}])
    scenes, diagnostics = read("coco", tmp_path)
    assert [region.name for region in scenes[0].regions] == [""]
    assert reasons(diagnostics, kept=True) == ["unknown category"]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"images": 1}', "nonsense", '{"images": [' + "[" * 100_000],
)
def test_a_file_that_is_none_is_an_error(text: str, tmp_path: Path) -> None:
    path = layouts.coco(tmp_path)
    path.write_text(text)
    with pytest.raises(FormatError, match="instances_val2017"):
        read("coco", tmp_path)


def test_without_images_sizes_are_the_annotated_ones(tmp_path: Path) -> None:
    path = layouts.coco(tmp_path)
    change(path, images=layouts.images("gone.jpg"))
    scenes, diagnostics = read("coco", tmp_path, with_images=False)
    assert (scenes[0].image.path, scenes[0].image.width, diagnostics[:0]) == (
        None,
        12,
        [],
    )


def test_lvis_names_images_by_address(tmp_path: Path) -> None:
    layouts.write_image(tmp_path / "val2017/5.jpg")
    image = {
        "id": 5,
        "width": 12,
        "height": 10,
        "coco_url": "http://images.cocodataset.org/val2017/5.jpg",
    }
    layouts.write_json(
        tmp_path / "lvis_v1_val.json",
        {"images": [image], "annotations": [], "categories": []},
    )
    scenes, _ = read("coco", tmp_path)
    assert scenes[0].image.path == "val2017/5.jpg"


def as_pycocotools(path: Path, scenes: list[AnnotatedImage]) -> None:
    """Every mask, bit by bit, and every name."""
    truth = COCO(str(path))
    names = {
        category["id"]: category["name"]
        for category in truth.loadCats(truth.getCatIds())
    }
    assert [scene.image.id for scene in scenes] == [str(image) for image in truth.imgs]
    for scene in scenes:
        wanted = truth.imgToAnns[int(scene.image.id)]
        assert [region.id for region in scene.regions] == [
            str(annotation["id"]) for annotation in wanted
        ]
        for region, annotation in zip(scene.regions, wanted):
            expected = truth.annToRLE(annotation)
            assert region.visible is not None
            assert region.visible == Masks.from_rles([expected])[0]
            assert region.name == names[annotation["category_id"]]
            assert region.crowd == bool(annotation.get("iscrowd", 0))


@pytest.mark.parametrize("split", ["train2017", "val2017"])
def test_tiny_coco(split: str) -> None:
    root = shared("data", "tiny_coco")
    scenes, diagnostics = read("coco", root, split=split)
    assert diagnostics == []
    assert len(scenes) == 50
    as_pycocotools(root / f"annotations/instances_{split}.json", scenes)
    with Image.open(root / str(scenes[0].image.path)) as image:
        assert image.size == (scenes[0].image.width, scenes[0].image.height)


def test_coco128() -> None:
    path = shared("data", "coco128", "instances_train2017.json")
    scenes, diagnostics = read("coco", path)
    assert (len(scenes), sum(len(scene.regions) for scene in scenes), diagnostics) == (
        128,
        900,
        [],
    )
    as_pycocotools(path, scenes)


@pytest.mark.parametrize(
    ("parts", "masks"),
    [
        (("coco_eval", "instances_val2014_100.json"), 839),
        (("lvis", "lvis_val_100.json"), 977),
    ],
)
def test_files_without_images(parts: tuple[str, str], masks: int) -> None:
    path = shared("data", *parts)
    scenes, diagnostics = read("coco", path, with_images=False)
    assert (sum(len(scene.regions) for scene in scenes), diagnostics) == (masks, [])
    as_pycocotools(path, scenes)


def test_the_license_and_the_page_of_each_photo_are_kept(tmp_path: Path) -> None:
    path = layouts.coco(tmp_path)
    images = json.loads(path.read_text())["images"]
    images[0] |= {"license": 4, "flickr_url": "http://flickr.example/1"}
    images[1] |= {"license": 9, "flickr_url": 7}
    change(
        path,
        images=images,
        licenses=[{"id": 4, "name": "Attribution", "url": "http:\\/\\/cc.example/by"}],
    )
    (first, second), _ = read("coco", tmp_path)
    assert (first.image.license, first.image.attribution) == (
        "Attribution (http://cc.example/by)",
        "http://flickr.example/1",
    )
    assert (second.image.license, second.image.attribution) == (None, None)


@pytest.mark.parametrize(
    "licenses", ["none", [{"name": "without id"}], [{"id": []}], {"id": 4}]
)
def test_invalid_licenses_do_not_stop_reading(licenses: Any, tmp_path: Path) -> None:
    path = layouts.coco(tmp_path)
    change(path, licenses=licenses)
    images, _ = read("coco", tmp_path)
    assert [annotated.image.license for annotated in images] == [None, None]


def test_photo_licenses_of_tiny_coco() -> None:
    images, _ = read("coco", shared("data", "tiny_coco"), split="val2017")
    assert all(annotated.image.license for annotated in images)
    assert all("flickr.com" in str(annotated.image.attribution) for annotated in images)
