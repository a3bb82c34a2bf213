"""X-SAM's golden cases through `maskwise.protocols.xsam`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maskwise.protocols import xsam
from tests.golden.compare import differences
from tests.golden.questions import compare_blocks, percent, read, summary
from tests.golden.records import EXACT

BLOCKS = {"pipeline": True, "evaluator_only": False}


def check(case: Mapping[str, Any]) -> list[str]:
    """What differs between our values and those of the case; empty if nothing does."""
    inputs = read(case["input"])
    blocks = {}
    for name, pipeline in BLOCKS.items():
        scores = xsam.score(inputs, pipeline=pipeline)
        scored = np.flatnonzero(scores.metrics["giou"].denominator > 0).tolist()
        blocks[name] = {**percent(summary(scores)), "scored": scored}
    if has_narrow_image(case):
        # The official decoder makes such masks square: only the exact values hold.
        return differences(blocks, case["expected_exact"], EXACT, "expected_exact")
    return compare_blocks(blocks, case, names=list(BLOCKS))


def has_narrow_image(case: Mapping[str, Any]) -> bool:
    return any(question["width"] == 1 for question in case["input"]["questions"])
