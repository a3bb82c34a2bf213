"""The background: a wall, and a table top or a floor, lit from one side.

Colors, scales and strengths were chosen by eye: the background must not hide the
objects, so its contrasts stay below those of an object against it.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskwise.world.facets import DirectionalLight
from maskwise.world.random_streams import RandomStream
from maskwise.world.textures import SIDE, load_texture

Planes = NDArray[np.float32]
Floats = NDArray[np.floating[Any]]
Rgb = tuple[float, float, float]

WALLS: tuple[Rgb, ...] = (
    (0.86, 0.83, 0.77),
    (0.78, 0.81, 0.83),
    (0.72, 0.77, 0.72),
    (0.83, 0.76, 0.7),
    (0.66, 0.7, 0.76),
    (0.9, 0.88, 0.86),
    (0.62, 0.66, 0.62),
    (0.8, 0.78, 0.66),
    (0.55, 0.6, 0.68),
    (0.76, 0.7, 0.72),
)
WOODS: tuple[Rgb, ...] = (
    (0.68, 0.5, 0.34),
    (0.56, 0.39, 0.26),
    (0.76, 0.61, 0.44),
    (0.45, 0.32, 0.23),
    (0.62, 0.55, 0.47),
)
STONES: tuple[Rgb, ...] = (
    (0.84, 0.83, 0.81),
    (0.6, 0.61, 0.63),
    (0.74, 0.7, 0.65),
    (0.42, 0.43, 0.45),
)
CLOTHS: tuple[Rgb, ...] = (
    (0.86, 0.84, 0.79),
    (0.55, 0.63, 0.7),
    (0.72, 0.56, 0.52),
    (0.6, 0.66, 0.56),
    (0.66, 0.6, 0.68),
)
SKIRTING: Rgb = (0.88, 0.87, 0.84)


class Background(NamedTuple):
    """A sampled background.

    `horizon`: the boundary of wall and ground, as a fraction of the image height.
    `wall_scale`, `ground_scale`: factors of the pattern's frequency. `texture_start`:
    row and column where crops of textures begin. `lean`: slope of the window's light
    and of the ground pattern. `warmth`: factor by which red grows and blue shrinks.
    `window_light`: left edge, width and top of a patch of light on the wall, as
    fractions of the image size, or None.
    """

    setting: str
    horizon: float
    wall: Rgb
    wall_pattern: str
    wall_scale: float
    ground: Rgb
    ground_pattern: str
    ground_scale: float
    texture_start: tuple[int, int]
    lean: float
    warmth: float
    window_light: tuple[float, float, float] | None


def sample_background(setting: str, horizon: float, rng: RandomStream) -> Background:
    """Sample a wall and a ground for the setting (`table` or `room`).

    A pattern listed twice is twice as frequent. The order of the random numbers is
    part of the published dataset.
    """
    ground_patterns: tuple[str, ...]
    if setting == "table":
        ground_patterns = ("planks", "wood", "wood", "marble", "check", "weave")
    else:
        ground_patterns = ("planks", "planks", "tiles", "weave", "weave")
    ground_pattern = rng.choice(ground_patterns)
    if ground_pattern in ("planks", "wood"):
        ground_colors = WOODS
    elif ground_pattern in ("marble", "tiles"):
        ground_colors = STONES
    else:
        ground_colors = CLOTHS

    wall = rng.choice(WALLS)
    wall_patterns = ("plaster", "plaster", "stripes", "tiles", "panels", "brick")
    wall_pattern = rng.choice(wall_patterns)
    wall_scale = rng.uniform(0.8, 1.3)
    ground = rng.choice(ground_colors)
    ground_scale = rng.uniform(0.8, 1.3)
    texture_start = (rng.integer(SIDE), rng.integer(SIDE))
    lean = rng.uniform(-0.35, 0.35)
    warmth = rng.uniform(-0.045, 0.06)
    window_light = None
    has_window_light = rng.bernoulli(0.35)
    if has_window_light:
        left = rng.uniform(0.0, 0.75)
        width = rng.uniform(0.14, 0.3)
        top = rng.uniform(0.1, 0.2)
        window_light = (left, width, top)
    return Background(
        setting=setting,
        horizon=horizon,
        wall=wall,
        wall_pattern=wall_pattern,
        wall_scale=wall_scale,
        ground=ground,
        ground_pattern=ground_pattern,
        ground_scale=ground_scale,
        texture_start=texture_start,
        lean=lean,
        warmth=warmth,
        window_light=window_light,
    )


def draw_background(
    background: Background, size: int, light: DirectionalLight
) -> Planes:
    """The background as color planes, float32 (3, size, size), about 0..1."""
    horizon_row = round(background.horizon * size)
    planes = np.empty((3, size, size), np.float32)
    wall_factor = _wall(background, size, horizon_row)
    _fill(planes[:, :horizon_row], background.wall, wall_factor)
    ground_factor = _ground(background, size, horizon_row)
    _fill(planes[:, horizon_row:], background.ground, ground_factor)
    if background.setting == "room":
        _draw_skirting(planes, size, horizon_row)
    # A dark line where wall and ground meet.
    planes[:, horizon_row - 1 : horizon_row + 1] *= 0.72
    planes *= _light_falloff(size, light)
    planes[0] *= 1 + background.warmth
    planes[2] *= 1 - background.warmth
    return planes


def _fill(planes: Planes, color: Rgb, factor: Planes) -> None:
    """Fill planes (3, h, w) with a color times a factor (h, w)."""
    color_column = np.array(color, np.float32)[:, None, None]
    np.multiply(color_column, factor, out=planes)


def _draw_skirting(planes: Planes, size: int, horizon_row: int) -> None:
    """A board along the foot of the wall, with a darker line on its upper edge."""
    height = max(1, round(0.035 * size))
    top = horizon_row - height
    planes[:, top:horizon_row] = np.array(SKIRTING, np.float32)[:, None, None]
    planes[:, top] *= 0.8


def _light_falloff(size: int, light: DirectionalLight) -> Floats:
    """Brightness factors (size, size): brighter towards the light, darker corners."""
    across = np.linspace(-1, 1, size, dtype=np.float32)
    down = np.linspace(-1, 1, size, dtype=np.float32)[:, None]
    light_side = np.float32(np.sign(light.x))
    directional = (1.0 + 0.13 * light_side * across) * (1.02 - 0.05 * down)
    vignette = 0.07 * (across * across + down * down)
    return directional - vignette


def _wall(background: Background, size: int, horizon_row: int) -> Planes:
    """Brightness factors of the wall (horizon_row, size): plaster, pattern, window."""
    unit = np.float32(background.wall_scale / size)
    x = np.arange(size, dtype=np.float32) * unit
    y = np.arange(horizon_row, dtype=np.float32)[:, None] * unit
    top, left = background.texture_start
    # Half of the texture spans the image, whatever the image's size.
    rows = (np.arange(horizon_row) * SIDE // (2 * size) + top) % SIDE
    columns = (np.arange(size) * SIDE // (2 * size) + left) % SIDE
    factor = load_texture("plaster")[rows[:, None], columns[None]]
    pattern = _wall_pattern(background.wall_pattern, x, y)
    if pattern is not None:
        factor *= pattern
    if background.window_light:
        # Undo the pattern's scale: the light is in fractions of the image.
        factor += _window_light(background, x / unit / size, y / unit / size)
    return factor


def _wall_pattern(name: str, x: Floats, y: Floats) -> Planes | None:
    """Brightness factors of a wall pattern at x (w,) and y (h, 1); None for plaster.

    `(x * n) % 1` is the position within one of n repetitions, 0..1.
    """
    if name == "stripes":
        is_light = (x * 9) % 1 < 0.5
        return np.where(is_light, np.float32(1), np.float32(0.94))
    if name == "tiles":
        is_joint = ((x * 7) % 1 < 0.07) | ((y * 7) % 1 < 0.07)
        return np.where(is_joint, np.float32(0.88), np.float32(1))
    if name == "panels":
        is_groove = (x * 5) % 1 < 0.05
        return np.where(is_groove, np.float32(0.84), np.float32(1))
    if name == "brick":
        course = np.floor(y * 12)
        # Every second course is shifted by half a brick.
        shift = 0.5 * (course % 2)
        is_upright_joint = (x * 5 + shift) % 1 < 0.06
        is_level_joint = (y * 12) % 1 < 0.16
        is_joint = is_upright_joint | is_level_joint
        return np.where(is_joint, np.float32(1.06), np.float32(0.93))
    return None


def _window_light(background: Background, x: Floats, y: Floats) -> Floats:
    """Brightness added where light falls through a window with a bar in its middle.

    x (w,) and y (h, 1) are fractions of the image size.
    """
    assert background.window_light is not None
    left, width, top = background.window_light
    across = x - left + background.lean * y
    is_inside = (across > 0) & (across < width)
    is_below_top = y > top * 0.4
    is_beside_bar = np.abs(across - width / 2) > 0.008
    is_lit = is_inside & is_below_top & is_beside_bar
    return 0.13 * is_lit


def _ground(background: Background, size: int, horizon_row: int) -> Planes:
    """Brightness factors of the ground (size - horizon_row, size), in perspective."""
    row_count = size - horizon_row
    down = (np.arange(row_count, dtype=np.float32)[:, None] + 0.5) / size
    # The horizon of the perspective lies 0.42 of the image above the wall's foot.
    depth = np.float32(1.0) / (down + np.float32(0.42))
    across = (np.arange(size, dtype=np.float32)[None] + 0.5) / size - 0.5
    slanted = across + background.lean * (0.6 - down) * 0.3
    # u and v are coordinates on the ground: to the right, and away from the viewer.
    u = slanted * depth * np.float32(1.6 * background.ground_scale)
    v = depth * np.float32(2.6 * background.ground_scale)
    top, left = background.texture_start
    pattern = background.ground_pattern

    def texture_at(name: str, u_scale: float, v_scale: float) -> Planes:
        rows = (v * v_scale + top).astype(np.int32) % SIDE
        columns = (u * u_scale + left).astype(np.int32) % SIDE
        return load_texture(name)[rows, columns]

    if pattern == "wood":
        # Stretched along u: the grain runs from left to right.
        return texture_at("wood", 60, 300)
    if pattern == "planks":
        return _planks(u, v, background.texture_start)
    if pattern == "marble":
        return texture_at("marble", 200, 200)
    if pattern == "tiles":
        is_joint = ((u * 3) % 1 < 0.04) | ((v * 3) % 1 < 0.05)
        joints = np.where(is_joint, np.float32(0.75), np.float32(1))
        return texture_at("plaster", 200, 200) * joints
    if pattern == "check":
        # 0, 0.5 or 1: squares where two stripes cross are darkest.
        stripes = 0.5 * ((u * 6) % 1 < 0.5) + 0.5 * ((v * 6) % 1 < 0.5)
        return texture_at("cloth", 300, 300) * (
            1.06 - 0.26 * stripes.astype(np.float32)
        )
    return texture_at("cloth", 260, 260)


def _planks(u: Floats, v: Floats, texture_start: tuple[int, int]) -> Planes:
    """Planks that run away from the viewer, each with its own tone and grain."""
    top, left = texture_start
    plank = np.floor(u * 4)
    # A fixed irregular tone per plank: the sine of a large multiple of its number.
    tone = 1 + 0.07 * np.sin(plank * 12.9898 + top)
    is_seam = (u * 4) % 1 < 0.05
    seam = np.where(is_seam, np.float32(0.7), np.float32(1))
    # 91 rows between the grains of neighbors, so that no two planks look alike.
    rows = (u * 320 + plank * 91).astype(np.int32) % SIDE
    columns = (v * 60 + left).astype(np.int32) % SIDE
    grain = load_texture("wood")[rows, columns]
    planks: Planes = (grain * tone * seam).astype(np.float32)
    return planks
