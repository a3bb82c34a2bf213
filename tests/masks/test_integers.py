"""Integers of every type and size: the result that dense numpy gives, or MaskError."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwise.errors import MaskError
from maskwise.masks import (
    MAX_PIXELS,
    Mask,
    Masks,
    boundary_areas,
    boundary_width,
    pair_areas,
)
from tests.masks import drawn
from tests.masks.drawn import Planes, planes

KINDS = [
    np.int8,
    np.uint8,
    np.int16,
    np.uint16,
    np.int32,
    np.uint32,
    np.int64,
    np.uint64,
]

EXTREMES = [
    0,
    1,
    127,
    128,
    255,
    256,
    2**15,
    2**16 - 1,
    MAX_PIXELS,
    2**31,
    2**32 - 1,
    2**32,
    2**63 - 1,
    2**63,
    2**64 - 1,
]


@st.composite
def integers(make: st.DrawFn, low: int = -20, high: int = 20) -> Any:
    """A small or extreme integer as a Python int or of a numpy type."""
    value = make(
        st.integers(low, high)
        | st.sampled_from(EXTREMES + [-number for number in EXTREMES] + [2**80])
    )
    kind = make(st.sampled_from([int, *KINDS]))
    if kind is int:
        return value
    limits = np.iinfo(kind)
    return kind(min(max(value, limits.min), limits.max))


def reachable(*values: Any) -> bool:
    return all(abs(int(value)) <= MAX_PIXELS for value in values)


@given(planes(most=2), integers(), integers())
def test_shift(stacks: tuple[Planes], right: Any, down: Any) -> None:
    masks = Masks.from_dense(stacks[0])
    (height, width) = stacks[0].shape[1:]
    if not reachable(right, down):
        with pytest.raises(MaskError, match="shift"):
            masks.shift(right, down)
        return
    box = (-int(right), -int(down), width, height)
    assert masks.shift(right, down) == Masks.from_dense(
        np.array([moved(plane, box) for plane in stacks[0]])
    )


def moved(plane: Planes, box: tuple[int, int, int, int]) -> Planes:
    """As drawn.window, for windows far away too."""
    x, y, width, height = box
    far = abs(x) > plane.shape[1] + width or abs(y) > plane.shape[0] + height
    return np.zeros((height, width), bool) if far else drawn.window(plane, box)


@given(planes(most=2), integers(), integers(), integers(0, 15), integers(0, 15))
def test_crop(stacks: tuple[Planes], x: Any, y: Any, width: Any, height: Any) -> None:
    masks = Masks.from_dense(stacks[0])
    fits = (
        int(width) >= 0 and int(height) >= 0 and int(width) * int(height) <= MAX_PIXELS
    )
    if not reachable(x, y, width, height) or not fits:
        with pytest.raises(MaskError):
            masks.crop([x, y, width, height])
        return
    cut = masks.crop([int(x), int(y), int(width), int(height)])
    assert cut.size.tolist() == [[height, width]] * len(masks)
    if int(width) * int(height) < 10_000:
        box = (int(x), int(y), int(width), int(height))
        assert cut == Masks.from_dense(
            np.array([moved(plane, box) for plane in stacks[0]])
        )


@given(planes(most=2), integers(0, 5))
def test_boundary(stacks: tuple[Planes], distance: Any) -> None:
    masks = Masks.from_dense(stacks[0])
    if not 0 <= int(distance) <= MAX_PIXELS:
        with pytest.raises(MaskError, match="boundary distances"):
            masks.boundary(distance)
        return
    reach = min(int(distance), 200)
    bands = [
        plane if reach > 70 else drawn.boundary(plane, reach) for plane in stacks[0]
    ]
    assert masks.boundary(distance) == Masks.from_dense(np.array(bands))


@given(planes(most=2), integers(0, 15), integers(0, 15))
def test_resize(stacks: tuple[Planes], height: Any, width: Any) -> None:
    masks = Masks.from_dense(stacks[0])
    sides = int(height), int(width)
    if min(sides) < 0 or max(*sides, sides[0] * sides[1]) > 2**16:
        if int(height) < 0 or int(width) < 0 or int(height) * int(width) > MAX_PIXELS:
            with pytest.raises(MaskError):
                masks.resize((height, width))
        return
    size = (int(height), int(width))
    expected = Masks.from_dense(
        np.array([drawn.resize(plane, size) for plane in stacks[0]])
    )
    assert masks.resize((height, width)) == expected
    assert Mask.empty(height, width) == Mask.empty(*size)


@given(integers(0, 12), integers(0, 12), st.lists(integers(0, 40), max_size=4))
def test_sizes_and_runs(height: Any, width: Any, runs: list[Any]) -> None:
    exact = [int(run) for run in runs]
    pixels = int(height) * int(width)
    valid = (
        min(int(height), int(width), *exact, 0) >= 0
        # A frame without pixels is too large as well if one of its sides is.
        and max(int(height), int(width)) <= MAX_PIXELS
        and sum(exact) == pixels <= MAX_PIXELS
    )
    try:
        made = Masks.from_runs([runs], [(height, width)])
    except MaskError:
        assert not valid or len({type(run) for run in runs}) > 1
        return
    assert valid
    assert made.to_runs()[0].tolist() == (exact or [0])
    assert made == Masks.from_runs([exact], [(int(height), int(width))])


@given(st.lists(integers(0, 4), min_size=1, max_size=5))
def test_group_offsets(offsets: list[Any]) -> None:
    masks = Masks.from_dense(np.eye(4, dtype=bool)[:, None])
    exact = [int(offset) for offset in offsets]
    valid = exact[0] >= 0 and exact[-1] <= 4 and exact == sorted(exact)
    try:
        merged = masks.merge(offsets, (1, 4))
    except MaskError:
        assert not valid or len({type(offset) for offset in offsets}) > 1
        return
    assert valid
    assert merged == masks.merge(exact, (1, 4))


def test_extreme_integers_do_not_give_wrong_masks() -> None:
    masks = Masks.from_dense(np.eye(8, dtype=bool)[None])
    assert (
        masks.shift(np.uint8(1), 0).to_dense()[0].tolist()
        == np.eye(8, k=1, dtype=bool).tolist()
    )
    for work in (
        lambda: masks.shift(2**63, 0),
        lambda: masks.shift(0, -(2**63)),
        lambda: masks.crop([-(2**63), 0, 8, 8]),
        lambda: masks.boundary(-(2**63)),
        lambda: masks.boundary(2**63),
        lambda: masks.resize((2**32, 2**32)),
    ):
        with pytest.raises(MaskError):
            work()


@pytest.mark.parametrize(
    "value", [1.0, "1", None, [1, 2], 1j, np.float32(2), object(), [[1], [2, 3]]]
)
def test_other_types_are_refused(value: Any) -> None:
    masks = Masks.from_dense(np.eye(8, dtype=bool)[None])
    for work in (
        lambda: masks.shift(value, 0),
        lambda: masks.crop([value, 0, 1, 1]),
        lambda: masks.boundary([value]),
        lambda: masks.resize((value, 4)),
        lambda: masks.merge([0, value]),
        lambda: masks.area(threads=value),
        lambda: masks.components(connectivity=value),
        lambda: Mask.empty(value, 2),
    ):
        with pytest.raises(MaskError):
            work()


@pytest.mark.parametrize("ratio", [np.nan, np.inf, -0.1, "a", None])
def test_invalid_boundary_ratios_are_refused(ratio: Any) -> None:
    masks = Masks.from_dense(np.eye(8, dtype=bool)[None])
    with pytest.raises(MaskError, match="ratio"):
        boundary_width((8, 8), ratio)
    with pytest.raises(MaskError, match="ratio"):
        boundary_areas(masks, masks, ratio=ratio)
    assert boundary_width((8, 8), 1e300).tolist() == [MAX_PIXELS]


def test_columns_of_other_types_are_refused() -> None:
    data = np.frombuffer(b"6", np.uint8)
    ends = np.array([0, 1])
    size = np.array([[2, 3]], np.int32)
    with pytest.raises(MaskError, match="start must be an array of int64"):
        Masks(data, ends[:1].astype(np.int32), ends[1:], size)  # type: ignore[arg-type]
    with pytest.raises(MaskError, match="size must be an array of int32"):
        Masks(data, ends[:1], ends[1:], size.astype(np.int64))  # type: ignore[arg-type]
    with pytest.raises(MaskError, match="expected Masks"):
        pair_areas(Masks.none(), 3)  # type: ignore[arg-type]
