"""Mixed sources: exact rates, whole epochs, an order that can be continued anywhere."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch", reason="the extra `vlm` is not installed")

from maskwise.errors import MaskwiseError
from maskwise.training.vlm.mixing import BLOCK, MixedOrder


def test_sources_are_drawn_at_their_rates() -> None:
    order = MixedOrder({"a": 7, "b": 11, "c": 5}, {"a": 9, "b": 3, "c": 1}, seed=1)
    counts = Counter(order.draw(position)[0] for position in range(2 * BLOCK))
    assert counts == order.expected(2 * BLOCK)
    assert counts["a"] == pytest.approx(2 * BLOCK * 9 / 13, abs=2)
    assert counts["b"] == pytest.approx(2 * BLOCK * 3 / 13, abs=2)


def test_every_item_is_drawn_once_per_epoch_in_another_order() -> None:
    order = MixedOrder({"a": 300, "b": 2}, {"a": 1, "b": 1}, seed=3)
    items = [item for name, item in map(order.draw, range(3 * BLOCK)) if name == "a"]
    epochs = [items[start : start + 300] for start in range(0, 1500, 300)]
    assert all(sorted(epoch) == list(range(300)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 5


@given(st.integers(0, 10_000), st.integers(0, 5))
def test_a_draw_depends_on_seed_and_position_only(position: int, seed: int) -> None:
    sizes = {"a": 13, "b": 40}
    rates = {"a": 1.0, "b": 2.5}
    order = MixedOrder(sizes, rates, seed)
    drawn = [order.draw(one) for one in range(position, position + 3)]
    again = MixedOrder(sizes, rates, seed)
    assert [
        again.draw(one) for one in reversed(range(position, position + 3))
    ] == drawn[::-1]


@given(st.lists(st.floats(0.001, 1000), min_size=1, max_size=6))
def test_every_source_gets_a_share_of_a_block(rates: list[float]) -> None:
    named = {str(number): rate for number, rate in enumerate(rates)}
    order = MixedOrder(dict.fromkeys(named, 1), named, seed=0)
    assert sum(order.quotas) == BLOCK
    assert min(order.quotas) >= 1


def test_an_empty_source_is_named() -> None:
    with pytest.raises(MaskwiseError, match="without a usable sample: b"):
        MixedOrder({"a": 3, "b": 0}, {"a": 1, "b": 1}, seed=0)
