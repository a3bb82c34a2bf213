"""Masks from and to the forms that other tools use."""

import io
from types import SimpleNamespace
from typing import Any

import numpy as np
import pycocotools.mask as pm
import pytest
import shapely
import torch
from hypothesis import given, settings
from PIL import Image

from maskwise.errors import MaskError
from maskwise.masks import Mask, Masks, as_mask, as_masks
from tests.masks.drawn import Planes, planes

PLANE = np.zeros((20, 30), bool)
PLANE[2:15, 3:20] = True
PLANE[5:9, 6:12] = False
PLANE[16:19, 22:29] = True
MASK = Mask.from_dense(PLANE)
SIZE = (20, 30)

RLE = pm.encode(np.asfortranarray(PLANE, np.uint8))
RUNS = Masks.from_masks([MASK]).to_runs()[0].tolist()

FORMS: dict[str, Any] = {
    "a Mask": MASK,
    "nested lists of bools": PLANE.tolist(),
    "nested lists of 0 and 1": PLANE.astype(int).tolist(),
    "a bool array": PLANE,
    "a uint8 array of 0 and 255": PLANE.astype(np.uint8) * 255,
    "a column-major array": np.asfortranarray(PLANE),
    "a tensor": torch.from_numpy(PLANE),
    "a PIL image": Image.fromarray(PLANE),
    "pycocotools, bytes": RLE,
    "pycocotools, str": {"size": RLE["size"], "counts": RLE["counts"].decode()},
    "uncompressed": {"size": [20, 30], "counts": RUNS},
    "uncompressed, array": {
        "size": np.array([20, 30]),
        "counts": np.array(RUNS, np.uint32),
    },
}

OUTLINES: dict[str, Any] = {
    "COCO polygons": MASK.to_polygons(),
    "arrays of points": [np.array(part).reshape(-1, 2) for part in MASK.to_polygons()],
    "shapely": MASK.to_shapely(),
    "GeoJSON": MASK.to_shapely().__geo_interface__,
}


@pytest.mark.parametrize("name", FORMS)
def test_as_mask_without_a_size(name: str) -> None:
    assert as_mask(FORMS[name]) == MASK
    assert list(
        as_masks(FORMS[name] if name.startswith(("a ", "py", "unc")) else [FORMS[name]])
    ) == [MASK]


@pytest.mark.parametrize("name", FORMS | OUTLINES)
def test_as_mask_with_a_size(name: str) -> None:
    source = (FORMS | OUTLINES)[name]
    assert as_mask(source, SIZE) == MASK
    assert as_mask(source, np.array(SIZE, np.uint16)) == MASK
    assert list(as_masks([source, source], SIZE)) == [MASK, MASK]


@pytest.mark.parametrize(
    "name", [name for name in FORMS if name not in ("nested lists of 0 and 1",)]
)
def test_a_mask_of_another_size_is_refused(name: str) -> None:
    with pytest.raises(
        MaskError,
        match=r"expected a mask of height and width \(21, 30\), got \(20, 30\)",
    ):
        as_mask(FORMS[name], (21, 30))


def test_detections_of_supervision() -> None:
    detections = SimpleNamespace(xyxy=np.zeros((2, 4)), mask=np.stack([PLANE, ~PLANE]))
    assert as_masks(detections).to_dense().tolist() == [
        PLANE.tolist(),
        (~PLANE).tolist(),
    ]
    with pytest.raises(MaskError, match="no masks"):
        as_masks(SimpleNamespace(xyxy=np.zeros((2, 4)), mask=None))


def test_batches() -> None:
    batch = Masks.from_masks([MASK, MASK])
    assert as_masks(batch) is batch
    assert as_masks(batch, SIZE) is batch
    assert as_masks([MASK, PLANE, RLE]) == Masks.from_masks([MASK] * 3)
    assert as_masks(np.stack([PLANE, PLANE])) == batch
    assert as_masks(torch.from_numpy(np.stack([PLANE, PLANE]))) == batch
    assert as_masks([]) == Masks.none()
    assert as_masks([MASK.to_polygons(), MASK.to_shapely()], SIZE) == batch
    with pytest.raises(MaskError, match="mask 1: "):
        as_masks([MASK, 5])
    with pytest.raises(
        MaskError, match=r"mask 0: expected a mask of height and width \(4, 4\)"
    ):
        as_masks(batch, (4, 4))


