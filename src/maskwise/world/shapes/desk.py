"""Tools and devices of the desk."""

import math

import numpy as np

from maskwise.world.chance import Chance
from maskwise.world.sketch import Sketch, ellipse, rounded


def scissors(sketch: Sketch, chance: Chance) -> None:
    spread, long = chance.between(0.25, 0.5), chance.between(0.9, 1.1)
    sketch.turn_to(chance.between(-0.7, 0.7) + (math.pi if chance.often(0.5) else 0.0))
    for side in (-1.0, 1.0):
        turn = np.array(
            [
                [math.cos(spread * side), math.sin(spread * side)],
                [-math.sin(spread * side), math.cos(spread * side)],
            ]
        )
        blade = np.array([(-0.1, -0.13), (0.25, -0.16), (long, 0.0), (0.25, 0.08), (-0.1, 0.13)])
        sketch.slab("blades", (blade * (1, side)) @ turn, "steel", thick=0.04)
    for side in (-1.0, 1.0):
        turn = np.array(
            [
                [math.cos(spread * side), math.sin(spread * side)],
                [-math.sin(spread * side), math.cos(spread * side)],
            ]
        )
        shank = np.array([(0.02, -0.08), (0.02, 0.08), (-0.4, 0.1 - side * 0.1), (-0.4, -0.1 - side * 0.1)])
        sketch.slab("handles", shank @ turn, thick=0.06)
        hole = np.array([(-0.62, -side * 0.16)]) @ turn
        outer, inner = ellipse(0, 0, 0.38, 0.36), ellipse(0, 0, 0.21, 0.19)
        ring = np.concatenate([outer, outer[:1], inner[:1], inner[::-1]])
        sketch.slab("handles", ring + hole, thick=0.06, soft=0.06)
    sketch.ball("blades", (0.02, 0.1, 0), 0.04, "dark")


def hammer(sketch: Sketch, chance: Chance) -> None:
    long, half, wide = chance.between(1.1, 1.4), chance.between(0.14, 0.18), chance.between(0.42, 0.52)
    sketch.turn_to(chance.between(-0.6, 0.6) + (math.pi if chance.often(0.5) else 0.0))
    sketch.slab(
        "handle",
        [
            (-long, -half * 1.2),
            (-long * 0.6, -half),
            (0.1, -half * 0.8),
            (0.1, half * 0.8),
            (-long * 0.6, half),
            (-long, half * 1.2),
        ],
        thick=0.1,
        soft=half,
    )
    sketch.cuboid("head", (-0.02, 0.32), (0.0, 0.3), (-wide, wide * 0.9), "steel")
    sketch.cuboid("head", (-0.06, 0.36), (-0.0, 0.33), (wide * 0.6, wide * 1.05), "steel")


def book(sketch: Sketch, chance: Chance) -> None:
    wide, deep, thick = chance.between(0.55, 0.7), chance.between(0.42, 0.52), chance.between(0.14, 0.3)
    turn = chance.between(0.25, 0.9) * chance.sign()
    sketch.turn_to(turn)
    spine = -wide if turn > 0 else wide
    edge = 0.04
    sketch.cuboid("cover", (-wide, wide), (0, edge), (-deep, deep))
    inner = (-wide + 0.0, wide - 0.05) if turn > 0 else (-wide + 0.05, wide)
    sketch.cuboid("pages", inner, (edge, thick), (-deep + 0.03, deep - 0.03), "paper")
    low, high = edge + (thick - edge) * 0.35, edge + (thick - edge) * 0.65
    for level in (low, high):
        end = deep - 0.03
        sketch.panel(
            "pages",
            [
                (inner[0], level, end),
                (inner[1], level, end),
                (inner[1], level + 0.015, end),
                (inner[0], level + 0.015, end),
            ],
            (0, 0, 1),
            "shade",
            gain=0.9,
        )
    sketch.panel(
        "spine",
        [(spine, 0, -deep), (spine, 0, deep), (spine, thick + edge, deep), (spine, thick + edge, -deep)],
        (-1.0 if turn > 0 else 1.0, 0, 0),
        "deep",
    )
    sketch.cuboid("cover", (-wide, wide), (thick, thick + edge), (-deep, deep))
    level = thick + edge
    for width, near in ((0.5, 0.25), (0.35, -0.05)):
        sketch.panel(
            "cover",
            [
                (-wide * width, level, near),
                (wide * width, level, near),
                (wide * width, level, near - 0.12),
                (-wide * width, level, near - 0.12),
            ],
            (0, 1, 0),
            "accent",
        )


