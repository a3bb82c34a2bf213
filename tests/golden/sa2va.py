"""Sa2VA's golden cases through `maskwise.protocols.sa2va`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maskwise.protocols import sa2va
from maskwise.protocols.scoring_input import ScoringInput
from tests.golden.questions import compare_blocks, read, summary

VERSIONS = {
    "res_2025_10": "2025-10",
    "res_2025_09": "2025-09",
    "st_reasonseg": "reasonseg",
}


def check(case: Mapping[str, Any]) -> list[str]:
    """What differs between our values and those of the case; empty if nothing does."""
    inputs = read(case["input"])
    blocks = {name: block(inputs, version) for name, version in VERSIONS.items()}
    return compare_blocks(blocks, case, float32=True, names=list(VERSIONS))


def block(inputs: ScoringInput, version: str) -> dict[str, Any]:
    scores = sa2va.score(inputs, version=version)
    plain = sa2va.score(inputs, version=version, epsilon=False)
    # The newest version has a mask for every question, if need be an empty one.
    silent = int(np.sum(inputs.predictions.counts == 0))
    missing = 0 if version == "2025-10" else silent
    return {**summary(scores, plain), "missing": missing}
