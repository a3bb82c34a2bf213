"""MMR's golden cases through `maskwise.protocols.mmr`."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from maskwise.protocols import mmr
from tests.golden.compare import differences
from tests.golden.lisa import exact_block, group_by_image, per_image, run
from tests.golden.records import EXACT, OFFICIAL, REPEATED, questions_evaluation


def check(case: Mapping[str, Any]) -> list[str]:
    """What differs between our values and those of the case; empty if nothing does."""
    images = case["input"]["images"]
    repeat = case["input"].get("repeat", 1)
    inputs = questions_evaluation(images, repeat)
    overlaps = inputs.overlaps("requested")
    pair_counts = mmr.pair(overlaps)
    scores = mmr.score(inputs)
    exact = exact_block(scores, mmr.score(inputs, epsilon=False), pair_counts)
    exact["per_mask"] = group_by_image(inputs, pair_counts)[: len(images)]
    silent = np.unique(overlaps.ground_truth.cluster[~mmr.evaluated(overlaps)[0]])
    exact["images_skipped"] = [item for item in silent.tolist() if item < len(images)]
    expected = dict(case["expected"])
    stopped = expected.pop("error", None) is not None
    rows = per_image(run(inputs, pair_counts, scores), "n")[
        : len(images) - len(exact["images_skipped"])
    ]
    if stopped:  # the official code got no further; ours goes on
        rows = rows[: len(expected["per_image"])]
    official = {**mmr.score(inputs, legacy_float32=True).headline(), "per_image": rows}
    tolerance = OFFICIAL if repeat == 1 else REPEATED
    return [
        *differences(official, expected, tolerance, "expected"),
        *differences(exact, case["expected_exact"], EXACT, "expected_exact"),
    ]
