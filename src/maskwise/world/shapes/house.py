"""Toys, clothes and other household objects."""

import math

import numpy as np

from maskwise.world.facets import (
    BallShading,
    FacetBuilder,
    Floats,
    LatheShading,
    curve,
    ellipse,
    rotation,
    rounded,
    tapered,
)
from maskwise.world.random_streams import RandomStream


def plant(builder: FacetBuilder, rng: RandomStream) -> None:
    foot = rng.uniform(0.22, 0.28)
    wide = rng.uniform(0.32, 0.4)
    tall = rng.uniform(0.42, 0.6)
    leaves = 6 + rng.integer(3)
    reach = rng.uniform(0.7, 1.1)
    builder.lathe("pot", [(0, foot), (tall, wide)], smooth=False)
    builder.lathe("pot", [(tall - 0.12, wide * 1.04), (tall, wide * 1.1)], smooth=False)
    builder.disc("pot", tall, wide * 1.1, hollow=True, rim=0.12)
    builder.disc("pot", tall - 0.04, wide * 0.85, "soil")
    broad = rng.uniform(0.11, 0.19)
    for angle in rng.shuffled(np.linspace(-1.25, 1.25, leaves).tolist()):
        long = reach * rng.uniform(0.7, 1.0)
        bend = rng.uniform(0.1, 0.5)
        out = math.sin(angle)
        up = math.cos(angle)
        root = (out * 0.06, tall - 0.03, 0.0)
        middle = (out * long * 0.5, tall + up * long * 0.55 + bend * 0.12, 0.0)
        tip = (out * long, tall + up * long * 0.95 - abs(out) * bend * 0.4, 0.0)
        builder.tube(
            "leaves",
            [root, middle, tip],
            [0.03, broad, 0.0],
            rng.choice(("leaf", "leaf", "moss")),
        )


def box(builder: FacetBuilder, rng: RandomStream) -> None:
    wide = rng.uniform(0.42, 0.65)
    tall = rng.uniform(0.5, 0.85)
    deep = rng.uniform(0.38, 0.52)
    builder.turn_to(rng.uniform(0.2, 0.75) * rng.sign())
    lid = rng.uniform(0.16, 0.26) * tall
    builder.cuboid("body", (-wide, wide), (0, tall), (-deep, deep))
    grow = 0.04
    builder.cuboid(
        "lid",
        (-wide - grow, wide + grow),
        (tall - lid, tall + 0.02),
        (-deep - grow, deep + grow),
        rng.choice(("deep", "main")),
    )


def teddy_bear(builder: FacetBuilder, rng: RandomStream) -> None:
    plump = rng.uniform(0.34, 0.42)
    head = rng.uniform(0.27, 0.33)
    middle = plump * 0.95
    neck = middle + plump * 0.75 + head * 0.75
    for side in (-1.0, 1.0):
        builder.ball("ears", (side * head * 0.8, neck + head * 0.78, -0.1), head * 0.42)
        builder.ball(
            "ears",
            (side * head * 0.8, neck + head * 0.78, -0.05),
            head * 0.22,
            "accent",
        )
    builder.ball("body", (0, middle, 0), plump, tall=1.1)
    builder.ball("body", (0, middle - 0.03, 0.1), plump * 0.62, "accent", tall=1.05)
    for side in (-1.0, 1.0):
        builder.tube(
            "arms",
            [
                (side * plump * 0.75, middle + plump * 0.6, 0),
                (side * plump * 1.25, middle + plump * 0.15, 0.1),
                (side * plump * 1.3, middle - plump * 0.3, 0.2),
            ],
            [0.12, 0.13, 0.13],
        )
        builder.ball("legs", (side * plump * 0.85, 0.2, 0.3), 0.23, wide=1.05)
        builder.ball("legs", (side * plump * 0.88, 0.2, 0.36), 0.12, "accent")
    builder.ball("head", (0, neck, 0), head, wide=1.1)
    builder.ball("head", (0, neck - head * 0.3, 0.0), head * 0.45, "accent", tall=0.8)
    builder.ball("head", (0, neck - head * 0.16, 0.0), head * 0.15, "dark", tall=0.75)
    for side in (-1.0, 1.0):
        builder.ball(
            "head", (side * head * 0.38, neck + head * 0.22, 0.0), head * 0.12, "dark"
        )


