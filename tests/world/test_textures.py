"""Textures: fixed, without a visible border, and neutral in brightness."""

import numpy as np
import pytest

from maskwise.world.textures import SIDE, TEXTURES, crop_texture, load_texture

SURFACES = [name for name in TEXTURES if name != "grain"]


@pytest.mark.parametrize("name", TEXTURES)
def test_a_texture_is_a_square_of_float32(name: str) -> None:
    texture = load_texture(name)
    assert texture.shape == (SIDE, SIDE)
    assert texture.dtype == np.float32
    assert np.isfinite(texture).all()


@pytest.mark.parametrize("name", SURFACES)
def test_a_surface_keeps_the_brightness_of_its_color(name: str) -> None:
    texture = load_texture(name)
    assert texture.mean() == pytest.approx(1.0, abs=0.05)
    assert texture.min() > 0.5
    assert texture.max() < 1.5
    assert texture.std() > 0.01, "a texture without structure is none"


def test_grain_is_standard_normal() -> None:
    grain = load_texture("grain")
    assert grain.mean() == pytest.approx(0.0, abs=0.01)
    assert grain.std() == pytest.approx(1.0, abs=0.01)
    within_one = (np.abs(grain) < 1).mean()
    assert within_one == pytest.approx(0.683, abs=0.02)


@pytest.mark.parametrize("name", ["plaster", "brushed", "marble"])
def test_a_texture_repeats_without_a_border(name: str) -> None:
    """The step from the last row to the first is like those elsewhere, or invisible."""
    texture = load_texture(name)
    for wrapped in (texture, texture.T):
        steps = np.abs(np.diff(wrapped, axis=0)).mean(1)
        border_step = np.abs(wrapped[0] - wrapped[-1]).mean()
        one_percent = 0.01
        assert border_step < max(3 * steps.max(), one_percent)


def test_textures_differ() -> None:
    corners = {load_texture(name)[:4, :4].tobytes() for name in TEXTURES}
    assert len(corners) == len(TEXTURES)


@pytest.mark.parametrize(
    ("top", "left"),
    [(0, 0), (5, 900), (SIDE - 3, 17), (SIDE - 1, SIDE - 1), (-1, -2), (5 * SIDE, 3)],
)
def test_a_crop_wraps_around(top: int, left: int) -> None:
    crop = crop_texture("cloth", top, left, (7, 150))
    assert crop.shape == (7, 150)
    rolled = np.roll(load_texture("cloth"), (-top, -left), (0, 1))
    assert (crop == rolled[:7, :150]).all()


def test_a_crop_may_be_larger_than_the_texture() -> None:
    crop = crop_texture("wood", 0, 0, (SIDE + 2, 3))
    assert (crop[:2] == crop[SIDE:]).all()
