"""VisionReasoner's golden cases through `maskwise.protocols.visionreasoner`."""

from collections.abc import Mapping
from typing import Any

from maskwise.protocols import visionreasoner
from maskwise.protocols.metrics import Scores
from tests.golden.questions import compare_blocks, read, records, summary


def check(case: Mapping[str, Any]) -> list[str]:
    """What differs between our values and those of the case; empty if nothing does."""
    inputs = read(case["input"])
    default = visionreasoner.score(inputs)
    no_object = visionreasoner.score(inputs, no_object=True)
    blocks = {
        "default": {**summary(default), "records": records(default)},
        "nonobj": {**summary(no_object), "records": flagged_records(no_object)},
    }
    return compare_blocks(blocks, case, names=["default", "nonobj"])


def flagged_records(scores: Scores) -> list[dict[str, int]]:
    """The records with the two flags of the no-object script."""
    n_acc = scores.metrics["n_acc"]
    return [
        {
            **record,
            "non_object_GT": int(n_acc.denominator[record["question"]]),
            "non_object": int(n_acc.numerator[record["question"]]),
        }
        for record in records(scores)
    ]