def laptop(sketch: Sketch, chance: Chance) -> None:
    wide, deep, tall = chance.between(0.62, 0.75), chance.between(0.4, 0.48), chance.between(0.75, 0.9)
    sketch.turn_to(chance.between(-0.5, 0.5))
    lean, back = chance.between(0.1, 0.25), -deep

    def leaf(x: float, low: float, high: float) -> list[tuple[float, float, float]]:
        return [
            (-x, low, back - lean * low),
            (x, low, back - lean * low),
            (x, high, back - lean * high),
            (-x, high, back - lean * high),
        ]

    sketch.panel("screen", leaf(wide, 0.0, tall), (0, 0.15, 0.98), "main")
    sketch.panel("screen", leaf(wide * 0.92, 0.09, tall * 0.93), (0, 0.15, 0.98), "display", gain=1.2)
    low = leaf(wide * 0.92, 0.09, tall * 0.93)
    sketch.panel(
        "screen",
        [low[3], low[2], ((low[2][0] + low[1][0] * 0.2) / 1.2 * 0.2, tall * 0.5, back)],
        (0, 0.15, 0.98),
        "window",
        gain=1.2,
    )
    sketch.cuboid("keyboard", (-wide, wide), (0, 0.05), (-deep, deep * 1.05), "main")
    keys = [
        (-wide * 0.88, 0.05, -deep * 0.75),
        (wide * 0.88, 0.05, -deep * 0.75),
        (wide * 0.88, 0.05, deep * 0.25),
        (-wide * 0.88, 0.05, deep * 0.25),
    ]
    sketch.panel("keyboard", keys, (0, 1, 0), "dark")
    for row in np.linspace(-0.62, 0.12, 4):
        sketch.panel(
            "keyboard",
            [
                (-wide * 0.85, 0.05, deep * row),
                (wide * 0.85, 0.05, deep * row),
                (wide * 0.85, 0.05, deep * (row + 0.07)),
                (-wide * 0.85, 0.05, deep * (row + 0.07)),
            ],
            (0, 1, 0),
            "stone",
        )
    pad = [
        (-wide * 0.25, 0.05, deep * 0.45),
        (wide * 0.25, 0.05, deep * 0.45),
        (wide * 0.25, 0.05, deep * 0.9),
        (-wide * 0.25, 0.05, deep * 0.9),
    ]
    sketch.panel("keyboard", pad, (0, 1, 0), "deep")