def hat(builder: FacetBuilder, rng: RandomStream) -> None:
    brim = rng.uniform(0.68, 0.85)
    wide = rng.uniform(0.36, 0.44)
    tall = rng.uniform(0.4, 0.65)
    top = wide * rng.uniform(0.72, 0.95)
    builder.lathe("brim", [(0, brim), (0.04, brim)], smooth=False)
    builder.disc("brim", 0.04, brim, rim=0.05)
    builder.lathe("crown", [(0.04, wide), (tall * 0.7, (wide + top) / 2), (tall, top)])
    builder.disc("crown", tall, top, rim=0.1)
    builder.band("band", (0.05, wide), (0.05 + tall * 0.24, wide))


def toy_car(builder: FacetBuilder, rng: RandomStream) -> None:
    long = rng.uniform(0.8, 0.95)
    tall = rng.uniform(0.34, 0.42)
    deep = rng.uniform(0.2, 0.28)
    builder.turn_to(rng.uniform(-0.45, 0.45))
    cabin = rng.uniform(0.3, 0.4)
    wheel = rng.uniform(0.19, 0.23)
    nose = rng.uniform(0.05, 0.25)
    side = rng.sign()
    low = tall + 0.14
    for x in (-0.52 * long, 0.52 * long):
        builder.screen(
            "wheels",
            ellipse(x, wheel, wheel, wheel),
            "rubber",
            z=-deep + 0.1,
            thick=0.1,
        )
    roof = np.array(
        [
            (-0.5, low),
            (-0.36, low + cabin),
            (0.3 - nose, low + cabin),
            (0.52 - nose, low),
        ]
    )
    roof *= (long * side, 1)
    builder.screen("body", roof, z=deep * 0.85, thick=deep * 1.7)
    builder.screen(
        "body", rounded((-long, long), (0.13, tall + 0.16), 0.1), z=deep, thick=2 * deep
    )
    for pane in _panes(roof):
        builder.screen("windows", pane, "window", z=deep * 0.85)
    for x in (-0.52 * long, 0.52 * long):
        builder.screen(
            "wheels",
            ellipse(x, wheel, wheel, wheel),
            "rubber",
            z=deep + 0.05,
            thick=0.1,
            soft=0.04,
        )
        builder.screen(
            "wheels",
            ellipse(x, wheel, wheel * 0.5, wheel * 0.5),
            "bright",
            z=deep + 0.05,
        )
    builder.screen(
        "body",
        ellipse(side * long * 0.92, tall * 0.85, 0.06, 0.07),
        "glow",
        z=deep + 0.01,
    )


def _panes(roof: Floats) -> tuple[Floats, Floats]:
    """Two windows within a cabin: the cabin's outline, shrunk and divided."""
    middle = roof.mean(0)
    a, b, c, d = (roof - middle) * (0.8, 0.68) + middle + np.array([0, 0.02])
    low = (a + d) / 2
    high = (b + c) / 2
    gap = (d - a) * (0.04, 0)
    return np.array([a, b, high - gap, low - gap]), np.array(
        [low + gap, high + gap, c, d]
    )


