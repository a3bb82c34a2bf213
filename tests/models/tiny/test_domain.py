"""The out-of-domain detector of the bundled model."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from maskwise.images import open_image
from maskwise.models.tiny import Tiny, load
from maskwise.models.tiny.domain import read_domain
from maskwise.training.tiny.fit_domain import fit_domain, write_domain
from maskwise.world import make_scene
from tests.shared import shared


def test_scenes_of_the_world_are_inside_the_domain() -> None:
    scenes = [
        make_scene(77, index, "test", 200, preset=preset)
        for index in range(6)
        for preset in ("default", "easy")
    ]
    images = [Image.fromarray(shown.image) for shown in scenes]
    assert sum(load().encode(image).in_domain for image in images) >= 11
    assert sum(load().domain_warning(image) is None for image in images) >= 11


def test_noise_is_outside_the_domain() -> None:
    noise = Image.fromarray(
        np.random.default_rng(0).integers(0, 255, (120, 160, 3), np.uint8)
    )
    assert not load().encode(noise).in_domain
    assert "bring a model for photographs (docs/guides/adapters.md)" in str(
        load().domain_warning(noise)
    )


def test_photographs_of_coco_are_outside_the_domain() -> None:
    photos = sorted(shared("data", "coco128").rglob("*.jpg"))[:20]
    assert sum(not load().encode(open_image(path)).in_domain for path in photos) > 16


def test_a_model_without_a_domain_accepts_every_image() -> None:
    model = Tiny(load().networks)
    noise = Image.fromarray(
        np.random.default_rng(0).integers(0, 255, (120, 160, 3), np.uint8)
    )
    assert model.encode(noise).in_domain
    assert model.domain_warning(noise) is None


def test_the_threshold_has_the_false_alarm_rate_on_held_out_images(
    tmp_path: Path,
) -> None:
    random = np.random.default_rng(0)
    mixing = random.normal(size=(6, 6))
    training, held_out = (
        (random.normal(size=(2000, 6)) @ mixing).astype(np.float32) for _ in range(2)
    )
    write_domain(
        fit_domain([training, training + 50], held_out, 0.02), tmp_path / "domain.npz"
    )
    domain = read_domain(tmp_path / "domain.npz")
    assert domain is not None
    rejected = [domain.distance(features) > domain.threshold for features in held_out]
    assert np.mean(rejected) == pytest.approx(0.02, abs=0.001)
    assert (
        domain.distance(training.mean(0) + 10 * mixing[0].astype(np.float32))
        > domain.threshold
    )
    assert domain.distance(training.mean(0) + 50) < domain.threshold, (
        "the second group is inside the domain"
    )
    assert read_domain(tmp_path / "none.npz") is None
