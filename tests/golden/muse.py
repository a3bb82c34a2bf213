"""MUSE's golden cases through `maskwise.protocols.muse`."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from maskwise.arrays import Int64Array
from maskwise.protocols import muse
from maskwise.protocols.scoring_input import ScoringInput
from tests.golden.compare import differences
from tests.golden.lisa import exact_block, group_by_image, per_image, run
from tests.golden.records import EXACT, OFFICIAL, questions_evaluation

NOT_OURS = ("pairs", "seed_spread", "matching_agrees", "error")
"""Pairs need not be unique, so scores are compared; how far random points move the official figure is not ours."""


def check(case: Mapping[str, Any]) -> list[str]:
    """What differs between our values and those of the case; empty if nothing does."""
    images = case["input"]["images"]
    expected = case["expected"]
    inputs = questions_evaluation(images)
    wanted = {
        name: trimmed(part) for name, part in trimmed(case["expected_exact"]).items()
    }
    found = {
        "iou_matching_raw_logits": block(inputs, raw_logits=True),
        "iou_matching_binarized": block(inputs, raw_logits=False),
    }
    for name in found:
        wanted[name].pop("per_pair")
    if "error" not in expected:
        pairs = flatten(inputs, expected["pairs"])
        found["official_matching"] = block(inputs, raw_logits=True, pairs=pairs)
    done = len(
        expected["per_image"]
    )  # where the official code stopped, what it had finished
    official = official_block(
        questions_evaluation(images[:done]), expected["pairs"][:done]
    )
    return [
        *differences(official, trimmed(expected), OFFICIAL, "expected"),
        *differences(found, wanted, EXACT, "expected_exact"),
    ]


def trimmed(part: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key not in NOT_OURS}


def block(
    inputs: ScoringInput, *, raw_logits: bool, pairs: Int64Array | None = None
) -> dict[str, Any]:
    pair_counts = muse.pair(
        inputs.overlaps("requested"), raw_logits=raw_logits, pairs=pairs
    )
    official = partial(
        muse.score,
        inputs,
        raw_logits=raw_logits,
        pairs=pairs,
        empty_extras="official",
    )
    scores = official()
    plain = official(epsilon=False)
    return {
        **exact_block(scores, plain, pair_counts),
        "per_pair": group_by_image(inputs, pair_counts),
    }


def official_block(
    inputs: ScoringInput, nested: list[list[list[list[int]]]]
) -> dict[str, Any]:
    pairs = flatten(inputs, nested)
    scores = muse.score(
        inputs,
        raw_logits=True,
        pairs=pairs,
        legacy_float32=True,
        empty_extras="official",
    )
    pair_counts = muse.pair(inputs.overlaps("requested"), raw_logits=True, pairs=pairs)
    return {
        **scores.headline(),
        "per_image": per_image(run(inputs, pair_counts, scores), "max_num"),
        "per_pair": group_by_image(inputs, pair_counts),
    }


def flatten(inputs: ScoringInput, pairs: list[list[list[list[int]]]]) -> Int64Array:
    """The case's pairs, numbered per question, as positions among all regions."""
    questions = [question for image in pairs for question in image]
    rows = [
        (
            inputs.predictions.offsets[sample] + pred,
            inputs.ground_truth.offsets[sample] + target,
        )
        for sample, question in enumerate(questions)
        for pred, target in question
    ]
    return np.array(rows, np.int64).reshape(-1, 2)
