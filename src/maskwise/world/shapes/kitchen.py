"""Kitchenware and tableware."""

import math

import numpy as np

from maskwise.world.facets import FacetBuilder, curve
from maskwise.world.random_streams import RandomStream


def mug(builder: FacetBuilder, rng: RandomStream) -> None:
    tall = rng.uniform(0.8, 1.15)
    wide = rng.uniform(0.37, 0.5)
    foot = wide * rng.uniform(0.82, 1.0)
    side = rng.sign()
    reach = rng.uniform(0.3, 0.42)
    top = rng.uniform(0.78, 0.88) * tall
    low = rng.uniform(0.18, 0.3) * tall
    out = wide + reach
    builder.tube(
        "handle",
        [
            (side * wide * 0.9, top, 0),
            (side * out * 0.92, top, 0),
            (side * out, (top + low) / 2, 0),
            (side * out * 0.88, low, 0),
            (side * foot * 0.92, low, 0),
        ],
        rng.uniform(0.06, 0.085),
    )
    builder.lathe(
        "body",
        [(0, foot * 0.93), (0.05, foot), (tall * 0.5, (wide + foot) / 2), (tall, wide)],
    )
    if rng.bernoulli(0.35):
        band = rng.uniform(0.25, 0.5) * tall
        half = foot + (wide - foot) * band / tall
        builder.band("body", (band, half), (band + 0.16 * tall, half + 0.01))
    builder.disc("body", tall, wide, hollow=True, rim=0.1)
    if rng.bernoulli(0.5):
        builder.disc("body", tall - 0.1, wide * 0.84, "coffee")


def bowl(builder: FacetBuilder, rng: RandomStream) -> None:
    wide = rng.uniform(0.62, 0.78)
    tall = rng.uniform(0.45, 0.62)
    builder.lathe("foot", [(0, 0.27), (0.09, 0.24)])
    builder.lathe(
        "body", [(0.07, 0.25), (0.12, 0.36), (tall * 0.5, wide * 0.82), (tall, wide)]
    )
    if rng.bernoulli(0.4):
        builder.band("body", (tall * 0.72, wide * 0.925), (tall * 0.86, wide * 0.97))
    builder.disc("body", tall, wide, hollow=True, rim=0.07)


def bottle(builder: FacetBuilder, rng: RandomStream) -> None:
    wide = rng.uniform(0.24, 0.33)
    tall = rng.uniform(0.75, 1.05)
    neck = rng.uniform(0.085, 0.12)
    reach = rng.uniform(0.35, 0.6)
    shoulder = tall + rng.uniform(0.12, 0.25)
    end = shoulder + reach * 0.6
    builder.lathe(
        "neck",
        [
            (tall - 0.02, wide * 0.98),
            (tall + 0.08, wide * 0.8),
            (shoulder, neck * 1.15),
            (end, neck),
        ],
    )
    builder.lathe(
        "body",
        [(0, wide * 0.94), (0.06, wide), (tall * 0.5, wide), (tall, wide * 0.98)],
    )
    low = rng.uniform(0.18, 0.3) * tall
    builder.band("body", (low, wide), (low + 0.42 * tall, wide))
    cap = neck * rng.uniform(1.15, 1.35)
    builder.lathe("cap", [(end - 0.03, cap), (end + 0.14, cap)], "trim")
    builder.disc("cap", end + 0.14, cap, "trim")


def wine_glass(builder: FacetBuilder, rng: RandomStream) -> None:
    wide = rng.uniform(0.28, 0.38)
    stem = rng.uniform(0.45, 0.7)
    deep = rng.uniform(0.5, 0.75)
    base = wide * rng.uniform(0.8, 1.0)
    builder.lathe("base", [(0, base), (0.035, base * 0.92), (0.07, 0.06)])
    builder.lathe("stem", [(0.05, 0.05), (stem * 0.5, 0.035), (stem + 0.03, 0.05)])
    mouth = wide * rng.uniform(0.72, 0.95)
    builder.lathe(
        "bowl",
        [
            (stem, 0.05),
            (stem + 0.1 * deep, wide * 0.7),
            (stem + 0.4 * deep, wide),
            (stem + deep, mouth),
        ],
    )
    builder.disc("bowl", stem + deep, mouth, hollow=True, rim=0.07)
    if rng.bernoulli(0.6):
        builder.disc("bowl", stem + deep * 0.86, mouth * 0.88, "wine")


