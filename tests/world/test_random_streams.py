"""Random streams: stable between machines, independent, and of the promised distribution."""

import numpy as np
import pytest

from maskwise.world.random_streams import STREAMS, RandomStream, scene_streams


@pytest.fixture
def rng() -> RandomStream:
    return RandomStream(np.random.SeedSequence(7))


def test_the_sequence_is_that_of_numpys_uniform_doubles() -> None:
    stream = RandomStream(np.random.SeedSequence(7))
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(7)))
    expected = generator.random(5).tolist()
    assert [stream.uniform(0.0, 1.0) for _ in range(5)] == expected


def test_every_scene_has_its_own_streams() -> None:
    firsts = set()
    for seed in (0, 1):
        for split in (0, 1):
            for index in (0, 1, 2):
                for stream in scene_streams(seed, split, index).values():
                    firsts.add(stream.random())
    assert len(firsts) == 2 * 2 * 3 * len(STREAMS)


def test_drawing_from_a_stream_does_not_change_another() -> None:
    plain = scene_streams(3, 0, 5)["noise"].random()
    streams = scene_streams(3, 0, 5)
    for _ in range(100):
        streams["layout"].random()
    assert streams["noise"].random() == plain


def test_uniform_numbers_fill_their_range(rng: RandomStream) -> None:
    numbers = [rng.uniform(-2.0, 3.0) for _ in range(2000)]
    assert -2.0 <= min(numbers) < -1.95
    assert 2.95 < max(numbers) < 3.0
    assert np.mean(numbers) == pytest.approx(0.5, abs=0.1)


def test_integers_are_below_their_end(rng: RandomStream) -> None:
    numbers = [rng.integer(4) for _ in range(400)]
    assert set(numbers) == {0, 1, 2, 3}
    assert rng.integer(1) == 0


def test_probabilities_of_0_and_1_are_certain(rng: RandomStream) -> None:
    assert not any(rng.bernoulli(0.0) for _ in range(200))
    assert all(rng.bernoulli(1.0) for _ in range(200))


def test_signs_are_balanced(rng: RandomStream) -> None:
    signs = [rng.sign() for _ in range(1000)]
    assert set(signs) == {-1.0, 1.0}
    assert abs(sum(signs)) < 120


def test_weights_decide_how_often_an_item_is_chosen(rng: RandomStream) -> None:
    items = ("never", "seldom", "often")
    chosen = [rng.weighted_choice(items, (0.0, 1.0, 3.0)) for _ in range(2000)]
    assert "never" not in chosen
    assert chosen.count("often") / 2000 == pytest.approx(0.75, abs=0.04)


def test_a_shuffle_keeps_all_items_and_its_input(rng: RandomStream) -> None:
    items = list(range(12))
    shuffled = rng.shuffled(items)
    assert sorted(shuffled) == items
    assert shuffled != items
    assert items == list(range(12))
    assert rng.shuffled([]) == []


def test_every_order_of_three_items_is_equally_frequent(rng: RandomStream) -> None:
    orders = [tuple(rng.shuffled("abc")) for _ in range(3000)]
    counts = [orders.count(order) for order in set(orders)]
    assert len(counts) == 6
    assert min(counts) > 400
