"""Tools and devices."""

import math

import numpy as np

from maskwise.world.facets import (
    FacetBuilder,
    Point,
    ellipse,
    rotation,
    rounded,
    tapered,
)
from maskwise.world.random_streams import RandomStream


def scissors(builder: FacetBuilder, rng: RandomStream) -> None:
    spread = rng.uniform(0.25, 0.5)
    long = rng.uniform(0.9, 1.1)
    builder.turn_to(rng.uniform(-0.7, 0.7) + (math.pi if rng.bernoulli(0.5) else 0.0))
    blade = np.array(
        [(-0.1, -0.13), (0.25, -0.16), (long, 0.0), (0.25, 0.08), (-0.1, 0.13)]
    )
    outer = ellipse(0, 0, 0.38, 0.36)
    inner = ellipse(0, 0, 0.21, 0.19)
    ring = np.concatenate([outer, outer[:1], inner[:1], inner[::-1]])
    for side in (-1.0, 1.0):
        builder.slab(
            "blades", (blade * (1, side)) @ rotation(spread * side), "steel", thick=0.04
        )
    for side in (-1.0, 1.0):
        turn = rotation(spread * side)
        shank = np.array(
            [
                (0.02, -0.08),
                (0.02, 0.08),
                (-0.4, 0.1 - side * 0.1),
                (-0.4, -0.1 - side * 0.1),
            ]
        )
        builder.slab("handles", shank @ turn, thick=0.06)
        hole = np.array([(-0.62, -side * 0.16)]) @ turn
        builder.slab("handles", ring + hole, thick=0.06, soft=0.06)
    builder.ball("blades", (0.02, 0.1, 0), 0.04, "dark")


def hammer(builder: FacetBuilder, rng: RandomStream) -> None:
    long = rng.uniform(1.1, 1.4)
    half = rng.uniform(0.14, 0.18)
    wide = rng.uniform(0.42, 0.52)
    builder.turn_to(rng.uniform(-0.6, 0.6) + (math.pi if rng.bernoulli(0.5) else 0.0))
    edge = np.array([(-long, -half * 1.2), (-long * 0.6, -half), (0.1, -half * 0.8)])
    builder.slab(
        "handle", np.concatenate([edge, (edge * (1, -1))[::-1]]), thick=0.1, soft=half
    )
    builder.cuboid("head", (-0.02, 0.32), (0.0, 0.3), (-wide, wide * 0.9), "steel")
    builder.cuboid(
        "head", (-0.06, 0.36), (-0.0, 0.33), (wide * 0.6, wide * 1.05), "steel"
    )


def book(builder: FacetBuilder, rng: RandomStream) -> None:
    wide = rng.uniform(0.55, 0.7)
    deep = rng.uniform(0.42, 0.52)
    thick = rng.uniform(0.14, 0.3)
    turn = rng.uniform(0.25, 0.9) * rng.sign()
    builder.turn_to(turn)
    edge = 0.04
    end = deep - 0.03
    out = -1.0 if turn > 0 else 1.0
    builder.cuboid("cover", (-wide, wide), (0, edge), (-deep, deep))
    left, right = (-wide, wide - 0.05) if turn > 0 else (-wide + 0.05, wide)
    builder.cuboid("pages", (left, right), (edge, thick), (-end, end), "paper")
    for share in (0.35, 0.65):
        low = edge + (thick - edge) * share
        line = [(left, low), (right, low), (right, low + 0.015), (left, low + 0.015)]
        builder.screen("pages", line, "shade", z=end, gain=0.9)
    top = thick + edge
    spine = [
        (out * wide, 0, -deep),
        (out * wide, 0, deep),
        (out * wide, top, deep),
        (out * wide, top, -deep),
    ]
    builder.panel("spine", spine, (out, 0, 0), "deep")
    builder.cuboid("cover", (-wide, wide), (thick, top), (-deep, deep))
    for half, near in ((wide * 0.5, 0.25), (wide * 0.35, -0.05)):
        builder.level("cover", (-half, half), (near - 0.12, near), top, "accent")


def laptop(builder: FacetBuilder, rng: RandomStream) -> None:
    wide = rng.uniform(0.62, 0.75)
    deep = rng.uniform(0.4, 0.48)
    tall = rng.uniform(0.75, 0.9)
    builder.turn_to(rng.uniform(-0.5, 0.5))
    lean = rng.uniform(0.1, 0.25)
    back = -deep
    towards = (0, 0.15, 0.98)

    def leaf(half: float, low: float, high: float) -> list[Point]:
        """A piece of the screen, which leans back."""
        bottom = back - lean * low
        top = back - lean * high
        return [
            (-half, low, bottom),
            (half, low, bottom),
            (half, high, top),
            (-half, high, top),
        ]

    display = leaf(wide * 0.92, 0.09, tall * 0.93)
    builder.panel("screen", leaf(wide, 0.0, tall), towards)
    builder.panel("screen", display, towards, "display", gain=1.2)
    builder.panel(
        "screen",
        [display[3], display[2], (wide * 0.184, tall * 0.5, back)],
        towards,
        "window",
        gain=1.2,
    )
    builder.cuboid("keyboard", (-wide, wide), (0, 0.05), (-deep, deep * 1.05))
    builder.level(
        "keyboard",
        (-wide * 0.88, wide * 0.88),
        (-deep * 0.75, deep * 0.25),
        0.05,
        "dark",
    )
    for row in (-0.62, -0.37, -0.13, 0.12):
        keys = deep * row, deep * (row + 0.07)
        builder.level("keyboard", (-wide * 0.85, wide * 0.85), keys, 0.05, "stone")
    builder.level(
        "keyboard", (-wide * 0.25, wide * 0.25), (deep * 0.45, deep * 0.9), 0.05, "deep"
    )


