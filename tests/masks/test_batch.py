"""Masks: reading, writing, sets and geometry, against plain code on dense arrays."""

import itertools
import pickle

import numpy as np
import pyarrow as pa
import pycocotools.mask as pm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from maskwise.errors import MaskError
from maskwise.masks import Mask, Masks
from maskwise.masks.batch import ARROW_TYPE
from tests.masks import drawn
from tests.masks.drawn import Planes, planes, sizes


def column_major(planes: Planes) -> Planes:
    return np.ascontiguousarray(planes.transpose(0, 2, 1)).transpose(0, 2, 1)


def dense(masks: Masks) -> Planes:
    """Planes of masks of one size; keeps the shape of an empty frame."""
    return np.array([mask.to_dense() for mask in masks])


# -- reading and writing -------------------------------------------------------------------------------------------


RUNS_AT_LIMITS = (1, 2, 15, 16, 17, 32, 33, 511, 512, 513, 514, 1024, 1025, 16400)
"""Differences of these need one character of a string, two or more, and just not."""


@given(st.lists(st.sampled_from(RUNS_AT_LIMITS), min_size=1, max_size=60))
def test_strings_of_runs_equal_pycocotools(runs: list[int]) -> None:
    frame = (1, sum(runs))
    official = pm.frPyObjects({"size": list(frame), "counts": runs}, *frame)
    masks = Masks.from_runs([runs], [frame])
    assert masks.to_strings() == [official["counts"]]
    assert masks.to_runs()[0].tolist() == runs


@given(planes())
def test_encoding_equals_pycocotools(stacks: tuple[Planes]) -> None:
    (planes,) = stacks
    masks = Masks.from_dense(planes)
    official = pm.encode(np.asfortranarray(planes.transpose(1, 2, 0), np.uint8))
    assert masks.to_strings() == [rle["counts"] for rle in official]
    assert masks.size.tolist() == [rle["size"] for rle in official]


@given(
    planes(),
    st.sampled_from([np.bool_, np.uint8, np.int32, np.uint64]),
    st.sampled_from([1, 255]),
)
def test_dense_roundtrip_in_every_layout(
    stacks: tuple[Planes], kind: type, inside: int
) -> None:
    (planes,) = stacks
    array = planes.astype(kind) * kind(inside)
    strided = np.repeat(array, 2, axis=2)[:, :, ::2]
    for layout in (array, column_major(array), strided):
        masks = Masks.from_dense(layout)
        assert np.array_equal(dense(masks), planes)
        assert masks == Masks.from_dense(planes)
    assert np.array_equal(masks.to_dense(), planes)
    assert masks.to_dense().dtype == np.bool_


@given(planes(most=9), st.integers(1, 4))
def test_threads_change_nothing(stacks: tuple[Planes], threads: int) -> None:
    masks = Masks.from_dense(stacks[0], threads=threads)
    assert masks == Masks.from_dense(stacks[0])
    assert np.array_equal(masks.to_dense(threads=threads), stacks[0])
    assert np.array_equal(masks.area(threads=threads), masks.area())
    assert np.array_equal(masks.box(threads=threads), masks.box())


@given(planes())
def test_runs_roundtrip(stacks: tuple[Planes]) -> None:
    masks = Masks.from_dense(stacks[0])
    runs = masks.to_runs()
    height, width = stacks[0].shape[1:]
    assert [run.dtype for run in runs] == [np.uint32] * len(masks)
    assert Masks.from_runs(runs, (height, width)) == masks
    assert Masks.from_runs([run.tolist() for run in runs], masks.size) == masks
    for run, plane in zip(runs, stacks[0]):
        assert np.array_equal(
            np.repeat(np.arange(len(run)) % 2 == 1, run), plane.T.ravel()
        )


def test_runs_keep_empty_runs_as_they_are() -> None:
    runs = [2, 3, 0, 1, 0, 0, 4]
    masks = Masks.from_runs([runs], (5, 2))
    assert masks.to_strings() == [
        pm.frPyObjects({"size": [5, 2], "counts": runs}, 5, 2)["counts"]
    ]
    assert masks.to_runs()[0].tolist() == runs
    assert masks.area().tolist() == [4]
    assert masks.box().tolist() == [[0, 0, 2, 5]]
    assert (masks | masks).to_runs()[0].tolist() == [2, 4, 4]
    assert masks.merge([0, 1]).to_runs()[0].tolist() == [2, 4, 4]
    assert np.array_equal(masks.to_dense()[0].T.ravel(), [0, 0, 1, 1, 1, 1, 0, 0, 0, 0])


