"""Strengths of runs: hand-worked, recovered from simulated raters, and covered by their intervals."""

import numpy as np
import pytest

from maskwise.review.bradley_terry import PRIOR_TIES, Comparisons, fit_strengths


def simulate(
    strengths: list[float], per_pair: int, seed: int, tie: float = 0.0
) -> Comparisons:
    """Raters who prefer as Bradley and Terry say, and call a share of the comparisons a tie; three per image."""
    chance = np.random.default_rng(seed)
    count = len(strengths)
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    first = np.repeat([a for a, _ in pairs], per_pair)
    second = np.repeat([b for _, b in pairs], per_pair)
    values = np.array(strengths)
    probability = 1 / (1 + np.exp(values[second] - values[first]))
    share = (chance.random(len(first)) < probability).astype(np.float64)
    share[chance.random(len(first)) < tie] = 0.5
    cluster = np.tile(np.arange(per_pair) // 3, len(pairs))
    return Comparisons(first, second, share, cluster)


def test_two_runs_have_the_log_odds_of_their_wins() -> None:
    share = np.array([1.0] * 30 + [0.0] * 10)
    first = np.zeros(40, np.int64)
    made = Comparisons(first, first + 1, share, np.arange(40))
    fitted = fit_strengths(made, 2)
    half = PRIOR_TIES / 2
    assert fitted.value[0] - fitted.value[1] == pytest.approx(
        np.log((30 + half) / (10 + half))
    )
    assert fitted.value.sum() == pytest.approx(0)


def test_sides_do_not_matter() -> None:
    made = simulate([1.0, 0.0, -1.0], 60, seed=1)
    turned = Comparisons(made.second, made.first, 1 - made.share, made.cluster)
    for a, b in zip(
        (fit_strengths(made, 3).value, fit_strengths(made, 3).low),
        (fit_strengths(turned, 3).value, fit_strengths(turned, 3).low),
    ):
        assert a == pytest.approx(b)


def test_a_run_that_always_wins_is_finitely_strong() -> None:
    first = np.zeros(500, np.int64)
    made = Comparisons(first, first + 1, np.ones(500), np.arange(500))
    fitted = fit_strengths(made, 2)
    assert 2 < fitted.value[0] < 5
    assert np.isfinite(fitted.low).all()


def test_runs_that_nobody_compared_have_no_strength() -> None:
    first = np.array([0, 2] * 20)
    made = Comparisons(first, first + 1, np.ones(40), np.arange(40))
    assert np.isnan(fit_strengths(made, 4).value).all()


def test_few_images_give_no_interval() -> None:
    made = simulate([0.5, -0.5], 27, seed=2)
    assert np.isfinite(fit_strengths(made, 2).value).all()
    assert np.isnan(fit_strengths(made, 2).low).all()


def test_simulated_raters_recover_the_ranking_and_the_intervals_cover() -> None:
    """Four runs, 120 comparisons of each pair, 400 times: nominal coverage 95 %."""
    truth = [0.9, 0.3, -0.3, -0.9]
    ranked = 0
    covered = np.zeros(4)
    errors = []
    for seed in range(400):
        fitted = fit_strengths(simulate(truth, 120, seed), 4)
        ranked += bool((np.diff(fitted.value) < 0).all())
        covered += (fitted.low <= truth) & (truth <= fitted.high)
        errors.append(fitted.value - truth)
    assert ranked >= 392
    assert np.abs(np.mean(errors, axis=0)).max() < 0.02
    assert (covered / 400 > 0.92).all()
    assert (covered / 400 < 0.98).all()