def teapot(builder: FacetBuilder, rng: RandomStream) -> None:
    wide = rng.uniform(0.48, 0.6)
    tall = rng.uniform(0.6, 0.8)
    side = rng.sign()
    builder.tube(
        "handle",
        [
            (-side * wide * 0.7, tall * 0.88, 0),
            (-side * (wide + 0.3), tall * 0.9, 0),
            (-side * (wide + 0.34), tall * 0.5, 0),
            (-side * wide * 0.85, tall * 0.25, 0),
        ],
        rng.uniform(0.055, 0.075),
    )
    lip = rng.uniform(0.85, 1.05) * tall
    builder.tube(
        "spout",
        [
            (side * wide * 0.7, tall * 0.25, 0),
            (side * (wide + 0.12), tall * 0.45, 0),
            (side * (wide + 0.26), lip * 0.85, 0),
            (side * (wide + 0.4), lip, 0),
        ],
        [0.17, 0.12, 0.075, 0.06],
    )
    top = wide * 0.5
    builder.lathe(
        "body",
        [
            (0, wide * 0.62),
            (0.06, wide * 0.72),
            (tall * 0.45, wide),
            (tall * 0.82, wide * 0.8),
            (tall, top),
        ],
    )
    if rng.bernoulli(0.4):
        builder.band("body", (tall * 0.42, wide * 0.99), (tall * 0.58, wide * 0.98))
    builder.lathe(
        "lid",
        [(tall - 0.02, top * 1.1), (tall + 0.04, top), (tall + 0.13, top * 0.35)],
        "trim",
    )
    builder.ball("lid", (0, tall + 0.2, 0), 0.085, "trim")


def pan(builder: FacetBuilder, rng: RandomStream) -> None:
    wide = rng.uniform(0.55, 0.68)
    deep = rng.uniform(0.16, 0.28)
    side = rng.sign()
    reach = rng.uniform(0.7, 0.95)
    swing = rng.uniform(-0.25, 0.45)
    builder.tube(
        "handle",
        [
            (side * wide * 0.86, deep * 0.8, swing * 0.4),
            (side * (wide + reach * 0.5), deep * 1.15, swing * 0.8),
            (side * (wide + reach), deep * 1.3, swing),
        ],
        [0.065, 0.075, 0.09],
        "trim",
    )
    builder.lathe("body", [(0, wide * 0.84), (0.03, wide * 0.88), (deep, wide)])
    builder.disc("body", deep, wide, hollow=True, rim=0.06)
    builder.disc("body", deep * 0.3, wide * 0.78, "dark")


def knife(builder: FacetBuilder, rng: RandomStream) -> None:
    grip = rng.uniform(0.6, 0.8)
    edge = rng.uniform(0.9, 1.2)
    deep = rng.uniform(0.4, 0.55)
    builder.turn_to(_lying(rng))
    back = [(0.0, -deep * 0.5), (edge * 0.7, -deep * 0.5), (edge, -deep * 0.1)]
    belly = [(edge * 0.9, deep * 0.3), (edge * 0.6, deep * 0.5), (0.0, deep * 0.5)]
    builder.slab("blade", back + belly, "steel", thick=0.04)
    builder.slab(
        "blade",
        [
            (0.0, deep * 0.22),
            (edge * 0.88, deep * 0.2),
            (edge * 0.6, deep * 0.5),
            (0, deep * 0.5),
        ],
        "bright",
        base=0.04,
        thick=0.0,
    )
    _grip(builder, -grip, 0.05, rng.uniform(0.18, 0.23))


def fork(builder: FacetBuilder, rng: RandomStream) -> None:
    grip = rng.uniform(0.8, 1.05)
    wide = rng.uniform(0.3, 0.38)
    builder.turn_to(_lying(rng))
    for tine in (-0.9, -0.3, 0.3, 0.9):
        builder.slab(
            "tines",
            [
                (0.3, wide * (tine - 0.2)),
                (0.85, wide * (tine - 0.13)),
                (0.85, wide * (tine + 0.13)),
                (0.3, wide * (tine + 0.2)),
            ],
            "steel",
            thick=0.05,
        )
    palm = [
        (-0.05, -0.06),
        (0.12, -wide * 0.8),
        (0.34, -wide * 1.1),
        (0.34, wide * 1.1),
        (0.12, wide * 0.8),
        (-0.05, 0.06),
    ]
    builder.slab("tines", palm, "steel", thick=0.05)
    _grip(builder, -grip, 0.0, rng.uniform(0.14, 0.18))


def spoon(builder: FacetBuilder, rng: RandomStream) -> None:
    grip = rng.uniform(0.8, 1.0)
    wide = rng.uniform(0.36, 0.44)
    long = rng.uniform(0.36, 0.46)
    builder.turn_to(_lying(rng))
    angle = np.linspace(0, 2 * math.pi, 20, endpoint=False)
    oval = np.stack([long + long * np.cos(angle), wide * np.sin(angle)], 1)
    builder.slab("bowl", oval, "steel", thick=0.06)
    builder.slab(
        "bowl",
        (oval - (long, 0)) * 0.78 + (long, 0),
        "steel",
        base=0.06,
        thick=0.0,
        soft=0.1,
    )
    _grip(builder, -grip, 0.08, rng.uniform(0.13, 0.17))