@given(planes())
def test_rles_of_every_kind(stacks: tuple[Planes]) -> None:
    masks = Masks.from_dense(stacks[0])
    mixed = []
    for item, rle in enumerate(masks.to_rles()):
        forms = [rle["counts"], rle["counts"].encode(), masks.to_runs()[item].tolist()]
        mixed += [{"size": rle["size"], "counts": counts} for counts in forms]
    assert Masks.from_rles(mixed) == masks[np.repeat(np.arange(len(masks)), 3)]
    assert Masks.from_rles(masks.to_rles()) == masks
    assert Masks.from_rles([]) == Masks.none()


@given(planes(least=2, most=6), st.data())
def test_selecting(stacks: tuple[Planes], data: st.DataObject) -> None:
    masks = Masks.from_dense(stacks[0])
    count = len(stacks[0])
    picks = data.draw(st.lists(st.integers(-count, count - 1), max_size=8))
    assert dense(masks[picks]).tolist() == stacks[0][picks].tolist()
    assert dense(masks[::-2]).tolist() == stacks[0][::-2].tolist()
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    assert dense(masks[keep]).tolist() == stacks[0][keep].tolist()
    assert list(masks) == [masks[item] for item in range(count)]
    assert Masks.from_masks(list(masks)) == masks
    assert masks[picks].data is masks.data


@given(planes(), planes())
def test_concat(first: tuple[Planes], second: tuple[Planes]) -> None:
    a = Masks.from_dense(first[0])
    b = Masks.from_dense(second[0])
    both = Masks.concat([a, Masks.none(), b[::-1]])
    assert both[: len(a)] == a
    assert both[len(a) :][::-1] == b
    assert Masks.concat([]) == Masks.none()


@given(planes(least=1, most=6), st.data())
def test_arrow_roundtrip_shares_memory(
    stacks: tuple[Planes], data: st.DataObject
) -> None:
    masks = Masks.from_dense(stacks[0])
    column = masks.to_arrow()
    column.validate(full=True)
    assert column.type == ARROW_TYPE
    assert column.to_pylist() == [
        {"size": rle["size"], "counts": rle["counts"].encode()}
        for rle in masks.to_rles()
    ]
    back = Masks.from_arrow(column)
    assert back == masks
    assert not masks.data.size or np.shares_memory(back.data, masks.data)
    first = data.draw(st.integers(0, len(masks)))
    last = data.draw(st.integers(first, len(masks)))
    part = column.slice(first, last - first)
    assert Masks.from_arrow(part) == masks[first:last]
    assert Masks.from_arrow(pa.chunked_array([part, column])) == Masks.concat(
        [masks[first:last], masks]
    )
    assert Masks.from_arrow(masks[first:last].to_arrow()) == masks[first:last]
    assert Masks.from_arrow(masks[::-1].to_arrow()) == masks[::-1]


def test_arrow_nulls_and_empty_columns() -> None:
    rows = [{"size": [2, 3], "counts": b"6"}, None, {"size": [2, 2], "counts": b"4"}]
    column = pa.array(rows, ARROW_TYPE)
    masks = Masks.from_arrow(column)
    assert masks.to_strings() == [b"6", b"", b"4"]
    assert masks.size.tolist() == [[2, 3], [0, 0], [2, 2]]
    assert Masks.from_arrow(column.slice(1)).size.tolist() == [[0, 0], [2, 2]]
    hidden = pa.StructArray.from_arrays(
        [column.field("size"), column.field("counts")],
        fields=list(ARROW_TYPE),
        mask=pa.array([True, True, False]),
    )
    assert Masks.from_arrow(hidden).to_strings() == [b"", b"", b"4"]
    assert Masks.from_arrow(hidden).size.tolist() == [[0, 0], [0, 0], [2, 2]]
    assert Masks.from_arrow(Masks.none().to_arrow()) == Masks.none()
    assert Masks.from_arrow(pa.chunked_array([], ARROW_TYPE)) == Masks.none()


def test_arrow_columns_of_other_types() -> None:
    loose = pa.struct([("size", pa.list_(pa.int64())), ("counts", pa.string())])
    column = pa.array([{"size": [2, 3], "counts": "6"}], loose)
    assert Masks.from_arrow(column).to_rles() == [{"size": [2, 3], "counts": "6"}]
    with pytest.raises(MaskError, match="expected a column of"):
        Masks.from_arrow(pa.array([1, 2]))


def test_batches_of_nothing() -> None:
    none = Masks.none()
    assert len(none) == 0
    assert none.to_runs() == []
    assert none.to_dense().shape == (0, 0, 0)
    assert none.area().shape == (0,)
    assert none.box().shape == (0, 4)
    for made in (
        none & none,
        none.flip(),
        none.resize((3, 3)),
        none.crop((0, 0, 1, 1)),
        none.boundary(1),
    ):
        assert made == none
    assert none.merge([0]) == none
    assert none.merge([0, 0], (2, 3)).to_rles() == [{"size": [2, 3], "counts": "6"}]
    assert Masks.empty([(2, 3), (4, 5)]).to_rles() == [
        {"size": [2, 3], "counts": "6"},
        {"size": [4, 5], "counts": "d0"},
    ]
    assert Masks.from_dense(np.zeros((0, 4, 5), bool)) == none
    parts, owners = none.components()
    assert parts == none
    assert owners.shape == (0,)


