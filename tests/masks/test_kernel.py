"""Malformed input: refused with MaskError naming the mask, by every function that reads masks."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwise.errors import MaskError
from maskwise.masks import (
    MAX_PIXELS,
    Masks,
    boundary_areas,
    pair_areas,
    pairwise_intersection,
)
from maskwise.masks.kernel import Kernel
from tests.masks.drawn import Planes, planes


def compress(values: list[int]) -> bytes:
    """Values as COCO writes them, five bits per character; not differences, and not checked."""
    out = bytearray()
    for value in values:
        rest = value
        more = True
        while more:
            bits = rest & 31
            rest = rest >> 5
            more = rest != (-1 if bits & 16 else 0)
            out.append(48 + bits + 32 * more)
    return bytes(out)


READERS: dict[str, Callable[[Masks], object]] = {
    "check": Masks.check,
    "area": Masks.area,
    "box": Masks.box,
    "to_runs": Masks.to_runs,
    "to_dense": Masks.to_dense,
    "and": lambda masks: masks & masks,
    "xor": lambda masks: masks ^ masks,
    "inside": lambda masks: masks.inside(masks),
    "merge": lambda masks: masks.merge([0, len(masks)]),
    "boundary": lambda masks: masks.boundary(1),
    "crop": lambda masks: masks.crop((0, 0, 2, 2)),
    "flip": Masks.flip,
    "resize": lambda masks: masks.resize((7, 7)),
    "components": Masks.components,
    "pair_areas": lambda masks: pair_areas(masks, masks),
    "pair_areas, threads": lambda masks: pair_areas(masks, masks, threads=3),
    "pairwise": lambda masks: pairwise_intersection(masks, masks),
    "boundary_areas": lambda masks: boundary_areas(masks, masks),
}

MALFORMED = {
    "sum too small": b"12",
    "sum too large": b"124",
    "nothing": b"",
    "a run past the frame": b"7",
    "negative first run": compress([-1, 7]),
    "negative later run": compress([1, 2, 3, -9, 9]),
    "runs that wrap around 32 bits": compress([2**32 + 6]),
    "runs that cancel out": compress([2**33, 6, -(2**33)]),
    "a value of eight characters": b"V" + b"P" * 6 + b"0",
    "a value that never ends": b"oooooooooooooooooooooooooooooo",
    "a value cut off": b"12S",
    "a character below the range": b"12/",
    "a character above the range": b"12p",
    "zero bytes": b"\0\0\0",
    "high bytes": b"\xff\xfe\x80",
    "bad character past a block of 64": b"0" * 200 + b"\x7f",
}


@pytest.mark.parametrize("counts", MALFORMED.values(), ids=list(MALFORMED))
def test_every_reader_names_the_malformed_mask(counts: bytes) -> None:
    masks = Masks.from_strings([b"6", b"123", b"06", counts, b"6"], (2, 3))
    for name, reader in READERS.items():
        with pytest.raises(MaskError) as caught:
            reader(masks)
        assert caught.value.item == 3, name
        assert str(caught.value).startswith("mask 3: "), name


@given(planes(most=1))
def test_every_cut_of_a_string_is_refused(stacks: tuple[Planes]) -> None:
    (counts,) = Masks.from_dense(stacks[0]).to_strings()
    size = stacks[0].shape[1:]
    for end in range(len(counts)):
        if stacks[0].size:
            with pytest.raises(MaskError):
                Masks.from_strings([counts[:end]], size).check()


@given(planes(most=1), st.integers(0, 139), st.integers(0, 139))
def test_another_frame_is_refused(
    stacks: tuple[Planes], height: int, width: int
) -> None:
    masks = Masks.from_strings(
        Masks.from_dense(stacks[0]).to_strings(), (height, width)
    )
    if height * width == stacks[0][0].size:
        assert masks.area().tolist() == [stacks[0].sum()]
    else:
        with pytest.raises(MaskError, match=r"pixels|past the frame"):
            masks.check()


ALPHABET = st.one_of(
    st.binary(max_size=40),
    st.lists(st.integers(48, 111), max_size=40).map(bytes),
    st.lists(st.integers(-3, 40), max_size=12).map(compress),
    st.lists(st.integers(-(2**36), 2**36), max_size=4).map(compress),
)


@given(st.lists(ALPHABET, min_size=1, max_size=4), st.integers(0, 8), st.integers(0, 8))
def test_any_bytes_are_masks_or_refused(
    counts: list[bytes], height: int, width: int
) -> None:
    masks = Masks.from_strings(counts, (height, width))
    try:
        masks.check()
    except MaskError:
        for reader in READERS.values():
            with pytest.raises(MaskError) as caught:
                reader(masks)
            assert caught.value.item in range(len(counts))
        return
    dense = np.array([mask.to_dense() for mask in masks])
    assert (masks | masks) == Masks.from_dense(dense)
    assert masks.area().tolist() == dense.sum((1, 2)).tolist()
    rewritten = Masks.from_runs(masks.to_runs(), (height, width))
    assert all(
        np.array_equal(a, b) for a, b in zip(rewritten.to_runs(), masks.to_runs())
    )


@given(st.lists(st.integers(0, 9), max_size=30), st.integers(1, 6))
def test_runs_with_empty_ones_are_the_same_mask(runs: list[int], height: int) -> None:
    """Empty runs anywhere change no pixel, whatever is done with the mask."""
    runs = [*runs, -sum(runs) % height]
    size = (height, sum(runs) // height)
    odd = Masks.from_runs([runs], size)
    plain = Masks.from_dense(odd[0].to_dense()[None])
    assert odd.to_runs()[0].tolist() == runs
    assert odd.box().tolist() == plain.box().tolist()
    assert pair_areas(odd, plain).intersection.tolist() == plain.area().tolist()
    assert pairwise_intersection(odd, odd).tolist() == [plain.area().tolist()]
    assert (
        boundary_areas(odd, plain).intersection.tolist()
        == plain.boundary(1).area().tolist()
    )
    assert (odd ^ plain).area().tolist() == [0]
    for work in (
        Masks.flip,
        lambda m: m.flip(vertical=True),
        lambda m: m.boundary(1),
        lambda m: m.shift(1, 1),
    ):
        assert work(odd) == work(plain)
    assert odd.resize((5, 5)) == plain.resize((5, 5))
    assert odd.merge([0, 1]) == plain
    for connectivity in (4, 8):
        parts, expected = (
            masks.components(connectivity=connectivity)[0] for masks in (odd, plain)
        )
        assert parts == expected


# -- columns that do not fit ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "stop"),
    [(-1, 3), (0, 10), (3, 1), (9, 9), (2**62, 2**63 - 1), (-(2**63), 3)],
)
def test_offsets_outside_of_the_data_are_refused(start: int, stop: int) -> None:
    data = np.frombuffer(b"123", np.uint8)
    bounds = np.array([[0, 3], [start, stop]], np.int64)
    masks = Masks(
        data, bounds[:, 0], bounds[:, 1], np.array([[2, 3], [2, 3]], np.int32)
    )
    for reader in READERS.values():
        with pytest.raises(MaskError) as caught:
            reader(masks)
        assert caught.value.item == 1


@pytest.mark.parametrize(
    "size", [(-1, 3), (3, -2), (2**31 - 1, 2**31 - 1), (46341, 46341), (-3, -2)]
)
def test_invalid_sizes_are_refused(size: tuple[int, int]) -> None:
    raw = Masks(
        np.frombuffer(b"6", np.uint8),
        np.array([0]),
        np.array([1]),
        np.array([size], np.int32),
    )
    for reader in READERS.values():
        with pytest.raises(MaskError):
            reader(raw)
    for make in (
        lambda: Masks.from_strings([b"6"], [size]),
        lambda: Masks.from_runs([[6]], [size]),
        lambda: Masks.draw_polygons([[0, 0, 1, 0, 1, 1]], [size]),
        lambda: Masks.from_rles([{"size": list(size), "counts": "6"}]),
        lambda: Masks.empty([size]),
        lambda: Masks.from_strings([b"6"], (2, 3)).resize(size),
        lambda: Masks.from_strings([b"6"], (2, 3)).crop((0, 0, size[1], size[0])),
        lambda: Masks.none().merge([0, 0], [size]),
    ):
        with pytest.raises(MaskError):
            make()


@pytest.mark.parametrize(
    "sizes",
    [
        [(2, 3)] * 3,
        [2, 3, 4],
        [[2.0, 3.0]],
        [["2", "3"]],
        [[2], [3, 4]],
        [[2**70, 1]],
        None,
    ],
)
def test_malformed_size_arguments_are_refused(sizes: object) -> None:
    with pytest.raises(MaskError):
        Masks.from_strings([b"6", b"6"], sizes)  # type: ignore[arg-type]


def test_columns_that_differ_in_length() -> None:
    bounds = np.array([0, 1])
    with pytest.raises(MaskError, match="columns differ"):
        Masks(np.zeros(3, np.uint8), bounds, bounds[:1], np.zeros((2, 2), np.int32))


@pytest.mark.parametrize(
    "runs",
    [
        [1.5, 2.5],
        ["a"],
        [None],
        [[1, 2], [3]],
        [2**80],
        [True, False],
        [2**63],
        [-1, 7],
        [7],
    ],
)
def test_invalid_runs_are_refused(runs: list[object]) -> None:
    with pytest.raises(MaskError) as caught:
        Masks.from_runs([[6], runs], (2, 3))
    assert caught.value.item == 1
    with pytest.raises(MaskError) as caught:
        Masks.from_rles(
            [
                {"size": [2, 3], "counts": counts}
                for counts in ("6", [6], b"6", [6], runs)
            ]
        )
    assert caught.value.item == 4


def test_invalid_dicts_and_strings_are_refused() -> None:
    with pytest.raises(
        MaskError, match="mask 1: a run-length mask needs size and counts"
    ):
        Masks.from_rles([{"size": [2, 3], "counts": "6"}, {"size": [2, 3]}])
    with pytest.raises(MaskError, match=r"mask 1: .*ASCII"):
        Masks.from_strings(["6", "é"], (2, 3))
    for text in ("6é", "6\ud800", "\u0666"):
        with pytest.raises(MaskError):
            Masks.from_rles([{"size": [2, 3], "counts": text}]).check()
    for counts in (None, 6, {"a": 1}):
        with pytest.raises(MaskError):
            Masks.from_rles([{"size": [2, 3], "counts": counts}])
    with pytest.raises(MaskError, match="shape"):
        Masks.from_dense(np.zeros((2, 2)))


@pytest.mark.parametrize("bad", [[1.5], [-1, 1], ["a", "b"], [2**40, 2**40], [1, 2, 3]])
def test_distances_and_windows_that_are_none(bad: list[object]) -> None:
    masks = Masks.from_strings([b"6", b"6"], (2, 3))
    with pytest.raises(MaskError):
        masks.boundary(bad)  # type: ignore[arg-type]
    with pytest.raises(MaskError):
        masks.crop(bad)  # type: ignore[arg-type]
    with pytest.raises(MaskError):
        masks.shift(2**40, 0)


# -- bounds --------------------------------------------------------------------------------------------------------


def test_frames_too_large_to_draw_are_refused_or_done() -> None:
    """The largest frames, full of pixels: whatever cannot be done within bounds says so."""
    runs = [[0, MAX_PIXELS], [MAX_PIXELS], [1, 1, MAX_PIXELS - 2]]
    for size in ((1, MAX_PIXELS), (MAX_PIXELS, 1)):
        masks = Masks.from_runs(runs, size)
        assert masks.area().tolist() == [MAX_PIXELS, 0, 1]
        assert masks.box()[2].tolist() == (
            [1, 0, 1, 1] if size[0] == 1 else [0, 1, 1, 1]
        )
        assert (masks ^ masks[[1, 0, 2]]).area().tolist() == [MAX_PIXELS, MAX_PIXELS, 0]
        for work in (
            lambda m: m.boundary(1),
            Masks.flip,
            Masks.components,
            lambda m: m.crop((0, 0, 5, 5)),
        ):
            with contextlib.suppress(MaskError):
                work(masks)
        with pytest.raises(MaskError, match="exceed"):
            masks.to_dense()


def test_a_tall_mask_made_flat_and_wide() -> None:
    """Rows that vanish are not looked at for every column."""
    tall = Masks.from_runs([[1, 1] * 20_000], (40_000, 1))
    assert tall.resize((1, 20_000)).area().tolist() in ([0], [20_000])


def test_kernels_offer_the_same_functions(kernel: ModuleType) -> None:
    wanted = {name for name in vars(Kernel) if not name.startswith("_")}
    assert wanted <= set(dir(kernel))


def test_the_environment_chooses_numpy() -> None:
    code = "from maskwise.masks import kernel_name; print(kernel_name())"
    environment = {
        **os.environ,
        "MASKWISE_KERNEL": "numpy",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.strip() == "numpy"
