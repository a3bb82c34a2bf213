"""LENS's golden cases through `maskwise.protocols.lens`."""

from collections.abc import Mapping
from typing import Any

from maskwise.protocols import lens
from tests.golden.questions import compare_blocks, read, summary


def check(case: Mapping[str, Any]) -> list[str]:
    """What differs between our values and those of the case; empty if nothing does."""
    inputs = read(case["input"])
    values = summary(lens.score(inputs), lens.score(inputs, epsilon=False))
    return compare_blocks(values, case, float32=True)