@given(sizes())
def test_frames_without_pixels_and_empty_masks(size: tuple[int, int]) -> None:
    empty = Masks.empty([size])
    assert empty.area().tolist() == [0]
    assert empty.box().tolist() == [[0, 0, 0, 0]]
    assert empty == Masks.from_dense(np.zeros((1, *size), bool))
    assert empty.to_strings() == [Mask.empty(*size).counts.encode()]
    assert empty.components()[1].tolist() == []
    assert (empty | empty) == empty.boundary(2) == empty.flip() == empty


# -- measuring and sets --------------------------------------------------------------------------------------------


@given(planes())
def test_area_and_box(stacks: tuple[Planes]) -> None:
    masks = Masks.from_dense(stacks[0])
    assert masks.area().tolist() == stacks[0].sum((1, 2)).tolist()
    for plane, box in zip(stacks[0], masks.box().tolist()):
        rows = np.flatnonzero(plane.any(1))
        columns = np.flatnonzero(plane.any(0))
        expected = (
            [columns[0], rows[0], np.ptp(columns) + 1, np.ptp(rows) + 1]
            if len(rows)
            else [0, 0, 0, 0]
        )
        assert box == expected


@given(planes(batches=2))
def test_operators(stacks: tuple[Planes, Planes]) -> None:
    a, b = stacks
    first = Masks.from_dense(a)
    second = Masks.from_dense(b)
    assert first & second == Masks.from_dense(a & b)
    assert first | second == Masks.from_dense(a | b)
    assert first - second == Masks.from_dense(a & ~b)
    assert first ^ second == Masks.from_dense(a ^ b)
    assert first.inside(second).tolist() == (~(a & ~b)).all((1, 2)).tolist()
    assert (first & second).inside(first).all()
    assert (first - second | first & second) == first


@given(planes(least=0, most=7), st.data())
def test_merge_by_group(stacks: tuple[Planes], data: st.DataObject) -> None:
    count = len(stacks[0])
    size = stacks[0].shape[1:]
    offsets = sorted(data.draw(st.lists(st.integers(0, count), min_size=1, max_size=6)))
    masks = Masks.from_dense(stacks[0])
    groups = [stacks[0][first:last] for first, last in itertools.pairwise(offsets)]
    for intersect in (False, True):
        folded = [
            (group.all(0) if intersect else group.any(0))
            if len(group)
            else np.zeros(size, bool)
            for group in groups
        ]
        merged = masks.merge(offsets, size, intersect=intersect)
        assert merged == (
            Masks.from_dense(np.array(folded)) if folded else Masks.none()
        )
    if all(len(group) for group in groups) and groups:
        assert masks.merge(offsets) == masks.merge(offsets, size)


def test_merge_refuses_bad_groups() -> None:
    masks = Masks.from_dense(np.ones((3, 2, 2), bool))
    for offsets in ([], [0, 4], [-1, 2], [2, 1]):
        with pytest.raises(MaskError, match="group offsets"):
            masks.merge(offsets, (2, 2))
    with pytest.raises(MaskError, match="a group is empty"):
        masks.merge([0, 1, 1, 3])
    other = Masks.concat([masks, Masks.from_dense(np.ones((1, 3, 2), bool))])
    with pytest.raises(MaskError, match=r"mask 3: sizes differ: \(3, 2\) and \(2, 2\)"):
        other.merge([0, 2, 4])


# -- geometry ------------------------------------------------------------------------------------------------------


@given(planes(), st.integers(0, 5))
def test_boundary(stacks: tuple[Planes], distance: int) -> None:
    bands = np.array([drawn.boundary(plane, distance) for plane in stacks[0]])
    masks = Masks.from_dense(stacks[0])
    assert masks.boundary(distance) == Masks.from_dense(bands)
    assert masks.boundary([distance] * len(masks)) == Masks.from_dense(bands)
    assert masks.boundary(2**31 - 1) == masks


@given(planes(), st.tuples(*[st.integers(-20, 150)] * 2, *[st.integers(0, 40)] * 2))
def test_crop(stacks: tuple[Planes], box: tuple[int, int, int, int]) -> None:
    cut = Masks.from_dense(stacks[0]).crop(box)
    assert cut == Masks.from_dense(
        np.array([drawn.window(plane, box) for plane in stacks[0]])
    )