def bucket(builder: FacetBuilder, rng: RandomStream) -> None:
    foot = rng.uniform(0.3, 0.36)
    wide = rng.uniform(0.44, 0.52)
    tall = rng.uniform(0.7, 0.95)
    builder.lathe("body", [(0, foot), (tall, wide)], smooth=False)
    builder.lathe("body", [(tall * 0.9, wide * 1.0), (tall, wide * 1.05)], smooth=False)
    builder.disc("body", tall, wide * 1.05, hollow=True, rim=0.07)
    lean = rng.uniform(-0.3, 0.5)
    arch = rng.uniform(0.35, 0.6)
    path = [
        (-wide * 1.02 * math.cos(t), tall + arch * math.sin(t), lean * math.sin(t))
        for t in np.linspace(0, math.pi, 7)
    ]
    builder.tube("handle", path, 0.04, "trim")


def broom(builder: FacetBuilder, rng: RandomStream) -> None:
    lean = rng.uniform(-0.4, 0.4)
    long = rng.uniform(1.1, 1.4)
    wide = rng.uniform(0.36, 0.46)
    root = 0.55
    turn = rotation(-lean)
    upright = np.array([1.0, builder.rise])
    bottom, top = np.array([(0.0, root * 0.8), (0.0, root + long)]) @ turn
    builder.tube("handle", [(*bottom, 0.0), (*top, 0.0)], 0.06, smooth=False)
    fan = tapered((0.0, wide * 1.1), (root, wide * 0.5)) @ turn
    opening = np.array([0.0, root * builder.rise]), np.array([wide * 1.1, wide * 0.5])
    builder.add("bristles", fan * upright, "straw", LatheShading(0.0, *opening))
    for step in np.linspace(-0.85, 0.85, 8):
        straw = np.array([(wide * 0.5 * step, root), (wide * 1.1 * step, 0.0)])
        builder.seam("bristles", straw @ turn * upright)
    collar = tapered((root - 0.08, wide * 0.6), (root + 0.12, wide * 0.3)) @ turn
    builder.add("bristles", collar * upright, "main", 0.9)


def umbrella(builder: FacetBuilder, rng: RandomStream) -> None:
    wide = rng.uniform(0.75, 0.9)
    dome = rng.uniform(0.45, 0.6)
    tall = rng.uniform(0.95, 1.15)
    side = rng.sign()
    ribs = 6
    builder.tube(
        "pole", [(0, 0.12, 0), (0, tall + dome + 0.12, 0)], 0.028, "steel", smooth=False
    )
    hook = [
        (0, 0.38),
        (0, 0.12),
        (side * 0.09, 0.02),
        (side * 0.2, 0.06),
        (side * 0.22, 0.16),
    ]
    builder.tube("handle", [(x, y, 0.0) for x, y in hook], 0.055, "trim")
    low = tall * builder.rise
    high = (tall + dome) * builder.rise
    arc = np.linspace(math.pi, 0, 25)
    waves = np.linspace(0, 1, ribs * 4 + 1)
    roof = np.stack([wide * np.cos(arc), low + (high - low) * np.sin(arc) ** 0.85], 1)
    hem = np.stack(
        [wide * (1 - 2 * waves), low + 0.09 * np.abs(np.sin(ribs * math.pi * waves))], 1
    )
    builder.add(
        "canopy",
        np.concatenate([roof, hem]),
        "main",
        BallShading(0, low, wide * 1.05, (high - low) * 1.1),
    )
    for edge in np.linspace(-wide, wide, ribs + 1)[1:-1]:
        builder.seam(
            "canopy",
            np.array([(edge, low), (edge * 0.8, low + (high - low) * 0.55), (0, high)]),
        )


