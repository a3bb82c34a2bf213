"""StAR's golden cases through `maskwise.protocols.star`."""

from collections.abc import Mapping
from typing import Any

from maskwise.protocols import star
from tests.golden.questions import compare_blocks, read, records, summary


def check(case: Mapping[str, Any]) -> list[str]:
    """What differs between our values and those of the case; empty if nothing does."""
    scores = star.score(read(case["input"]))
    return compare_blocks({**summary(scores), "records": records(scores)}, case)
