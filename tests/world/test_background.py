"""Backgrounds: a wall above, a ground below, lit from the side of the light."""

import numpy as np
import pytest

from maskwise.world.background import Background, draw_background, sample_background
from maskwise.world.facets import DirectionalLight
from maskwise.world.random_streams import RandomStream

LIGHT = DirectionalLight(0.5, 0.6, 0.62)
WALL_PATTERNS = ("plaster", "stripes", "tiles", "panels", "brick")
GROUND_PATTERNS = ("wood", "planks", "marble", "tiles", "check", "weave")


def backgrounds(setting: str, count: int = 60) -> list[Background]:
    made = []
    for seed in range(count):
        rng = RandomStream(np.random.SeedSequence(seed))
        made.append(sample_background(setting, 0.4, rng))
    return made


def plain(**changes: object) -> Background:
    """A white wall and ground without lights, to look at one thing at a time."""
    background = Background(
        setting="table",
        horizon=0.5,
        wall=(1.0, 1.0, 1.0),
        wall_pattern="plaster",
        wall_scale=1.0,
        ground=(1.0, 1.0, 1.0),
        ground_pattern="weave",
        ground_scale=1.0,
        texture_start=(0, 0),
        lean=0.0,
        warmth=0.0,
        window_light=None,
    )
    return background._replace(**changes)


@pytest.mark.parametrize("setting", ["table", "room"])
def test_samples_cover_the_patterns_of_the_setting(setting: str) -> None:
    made = backgrounds(setting)
    assert {background.wall_pattern for background in made} == set(WALL_PATTERNS)
    grounds = {background.ground_pattern for background in made}
    if setting == "table":
        assert grounds == set(GROUND_PATTERNS) - {"tiles"}
    else:
        assert grounds == {"planks", "tiles", "weave"}
    lit = [background.window_light is not None for background in made]
    assert 0.15 < np.mean(lit) < 0.55


def test_the_same_stream_gives_the_same_background() -> None:
    assert backgrounds("table", 5) == backgrounds("table", 5)


@pytest.mark.parametrize("pattern", WALL_PATTERNS)
def test_every_wall_pattern_is_drawn(pattern: str) -> None:
    planes = draw_background(plain(wall_pattern=pattern), 96, LIGHT)
    smooth = draw_background(plain(), 96, LIGHT)
    assert planes.shape == (3, 96, 96)
    assert planes.dtype == np.float32
    assert planes.min() > 0.2
    assert planes.max() < 1.6
    differs = (planes[:, :40] != smooth[:, :40]).any()
    assert differs == (pattern != "plaster")


@pytest.mark.parametrize("pattern", GROUND_PATTERNS)
def test_every_ground_pattern_is_drawn(pattern: str) -> None:
    planes = draw_background(plain(ground_pattern=pattern), 96, LIGHT)
    ground = planes[:, 52:]
    assert ground.min() > 0.2
    assert ground.max() < 1.6
    assert ground.std() > 0.01


@pytest.mark.parametrize("size", [32, 97, 160])
def test_the_horizon_divides_wall_and_ground(size: int) -> None:
    background = plain(wall=(0.9, 0.1, 0.1), ground=(0.1, 0.1, 0.9), horizon=0.4)
    planes = draw_background(background, size, LIGHT)
    horizon_row = round(0.4 * size)
    red, _, blue = planes
    assert (red[:horizon_row] > blue[:horizon_row]).all()
    assert (blue[horizon_row:] > red[horizon_row:]).all()


def test_the_side_of_the_light_is_brighter() -> None:
    from_right = draw_background(plain(), 96, LIGHT)
    from_left = draw_background(plain(), 96, LIGHT._replace(x=-0.5))
    assert from_right[:, :, 64:].mean() > from_right[:, :, :32].mean()
    assert from_left[:, :, 64:].mean() < from_left[:, :, :32].mean()


def test_warmth_moves_red_and_blue_apart() -> None:
    red, green, blue = draw_background(plain(warmth=0.05), 96, LIGHT)
    assert (red > green).all()
    assert (green > blue).all()


def test_a_window_only_adds_light_to_the_wall() -> None:
    dark = draw_background(plain(), 96, LIGHT)
    lit = draw_background(plain(window_light=(0.3, 0.25, 0.1)), 96, LIGHT)
    gain = (lit - dark)[0]
    assert (gain >= 0).all()
    lit_columns = np.flatnonzero((gain[:46] > 0.05).any(0))
    assert lit_columns.min() == pytest.approx(0.3 * 96, abs=2)
    assert lit_columns.max() == pytest.approx(0.55 * 96, abs=2)
    assert (gain[48:] == 0).all()


def test_only_a_room_has_a_skirting_board() -> None:
    table = draw_background(plain(), 96, LIGHT)
    room = draw_background(plain(setting="room"), 96, LIGHT)
    changed_rows = np.flatnonzero((table != room).any((0, 2)))
    assert changed_rows.max() == 47
    assert changed_rows.min() == 48 - round(0.035 * 96)


def test_drawing_does_not_change_the_textures() -> None:
    """Walls are multiplied in place: the texture they start from has to stay."""
    background = plain(wall_pattern="brick", window_light=(0.1, 0.2, 0.1))
    first = draw_background(background, 64, LIGHT)
    again = draw_background(background, 64, LIGHT)
    assert (first == again).all()
