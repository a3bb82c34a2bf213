"""Intervals and tests, against closed forms, simulation and plain resampling."""

import numpy as np
import pytest

from maskwise.errors import ProtocolError
from maskwise.protocols.metrics import Metric
from maskwise.protocols.stats import Groups, bootstrap, compare


def mean_of(values, **fields):
    return Metric(np.asarray(values, float), np.ones(len(values)), **fields)


def test_the_interval_of_a_mean_of_independent_samples_is_the_textbook_one():
    values = np.random.default_rng(1).normal(0.5, 0.1, 4000)
    interval = bootstrap({"m": mean_of(values)}, np.arange(4000))["m"]
    reach = 1.96 * values.std() / np.sqrt(4000)
    assert interval.low == pytest.approx(values.mean() - reach, abs=reach / 5)
    assert interval.high == pytest.approx(values.mean() + reach, abs=reach / 5)


def test_samples_of_one_image_are_drawn_together():
    # Ten equal questions about each of 100 images tell no more than one.
    values = np.random.default_rng(1).normal(0.5, 0.1, 100)
    alone = bootstrap({"m": mean_of(values)}, np.arange(100))["m"]
    repeated = bootstrap({"m": mean_of(np.repeat(values, 10))}, np.repeat(np.arange(100), 10))["m"]
    assert (repeated.low, repeated.high) == pytest.approx((alone.low, alone.high))


def test_ratios_of_sums_are_resampled_as_ratios():
    generator = np.random.default_rng(2)
    union = generator.integers(1, 10_000, 500)
    metric = Metric(generator.binomial(union, 0.7), union)
    interval = bootstrap({"ciou": metric}, np.arange(500), resamples=2000)["ciou"]
    draws = generator.integers(0, 500, (2000, 500))
    slow = np.quantile(metric.numerator[draws].sum(1) / metric.denominator[draws].sum(1), [0.025, 0.975])
    assert (interval.low, interval.high) == pytest.approx(slow.tolist(), abs=2e-4)


def test_the_same_seed_gives_the_same_interval_whatever_the_threads():
    values = np.random.default_rng(3).random(300)
    runs = [bootstrap({"m": mean_of(values)}, np.arange(300), threads=threads) for threads in (1, 2, 3)]
    assert runs[0] == runs[1] == runs[2]
    assert runs[0] != bootstrap({"m": mean_of(values)}, np.arange(300), seed=1)


def test_one_image_has_no_interval_and_no_sample_no_figure():
    assert bootstrap({"m": mean_of([0.1, 0.9])}, np.zeros(2, np.int64))["m"].low is None
    assert bootstrap({"m": mean_of([])}, np.zeros(0, np.int64))["m"].low is None


def test_the_nominal_level_is_kept():
    # 300 experiments of 60 images with correlated questions: about 95 % of intervals hold the truth.
    generator = np.random.default_rng(4)
    cluster = np.repeat(np.arange(60), 4)
    kept = linear = 0
    for _ in range(300):
        values = np.repeat(generator.normal(0.5, 0.1, 60), 4) + generator.normal(0, 0.1, 240)
        interval = bootstrap({"m": mean_of(values)}, cluster, resamples=200)["m"]
        kept += interval.low <= 0.5 <= interval.high
        _, line = Groups(np.zeros(240, np.int64), cluster, 1).figures(mean_of(values))[0]
        linear += line.low <= 0.5 <= line.high
    assert 0.90 <= kept / 300 <= 0.98
    assert 0.90 <= linear / 300 <= 0.98


def test_groups_have_the_figures_of_their_samples():
    generator = np.random.default_rng(5)
    codes, cluster = generator.integers(0, 4, 500), generator.integers(0, 80, 500)
    union = generator.integers(1, 100, 500)
    metric = Metric(generator.binomial(union, 0.6), union, epsilon=1e-10, gate=union)
    groups = Groups(codes, cluster, 5)
    assert groups.samples().tolist() == np.bincount(codes, minlength=5).tolist()
    assert groups.images()[0] == len(set(cluster[codes == 0].tolist()))
    figures = groups.figures(metric)
    for code in range(4):
        value, line = figures[code]
        assert value == pytest.approx(metric.value(codes == code))
        part = Metric(metric.numerator[codes == code], metric.denominator[codes == code], 1e-10)
        _, alone = np.unique(cluster[codes == code], return_inverse=True)
        drawn = bootstrap({"m": part}, alone, resamples=2000)["m"]
        assert (line.low, line.high) == pytest.approx((drawn.low, drawn.high), abs=0.01)
    assert figures[4] == (None, figures[4][1])
    assert figures[4][1].low is None


def test_a_shut_gate_gives_its_own_figure():
    metric = Metric(np.ones(4), np.ones(4), empty=0.0, gate=np.array([0, 0, 1, 1]))
    assert metric.value() == 1.0
    assert metric.value(np.array([True, True, False, False])) == 0.0
    assert [value for value, _ in Groups(np.array([0, 0, 1, 1]), np.arange(4), 2).figures(metric)] == [
        0.0,
        1.0,
    ]


def test_a_run_against_itself_differs_in_nothing():
    values = np.random.default_rng(6).random(200)
    found = compare(mean_of(values), mean_of(values), np.arange(200))
    assert (found.difference, found.interval.low, found.interval.high, found.p_value) == (0.0, 0.0, 0.0, 1.0)


def test_a_clear_difference_is_sure_and_noise_is_not():
    generator = np.random.default_rng(7)
    base = generator.random(400)
    better = compare(mean_of(base), mean_of(base + 0.02 + generator.normal(0, 0.05, 400)), np.arange(400))
    assert better.difference == pytest.approx(0.02, abs=0.01)
    assert better.interval.low > 0
    assert better.p_value < 0.01
    same = compare(mean_of(base), mean_of(base + generator.normal(0, 0.05, 400)), np.arange(400))
    assert same.interval.low < 0 < same.interval.high


def test_p_values_are_uniform_where_nothing_differs():
    generator = np.random.default_rng(8)
    cluster = np.repeat(np.arange(40), 3)
    rare = 0
    for _ in range(200):
        a, b = (np.repeat(generator.normal(0, 1, 40), 3) + generator.normal(0, 1, 120) for _ in range(2))
        found = compare(mean_of(a), mean_of(b), cluster, resamples=64, permutations=199)
        rare += found.p_value <= 0.05
    assert 2 <= rare <= 22  # 10 expected


def test_a_slice_of_two_runs():
    rows = np.arange(10) < 5
    found = compare(mean_of(np.zeros(10)), mean_of(np.where(rows, 1.0, 0.0)), np.arange(10), rows=rows)
    assert (found.a, found.b, found.difference, found.images) == (0.0, 1.0, 1.0, 5)


def test_runs_over_other_samples_cannot_be_paired():
    with pytest.raises(ProtocolError, match="cannot be paired"):
        compare(mean_of([1.0]), mean_of([1.0, 2.0]), np.arange(1))
    empty = compare(mean_of([]), mean_of([]), np.zeros(0, np.int64))
    assert (empty.a, empty.difference, empty.p_value) == (None, None, None)
