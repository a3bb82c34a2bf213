"""Seg-Zero's golden cases through `maskwise.protocols.segzero`."""

from collections.abc import Mapping
from typing import Any

from maskwise.protocols import segzero
from tests.golden.questions import compare_blocks, read, records, summary


def check(case: Mapping[str, Any]) -> list[str]:
    """What differs between our values and those of the case; empty if nothing does."""
    inputs = read(case["input"])
    blocks = {}
    for form in ("single", "multi"):
        scores = segzero.score(inputs, form=form)
        blocks[form] = {**summary(scores), "records": records(scores)}
    return compare_blocks(blocks, case, names=["single", "multi"])