@pytest.mark.parametrize(
    "source",
    [
        None,
        5,
        "text",
        b"text",
        {},
        {"size": [2, 2]},
        {"size": "ab", "counts": "4"},
        {"size": [2, 2], "counts": None},
        {"size": [2, 2], "counts": 4},
        {"size": [2, 2, 2], "counts": "8"},
        {"size": [2, 2], "counts": [1, "a"]},
        {"size": None, "counts": "4"},
        {"size": [2.5, 2], "counts": "5"},
        object(),
        [[1, 2], [3]],
        {"type": "Point"},
        {"type": "Point", "coordinates": [1, 2]},
        {"type": "Polygon", "coordinates": 3},
        shapely.Point(1, 2),
        {"type": "Polygon", "coordinates": [[1, 2]]},
        [["a", "b", "c", "d", "e", "f"]],
        [None],
        np.zeros(3),
    ],
)
def test_wrong_input_is_a_mask_error(source: object) -> None:
    for size in (None, (5, 7)):
        with pytest.raises(MaskError):
            as_mask(source, size)
        with pytest.raises(MaskError):
            as_masks(source, size)


def test_polygons_need_a_size() -> None:
    with pytest.raises(MaskError, match="need the size"):
        as_mask(MASK.to_shapely())


def test_an_empty_list_of_polygons_and_an_empty_geometry_are_empty_masks() -> None:
    assert as_mask(shapely.MultiPolygon(), SIZE) == Mask.empty(*SIZE)
    assert Mask.from_polygons([], SIZE) == Mask.empty(*SIZE)


# -- back ----------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(planes(most=1))
def test_polygons_draw_exactly_the_mask(stacks: tuple[Planes]) -> None:
    mask = Mask.from_dense(stacks[0][0])
    polygons = mask.to_polygons()
    assert Mask.from_polygons(polygons, mask.size) == mask
    if polygons:
        official = pm.merge(pm.frPyObjects(polygons, *mask.size))
        assert official["counts"].decode() == mask.counts
    assert Masks.from_masks([mask]).to_polygons() == [polygons]


@settings(max_examples=60)
@given(planes(most=1))
def test_shapely_geometries_are_valid_and_exact(stacks: tuple[Planes]) -> None:
    mask = Mask.from_dense(stacks[0][0])
    geometry = mask.to_shapely()
    assert geometry.is_valid, shapely.is_valid_reason(geometry)
    assert geometry.area == mask.area
    assert len(geometry.geoms) == len(
        Masks.from_masks([mask]).components(connectivity=4)[0]
    )
    assert Mask.from_shapely(geometry, mask.size) == mask
    if mask.area:
        x, y, width, height = mask.box
        assert geometry.bounds == (x, y, x + width, y + height)


def test_a_hole_that_touches_the_outline_at_a_corner() -> None:
    rows = ["####.", "#..##", "#.#.#", "##..#", ".####"]
    mask = Mask.from_dense([[pixel == "#" for pixel in row] for row in rows])
    geometry = mask.to_shapely()
    assert geometry.is_valid
    assert geometry.area == mask.area
    assert Mask.from_shapely(geometry, mask.size) == mask


def test_shapes_of_other_tools_are_drawn() -> None:
    ring = shapely.Point(15, 10).buffer(8).difference(shapely.Point(15, 10).buffer(4))
    mask = Mask.from_shapely(ring, (20, 30))
    assert abs(mask.area - ring.area) < 0.1 * ring.area
    assert not mask.to_dense()[10, 15]
    assert mask.to_dense()[10, 9]


def test_to_rle_is_what_pycocotools_gives() -> None:
    assert MASK.to_rle() == RLE
    assert np.array_equal(pm.decode(MASK.to_rle()), PLANE)
    assert Mask.from_rle(MASK.to_rle()) == MASK


def test_numpy_protocol() -> None:
    assert np.array_equal(np.asarray(MASK), PLANE)
    assert np.asarray(MASK, np.uint8).dtype == np.uint8
    assert np.asarray(Masks.from_masks([MASK, MASK])).shape == (2, 20, 30)