def guitar(builder: FacetBuilder, rng: RandomStream) -> None:
    lean = rng.uniform(-0.2, 0.2)
    plump = rng.uniform(0.42, 0.5)
    turn = rotation(-lean)
    waist = [
        (0, 0.0),
        (0.32, 0.03),
        (plump, 0.3),
        (0.4, 0.55),
        (0.29, 0.72),
        (0.34, 0.95),
        (0.28, 1.1),
        (0, 1.16),
    ]
    right = curve(np.array(waist), 4)
    body = np.concatenate([right, (right * (-1, 1))[::-1]])
    builder.screen("neck", tapered((0.8, 0.06), (2.1, 0.05)) @ turn, "bark", thick=0.06)
    builder.screen(
        "head", tapered((2.05, 0.09), (2.4, 0.12)) @ turn, "deep", thick=0.05
    )
    for side in (-1, 1):
        for level in (2.14, 2.24, 2.34):
            builder.screen(
                "head", ellipse(side * 0.14, level, 0.035, 0.03)[::3] @ turn, "bright"
            )
    builder.screen("body", body @ turn, thick=0.16, soft=0.06)
    builder.screen("body", ellipse(0, 0.72, 0.15, 0.15) @ turn, "dark", z=0.01)
    builder.screen(
        "body", rounded((-0.16, 0.16), (0.28, 0.35), 0.02) @ turn, "dark", z=0.01
    )
    builder.screen("neck", tapered((0.84, 0.055), (2.08, 0.05)) @ turn, "bark", z=0.02)
    for x in (-0.03, 0.0, 0.03):
        builder.screen(
            "neck", tapered((0.84, 0.004), (2.1, 0.004), x) @ turn, "bright", z=0.02
        )


def suitcase(builder: FacetBuilder, rng: RandomStream) -> None:
    wide = rng.uniform(0.4, 0.52)
    tall = rng.uniform(0.95, 1.2)
    deep = rng.uniform(0.2, 0.28)
    builder.turn_to(rng.uniform(0.1, 0.55) * rng.sign())
    bar = tall + rng.uniform(0.22, 0.45)
    grip = wide * 0.45
    back = -deep * 0.4
    hoop = [
        (-grip, tall, back),
        (-grip, bar, back),
        (grip, bar, back),
        (grip, tall, back),
    ]
    builder.tube("handle", hoop, 0.035, "steel", smooth=False)
    for x in (-wide * 0.75, wide * 0.75):
        builder.ball("wheels", (x, 0.09, deep * 0.5), 0.1, "rubber")
    builder.screen(
        "body",
        rounded((-wide, wide), (0.1, tall), 0.1),
        z=deep,
        thick=2 * deep,
        soft=0.08,
    )
    for x in np.linspace(-0.6, 0.6, 4) * wide:
        builder.screen(
            "body",
            rounded((x - 0.025, x + 0.025), (0.2, tall - 0.1), 0.02),
            "deep",
            z=deep,
        )


def television(builder: FacetBuilder, rng: RandomStream) -> None:
    wide = rng.uniform(0.85, 1.0)
    tall = rng.uniform(0.95, 1.15)
    thick = rng.uniform(0.06, 0.16)
    builder.turn_to(rng.uniform(-0.4, 0.4))
    low = rng.uniform(0.14, 0.24)
    if rng.bernoulli(0.5):
        builder.slab("stand", ellipse(0, 0, wide * 0.45, 0.22), thick=0.05)
        builder.screen("stand", tapered((0.04, 0.1), (low + 0.1, 0.08)), "deep")
    else:
        for side in (-wide, wide):
            for foot in ((side * 0.66, 0.0, 0.12), (side * 0.6, 0.0, -0.2)):
                builder.tube(
                    "stand", [(side * 0.5, low + 0.05, 0), foot], 0.045, smooth=False
                )
    builder.screen(
        "frame",
        rounded((-wide, wide), (low, low + tall), 0.05),
        z=thick / 2,
        thick=thick,
    )
    inner = rounded((-wide * 0.92, wide * 0.92), (low + 0.09, low + tall - 0.08), 0.03)
    builder.screen("screen", inner, "display", z=thick / 2, gain=1.1)
    glare = np.array([(-0.7, 0.9), (-0.2, 0.9), (-0.62, 0.15), (-0.85, 0.15)]) * (
        wide,
        tall,
    )
    builder.screen("screen", glare + np.array([0, low]), "window", z=thick / 2)
