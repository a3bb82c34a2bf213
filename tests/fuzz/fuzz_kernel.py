"""Call the C mask kernel with damaged input, and compare its results with those of the numpy kernel.

`make fuzz SECONDS=60` builds the kernel with the address and undefined-behaviour sanitizers and runs this file.
By hand:

    mkdir -p .cache/fuzz && cp -R src/maskwise .cache/fuzz/ && rm -f .cache/fuzz/maskwise/masks/_kernel*.so
    MASKWISE_SANITIZE=1 python setup.py build_ext --build-lib .cache/fuzz --build-temp .cache/fuzz/objects
    PYTHONPATH=.cache/fuzz PYTHONMALLOC=malloc LD_PRELOAD="$(gcc -print-file-name=libasan.so)" \\
        ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \\
        python tests/fuzz/fuzz_kernel.py --seconds 60 --seed 1

A case is a call with valid masks, often with one argument damaged: bytes, offsets and sizes (arrays of the right
type, so only MaskError may be raised), or the arrays themselves (wrong types, lengths, layouts). Calls of the first
kind on small frames must have the results of the numpy kernel. The last line tells how many calls were made.
"""

import argparse
import faulthandler
import itertools
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maskwise.errors import MaskError
from maskwise.masks import _kernel, numpy_kernel
from maskwise.masks.kernel import Batch

Rng = np.random.Generator
Array = NDArray[Any]

PATIENCE = 60
"""Seconds that the calls for one input may take."""

ATTEMPTS = 20
"""Calls for every valid input, each damaged in another way; every tenth is compared."""

SMALL = 2**10
"""Calls whose sizes and distances are within this of 0 go through the numpy kernel as well."""

WRONG_ARRAYS = (TypeError, ValueError, BufferError, OverflowError)
"""What a call with arrays of the wrong kind may raise, beside MaskError."""

DAMAGEABLE = (str, tuple, np.ndarray)

EDGES = np.array(
    [0, 1, -1, 2, 63, 64, 65, 2**15, 2**16, 46340, 46341, 2**26, 2**31 - 1, -(2**31)]
)


@dataclass
class Case:
    """One call: arguments, and which of them are filled by it."""

    name: str
    arguments: list[Any]
    filled: list[int] = field(default_factory=list)
    wrong_arrays: bool = False
    comparable: bool = True

    def run(self, kernel: Any) -> tuple[Any, list[Array]]:
        """What the function returns, and what it filled."""
        arguments = [
            argument.copy() if place in self.filled else argument
            for place, argument in enumerate(self.arguments)
        ]
        returned = getattr(kernel, self.name)(*arguments)
        return returned, [arguments[place] for place in self.filled]


# -- valid input ---------------------------------------------------------------------------------------------------


def draw_size(rng: Rng) -> tuple[int, int]:
    kind = rng.integers(0, 20)
    if kind == 0:
        return (
            (0, int(rng.integers(0, 5)))
            if rng.random() < 0.5
            else (int(rng.integers(0, 5)), 0)
        )
    if kind <= 3:
        return int(rng.integers(60, 200)), int(rng.integers(1, 70))
    return int(rng.integers(1, 24)), int(rng.integers(1, 24))


def draw_runs(rng: Rng, pixels: int) -> list[int]:
    """Runs that fill the frame; some empty."""
    cuts = np.sort(rng.integers(0, pixels + 1, int(rng.choice([0, 1, 2, 5, 20, 80]))))
    if rng.random() < 0.7:
        cuts = np.unique(cuts)
    return np.diff(cuts, prepend=0, append=pixels).tolist()


def compress(runs: list[int]) -> bytes:
    """A COCO string, five bits per character."""
    out = bytearray()
    for item, run in enumerate(runs):
        rest = run - (runs[item - 2] if item > 2 else 0)
        more = True
        while more:
            bits = rest & 31
            rest = rest >> 5
            more = rest != (-1 if bits & 16 else 0)
            out.append(48 + bits + 32 * more)
    return bytes(out)


def draw_batch(rng: Rng, sizes: list[tuple[int, int]]) -> Batch:
    """Masks of the sizes, at rising places of one buffer that ends with the last of them."""
    texts = [compress(draw_runs(rng, height * width)) for height, width in sizes]
    stop = np.cumsum([len(text) for text in texts], dtype=np.int64)
    start = stop - np.array([len(text) for text in texts], np.int64)
    return np.array(list(b"".join(texts)), np.uint8), start, stop, as_sizes(sizes)


def as_sizes(sizes: list[tuple[int, int]]) -> NDArray[np.int32]:
    return np.array(sizes, np.int32).reshape(-1, 2)


def draw_sizes(rng: Rng) -> list[tuple[int, int]]:
    count = int(rng.choice([0, 1, 1, 2, 3, 8]))
    if rng.random() < 0.7:
        return [draw_size(rng)] * count
    return [draw_size(rng) for _ in range(count)]


