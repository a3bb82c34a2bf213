"""MUSE's golden cases through `maskwise.protocols.muse`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maskwise.protocols import muse
from maskwise.protocols.evaluation import Evaluation
from maskwise.protocols.metrics import Int64s
from tests.golden.compare import differences
from tests.golden.lisa import exact_block, group_by_image, per_image, run
from tests.golden.records import EXACT, OFFICIAL, questions_evaluation

NOT_OURS = ("pairs", "seed_spread", "matching_agrees", "error")
"""Pairs need not be unique, so scores are compared; how far random points move the official figure is not ours."""


def check(case: Mapping[str, Any]) -> list[str]:
    """What differs between our figures and the case's; nothing if all is well."""
    images, expected = case["input"]["images"], case["expected"]
    evaluation = questions_evaluation(images)
    wanted = {name: trimmed(part) for name, part in trimmed(case["expected_exact"]).items()}
    found = {
        "iou_matching_raw_logits": block(evaluation, raw_logits=True),
        "iou_matching_binarized": block(evaluation, raw_logits=False),
    }
    for name in found:
        wanted[name].pop("per_pair")
    if "error" not in expected:
        pairs = flatten(evaluation, expected["pairs"])
        found["official_matching"] = block(evaluation, raw_logits=True, pairs=pairs)
    done = len(expected["per_image"])  # where the official code stopped, what it had finished
    official = official_block(questions_evaluation(images[:done]), expected["pairs"][:done])
    return [
        *differences(official, trimmed(expected), OFFICIAL, "expected"),
        *differences(found, wanted, EXACT, "expected_exact"),
    ]


def trimmed(part: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key not in NOT_OURS}


def block(evaluation: Evaluation, *, raw_logits: bool, pairs: Int64s | None = None) -> dict[str, Any]:
    terms = muse.pair(evaluation.plane("wanted"), raw_logits=raw_logits, pairs=pairs)
    scores = muse.score(evaluation, raw_logits=raw_logits, pairs=pairs)
    plain = muse.score(evaluation, raw_logits=raw_logits, pairs=pairs, epsilon=False)
    return {**exact_block(scores, plain, terms), "per_pair": group_by_image(evaluation, terms)}


def official_block(evaluation: Evaluation, nested: list[list[list[list[int]]]]) -> dict[str, Any]:
    pairs = flatten(evaluation, nested)
    scores = muse.score(evaluation, raw_logits=True, pairs=pairs, legacy_float32=True)
    terms = muse.pair(evaluation.plane("wanted"), raw_logits=True, pairs=pairs)
    return {
        **scores.headline(),
        "per_image": per_image(run(evaluation, terms, scores), "max_num"),
        "per_pair": group_by_image(evaluation, terms),
    }


def flatten(evaluation: Evaluation, pairs: list[list[list[list[int]]]]) -> Int64s:
    """The case's pairs, numbered per question, as positions among all regions."""
    questions = [question for image in pairs for question in image]
    rows = [
        (evaluation.replies.offsets[sample] + pred, evaluation.truth.offsets[sample] + target)
        for sample, question in enumerate(questions)
        for pred, target in question
    ]
    return np.array(rows, np.int64).reshape(-1, 2)
