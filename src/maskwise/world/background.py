"""The background: a wall, and a table top or a floor, lit from one side."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskwise.world.facets import DirectionalLight
from maskwise.world.random_streams import RandomStream
from maskwise.world.textures import SIDE, load_texture

Planes = NDArray[np.float32]
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
    """A sampled background. `horizon`: the boundary of wall and ground, as a fraction of the image height."""

    setting: str
    horizon: float
    wall: Rgb
    wall_pattern: str
    wall_scale: float
    ground: Rgb
    ground_pattern: str
    ground_scale: float
    cut: tuple[int, int]
    lean: float
    warmth: float
    window: tuple[float, float, float] | None


def sample_background(setting: str, horizon: float, rng: RandomStream) -> Background:
    """Sample a wall and a ground for the setting."""
    ground_pattern = rng.choice(
        ("planks", "wood", "wood", "marble", "check", "weave")
        if setting == "table"
        else ("planks", "planks", "tiles", "weave", "weave")
    )
    colors = {"planks": WOODS, "wood": WOODS, "marble": STONES, "tiles": STONES}.get(
        ground_pattern, CLOTHS
    )
    return Background(
        setting=setting,
        horizon=horizon,
        wall=rng.choice(WALLS),
        wall_pattern=rng.choice(
            ("plaster", "plaster", "stripes", "tiles", "panels", "brick")
        ),
        wall_scale=rng.uniform(0.8, 1.3),
        ground=rng.choice(colors),
        ground_pattern=ground_pattern,
        ground_scale=rng.uniform(0.8, 1.3),
        cut=(rng.integer(SIDE), rng.integer(SIDE)),
        lean=rng.uniform(-0.35, 0.35),
        warmth=rng.uniform(-0.045, 0.06),
        window=(rng.uniform(0.0, 0.75), rng.uniform(0.14, 0.3), rng.uniform(0.1, 0.2))
        if rng.bernoulli(0.35)
        else None,
    )


def draw_background(
    background: Background, size: int, light: DirectionalLight
) -> Planes:
    """The background as color planes (3, size, size), about 0..1."""
    edge = round(background.horizon * size)
    planes = np.empty((3, size, size), np.float32)
    _fill(planes[:, :edge], background.wall, _wall(background, size, edge))
    _fill(planes[:, edge:], background.ground, _ground(background, size, edge))
    if background.setting == "room":
        skirting = max(1, round(0.035 * size))
        planes[:, edge - skirting : edge] = np.array(SKIRTING, np.float32)[
            :, None, None
        ]
        planes[:, edge - skirting] *= 0.8
    planes[:, edge - 1 : edge + 1] *= 0.72
    across = np.linspace(-1, 1, size, dtype=np.float32)
    down = np.linspace(-1, 1, size, dtype=np.float32)[:, None]
    side = np.float32(np.sign(light.x))
    planes *= (1.0 + 0.13 * side * across) * (1.02 - 0.05 * down) - 0.07 * (
        across * across + down * down
    )
    planes[0] *= 1 + background.warmth
    planes[2] *= 1 - background.warmth
    return planes


def _fill(planes: Planes, color: Rgb, factor: Planes) -> None:
    np.multiply(np.array(color, np.float32)[:, None, None], factor, out=planes)


def _wall(background: Background, size: int, edge: int) -> Planes:
    unit = np.float32(background.wall_scale / size)
    x = np.arange(size, dtype=np.float32) * unit
    y = np.arange(edge, dtype=np.float32)[:, None] * unit
    top, left = background.cut
    rows = (np.arange(edge) * SIDE // (2 * size) + top) % SIDE
    columns = (np.arange(size) * SIDE // (2 * size) + left) % SIDE
    value = load_texture("plaster")[rows[:, None], columns[None]]
    if background.wall_pattern == "stripes":
        value *= np.where((x * 9) % 1 < 0.5, np.float32(1), np.float32(0.94))
    elif background.wall_pattern == "tiles":
        value *= np.where(
            ((x * 7) % 1 < 0.07) | ((y * 7) % 1 < 0.07), np.float32(0.88), np.float32(1)
        )
    elif background.wall_pattern == "panels":
        value *= np.where((x * 5) % 1 < 0.05, np.float32(0.84), np.float32(1))
    elif background.wall_pattern == "brick":
        course = np.floor(y * 12)
        value *= np.where(
            ((x * 5 + 0.5 * (course % 2)) % 1 < 0.06) | ((y * 12) % 1 < 0.16),
            np.float32(1.06),
            np.float32(0.93),
        )
    if background.window:
        start, wide, low = background.window
        patch = x / unit / size - start + background.lean * (y / unit / size)
        value += 0.13 * (
            (patch > 0)
            & (patch < wide)
            & (y / unit / size > low * 0.4)
            & (np.abs(patch - wide / 2) > 0.008)
        )
    return value


def _ground(background: Background, size: int, edge: int) -> Planes:
    """The ground texture in perspective."""
    rows = size - edge
    down = (np.arange(rows, dtype=np.float32)[:, None] + 0.5) / size
    depth = np.float32(1.0) / (down + np.float32(0.42))
    across = (np.arange(size, dtype=np.float32)[None] + 0.5) / size - 0.5
    u = (
        (across + background.lean * (0.6 - down) * 0.3)
        * depth
        * np.float32(1.6 * background.ground_scale)
    )
    v = depth * np.float32(2.6 * background.ground_scale)
    top, left = background.cut
    pattern = background.ground_pattern

    def read(name: str, scale_u: float, scale_v: float) -> Planes:
        return load_texture(name)[
            (v * scale_v + top).astype(np.int32) % SIDE,
            (u * scale_u + left).astype(np.int32) % SIDE,
        ]

    if pattern == "wood":
        return read("wood", 60, 300)
    if pattern == "planks":
        number = np.floor(u * 4)
        tone = 1 + 0.07 * np.sin(number * 12.9898 + top)
        seam = np.where((u * 4) % 1 < 0.05, np.float32(0.7), np.float32(1))
        grain = load_texture("wood")[
            (u * 320 + number * 91).astype(np.int32) % SIDE,
            (v * 60 + left).astype(np.int32) % SIDE,
        ]
        planks: Planes = (grain * tone * seam).astype(np.float32)
        return planks
    if pattern == "marble":
        return read("marble", 200, 200)
    if pattern == "tiles":
        seam = ((u * 3) % 1 < 0.04) | ((v * 3) % 1 < 0.05)
        return read("plaster", 200, 200) * np.where(
            seam, np.float32(0.75), np.float32(1)
        )
    if pattern == "check":
        parity = 0.5 * ((u * 6) % 1 < 0.5) + 0.5 * ((v * 6) % 1 < 0.5)
        return read("cloth", 300, 300) * (1.06 - 0.26 * parity.astype(np.float32))
    return read("cloth", 260, 260)
