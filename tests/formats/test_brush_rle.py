"""Label Studio's run-length encoding. The expected bytes were written by label_studio_converter.brush.mask2rle."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from maskwise.arrays import BoolArray
from maskwise.errors import MaskError
from maskwise.formats.brush_rle import decode_brush, encode_brush
from maskwise.masks import Mask


def corner() -> BoolArray:
    plane = np.zeros((3, 5), np.bool_)
    plane[1, 1:4] = plane[2, 4] = True
    return plane


def half() -> BoolArray:
    plane = np.zeros((200, 200), np.bool_)
    plane[150:] = True
    return plane


KNOWN = [
    (corner(), [0, 0, 0, 60, 57, 27, 254, 23, 0, 183, 255, 132, 192, 35, 255, 0]),
    (
        half(),
        [0, 2, 113, 0, 57, 27, 255, 255, 255, 0, 250, 151, 224, 30, 112, 255, 252],
    ),
]


@pytest.mark.parametrize(
    ("plane", "expected"), KNOWN, ids=["runs of all sizes", "runs longer than one code"]
)
def test_bytes_are_those_of_label_studio(plane: BoolArray, expected: list[int]) -> None:
    encoded = encode_brush(Mask.from_dense(plane))
    assert expected[: len(encoded)] == encoded
    assert not any(expected[len(encoded) :]), (
        "the converter pads with up to one byte more"
    )
    assert (
        decode_brush(expected, (plane.shape[0], plane.shape[1])).to_dense() == plane
    ).all()


@given(arrays(np.bool_, array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=40)))
def test_decoding_gives_the_mask_again(plane: BoolArray) -> None:
    mask = Mask.from_dense(plane)
    assert decode_brush(encode_brush(mask), mask.size) == mask


def test_single_values_are_decoded() -> None:
    """Label Studio's editor also writes runs of single values: flag 0, then the values one by one."""
    values = [9, 9, 9, 255, 0, 0, 0, 0]
    bits = f"{8:032b}{7:05b}" + "".join(f"{size - 1:04b}" for size in (3, 4, 8, 16))
    bits += "000" + f"{7:03b}" + "".join(f"{value:08b}" for value in values)
    bits += "0" * (-len(bits) % 8)
    data = [int(bits[at : at + 8], 2) for at in range(0, len(bits), 8)]
    assert decode_brush(data, (1, 2)).to_dense().tolist() == [[True, False]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "another size"),
        ([0, 0, 0, 60], "another size"),
        ([0, 0, 0, 61, 57, 27, 254, 23], "another size"),
        ([0, 0, 0, 60, 57, 27, 254], "ends too early"),
        ([256], "0 to 255"),
        ([-1], "0 to 255"),
    ],
)
def test_invalid_bytes_are_refused(data: list[int], message: str) -> None:
    with pytest.raises(MaskError, match=message):
        decode_brush(data, (3, 5))


@given(st.binary(max_size=60))
def test_any_bytes_give_a_mask_or_a_mask_error(data: bytes) -> None:
    with contextlib.suppress(MaskError):
        assert decode_brush([0, 0, 0, 60, *data], (3, 5)).size == (3, 5)
