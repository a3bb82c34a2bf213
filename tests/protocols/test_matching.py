"""Matching: as good as solving every question by itself, and complete."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from maskwise.protocols.mask_pairs import MaskPairs, pair_in_order
from maskwise.protocols.matching import match
from maskwise.protocols.ragged import flatten

values = st.sampled_from([0.0, 0.0, 0.25, 0.5, 0.75, 1.0])
tables = st.tuples(st.integers(0, 4), st.integers(0, 4)).flatmap(
    lambda shape: st.lists(
        st.lists(values, min_size=shape[1], max_size=shape[1]), min_size=shape[0], max_size=shape[0]
    ).map(lambda rows: np.array(rows, float).reshape(shape))
)


def offsets(counts):
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


@given(st.lists(tables, max_size=6))
def test_every_question_has_the_best_total_and_all_pairs_it_can_have(questions):
    index = MaskPairs(
        offsets([len(table) for table in questions]), offsets([table.shape[1] for table in questions])
    )
    gain = np.concatenate([np.zeros(0), *(table.ravel() for table in questions)])
    chosen = match(index, gain)
    assert len(set(index.pred[chosen].tolist())) == len(chosen)
    assert len(set(index.target[chosen].tolist())) == len(chosen)
    for number, table in enumerate(questions):
        mine = chosen[index.sample[chosen] == number]
        assert len(mine) == min(table.shape)
        best = table[linear_sum_assignment(table, maximize=True)].sum()
        assert gain[mine].sum() == best


def test_pairs_lie_question_by_question_targets_fastest():
    index = MaskPairs(offsets([2, 0, 1]), offsets([2, 3, 1]))
    assert index.sample.tolist() == [0, 0, 0, 0, 2]
    assert index.pred.tolist() == [0, 0, 1, 1, 2]
    assert index.target.tolist() == [0, 1, 0, 1, 5]
    assert index.find(index.sample, index.pred, index.target).tolist() == [0, 1, 2, 3, 4]


def test_pairing_in_order_stops_at_the_shorter_list():
    group, one, other = pair_in_order(offsets([2, 1, 0]), offsets([1, 3, 2]))
    assert (group.tolist(), one.tolist(), other.tolist()) == ([0, 1], [0, 2], [0, 1])


def test_regions_follow_their_samples():
    assert flatten(offsets([2, 0, 3]), np.array([2, 0])).tolist() == [2, 3, 4, 0, 1]


def test_large_questions_are_matched_as_well():
    generator = np.random.default_rng(0)
    table = generator.random((40, 45)) * (generator.random((40, 45)) < 0.4)
    index = MaskPairs(offsets([40]), offsets([45]))
    chosen = match(index, table.ravel())
    best = table[linear_sum_assignment(table, maximize=True)].sum()
    assert abs(table.ravel()[chosen].sum() - best) < 1e-9
