"""Areas, IoU and boundary IoU, against dense arrays and pycocotools."""

import numpy as np
import pycocotools.mask as pm
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwise.errors import MaskError
from maskwise.masks import (
    Masks,
    boundary_areas,
    boundary_iou,
    boundary_width,
    iou,
    pair_areas,
    pairwise_boundary_iou,
    pairwise_intersection,
    pairwise_iou,
)
from tests.masks import drawn
from tests.masks.drawn import Planes, planes


@given(planes(batches=2), st.integers(1, 3))
def test_pair_areas(stacks: tuple[Planes, Planes], threads: int) -> None:
    a, b = stacks
    areas = pair_areas(Masks.from_dense(a), Masks.from_dense(b), threads=threads)
    assert areas.intersection.tolist() == (a & b).sum((1, 2)).tolist()
    assert areas.a.tolist() == a.sum((1, 2)).tolist()
    assert areas.b.tolist() == b.sum((1, 2)).tolist()
    assert areas.union.tolist() == (a | b).sum((1, 2)).tolist()
    assert areas.iou(empty=1.0).tolist() == [
        (x & y).sum() / (x | y).sum() if (x | y).any() else 1.0 for x, y in zip(a, b)
    ]


@given(planes(least=0, most=3), planes(least=0, most=3))
def test_pairwise_intersection(first: tuple[Planes], second: tuple[Planes]) -> None:
    a = first[0]
    b = second[0]
    together = np.concatenate([a, np.zeros((0, *a.shape[1:]), bool)])
    assert pairwise_intersection(
        Masks.from_dense(a), Masks.from_dense(together)
    ).tolist() == [[int((x & y).sum()) for y in together] for x in a]
    if a.shape[1:] != b.shape[1:] and len(a) and len(b):
        with pytest.raises(MaskError, match="sizes differ"):
            pairwise_intersection(Masks.from_dense(a), Masks.from_dense(b))


@given(planes(batches=2), st.data())
def test_iou_equals_pycocotools(
    stacks: tuple[Planes, Planes], data: st.DataObject
) -> None:
    if not stacks[0][0].size:
        return
    a, b = (Masks.from_dense(stack) for stack in stacks)
    crowd = data.draw(st.lists(st.booleans(), min_size=len(b), max_size=len(b)))
    official = pm.iou(a.to_rles(), b.to_rles(), crowd)
    assert np.array_equal(pairwise_iou(a, b, crowd=crowd), official)
    assert np.array_equal(iou(a, b, crowd=crowd), np.diagonal(official))


@given(planes(batches=2), st.sampled_from([0.02, 0.05, 0.1]))
def test_boundary_areas(stacks: tuple[Planes, Planes], ratio: float) -> None:
    a, b = stacks
    (width,) = boundary_width(a.shape[1:], ratio).tolist()
    bands = [
        np.array([drawn.boundary(plane, width) for plane in stack]) for stack in (a, b)
    ]
    areas = boundary_areas(
        Masks.from_dense(a), Masks.from_dense(b), ratio=ratio, threads=2
    )
    assert areas.intersection.tolist() == (bands[0] & bands[1]).sum((1, 2)).tolist()
    assert areas.a.tolist() == bands[0].sum((1, 2)).tolist()
    assert areas.b.tolist() == bands[1].sum((1, 2)).tolist()


@given(planes(batches=2), st.booleans())
def test_boundary_iou_is_the_smaller_of_two(
    stacks: tuple[Planes, Planes], crowd: bool
) -> None:
    a, b = (Masks.from_dense(stack) for stack in stacks)
    width = boundary_width(a.size)
    whole = iou(a, b, crowd=crowd)
    band = iou(a.boundary(width), b.boundary(width))
    combined = boundary_iou(a, b, crowd=crowd)
    assert np.array_equal(combined, whole if crowd else np.minimum(whole, band))
    pairwise = pairwise_boundary_iou(a, b, crowd=[crowd] * len(b))
    assert np.array_equal(np.diagonal(pairwise), combined)
    assert pairwise[-1, 0] == boundary_iou(a[-1:], b[:1], crowd=crowd)[0]


def test_boundary_width_rounds_half_to_even() -> None:
    frames = [(30, 40), (75, 100), (480, 640), (1, 1), (0, 0), (105, 140)]
    assert boundary_width(frames).tolist() == [1, 2, 16, 1, 1, 4]


def test_iou_by_hand() -> None:
    planes = np.array([[[1, 1, 0, 0]], [[0, 1, 1, 0]], [[0, 0, 0, 0]]], bool)
    masks = Masks.from_dense(planes)
    third = 1 / 3
    assert pairwise_iou(masks, masks).tolist() == [
        [1, third, 0],
        [third, 1, 0],
        [0, 0, 0],
    ]
    assert pairwise_iou(masks, masks, crowd=[False, True, True]).tolist() == [
        [1, 0.5, 0],
        [third, 1, 0],
        [0, 0, 0],
    ]
    assert iou(masks, masks[[1, 0, 2]]).tolist() == [third, third, 0]
    assert pair_areas(masks, masks).iou(empty=1.0).tolist() == [1, 1, 1]


def test_batches_of_two_lengths_do_not_pair() -> None:
    masks = Masks.from_dense(np.ones((3, 2, 2), bool))
    for work in (pair_areas, boundary_areas, iou, boundary_iou):
        with pytest.raises(MaskError, match="one length, got 3 and 2"):
            work(masks, masks[:2])
    with pytest.raises(MaskError):
        masks.inside(masks[:2])
    with pytest.raises(MaskError):
        masks & masks[:2]


def test_the_pair_that_differs_in_size_is_named() -> None:
    a = Masks.from_dense(np.ones((5, 2, 3), bool))
    b = Masks.concat([a[:3], Masks.from_dense(np.ones((2, 3, 2), bool))])
    for work in (pair_areas, boundary_areas):
        for threads in (1, 2, 5):
            with pytest.raises(
                MaskError, match=r"mask 3: sizes differ: \(2, 3\) and \(3, 2\)"
            ):
                work(a, b, threads=threads)
    with pytest.raises(MaskError, match="mask 3: sizes differ"):
        a & b


def test_areas_past_32_bits() -> None:
    full = Masks.from_rles(
        [{"size": [2**15, 2**16 - 1], "counts": [0, 2**15 * (2**16 - 1)]}] * 3
    )
    areas = pair_areas(full, full)
    assert areas.union.tolist() == [2**15 * (2**16 - 1)] * 3
    assert areas.intersection.sum() > 2**32