def clock(sketch: Sketch, chance: Chance) -> None:
    wide, thick = chance.between(0.48, 0.55), chance.between(0.2, 0.32)
    sketch.turn_to(chance.between(-0.45, 0.45))
    middle = wide + 0.12
    for side in (-1.0, 1.0):
        sketch.tube(
            "feet", [(side * 0.3, 0.2, -thick * 0.3), (side * 0.42, 0.0, 0)], 0.06, "trim", smooth=False
        )
    if chance.often(0.55):
        for side in (-1.0, 1.0):
            sketch.ball(
                "frame", (side * wide * 0.6, middle + wide * 0.92, -thick / 2), 0.19, "trim", tall=0.8
            )
    sketch.screen("frame", ellipse(0, middle, wide, wide), z=0.0, thick=thick, soft=0.1)
    sketch.screen("face", ellipse(0, middle, wide * 0.8, wide * 0.8), "cream", z=0.0, gain=1.05)
    for hour in (0, 3, 6, 9):
        angle = hour * math.pi / 6
        dot = ellipse(0.66 * wide * math.cos(angle), middle + 0.66 * wide * math.sin(angle), 0.025, 0.025)
        sketch.screen("face", dot[::4], "dark", z=0.0)
    for reach, width, angle in (
        (0.36, 0.045, chance.between(0, 6.28)),
        (0.56, 0.033, chance.between(0, 6.28)),
    ):
        along, across = (
            np.array([math.cos(angle), math.sin(angle)]),
            np.array([-math.sin(angle), math.cos(angle)]),
        )
        hand = [
            across * width,
            along * reach * wide / 0.6 * 0.6 + across * width * 0.5,
            along * reach * wide - across * width * 0.5,
            -across * width,
        ]
        sketch.screen("hands", np.array(hand) * 1.25 + (0, middle), "dark", z=0.01)


def camera(sketch: Sketch, chance: Chance) -> None:
    wide, tall, thick = chance.between(0.58, 0.7), chance.between(0.62, 0.75), chance.between(0.3, 0.4)
    sketch.turn_to(chance.between(-0.5, 0.5))
    sketch.cuboid("body", (-wide, wide), (0, tall), (-thick, thick * 0.3))
    sketch.cuboid(
        "body", (-wide * 0.35, wide * 0.35), (tall, tall + 0.16), (-thick * 0.8, thick * 0.2), "deep"
    )
    sketch.cuboid(
        "button", (wide * 0.55, wide * 0.85), (tall, tall + 0.08), (-thick * 0.5, -thick * 0.1), "trim"
    )
    band = [
        (-wide, 0.0, thick * 0.3),
        (wide, 0.0, thick * 0.3),
        (wide, tall * 0.55, thick * 0.3),
        (-wide, tall * 0.55, thick * 0.3),
    ]
    sketch.panel("body", band, (0, 0, 1), "deep")
    ring, middle = chance.between(0.26, 0.31), tall * 0.48
    reach = chance.between(0.2, 0.35)
    sketch.screen(
        "lens", ellipse(0, middle, ring, ring), "dark", z=thick * 0.3 + reach, thick=reach, soft=0.05
    )
    sketch.screen(
        "lens", ellipse(0, middle, ring * 0.72, ring * 0.72), "display", z=thick * 0.3 + reach, gain=0.9
    )
    sketch.screen(
        "lens",
        ellipse(-ring * 0.25, middle + ring * 0.25, ring * 0.2, ring * 0.2),
        "window",
        z=thick * 0.3 + reach,
    )
    sketch.screen(
        "flash",
        rounded((-wide * 0.92, -wide * 0.55), (tall * 0.7, tall * 0.9), 0.03),
        "paper",
        z=thick * 0.3,
        gain=1.1,
    )


def lamp(sketch: Sketch, chance: Chance) -> None:
    base, tall = chance.between(0.26, 0.38), chance.between(0.55, 0.95)
    deep, wide = chance.between(0.42, 0.58), chance.between(0.36, 0.5)
    top = wide * chance.between(0.45, 0.75)
    sketch.lathe("base", [(0, base), (0.05, base * 0.96), (0.1, base * 0.4)], "trim")
    if chance.often(0.4):
        sketch.lathe(
            "stem", [(0.08, 0.09), (tall * 0.35, 0.17), (tall * 0.7, 0.07), (tall + 0.1, 0.05)], "trim"
        )
    else:
        sketch.lathe("stem", [(0.08, 0.05), (tall + 0.1, 0.045)], "trim")
    sketch.disc("shade", tall, wide, "glow")
    sketch.lathe("shade", [(tall, wide), (tall + deep, top)], smooth=False)
    sketch.disc("shade", tall + deep, top, "glow", rim=0.12)
