"""The fuzz drivers run, and find nothing in their first inputs. `make fuzz` continues from there."""

from collections import Counter

import pytest

pytest.importorskip(
    "maskwise.masks._kernel",
    reason="the C kernel is not built here",
    exc_type=ImportError,
)

from tests.fuzz.fuzz_kernel import CASES, try_input


@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=lambda number: CASES[number].__name__
)
def test_first_inputs(number: int) -> None:
    calls: Counter[str] = Counter()
    for turn in range(3):
        assert try_input(0, number + turn * len(CASES), calls) is None
    assert calls.total() > 0
