"""Attacks: they stay within their budget and queries, and find what random noise does not."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bench.evasion_faults import Brittle, Clean
from maskwise.masks import Mask
from maskwise.probes.attack_search import gradient_attack, random_noise, square_attack
from maskwise.probes.attacks import score_answers
from maskwise.probes.run_probes import probe
from maskwise.schema import PredictedRegion, Prediction, Region, Sample
from maskwise.store import Dataset
from tests.probes.run_one import run

PIXELS = np.full((20, 30, 3), 100, np.uint8)
QUICK_SEARCH = {"attacks": {"queries": 3, "cost": 0.1}}


@pytest.mark.parametrize("level", [0, 3, 100, 255])
@pytest.mark.parametrize("budget", [1, 8])
def test_attacks_stay_within_their_budget(level: int, budget: int) -> None:
    pixels = np.full((9, 12, 3), level, np.uint8)
    rng = np.random.default_rng(0)
    attacked = [
        random_noise(pixels, budget, rng),
        square_attack(pixels, lambda tried: 0.0, budget=budget, queries=5, rng=rng),
        gradient_attack(
            pixels,
            lambda tried: np.ones(tried.shape),
            budget=budget,
            steps=3,
            rng=rng,
        ),
    ]
    for image in attacked:
        assert image.dtype == np.uint8
        assert np.abs(image.astype(int) - level).max() <= budget


def test_the_search_keeps_what_lowers_the_score_and_counts_its_queries() -> None:
    """The score is the brightness of the left half, which the attack has to darken."""
    asked = []

    def score(tried: np.ndarray) -> float:
        asked.append(1)
        return float(tried[:, :15].mean())

    rng = np.random.default_rng(0)
    attacked = square_attack(PIXELS, score, budget=8, queries=60, rng=rng)
    assert len(asked) == 60
    noise = random_noise(PIXELS, 8, np.random.default_rng(0))
    assert attacked[:, :15].mean() < noise[:, :15].mean() - 3


def test_the_gradient_attack_reaches_the_bound_of_a_linear_loss() -> None:
    """The loss of a linear model is largest in the corner that its weights point to."""
    weights = np.random.default_rng(1).normal(size=PIXELS.shape)
    attacked = gradient_attack(
        PIXELS,
        lambda tried: weights,
        budget=8,
        steps=5,
        rng=np.random.default_rng(0),
    )
    assert (attacked == 100 + 8 * np.sign(weights)).all()


def test_a_brittle_model_is_flagged_with_and_without_gradient(scenes: Dataset) -> None:
    images = [scenes.open_image(row) for row in range(len(scenes.images))]
    result = run("attacks", Brittle(images), scenes, probe_options=QUICK_SEARCH)
    assert result.severity == "high"
    assert {row[0] for row in result.tables[0].rows} >= {"black box", "gradient"}
    # Three queries and five gradients, each of which costs three, beside the evaluations.
    questions = len(scenes) * 10 / 14
    assert result.cost * len(scenes) > questions * (3 + 15)


def test_a_clean_model_is_not_flagged(scenes: Dataset) -> None:
    result = run("attacks", Clean(), scenes, probe_options=QUICK_SEARCH)
    assert result.severity == "none", result.finding
    assert result.notes == ["The model gives no gradient."]


def test_attacked_images_are_kept_for_the_next_attempt(
    scenes: Dataset, tmp_path: Path
) -> None:
    class Counting(Clean):
        calls = 0

        def predict_with_ground_truth(
            self, image: Image.Image, samples: Sequence[Sample]
        ) -> list[Prediction]:
            Counting.calls += 1
            return super().predict_with_ground_truth(image, samples)

    options = {"probes": "attacks", "probe_options": QUICK_SEARCH, "progress": False}
    first = probe(Counting(), scenes, tmp_path, **options)
    asked = Counting.calls
    again = probe(Counting(), scenes, tmp_path, **options)
    assert Counting.calls == asked
    assert again.results[0].tables == first.results[0].tables


def test_attacks_are_left_out_of_quick_probes(scenes: Dataset) -> None:
    result = run("attacks", Clean(), scenes, quick=True)
    assert result.severity == "unmeasured"
    assert "quick" in result.finding


def test_what_an_attack_lowers_by_hand() -> None:
    left = np.zeros((2, 4), np.bool_)
    left[:, :2] = True
    target = Region(id="1", name="left", visible=Mask.from_dense(left))
    asked = Sample(id="a", image_id="i", question="left", targets=(target,))
    absent = Sample(id="b", image_id="i", question="nothing")
    right = PredictedRegion(visible=left, score=0.5)
    whole = PredictedRegion(visible=np.ones((2, 4), np.bool_), score=0.5)
    good = [Prediction(regions=(right,)), Prediction(no_target=True)]
    bad = [Prediction(regions=(whole,)), Prediction(regions=(whole,))]
    assert score_answers(good, [asked, absent]) == pytest.approx(1 + 0.25e-3)
    assert score_answers(bad, [asked, absent]) == pytest.approx(0.25 + 0.5e-3)
