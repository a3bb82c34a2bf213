"""Segmentations as annotation files write them, against pycocotools; invalid input never becomes a mask."""

import json
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools import mask as coco_mask

from maskwise.errors import MaskError
from maskwise.formats.segmentations import DecodedMask, decode_segmentations
from maskwise.masks import Mask

SIZE = (20, 30)


def drawn(value: Any, **options: Any) -> DecodedMask:
    (found,) = decode_segmentations(
        [msgspec.Raw(json.dumps(value).encode())], [SIZE], **options
    )
    assert isinstance(found, DecodedMask)
    return found


def refused(value: Any) -> str:
    (found,) = decode_segmentations([msgspec.Raw(json.dumps(value).encode())], [SIZE])
    assert isinstance(found, MaskError), found
    return str(found)


def test_polygons_as_pycocotools_draws_them() -> None:
    parts = [
        [2.5, 3.0, 17.2, 4.0, 9.9, 15.5],
        [12.0, 8.0, 25.0, 8.0, 25.0, 18.0, 12.0, 18.0],
    ]
    planes = coco_mask.decode(coco_mask.frPyObjects(parts, *SIZE)).sum(2)
    found = drawn(parts, overlaps=True)
    assert np.array_equal(found.mask.to_dense(), planes > 0)
    assert found.overlap is not None
    assert np.array_equal(found.overlap.to_dense(), planes > 1)
    assert drawn(parts).overlap is None


def test_three_parts_overlap_where_any_two_do() -> None:
    parts = [
        [0, 0, 8, 0, 8, 8, 0, 8],
        [6, 0, 14, 0, 14, 8, 6, 8],
        [12, 0, 20, 0, 20, 8, 12, 8],
    ]
    planes = coco_mask.decode(coco_mask.frPyObjects(parts, *SIZE)).sum(2)
    overlap = drawn(parts, overlaps=True).overlap
    assert overlap is not None
    assert np.array_equal(overlap.to_dense(), planes > 1)
    assert drawn(parts[::2], overlaps=True).overlap is None


def test_run_lengths_in_all_their_forms() -> None:
    runs = {"size": list(SIZE), "counts": [35, 10, 555]}
    text = coco_mask.frPyObjects(runs, *SIZE)
    compressed = {"size": list(SIZE), "counts": text["counts"].decode()}
    assert drawn(runs).mask == drawn(compressed).mask == drawn([compressed]).mask
    assert np.array_equal(drawn(runs).mask.to_dense(), coco_mask.decode(text))
    moved = {"size": list(SIZE), "counts": [40, 10, 550]}
    both = drawn([runs, moved], overlaps=True)
    assert (both.mask.area, both.overlap and both.overlap.area) == (15, 5)


def test_irregular_polygons_are_decoded_with_a_note() -> None:
    square = [1, 1, 9, 1, 9, 9, 1, 9]
    assert drawn([square]).irregularity is None
    assert drawn([[*square, 5]]).irregularity == "an odd number of coordinates"
    assert drawn([[*square, 5]]).mask == drawn([square]).mask
    assert (
        drawn([square, [1, 1, 2, 2]]).irregularity
        == "a polygon of fewer than three points"
    )


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([], "no polygon"),
        ([[]], "no polygon"),
        ([[1, 2, 3, 4]], "no polygon has three points"),
        ([1, 2, 3, 4, 5, 6], "neither"),
        ([[1, 2, 3, 4, 5, "6"]], "got `str`"),
        ([[1, 2, 3, 4, 5, None]], "neither"),
        ([[1, 2, 3, 4, 5, True]], "got `bool`"),
        ([[1e300, 2, 3, 4, 5, 6]], "finite"),
        (None, "null"),
        ("text", "got `str`"),
        (7, "got `int`"),
        ({}, "missing"),
        ({"size": list(SIZE)}, "counts"),
        ({"size": [20], "counts": "x"}, "size"),
        (
            {"size": [30, 20], "counts": [600]},
            "(30, 20) in an image of height and width (20, 30)",
        ),
        ({"size": [-1, -600], "counts": [600]}, "(-1, -600)"),
        ({"size": list(SIZE), "counts": [599]}, ""),
        ({"size": list(SIZE), "counts": [700, -100]}, ""),
        ({"size": list(SIZE), "counts": [10**30]}, ""),
        ({"size": list(SIZE), "counts": "!!"}, ""),
        ({"size": list(SIZE), "counts": ""}, ""),
        ([{"size": list(SIZE), "counts": [600]}, [1, 1, 9, 1, 9, 9]], "neither"),
    ],
)
def test_what_is_no_segmentation(value: Any, says: str) -> None:
    assert says in refused(value)


def test_an_invalid_item_does_not_affect_the_others() -> None:
    good = [[1, 1, 9, 1, 9, 9]]
    bad = {"size": list(SIZE), "counts": "!!"}
    found = decode_segmentations(
        [good, bad, None, good, Mask.empty(*SIZE), Mask.empty(3, 3)], [SIZE] * 6
    )
    assert isinstance(found[0], DecodedMask)
    assert found[0] == found[3]
    assert isinstance(found[1], MaskError)
    assert found[2] is None
    assert found[4] == DecodedMask(Mask.empty(*SIZE))
    assert isinstance(found[5], MaskError)


NUMBERS = st.one_of(
    st.integers(-50, 50),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=6)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=8),
        st.fixed_dictionaries({"size": st.just(list(SIZE)) | inner, "counts": inner}),
    ),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(VALUES | st.lists(st.lists(NUMBERS, max_size=10), max_size=3))
def test_anything_is_a_mask_or_an_error(value: Any) -> None:
    for given_as in (value, msgspec.Raw(msgspec.json.encode(value))):
        (found,) = decode_segmentations([given_as], [SIZE], overlaps=True)
        if value is None and given_as is None:
            assert found is None
        else:
            assert isinstance(found, MaskError | DecodedMask)
            assert isinstance(found, MaskError) or found.mask.size == SIZE


def test_a_matrix_of_integers_is_not_taken_for_polygons() -> None:
    matrix = [[0, 1, 1, 0, 1, 1, 0, 1]] * 6
    (error,) = decode_segmentations([matrix], [(6, 8)])
    assert isinstance(error, MaskError)
    assert "matrix of 0 and 1" in str(error)
