"""SAM3-I's golden cases through `maskwise.protocols.sam3i`."""

from collections.abc import Mapping
from typing import Any

from maskwise.protocols import sam3i
from maskwise.protocols.scoring_input import ScoringInput
from tests.golden.questions import compare_blocks, percent, read, summary

BLOCKS = {"1to1": "one_to_one", "multi_inst": "multi_instance"}


def check(case: Mapping[str, Any]) -> list[str]:
    """What differs between our values and those of the case; empty if nothing does."""
    inputs = read(case["input"])
    blocks = {name: block(inputs, form) for name, form in BLOCKS.items()}
    return compare_blocks(blocks, case, names=list(BLOCKS))


def block(inputs: ScoringInput, form: str) -> dict[str, Any]:
    scores = sam3i.score(inputs, form=form)
    p50 = scores.metrics["p50"].value()
    return percent({**summary(scores), **scores.plain, "p50": p50})
