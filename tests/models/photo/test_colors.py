"""Colors by name, measured from pixels."""

import numpy as np
import pytest

from maskwise.models.photo.colors import color_share
from maskwise.models.photo.modifiers import COLOR_OF_WORD

SAMPLES = {
    "red": (200, 20, 20),
    "orange": (250, 140, 20),
    "yellow": (240, 230, 40),
    "green": (40, 160, 60),
    "blue": (30, 60, 200),
    "purple": (130, 40, 180),
    "pink": (250, 60, 180),
    "brown": (110, 65, 30),
    "black": (15, 15, 20),
    "white": (245, 245, 245),
    "grey": (128, 128, 130),
}


def plane(color: tuple[int, int, int]) -> np.ndarray:
    return np.full((4, 4, 3), np.array(color) / 255, np.float32)


EVERYWHERE = np.ones((4, 4), bool)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_plain_color_has_its_name(name: str) -> None:
    assert color_share(plane(SAMPLES[name]), EVERYWHERE, name) == 1


def test_a_plain_color_has_no_other_name() -> None:
    for name, color in SAMPLES.items():
        others = set(SAMPLES) - {name}
        if name == "brown":
            others -= {"orange", "red"}  # brown is a dark orange
        named = {
            other for other in others if color_share(plane(color), EVERYWHERE, other)
        }
        assert named == set(), name


def test_every_color_of_a_question_can_be_measured() -> None:
    assert set(COLOR_OF_WORD.values()) == set(SAMPLES)


def test_only_pixels_inside_the_mask_count() -> None:
    pixels = plane(SAMPLES["white"])
    pixels[:, :2] = np.array(SAMPLES["red"]) / 255
    left = np.zeros((4, 4), bool)
    left[:, :2] = True
    assert color_share(pixels, left, "red") == 1
    assert color_share(pixels, ~left, "white") == 1
    assert color_share(pixels, ~left, "red") == 0
    assert color_share(pixels, EVERYWHERE, "red") == 0.5


def test_an_empty_mask_has_no_color() -> None:
    assert color_share(plane(SAMPLES["red"]), ~EVERYWHERE, "red") == 0