def clock(builder: FacetBuilder, rng: RandomStream) -> None:
    wide = rng.uniform(0.48, 0.55)
    thick = rng.uniform(0.2, 0.32)
    builder.turn_to(rng.uniform(-0.45, 0.45))
    middle = wide + 0.12
    for side in (-1.0, 1.0):
        foot = [(side * 0.3, 0.2, -thick * 0.3), (side * 0.42, 0.0, 0.0)]
        builder.tube("feet", foot, 0.06, "trim", smooth=False)
    if rng.bernoulli(0.55):
        for side in (-1.0, 1.0):
            bell = (side * wide * 0.6, middle + wide * 0.92, -thick / 2)
            builder.ball("frame", bell, 0.19, "trim", tall=0.8)
    builder.screen("frame", ellipse(0, middle, wide, wide), thick=thick, soft=0.1)
    builder.screen(
        "face", ellipse(0, middle, wide * 0.8, wide * 0.8), "cream", gain=1.05
    )
    for x, y in ((0.66, 0), (0, 0.66), (-0.66, 0), (0, -0.66)):
        builder.screen(
            "face", ellipse(x * wide, middle + y * wide, 0.025, 0.025)[::4], "dark"
        )
    for reach, half in ((0.45, 0.056), (0.7, 0.041)):
        hand = tapered((0.0, half), (reach * wide, half * 0.5)) @ rotation(
            rng.uniform(0, 2 * math.pi)
        )
        builder.screen("hands", hand + np.array([0, middle]), "dark", z=0.01)


def camera(builder: FacetBuilder, rng: RandomStream) -> None:
    wide = rng.uniform(0.58, 0.7)
    tall = rng.uniform(0.62, 0.75)
    thick = rng.uniform(0.3, 0.4)
    builder.turn_to(rng.uniform(-0.5, 0.5))
    front = thick * 0.3
    builder.cuboid("body", (-wide, wide), (0, tall), (-thick, front))
    builder.cuboid(
        "body",
        (-wide * 0.35, wide * 0.35),
        (tall, tall + 0.16),
        (-thick * 0.8, thick * 0.2),
        "deep",
    )
    builder.cuboid(
        "button",
        (wide * 0.55, wide * 0.85),
        (tall, tall + 0.08),
        (-thick * 0.5, -thick * 0.1),
        "trim",
    )
    builder.screen("body", tapered((0, wide), (tall * 0.55, wide)), "deep", z=front)
    ring = rng.uniform(0.26, 0.31)
    middle = tall * 0.48
    reach = rng.uniform(0.2, 0.35)
    end = front + reach
    shine = ring * 0.25
    builder.screen(
        "lens", ellipse(0, middle, ring, ring), "dark", z=end, thick=reach, soft=0.05
    )
    builder.screen(
        "lens", ellipse(0, middle, ring * 0.72, ring * 0.72), "display", z=end, gain=0.9
    )
    builder.screen(
        "lens", ellipse(-shine, middle + shine, ring * 0.2, ring * 0.2), "window", z=end
    )
    flash = rounded((-wide * 0.92, -wide * 0.55), (tall * 0.7, tall * 0.9), 0.03)
    builder.screen("flash", flash, "paper", z=front, gain=1.1)


def lamp(builder: FacetBuilder, rng: RandomStream) -> None:
    base = rng.uniform(0.26, 0.38)
    tall = rng.uniform(0.55, 0.95)
    deep = rng.uniform(0.42, 0.58)
    wide = rng.uniform(0.36, 0.5)
    top = wide * rng.uniform(0.45, 0.75)
    builder.lathe("base", [(0, base), (0.05, base * 0.96), (0.1, base * 0.4)], "trim")
    if rng.bernoulli(0.4):
        builder.lathe(
            "stem",
            [(0.08, 0.09), (tall * 0.35, 0.17), (tall * 0.7, 0.07), (tall + 0.1, 0.05)],
            "trim",
        )
    else:
        builder.lathe("stem", [(0.08, 0.05), (tall + 0.1, 0.045)], "trim")
    builder.disc("shade", tall, wide, "glow")
    builder.lathe("shade", [(tall, wide), (tall + deep, top)], smooth=False)
    builder.disc("shade", tall + deep, top, "glow", rim=0.12)
