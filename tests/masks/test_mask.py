"""Mask: one mask as records hold it."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwise.errors import MaskError
from maskwise.masks import MAX_PIXELS, Mask
from tests.masks.drawn import Planes, planes


@given(planes(most=1, batches=2))
def test_algebra(stacks: tuple[Planes, Planes]) -> None:
    a = stacks[0][0]
    b = stacks[1][0]
    first = Mask.from_dense(a)
    second = Mask.from_dense(b)
    assert np.array_equal(first.to_dense(), a)
    assert (first & second) == Mask.from_dense(a & b)
    assert (first | second) == Mask.from_dense(a | b)
    assert (first - second) == Mask.from_dense(a & ~b)
    assert first.area == a.sum()
    assert first.areas_with(second) == ((a & b).sum(), a.sum(), b.sum())
    assert first.inside(second) == bool((a <= b).all())
    assert first.iou(second) == (
        (a & b).sum() / (a | b).sum() if (a & b).any() else 0.0
    )


@given(planes(most=1))
def test_json_roundtrip(stacks: tuple[Planes]) -> None:
    mask = Mask.from_dense(stacks[0][0])
    text = msgspec.json.encode(mask)
    assert msgspec.json.decode(text) == {"size": list(mask.size), "counts": mask.counts}
    assert msgspec.json.decode(text, type=Mask) == mask
    assert hash(msgspec.json.decode(text, type=Mask)) == hash(mask)


def test_by_hand() -> None:
    mask = Mask((2, 3), "123")
    assert mask.to_dense().tolist() == [[False, True, False], [True, False, False]]
    assert mask.area == 2
    assert Mask.empty(2, 3).counts == "6"
    assert mask.inside(mask)
    assert Mask.empty(2, 3).inside(mask)
    assert Mask.empty(2, 3).iou(Mask.empty(2, 3)) == 0.0


@pytest.mark.parametrize(
    ("size", "counts", "message"),
    [
        ((2, 3), "12", "runs sum to 3, the frame 2 x 3 has 6 pixels"),
        ((2, 3), "", "runs sum to 0, the frame 2 x 3 has 6 pixels"),
        ((2, 3), "124", "past the frame"),
        ((2, 3), "1O5", "negative run"),
        ((2, 3), "12!", "bad character"),
        ((2, 3), "12~", "bad character"),
        ((2, 3), "12\x00", "bad character"),
        ((2, 3), "12é", "bad character"),
        ((2, 3), "12\ud800", "bad character"),
        ((2, 3), "12P", "cut off"),
        ((2, 3), "oooooooo0", "value"),
        ((-1, 3), "", "size"),
        ((2**31, 1), "0", "size"),
        ((2**16, 2**16), "0", "size"),
        ((2**80, 1), "0", "size"),
    ],
)
def test_malformed_masks_are_refused(
    size: tuple[int, int], counts: str, message: str
) -> None:
    with pytest.raises(MaskError, match=message) as caught:
        Mask(size, counts)
    assert caught.value.item is None


def test_the_largest_frame() -> None:
    mask = Mask.empty(1, MAX_PIXELS)
    assert mask.counts == "ooooooO"[: len(mask.counts) - 1] + mask.counts[-1]
    assert mask.area == 0
    assert (mask | mask) == mask
    full = Mask((1, MAX_PIXELS), "0" + mask.counts)
    assert full.area == MAX_PIXELS
    assert full - mask == full
    assert mask.areas_with(full) == (0, 0, MAX_PIXELS)


def test_masks_of_two_sizes_do_not_mix() -> None:
    a = Mask.empty(2, 3)
    b = Mask.empty(3, 2)
    for work in (a.__and__, a.__or__, a.__sub__, a.areas_with, a.iou, a.inside):
        with pytest.raises(MaskError, match=r"sizes differ: \(2, 3\) and \(3, 2\)"):
            work(b)


@given(st.text(max_size=20), st.integers(-3, 20), st.integers(-3, 20))
def test_any_text_is_a_mask_or_refused(counts: str, height: int, width: int) -> None:
    try:
        mask = Mask((height, width), counts)
    except MaskError:
        return
    assert (
        Mask.from_dense(mask.to_dense()).to_dense().tolist() == mask.to_dense().tolist()
    )
    assert mask.area == mask.to_dense().sum()
