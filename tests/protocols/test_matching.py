"""Matching: as good as solving every question by itself, and complete."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from maskwise.protocols import matching
from maskwise.protocols.mask_pairs import ABSENT, MaskPairs, pair_in_order
from maskwise.protocols.matching import match, pair_remaining
from maskwise.protocols.ragged import flatten

values = st.sampled_from([0.0, 0.0, 0.25, 0.5, 0.75, 1.0])
tables = st.tuples(st.integers(0, 4), st.integers(0, 4)).flatmap(
    lambda shape: st.lists(
        st.lists(values, min_size=shape[1], max_size=shape[1]),
        min_size=shape[0],
        max_size=shape[0],
    ).map(lambda rows: np.array(rows, float).reshape(shape))
)


def offsets(counts):
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


@given(st.lists(tables, max_size=6))
def test_every_question_has_the_best_total(questions):
    index = MaskPairs.all(
        offsets([len(table) for table in questions]),
        offsets([table.shape[1] for table in questions]),
    )
    gain = np.concatenate([np.zeros(0), *(table.ravel() for table in questions)])
    chosen = match(index, gain)
    assert len(set(index.pred[chosen].tolist())) == len(chosen)
    assert len(set(index.target[chosen].tolist())) == len(chosen)
    for number, table in enumerate(questions):
        mine = chosen[index.sample[chosen] == number]
        assert (gain[mine] > 0).all()
        best = table[linear_sum_assignment(table, maximize=True)].sum()
        assert gain[mine].sum() == best


def test_pairs_lie_question_by_question_targets_fastest():
    index = MaskPairs.all(offsets([2, 0, 1]), offsets([2, 3, 1]))
    assert index.sample.tolist() == [0, 0, 0, 0, 2]
    assert index.pred.tolist() == [0, 0, 1, 1, 2]
    assert index.target.tolist() == [0, 1, 0, 1, 5]
    assert index.find(index.pred, index.target).tolist() == [0, 1, 2, 3, 4]


def test_pairing_in_order_stops_at_the_shorter_list():
    group, one, other = pair_in_order(offsets([2, 1, 0]), offsets([1, 3, 2]))
    assert (group.tolist(), one.tolist(), other.tolist()) == ([0, 1], [0, 2], [0, 1])


def test_regions_follow_their_samples():
    assert flatten(offsets([2, 0, 3]), np.array([2, 0])).tolist() == [2, 3, 4, 0, 1]


def test_large_questions_are_matched_as_well():
    generator = np.random.default_rng(0)
    table = generator.random((40, 45)) * (generator.random((40, 45)) < 0.4)
    index = MaskPairs.all(offsets([40]), offsets([45]))
    chosen = match(index, table.ravel())
    best = table[linear_sum_assignment(table, maximize=True)].sum()
    assert abs(table.ravel()[chosen].sum() - best) < 1e-9


@pytest.mark.parametrize("limit", ["SMALL", "MANY_PAIRS", "DENSE_CELLS"])
def test_every_solver_finds_the_same_matching(monkeypatch, limit):
    generator = np.random.default_rng(1)
    table = generator.random((30, 50)) * (generator.random((30, 50)) < 0.1)
    pairs = MaskPairs.all(offsets([30]), offsets([50]))
    expected = match(pairs, table.ravel())
    monkeypatch.setattr(matching, limit, 0)
    assert match(pairs, table.ravel()).tolist() == expected.tolist()


def test_only_pairs_with_overlapping_boxes_are_listed():
    boxes = np.array([[0, 0, 4, 4], [4, 0, 8, 4], [0, 0, 0, 0]], np.int32)
    pairs = MaskPairs.overlapping(
        offsets([2, 1]), offsets([1, 1]), pred_box=boxes, target_box=boxes[[0, 1]]
    )
    assert (pairs.pred.tolist(), pairs.target.tolist()) == ([0], [0])
    assert pairs.find(np.array([0, 1]), np.array([0, 0])).tolist() == [0, ABSENT]


def test_what_remains_is_paired_empty_masks_first():
    pairs = MaskPairs.all(offsets([3]), offsets([3]))
    empty = (np.array([False, True, False]), np.array([True, False, False]))
    pred, target = pair_remaining(pairs, (np.array([2]), np.array([1])), empty=empty)
    assert list(zip(pred.tolist(), target.tolist())) == [(0, 2), (1, 0), (2, 1)]
