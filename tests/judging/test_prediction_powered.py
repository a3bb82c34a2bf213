"""Prediction-powered estimates: by hand, and their coverage by simulation."""

import numpy as np
import pytest

from maskwise.judging.prediction_powered import (
    METHOD,
    best_weight,
    estimate_share,
    people_alone,
)


def test_by_hand() -> None:
    judge = np.array([1.0] * 30 + [0.0] * 10)
    people = np.full(40, np.nan)
    # Of twenty answers that the judge accepts, people refuse five.
    people[:20] = [1.0] * 15 + [0.0] * 5
    cluster = np.arange(40)
    estimate = estimate_share(judge, people, cluster, weight=1.0)
    # The judge accepts 10 of the 20 others and is 5 of 20 too generous: 10 / 20 - 5 / 20.
    assert estimate.value == pytest.approx(0.25)
    assert estimate.interval.method == METHOD


def test_a_judge_that_says_nothing_has_no_weight() -> None:
    people = np.full(100, np.nan)
    people[:40] = np.arange(40) % 2
    labelled = ~np.isnan(people)
    assert best_weight(np.ones(100), people, labelled) == 0.0
    alone = people_alone(people, np.arange(100))
    assert estimate_share(np.ones(100), people, np.arange(100), weight=0.0) == alone
    assert alone.value == 0.5


def test_few_images_have_no_interval() -> None:
    people = np.full(40, np.nan)
    people[:20] = np.arange(20) % 2
    cluster = np.arange(40) // 5
    estimate = estimate_share(people.copy(), people, cluster, weight=0.5)
    assert estimate.interval.low is None


@pytest.mark.parametrize(
    ("share", "accuracy", "known", "per_image"),
    [(0.8, 0.9, 100, 1), (0.6, 0.7, 60, 4), (0.93, 0.95, 150, 4)],
)
def test_intervals_cover(
    share: float, accuracy: float, known: int, per_image: int
) -> None:
    """95 % intervals cover the true share, are narrower than people's alone for a good judge, and are not too wide."""
    random = np.random.default_rng(round(1000 * share))
    repeats = 150
    count = 600
    covered = 0
    widths = []
    alone = []
    for _ in range(repeats):
        # Questions about one image resemble each other.
        common = np.repeat(random.random(count // per_image), per_image)
        own = random.random(count)
        draw = np.where(random.random(count) < 0.3, common, own)
        truth = (draw < share).astype(np.float64)
        judge = np.where(random.random(count) < accuracy, truth, 1 - truth)
        people = np.full(count, np.nan)
        chosen = random.choice(count, known, replace=False)
        people[chosen] = truth[chosen]
        cluster = np.arange(count) // per_image
        weight = best_weight(judge, people, ~np.isnan(people))
        interval = estimate_share(judge, people, cluster, weight=weight).interval
        assert interval.low is not None
        assert interval.high is not None
        covered += interval.low <= share <= interval.high
        widths.append(interval.high - interval.low)
        other = people_alone(people, cluster).interval
        assert other.low is not None
        assert other.high is not None
        alone.append(other.high - other.low)
    # Below 89 % has a probability of 0.1 % if the coverage is 95 %.
    assert covered / repeats > 0.89
    if accuracy >= 0.9:
        assert np.mean(widths) < np.mean(alone)