# -- damage --------------------------------------------------------------------------------------------------------


def damage_bytes(rng: Rng, data: Array) -> Array:
    data = data.copy()
    kind = rng.integers(0, 5)
    if kind == 0:
        return rng.integers(0, 256, int(rng.integers(0, 200)), np.uint8)
    if kind == 1:
        return rng.integers(48, 112, int(rng.integers(0, 200)), np.uint8)
    if kind == 2:
        return data[: int(rng.integers(0, len(data) + 1))].copy()
    for _ in range(int(rng.integers(1, 4))):
        if len(data):
            at = rng.integers(0, len(data))
            data[at] = rng.integers(0, 256) if kind == 3 else rng.integers(48, 112)
    return data


def damage_text(rng: Rng, text: str) -> str:
    data = np.frombuffer(text.encode("ascii"), np.uint8)
    ending = ["", "", "", "é", "\ud800", "\0", "漢"][rng.integers(0, 7)]
    return damage_bytes(rng, data).tobytes().decode("latin-1") + ending


def damage_numbers(rng: Rng, numbers: Array) -> Array:
    """Some numbers replaced by neighbours or by edges of what fits."""
    numbers = numbers.copy()
    flat = numbers.reshape(-1)
    for _ in range(int(rng.integers(1, 3))):
        if len(flat):
            at = rng.integers(0, len(flat))
            if flat.dtype.kind == "f":
                flat[at] = rng.choice(
                    [
                        np.nan,
                        np.inf,
                        -np.inf,
                        2.0**26,
                        -(2.0**26),
                        2.0**26 + 1,
                        1e300,
                        -0.0,
                    ]
                )
            elif rng.random() < 0.5:
                flat[at] = (np.int64(flat[at]) + rng.integers(-3, 4)).astype(flat.dtype)
            else:
                flat[at] = rng.choice(EDGES)
    return numbers


