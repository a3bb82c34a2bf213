"""Dense input: bools, 0 and 1, 0 and 255; floats with a threshold. Everything else is refused and named."""

from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image

from maskwise.errors import MaskError
from maskwise.masks import Mask, Masks
from tests.masks.drawn import Planes, planes

Order = Literal["C", "F"]
Size = tuple[int, int]

INTEGERS = [
    np.int8,
    np.uint8,
    np.int16,
    np.uint16,
    np.int32,
    np.uint32,
    np.int64,
    np.uint64,
]


@pytest.mark.parametrize(
    "array",
    [np.eye(3), np.array([[-3.0, 0.2], [np.nan, 0.0]]), np.zeros((2, 2), np.float16)],
)
def test_floats_need_a_threshold(array: NDArray[np.floating]) -> None:
    with pytest.raises(MaskError, match=f"{array.dtype} needs a threshold"):
        Mask.from_dense(array)
    with pytest.raises(MaskError, match="needs a threshold"):
        Masks.from_dense(array[None])


def test_the_threshold_itself_is_outside() -> None:
    logits = np.array([[-3.0, 0.0, 1e-9], [0.5, 0.50001, 7.0]])
    assert (
        Mask.from_dense(logits, threshold=0).to_dense().tolist()
        == (logits > 0).tolist()
    )
    assert (
        Mask.from_dense(logits, threshold=0.5).to_dense().tolist()
        == (logits > 0.5).tolist()
    )
    assert Masks.from_dense(logits[None] * 10, threshold=4).to_dense().tolist() == [
        (logits * 10 > 4).tolist()
    ]


def test_nan_and_thresholds_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(MaskError, match="NaN"):
        Mask.from_dense(np.array([[np.nan, 1.0]]), threshold=0.5)
    for threshold in (np.nan, np.inf, "0.5"):
        with pytest.raises(MaskError, match="threshold"):
            Mask.from_dense(np.eye(2), threshold=threshold)  # type: ignore[arg-type]


@given(planes(most=1), st.sampled_from(INTEGERS), st.integers(-(2**63), 2**64 - 1))
def test_integers_other_than_0_1_255_are_named(
    stacks: tuple[Planes], kind: type, value: int
) -> None:
    plane = stacks[0][0]
    limits = np.iinfo(kind)
    value = min(max(value, limits.min), limits.max)
    array = plane.astype(kind) * kind(value)
    if value in (0, 1, 255) or not plane.any():
        assert np.array_equal(Mask.from_dense(array).to_dense(), array != 0)
        return
    with pytest.raises(MaskError, match=f"found .*{value}"):
        Mask.from_dense(array)
    with pytest.raises(MaskError, match=f"found .*{value}"):
        Masks.from_dense(array[None])


def test_1_and_255_together_are_ambiguous() -> None:
    with pytest.raises(MaskError, match="found 0, 1, 255"):
        Mask.from_dense(np.array([[0, 1], [255, 0]], np.uint8))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("size", [(1, 5), (7, 64), (64, 65), (90, 130), (333, 57)])
def test_planes_longer_than_a_block_of_pixels(order: Order, size: Size) -> None:
    rng = np.random.default_rng(sum(size))
    for share in (0.0, 0.001, 0.5, 0.999, 1.0):
        plane = np.asarray(rng.random(size) < share, order=order)
        assert np.array_equal(Mask.from_dense(plane).to_dense(), plane)
        for value in (1, 255):
            grey = plane * np.uint8(value)
            assert np.array_equal(Mask.from_dense(grey).to_dense(), plane)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("size", [(3, 4), (80, 64), (90, 131)])
def test_an_unexpected_value_is_found_wherever_it_is(order: Order, size: Size) -> None:
    for place in range(0, size[0] * size[1], 7):
        for around, value in ((1, 255), (255, 1), (1, 2), (255, 128)):
            plane = np.full(size, around, np.uint8, order=order)
            plane.flat[place] = value
            with pytest.raises(MaskError, match=f"found .*{value}"):
                Mask.from_dense(plane)


def test_planes_read_by_different_threads_must_hold_the_same_two_values() -> None:
    planes = np.zeros((2, 3, 4), np.uint8)
    planes[0, 1] = 1
    assert Masks.from_dense(planes, threads=2).area().tolist() == [4, 0]
    planes[1, 2] = 255
    with pytest.raises(MaskError, match="found 0, 1, 255"):
        Masks.from_dense(planes, threads=2)


def test_many_values_are_shortened() -> None:
    with pytest.raises(
        MaskError, match=r"found 0, 1, 2, 3, 4, 5, \.\.\. 63 \(64 values\)$"
    ):
        Mask.from_dense(np.arange(64).reshape(8, 8))


@pytest.mark.parametrize("mode", ["1", "L", "P"])
def test_grey_images(mode: str) -> None:
    plane = np.array([[True, False, True], [False, False, True]])
    image = Image.fromarray(plane.astype(np.uint8) * 255).convert(
        mode if mode != "P" else "L"
    )
    if mode == "P":
        image = Image.fromarray(plane.astype(np.uint8)).convert("P")
    assert np.array_equal(Mask.from_dense(image).to_dense(), plane)


def test_grey_levels_and_colors_are_refused() -> None:
    with pytest.raises(MaskError, match="found 0, 128, 255"):
        Mask.from_dense(Image.fromarray(np.array([[0, 128, 255]], np.uint8)))
    with pytest.raises(MaskError, match=r"shape \(2, 2, 3\)"):
        Mask.from_dense(Image.new("RGB", (2, 2)))


@pytest.mark.parametrize("kind", [torch.bool, torch.uint8, torch.int16, torch.int64])
def test_tensors(kind: torch.dtype) -> None:
    plane = torch.tensor([[0, 1, 1], [1, 0, 0]]).to(kind)
    assert Mask.from_dense(plane).to_dense().tolist() == plane.bool().tolist()
    assert Masks.from_dense(plane[None]).to_dense().tolist() == [plane.bool().tolist()]


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16])
def test_tensors_of_logits(kind: torch.dtype) -> None:
    logits = torch.tensor([[-1.0, 2.0], [0.0, 0.5]], requires_grad=True).to(kind)
    assert Mask.from_dense(logits, threshold=0).to_dense().tolist() == [
        [False, True],
        [False, True],
    ]
    with pytest.raises(MaskError, match="threshold"):
        Mask.from_dense(logits)


class Explosive:
    """An object whose conversion fails in its own way."""

    def __array__(
        self, dtype: object = None, copy: object = None
    ) -> NDArray[np.generic]:
        raise KeyError("boom")


@pytest.mark.parametrize(
    "value",
    [
        None,
        3,
        "text",
        b"bytes",
        {},
        {"a": 1},
        [[1, 0], [1]],
        [["a"]],
        [None],
        object(),
        Explosive(),
        1j,
        [[1j]],
    ],
)
def test_objects_that_are_not_arrays_are_refused(value: object) -> None:
    with pytest.raises(MaskError):
        Mask.from_dense(value)
    with pytest.raises(MaskError):
        Masks.from_dense(value)


def test_wrong_dimensions_are_named() -> None:
    with pytest.raises(
        MaskError, match=r"expected an array \(height, width\), got shape \(1, 2, 2\)"
    ):
        Mask.from_dense(np.ones((1, 2, 2), bool))
    with pytest.raises(
        MaskError, match=r"expected an array \(n, height, width\), got shape \(2, 2\)"
    ):
        Masks.from_dense(np.ones((2, 2), bool))