def test_repr_is_short() -> None:
    assert repr(MASK) == f"Mask(20x30, area={PLANE.sum()}, box=(3, 2, 26, 17))"
    assert (
        repr(Masks.from_masks([MASK, MASK]))
        == f"Masks(2 masks, 20x30, {2 * len(MASK.counts)} bytes)"
    )
    assert repr(Masks.from_masks([MASK, Mask.empty(2, 3)])).startswith(
        "Masks(2 masks, 2 sizes, "
    )
    assert repr(Masks.none()).startswith("Masks(0 masks, ")


@pytest.mark.parametrize("size", [(20, 30), (3000, 10), (0, 5), (0, 0), (1, 4000)])
def test_notebooks_show_a_small_png(size: tuple[int, int]) -> None:
    mask = Mask.from_dense(np.ones(size, bool))
    for shown in (mask, Masks.from_masks([mask] * 3), Masks.none()):
        image = Image.open(io.BytesIO(shown._repr_png_()))
        assert max(image.size) <= 1200
        assert max(Image.open(io.BytesIO(mask._repr_png_())).size) <= 256


def test_the_png_shows_the_pixels() -> None:
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(MASK._repr_png_()))), PLANE)


# -- construction --------------------------------------------------------------------------------------------------


def test_a_mask_takes_lists_numpy_integers_and_bytes() -> None:
    made = Mask([np.int32(20), np.uint8(30)], RLE["counts"])  # type: ignore[arg-type]
    assert made == MASK
    assert made.size == (20, 30)
    assert [type(length) for length in made.size] == [int, int]
    assert type(made.counts) is str


@pytest.mark.parametrize(
    ("size", "counts"),
    [
        ((2, 3), None),
        ((2, 3), 5),
        (None, "6"),
        ((2,), "6"),
        ((2, 3, 1), "6"),
        ((2.0, 3), "6"),
        ("23", "6"),
        ((2, 3), b"\xff"),
        (5, "6"),
        (([1], 2), "6"),
    ],
)
def test_wrong_types_are_mask_errors(size: Any, counts: Any) -> None:
    with pytest.raises(MaskError):
        Mask(size, counts)


def test_arguments_that_are_not_masks_are_named() -> None:
    for work in (MASK.iou, MASK.inside, MASK.areas_with):
        with pytest.raises(MaskError, match="expected a Mask, got int"):
            work(3)  # type: ignore[arg-type]
    batch = Masks.from_masks([MASK])
    with pytest.raises(MaskError, match="expected Masks, got Mask"):
        batch.inside(MASK)  # type: ignore[arg-type]
    with pytest.raises(MaskError, match="mask 1: expected a Mask, got int"):
        Masks.from_masks([MASK, 3])  # type: ignore[list-item]
    with pytest.raises(
        MaskError, match="mask 1: expected counts of type str, got bytes"
    ):
        Masks.from_strings(["6", b"6"], (2, 3))  # type: ignore[list-item]


@pytest.mark.parametrize("dtype", [bool, np.uint8])
@pytest.mark.parametrize("value", [1, 255])
def test_planes_in_column_order_give_the_same_masks(dtype: type, value: int) -> None:
    planes = (np.random.default_rng(3).random((4, 9, 7)) > 0.5).astype(dtype)
    if dtype is np.uint8:
        planes *= value
    expected = Masks.from_dense(planes)
    by_column = [np.asfortranarray(plane) for plane in planes]
    assert Masks.from_dense(by_column) == expected
    assert Masks.from_dense(np.asfortranarray(planes)) == expected
    assert [as_mask(plane) for plane in by_column] == [as_mask(p) for p in planes]


@pytest.mark.parametrize(
    "values", [[0, 1, 255], [0, 2], [0, 254], [128, 255], [1, 254]]
)
def test_bytes_other_than_0_and_1_or_0_and_255_are_refused(values: list[int]) -> None:
    plane = np.resize(np.array(values, np.uint8), (40, 33))
    with pytest.raises(MaskError, match="expected a mask of 0 and 1, or of 0 and 255"):
        as_mask(plane)
