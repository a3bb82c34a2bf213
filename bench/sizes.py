"""Sizes of the measurements: full ones, or small ones that only show that every section runs.

`python bench/run.py --quick` sets MASKWISE_BENCH=quick before anything else is imported; processes that a measurement
starts inherit it.
"""

import os
from pathlib import Path

QUICK = os.environ.get("MASKWISE_BENCH") == "quick"

CACHE = Path(__file__).parent / ".cache" / ("quick" if QUICK else "full")
"""Generated data, kept between runs. Small sets must not stand in for large ones."""


def choose(full: int, quick: int) -> int:
    """The size of a measurement."""
    return quick if QUICK else full