@given(planes(), st.integers(-15, 15), st.integers(-15, 15))
def test_shift(stacks: tuple[Planes], right: int, down: int) -> None:
    height, width = stacks[0].shape[1:]
    moved = np.array(
        [drawn.window(plane, (-right, -down, width, height)) for plane in stacks[0]]
    )
    masks = Masks.from_dense(stacks[0])
    assert masks.shift(right, down) == Masks.from_dense(moved)
    assert masks.shift(2**31 - 1, 0).area().sum() == 0


@given(planes())
def test_flip(stacks: tuple[Planes]) -> None:
    masks = Masks.from_dense(stacks[0])
    assert masks.flip() == Masks.from_dense(stacks[0][:, :, ::-1])
    assert masks.flip(vertical=True) == Masks.from_dense(stacks[0][:, ::-1])
    assert masks.flip().flip() == masks


@given(planes(), sizes())
def test_resize(stacks: tuple[Planes], size: tuple[int, int]) -> None:
    masks = Masks.from_dense(stacks[0])
    scaled = masks.resize(size)
    assert scaled == Masks.from_dense(
        np.array([drawn.resize(plane, size) for plane in stacks[0]])
    )
    assert scaled.size.tolist() == [list(size)] * len(masks)
    assert masks.resize(masks.size) == masks


@given(planes(most=1), st.integers(1, 5), st.booleans())
def test_resize_equals_pillow(stacks: tuple[Planes], factor: int, up: bool) -> None:
    plane = stacks[0][0]
    if not plane.size:
        return
    height, width = plane.shape
    size = (
        (height * factor, width * factor)
        if up
        else (-(-height // factor), -(-width // factor))
    )
    if not up:
        plane = plane[: height // factor * factor, : width // factor * factor]
        size = (plane.shape[0] // factor, plane.shape[1] // factor)
        if 0 in size:
            return
    scaled = Image.fromarray(plane.astype(np.uint8)).resize(
        size[::-1], Image.Resampling.NEAREST
    )
    assert Masks.from_dense(plane[None]).resize(size) == Masks.from_dense(
        np.asarray(scaled)[None]
    )


@settings(max_examples=40)
@given(planes(most=3), st.sampled_from([4, 8]))
def test_components(stacks: tuple[Planes], connectivity: int) -> None:
    parts, owners = Masks.from_dense(stacks[0]).components(connectivity=connectivity)
    expected = [drawn.components(plane, connectivity) for plane in stacks[0]]
    assert owners.tolist() == [
        item for item, found in enumerate(expected) for _ in found
    ]
    flat = [plane for found in expected for plane in found]
    assert parts == (Masks.from_dense(np.array(flat)) if flat else parts[:0])


def test_components_by_hand() -> None:
    rows = ["#.#", ".#.", "..#"]
    masks = Masks.from_dense(
        np.array([[[pixel == "#" for pixel in row] for row in rows]])
    )
    parts, owners = masks.components(connectivity=4)
    assert owners.tolist() == [0] * 4
    assert parts.box().tolist() == [
        [0, 0, 1, 1],
        [1, 1, 1, 1],
        [2, 0, 1, 1],
        [2, 2, 1, 1],
    ]
    assert len(masks.components()[0]) == 1
    with pytest.raises(MaskError, match="connectivity must be 4 or 8"):
        masks.components(connectivity=6)


def test_a_selection_is_pickled_without_the_other_masks() -> None:
    random = np.random.default_rng(0)
    many = Masks.from_dense(random.random((50, 40, 30)) < 0.5)
    few = many[[3, 7]]
    assert len(pickle.dumps(few)) < len(pickle.dumps(many)) / 5
    assert pickle.loads(pickle.dumps(few)) == few
    joined = Masks.concat([few, few])
    assert joined == many[[3, 7, 3, 7]]
    assert len(joined.data) < len(many.data) / 5


# -- masks of several sizes ----------------------------------------------------------------------------------------


@given(st.lists(planes(most=2), min_size=2, max_size=4))
def test_batches_of_several_sizes(groups: list[tuple[Planes]]) -> None:
    flat = [plane for (group,) in groups for plane in group]
    masks = Masks.concat([Masks.from_dense(group) for (group,) in groups])
    assert masks.area().tolist() == [int(plane.sum()) for plane in flat]
    assert masks.flip() == Masks.from_masks(
        [Mask.from_dense(plane[:, ::-1]) for plane in flat]
    )
    assert masks.boundary(1) == Masks.from_masks(
        [Mask.from_dense(drawn.boundary(plane, 1)) for plane in flat]
    )
    assert (masks - masks.boundary(1)) == (masks ^ masks.boundary(1))
    resized = masks.resize((7, 5))
    assert np.array_equal(
        resized.to_dense(), np.array([drawn.resize(plane, (7, 5)) for plane in flat])
    )
    if len({plane.shape for plane in flat}) > 1:
        with pytest.raises(MaskError, match="one size"):
            masks.to_dense()
