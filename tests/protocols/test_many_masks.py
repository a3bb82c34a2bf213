"""Samples with very many masks: memory is linear in masks and overlapping pairs, and a bound fails one sample alone."""

import tracemalloc

import numpy as np
import pytest

from maskwise.masks import Masks
from maskwise.protocols import find_protocol, scoring_input, strict
from maskwise.protocols.metrics import FAILED, SCORED
from maskwise.registry import PROTOCOLS
from tests.protocols import small_cases
from tests.protocols.small_cases import prediction, question, region, strip, target

FRAME = (480, 640)
MEGABYTE = 2**20


def many_masks(count: int) -> Masks:
    random = np.random.default_rng(0)
    corners = random.integers(0, 400, (count, 2))
    sizes = random.integers(5, 60, (count, 2))
    return Masks.from_boxes(
        np.concatenate([corners, sizes], 1).astype(float), [FRAME] * count
    )


@pytest.mark.parametrize("copies", [False, True])
def test_ten_thousand_masks_need_little_memory(copies):
    masks = list(many_masks(10_000))
    regions = [region(mask) for mask in ([masks[0]] * len(masks) if copies else masks)]
    samples = [question("a", *map(target, masks[:5])), question("b", target(masks[0]))]
    inputs = small_cases.scoring_input(
        samples, [prediction("a", *regions), prediction("b", regions[0])], FRAME
    )
    tracemalloc.start()
    try:
        for name in PROTOCOLS.built_in:
            protocol = find_protocol(name)
            assert protocol.score(inputs).statuses.status.tolist() == [SCORED, SCORED]
        assert tracemalloc.get_traced_memory()[1] < 64 * MEGABYTE
    finally:
        tracemalloc.stop()


def test_a_sample_with_too_many_pairs_fails_alone(monkeypatch):
    monkeypatch.setattr(scoring_input, "MAX_PAIRS", 5)
    samples = [
        question(name, target(strip(0, 2)), target(strip(4, 6))) for name in "ab"
    ]
    regions = [region(strip(k, k + 1)) for k in range(3)]
    inputs = small_cases.scoring_input(
        samples, [prediction("a", *regions), prediction("b", *regions[:2])]
    )
    scores = strict.score(inputs)
    assert scores.statuses.status.tolist() == [FAILED, SCORED]
    assert (
        scores.rows(["a", "b"])[0].reason
        == "3 masks: more than 5 pairs of masks and targets"
    )