def damage_array(rng: Rng, array: Array) -> Any:
    """A wrong array: another type, length or layout, or no array."""
    kind = rng.integers(0, 7)
    if kind == 0:
        return array.astype(
            rng.choice(["u1", "i2", "i4", "i8", "f4", "f8", "?", "c16"])
        )
    if kind == 1:
        return array[: len(array) // 2].copy() if array.ndim else array
    if kind == 2:
        return np.concatenate([array, array]) if array.ndim else array
    if kind == 3:
        return np.repeat(array, 2, axis=-1)[..., ::2] if array.ndim else array
    if kind == 4:
        frozen = array.copy()
        frozen.flags.writeable = False
        return frozen
    if kind == 5:
        return array.tobytes()
    return rng.choice(np.array([None, 3, "text"], object))


def damage(rng: Rng, valid: Case) -> Case:
    """The case as it is, or with damaged values or arrays."""
    case = replace(valid, arguments=list(valid.arguments))
    kind = rng.random()
    if kind < 0.35:
        return case
    places = [
        place
        for place, argument in enumerate(case.arguments)
        if isinstance(argument, DAMAGEABLE)
    ]
    if not places:
        return case
    place = int(rng.choice(places))
    target = case.arguments[place]
    if isinstance(target, str):
        case.arguments[place] = damage_text(rng, target)
    elif kind < 0.8:
        case.arguments[place] = damage_values(rng, target, keep=place in case.filled)
    else:
        case.wrong_arrays = True
        case.filled = [filled for filled in case.filled if filled != place]
        case.arguments[place] = (
            damage_part(rng, target)
            if isinstance(target, tuple)
            else damage_array(rng, target)
        )
    return case


def damage_values(rng: Rng, target: Any, keep: bool) -> Any:
    if isinstance(target, tuple):
        part = int(rng.choice([0, 0, 0, 1, 2, 3]))
        worse = (
            damage_bytes(rng, target[0])
            if part == 0
            else damage_numbers(rng, target[part])
        )
        return (*target[:part], worse, *target[part + 1 :])
    return target if keep or target.dtype == np.uint8 else damage_numbers(rng, target)


def damage_part(rng: Rng, batch: Batch) -> tuple[Any, ...]:
    part = int(rng.integers(0, 4))
    return (*batch[:part], damage_array(rng, batch[part]), *batch[part + 1 :])


# -- one function per kind of case -----------------------------------------------------------------------------------


def draw_text(rng: Rng, size: tuple[int, int]) -> str:
    return compress(draw_runs(rng, size[0] * size[1])).decode("ascii")


def case_check(rng: Rng) -> Case:
    size = draw_size(rng)
    return Case("check", [draw_text(rng, size), *other_size(rng, size)])


def case_pair(rng: Rng) -> Case:
    size = draw_size(rng)
    return Case(
        "pair", [draw_text(rng, size), draw_text(rng, size), *other_size(rng, size)]
    )


def other_size(rng: Rng, size: tuple[int, int]) -> tuple[int, int]:
    if rng.random() < 0.9:
        return size
    height, width = rng.choice([*EDGES.tolist(), 2**31, 2**62], 2).tolist()
    return height, width


def case_measure(rng: Rng) -> Case:
    sizes = draw_sizes(rng)
    outputs = [np.zeros(len(sizes), np.int64), np.zeros((len(sizes), 4), np.int64)]
    return Case("measure", [draw_batch(rng, sizes), *outputs], [1, 2])


def case_pair_areas(rng: Rng) -> Case:
    sizes = draw_sizes(rng)
    out = np.zeros((len(sizes), 3), np.int64)
    return Case(
        "pair_areas", [draw_batch(rng, sizes), draw_batch(rng, sizes), out], [2]
    )


def case_boundary_areas(rng: Rng) -> Case:
    sizes = draw_sizes(rng)
    out = np.zeros((len(sizes), 3), np.int64)
    distance = rng.integers(0, 5, len(sizes), np.int32)
    return Case(
        "boundary_areas",
        [draw_batch(rng, sizes), draw_batch(rng, sizes), distance, out],
        [3],
    )


def case_pairwise(rng: Rng) -> Case:
    size = draw_size(rng)
    rows, columns = rng.integers(0, 4, 2).tolist()
    out = np.zeros((rows, columns), np.int64)
    return Case(
        "pairwise",
        [draw_batch(rng, [size] * rows), draw_batch(rng, [size] * columns), out],
        [2],
    )


def case_combine(rng: Rng) -> Case:
    sizes = draw_sizes(rng)
    return Case(
        "combine",
        [int(rng.integers(0, 4)), draw_batch(rng, sizes), draw_batch(rng, sizes)],
    )


def case_merge(rng: Rng) -> Case:
    size = draw_size(rng)
    count = int(rng.integers(0, 7))
    offsets = np.sort(rng.integers(0, count + 1, int(rng.integers(1, 6)))).astype(
        np.int64
    )
    sizes = as_sizes([size] * (len(offsets) - 1))
    return Case(
        "merge",
        [int(rng.integers(0, 2)), draw_batch(rng, [size] * count), offsets, sizes],
    )


def case_runs(rng: Rng) -> Case:
    return Case("runs", [draw_batch(rng, draw_sizes(rng))])


def case_from_runs(rng: Rng) -> Case:
    sizes = draw_sizes(rng)
    runs = [draw_runs(rng, height * width) for height, width in sizes]
    offsets = np.cumsum([0] + [len(run) for run in runs], dtype=np.int64)
    flat = np.array([run for each in runs for run in each], np.int64)
    return Case("from_runs", [flat, offsets, as_sizes(sizes)])


def draw_polygon(rng: Rng) -> list[float]:
    count = 2 * int(
        rng.choice([0, 1, 2, 3, 4, 8, 60], p=[0.02, 0.08, 0.1, 0.2, 0.3, 0.2, 0.1])
    )
    reach = float(rng.choice([30, 200, 5000, 2.0**26]))
    xy = (rng.random(count) * 1.5 - 0.25) * reach
    return np.round(xy).tolist() if rng.random() < 0.4 else xy.tolist()


def case_from_polygons(rng: Rng) -> Case:
    sizes = draw_sizes(rng)
    polygons = [draw_polygon(rng) for _ in sizes]
    offsets = (
        np.cumsum([0] + [len(polygon) for polygon in polygons], dtype=np.int64) // 2
    )
    flat = np.array([value for polygon in polygons for value in polygon], np.float64)
    return Case("from_polygons", [flat, offsets, as_sizes(sizes)])


def case_coordinates(rng: Rng) -> Case:
    polygons: list[Any] = [draw_polygon(rng) for _ in range(int(rng.integers(0, 4)))]
    odd = rng.random() < 0.4
    for polygon in polygons if odd else []:
        strange = [
            None,
            "a",
            b"1",
            10**400,
            [1],
            float("nan"),
            True,
            1 + 2j,
            np.float32(2),
            {},
        ]
        polygon.insert(
            int(rng.integers(0, len(polygon) + 1)),
            strange[rng.integers(0, len(strange))],
        )
    if rng.random() < 0.1:
        polygons.append(
            [None, 3, "text", b"12345678", np.zeros(4, np.float32), np.zeros((3, 2))][
                rng.integers(0, 6)
            ]
        )
        odd = True
    return Case("coordinates", [polygons], comparable=not odd, wrong_arrays=odd)


def case_encode(rng: Rng) -> Case:
    (height, width) = draw_size(rng)
    count = int(rng.integers(0, 4))
    planes = (rng.random((count, height, width)) < rng.random()).astype(
        np.uint8
    ) * rng.integers(1, 256, dtype=np.uint8)
    if planes.size and rng.random() < 0.3:
        planes.flat[rng.integers(0, planes.size)] = rng.integers(0, 256)
    columns = bool(rng.integers(0, 2))
    dense = np.ascontiguousarray(planes.transpose(0, 2, 1)) if columns else planes
    if rng.random() < 0.9:
        return Case("encode", [dense, height, width, columns])
    return Case(
        "encode",
        [dense, *other_size(rng, (width, height + 1)), columns],
        wrong_arrays=True,
    )


def case_decode(rng: Rng) -> Case:
    (height, width) = draw_size(rng)
    count = int(rng.integers(0, 4))
    out = np.zeros((count, width, height), np.uint8)
    return Case("decode", [draw_batch(rng, [(height, width)] * count), out], [1])


def case_boundary(rng: Rng) -> Case:
    sizes = draw_sizes(rng)
    return Case(
        "boundary", [draw_batch(rng, sizes), rng.integers(0, 6, len(sizes), np.int32)]
    )


def case_window(rng: Rng) -> Case:
    sizes = draw_sizes(rng)
    places = rng.integers(-30, 60, (len(sizes), 2))
    extents = rng.integers(0, 60, (len(sizes), 2))
    return Case(
        "window",
        [draw_batch(rng, sizes), np.concatenate([places, extents], 1).astype(np.int32)],
    )


def case_flip(rng: Rng) -> Case:
    return Case("flip", [draw_batch(rng, draw_sizes(rng)), bool(rng.integers(0, 2))])


def case_resize(rng: Rng) -> Case:
    sizes = draw_sizes(rng)
    return Case(
        "resize", [draw_batch(rng, sizes), as_sizes([draw_size(rng) for _ in sizes])]
    )


def case_components(rng: Rng) -> Case:
    return Case(
        "components", [draw_batch(rng, draw_sizes(rng)), int(rng.choice([4, 8]))]
    )


CASES: list[Callable[[Rng], Case]] = [
    made for name, made in sorted(globals().items()) if name.startswith("case_")
]


# -- running -------------------------------------------------------------------------------------------------------


def is_small(case: Case) -> bool:
    """Whether the numpy kernel handles the case quickly and within its bounds."""
    for argument in case.arguments:
        for part in argument if isinstance(argument, tuple) else [argument]:
            sized = isinstance(part, int) or (
                isinstance(part, np.ndarray) and part.dtype == np.int32
            )
            if sized and (np.abs(np.asarray(part, np.float64)) > SMALL).any():
                return False
    return True


def explain(case: Case, problem: str) -> str:
    return f"{problem}\n{case.name} of\n" + "\n".join(
        f"  {argument!r}" for argument in case.arguments
    )


def try_case(case: Case, compare: bool) -> str | None:
    """The problem found, if any."""
    try:
        got = case.run(_kernel)
    except (MaskError, MemoryError):
        got = None
    except WRONG_ARRAYS as error:
        if (
            not case.wrong_arrays and case.name != "decode"
        ):  # whose planes a damaged size no longer fits
            return explain(case, f"raised {error!r}")
        return None
    if not compare or case.wrong_arrays or not case.comparable or not is_small(case):
        return None
    try:
        wanted = case.run(numpy_kernel)
    except MaskError:
        wanted = None
    if (got is None) != (wanted is None):
        return explain(case, f"the kernel gave {got}, the numpy kernel {wanted}")
    if got is None or wanted is None:
        return None
    same = got[0] == wanted[0] and all(
        np.array_equal(a, b) for a, b in zip(got[1], wanted[1])
    )
    return (
        None
        if same
        else explain(case, f"the kernel gave {got}, the numpy kernel {wanted}")
    )


def try_input(seed: int, number: int, calls: Counter[str]) -> str | None:
    """Calls with one valid input and damaged copies of it: the problem found, if any."""
    rng = np.random.default_rng([seed, number])
    _kernel.use_instructions(bool(number & 1))
    valid = CASES[number % len(CASES)](rng)
    for attempt in range(ATTEMPTS):
        case = damage(rng, valid)
        calls[case.name] += 1
        problem = try_case(case, compare=attempt % 10 == 0)
        if problem:
            return f"seed {seed}, input {number}: {problem}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Call the C mask kernel with damaged input."
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"kernel {_kernel.__file__}, seed {options.seed}", flush=True)
    calls: Counter[str] = Counter()
    end = time.monotonic() + options.seconds
    for number in itertools.count():
        if time.monotonic() > end:
            break
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        problem = try_input(options.seed, number, calls)
        if problem:
            print(problem)
            return 1
    faulthandler.cancel_dump_traceback_later()
    print(", ".join(f"{name} {count}" for name, count in sorted(calls.items())))
    print(f"{calls.total()} calls, no crash, no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main())