def candle(builder: FacetBuilder, rng: RandomStream) -> None:
    wide = rng.uniform(0.13, 0.2)
    tall = rng.uniform(0.55, 1.0)
    dish = wide + rng.uniform(0.16, 0.26)
    builder.lathe(
        "holder", [(0, dish * 0.75), (0.05, dish), (0.1, dish * 0.98)], "trim"
    )
    builder.disc("holder", 0.1, dish, "trim", hollow=True, rim=0.12)
    builder.lathe("wax", [(0.06, wide), (0.06 + tall, wide * 0.97)])
    builder.disc("wax", 0.06 + tall, wide * 0.97, rim=0.15)
    top = (0.06 + tall) * builder.rise
    drop = np.array(
        [
            (0, 0.02),
            (0.075, 0.1),
            (0.07, 0.2),
            (0.0, 0.42),
            (-0.07, 0.2),
            (-0.075, 0.1),
            (0, 0.02),
        ]
    )
    lean = rng.uniform(-0.05, 0.05)
    outline = curve(drop, 3) + np.array([lean, 0]) * np.linspace(0, 1, 19)[:, None]
    builder.add("flame", outline * 1.25 + (0, top), "flame", 1.0)
    builder.add("flame", outline * 0.65 + (0, top + 0.02), "glow", 1.0)


def apple(builder: FacetBuilder, rng: RandomStream) -> None:
    wide = rng.uniform(0.44, 0.52)
    tall = rng.uniform(0.74, 0.88)
    side = rng.sign()
    builder.lathe(
        "flesh",
        [
            (0, wide * 0.45),
            (0.06, wide * 0.66),
            (tall * 0.35, wide * 0.95),
            (tall * 0.65, wide),
            (tall * 0.9, wide * 0.72),
            (tall * 0.97, wide * 0.42),
        ],
    )
    builder.disc("flesh", tall * 0.97, wide * 0.3, "deep")
    builder.tube(
        "stem",
        [
            (0, tall * 0.9, 0),
            (side * 0.02, tall + 0.1, 0),
            (side * 0.09, tall + 0.26, 0),
        ],
        0.035,
        "bark",
    )
    leaf = [
        (0.0, 0.0, 0),
        (side * 0.16, 0.1, 0),
        (side * 0.34, 0.1, 0),
        (side * 0.46, 0.02, 0),
    ]
    builder.tube(
        "leaf",
        [(x + side * 0.02, y + tall + 0.06, z) for x, y, z in leaf],
        [0.0, 0.1, 0.09, 0.0],
        "leaf",
    )


def cupcake(builder: FacetBuilder, rng: RandomStream) -> None:
    foot = rng.uniform(0.27, 0.33)
    wide = rng.uniform(0.4, 0.46)
    tall = rng.uniform(0.38, 0.48)
    builder.lathe("wrapper", [(0, foot), (tall, wide)], "trim")
    for step in np.linspace(-0.8, 0.8, 6):
        low = (foot * step, 0.02 - 0.6 * foot * builder.tilt)
        high = (wide * step, (tall - 0.02) * builder.rise)
        side = np.array([low, high])
        builder.seam("wrapper", side)
    puff = wide * rng.uniform(1.06, 1.2)
    rise = rng.uniform(0.45, 0.6)
    builder.lathe(
        "icing",
        [
            (tall - 0.03, puff * 0.95),
            (tall + 0.07, puff),
            (tall + rise * 0.32, puff * 0.74),
            (tall + rise * 0.42, puff * 0.76),
            (tall + rise * 0.64, puff * 0.48),
            (tall + rise * 0.74, puff * 0.48),
            (tall + rise, 0.03),
        ],
    )
    if rng.bernoulli(0.6):
        builder.ball("icing", (0, tall + rise + 0.05, 0), 0.09, "cherry")


def _lying(rng: RandomStream) -> float:
    """A direction on the table that does not point at the viewer."""
    return rng.uniform(-0.75, 0.75) + (math.pi if rng.bernoulli(0.5) else 0.0)


def _grip(builder: FacetBuilder, start: float, stop: float, half: float) -> None:
    builder.slab(
        "handle",
        [
            (start, -half * 0.6),
            (start + 0.06, -half),
            (start + 0.3, -half * 0.85),
            (stop, -half * 0.62),
            (stop, half * 0.62),
            (start + 0.3, half * 0.85),
            (start + 0.06, half),
            (start, half * 0.6),
        ],
        thick=0.08,
        soft=half,
    )
