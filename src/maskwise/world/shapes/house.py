"""Toys, clothes and other things about the house."""

import math

import numpy as np

from maskwise.world.chance import Chance
from maskwise.world.sketch import Ball, Floats, Round, Sketch, curve, ellipse, rounded


def plant(sketch: Sketch, chance: Chance) -> None:
    foot, wide, tall = chance.between(0.22, 0.28), chance.between(0.32, 0.4), chance.between(0.42, 0.6)
    leaves, reach = 6 + chance.below(3), chance.between(0.7, 1.1)
    sketch.lathe("pot", [(0, foot), (tall, wide)], smooth=False)
    sketch.lathe("pot", [(tall - 0.12, wide * 1.04), (tall, wide * 1.1)], smooth=False)
    sketch.disc("pot", tall, wide * 1.1, hollow=True, rim=0.12)
    sketch.disc("pot", tall - 0.04, wide * 0.85, "soil")
    broad = chance.between(0.11, 0.19)
    for angle in chance.shuffled(np.linspace(-1.25, 1.25, leaves).tolist()):
        long, bend = reach * chance.between(0.7, 1.0), chance.between(0.1, 0.5)
        tip = (
            math.sin(angle) * long,
            tall + math.cos(angle) * long * 0.95 - abs(math.sin(angle)) * bend * 0.4,
            0,
        )
        middle = (math.sin(angle) * long * 0.5, tall + math.cos(angle) * long * 0.55 + bend * 0.12, 0)
        sketch.tube(
            "leaves",
            [(math.sin(angle) * 0.06, tall - 0.03, 0), middle, tip],
            [0.03, broad, 0.0],
            chance.pick(("leaf", "leaf", "moss")),
        )


def box(sketch: Sketch, chance: Chance) -> None:
    wide, tall, deep = chance.between(0.42, 0.65), chance.between(0.5, 0.85), chance.between(0.38, 0.52)
    sketch.turn_to(chance.between(0.2, 0.75) * chance.sign())
    lid = chance.between(0.16, 0.26) * tall
    sketch.cuboid("body", (-wide, wide), (0, tall), (-deep, deep))
    grow = 0.04
    sketch.cuboid(
        "lid",
        (-wide - grow, wide + grow),
        (tall - lid, tall + 0.02),
        (-deep - grow, deep + grow),
        chance.pick(("deep", "main")),
    )


def teddy_bear(sketch: Sketch, chance: Chance) -> None:
    plump, head = chance.between(0.34, 0.42), chance.between(0.27, 0.33)
    middle = plump * 0.95
    neck = middle + plump * 0.75 + head * 0.75
    for side in (-1.0, 1.0):
        sketch.ball("ears", (side * head * 0.8, neck + head * 0.78, -0.1), head * 0.42)
        sketch.ball("ears", (side * head * 0.8, neck + head * 0.78, -0.05), head * 0.22, "accent")
    sketch.ball("body", (0, middle, 0), plump, tall=1.1)
    sketch.ball("body", (0, middle - 0.03, 0.1), plump * 0.62, "accent", tall=1.05)
    for side in (-1.0, 1.0):
        sketch.tube(
            "arms",
            [
                (side * plump * 0.75, middle + plump * 0.6, 0),
                (side * plump * 1.25, middle + plump * 0.15, 0.1),
                (side * plump * 1.3, middle - plump * 0.3, 0.2),
            ],
            [0.12, 0.13, 0.13],
        )
        sketch.ball("legs", (side * plump * 0.85, 0.2, 0.3), 0.23, wide=1.05)
        sketch.ball("legs", (side * plump * 0.88, 0.2, 0.36), 0.12, "accent")
    sketch.ball("head", (0, neck, 0), head, wide=1.1)
    sketch.ball("head", (0, neck - head * 0.3, 0.0), head * 0.45, "accent", tall=0.8)
    sketch.ball("head", (0, neck - head * 0.16, 0.0), head * 0.15, "dark", tall=0.75)
    for side in (-1.0, 1.0):
        sketch.ball("head", (side * head * 0.38, neck + head * 0.22, 0.0), head * 0.12, "dark")


def hat(sketch: Sketch, chance: Chance) -> None:
    brim, wide, tall = chance.between(0.68, 0.85), chance.between(0.36, 0.44), chance.between(0.4, 0.65)
    top = wide * chance.between(0.72, 0.95)
    sketch.lathe("brim", [(0, brim), (0.04, brim)], smooth=False)
    sketch.disc("brim", 0.04, brim, rim=0.05)
    sketch.lathe("crown", [(0.04, wide), (tall * 0.7, (wide + top) / 2), (tall, top)])
    sketch.disc("crown", tall, top, rim=0.1)
    sketch.band("band", (0.05, wide), (0.05 + tall * 0.24, wide))


def toy_car(sketch: Sketch, chance: Chance) -> None:
    long, tall, deep, side = (
        chance.between(0.8, 0.95),
        chance.between(0.34, 0.42),
        chance.between(0.2, 0.28),
        chance.sign(),
    )
    sketch.turn_to(chance.between(-0.45, 0.45))
    cabin, wheel, nose = chance.between(0.3, 0.4), chance.between(0.19, 0.23), chance.between(0.05, 0.25)
    for x in (-0.52, 0.52):
        sketch.screen("wheels", ellipse(x * long, wheel, wheel, wheel), "rubber", z=-deep + 0.1, thick=0.1)
    roof = [
        (-0.5, tall + 0.14),
        (-0.36, tall + 0.14 + cabin),
        (0.3 - nose, tall + 0.14 + cabin),
        (0.52 - nose, tall + 0.14),
    ]
    outline = np.array(roof) * (long * side, 1)
    sketch.screen("body", outline, z=deep * 0.85, thick=deep * 1.7)
    sketch.screen("body", rounded((-long, long), (0.13, tall + 0.16), 0.1), z=deep, thick=2 * deep)
    glass = (outline - (outline.mean(0))) * (0.8, 0.68) + outline.mean(0) + (0, 0.02)
    half = np.array([glass[0], glass[1], (glass[1] + glass[2]) / 2, (glass[0] + glass[3]) / 2])
    other = np.array([(glass[0] + glass[3]) / 2, (glass[1] + glass[2]) / 2, glass[2], glass[3]])
    shift = np.array([0.03 * side * long, 0])
    for pane in (half - shift, other + shift):
        sketch.screen("windows", pane, "window", z=deep * 0.85)
    for x in (-0.52, 0.52):
        sketch.screen(
            "wheels", ellipse(x * long, wheel, wheel, wheel), "rubber", z=deep + 0.05, thick=0.1, soft=0.04
        )
        sketch.screen("wheels", ellipse(x * long, wheel, wheel * 0.5, wheel * 0.5), "bright", z=deep + 0.05)
    sketch.screen("body", ellipse(side * long * 0.92, tall * 0.85, 0.06, 0.07), "glow", z=deep + 0.01)


def bucket(sketch: Sketch, chance: Chance) -> None:
    foot, wide, tall = chance.between(0.3, 0.36), chance.between(0.44, 0.52), chance.between(0.7, 0.95)
    sketch.lathe("body", [(0, foot), (tall, wide)], smooth=False)
    sketch.lathe("body", [(tall * 0.9, wide * 1.0), (tall, wide * 1.05)], smooth=False)
    sketch.disc("body", tall, wide * 1.05, hollow=True, rim=0.07)
    lean, arch = chance.between(-0.3, 0.5), chance.between(0.35, 0.6)
    path = [
        (-wide * 1.02 * math.cos(t), tall + arch * math.sin(t), lean * math.sin(t))
        for t in np.linspace(0, math.pi, 7)
    ]
    sketch.tube("handle", path, 0.04, "trim")


def broom(sketch: Sketch, chance: Chance) -> None:
    lean, long, wide = chance.between(-0.4, 0.4), chance.between(1.1, 1.4), chance.between(0.36, 0.46)
    root = 0.55
    axis = np.array([math.sin(lean), math.cos(lean)])
    across = np.array([axis[1], -axis[0]])
    start = axis * root
    sketch.tube("handle", [(*(start * 0.8), 0.0), (*(axis * (root + long)), 0.0)], 0.06, smooth=False)
    outline = [
        start + across * wide * 0.5,
        start - across * wide * 0.5,
        -across * wide * 1.1,
        across * wide * 1.1,
    ]
    sketch.add(
        "bristles",
        np.array(outline) * (1, sketch.rise),
        "straw",
        Round(0.0, *_flare(wide, root * sketch.rise)),
    )
    for step in np.linspace(-0.85, 0.85, 8):
        line = np.array([start + across * wide * 0.5 * step, across * wide * 1.1 * step]) * (1, sketch.rise)
        sketch.seam("bristles", line)
    collar = [
        start + axis * 0.12 + across * wide * 0.3,
        start + axis * 0.12 - across * wide * 0.3,
        start - axis * 0.08 - across * wide * 0.6,
        start - axis * 0.08 + across * wide * 0.6,
    ]
    sketch.add("bristles", np.array(collar) * (1, sketch.rise), "main", 0.9)


def umbrella(sketch: Sketch, chance: Chance) -> None:
    wide, dome, tall = chance.between(0.75, 0.9), chance.between(0.45, 0.6), chance.between(0.95, 1.15)
    side = chance.sign()
    sketch.tube("pole", [(0, 0.12, 0), (0, tall + dome + 0.12, 0)], 0.028, "steel", smooth=False)
    sketch.tube(
        "handle",
        [(0, 0.38, 0), (0, 0.12, 0), (side * 0.09, 0.02, 0), (side * 0.2, 0.06, 0), (side * 0.22, 0.16, 0)],
        0.055,
        "trim",
    )
    low, high = tall * sketch.rise, (tall + dome) * sketch.rise
    ribs = 6
    arc = np.linspace(math.pi, 0, 25)
    dome_line = np.stack([wide * np.cos(arc), low + (high - low) * np.sin(arc) ** 0.85], 1)
    xs = np.linspace(wide, -wide, ribs * 4 + 1)
    hem = np.stack([xs, low + 0.09 * np.abs(np.sin(np.linspace(0, ribs * math.pi, ribs * 4 + 1)))], 1)
    sketch.add(
        "canopy", np.concatenate([dome_line, hem]), "main", Ball(0, low, wide * 1.05, (high - low) * 1.1)
    )
    for edge in np.linspace(-wide, wide, ribs + 1)[1:-1]:
        line = np.array([(edge, low), (edge * 0.8, low + (high - low) * 0.55), (0, high)])
        sketch.seam("canopy", line)


def guitar(sketch: Sketch, chance: Chance) -> None:
    lean, plump = chance.between(-0.2, 0.2), chance.between(0.42, 0.5)
    turn = np.array([[math.cos(lean), -math.sin(lean)], [math.sin(lean), math.cos(lean)]])
    half = np.array(
        [
            (0, 0.0),
            (0.32, 0.03),
            (plump, 0.3),
            (0.4, 0.55),
            (0.29, 0.72),
            (0.34, 0.95),
            (0.28, 1.1),
            (0, 1.16),
        ]
    )
    right = curve(half, 4)
    body = np.concatenate([right, (right * (-1, 1))[::-1]])
    sketch.screen(
        "neck",
        np.array([(-0.06, 0.8), (0.06, 0.8), (0.05, 2.1), (-0.05, 2.1)]) @ turn,
        "bark",
        z=0.0,
        thick=0.06,
    )
    sketch.screen(
        "head", np.array([(-0.09, 2.05), (0.09, 2.05), (0.12, 2.4), (-0.12, 2.4)]) @ turn, "deep", thick=0.05
    )
    for side in (-1, 1):
        for level in (2.14, 2.24, 2.34):
            sketch.screen("head", ellipse(side * 0.14, level, 0.035, 0.03)[::3] @ turn, "bright")
    sketch.screen("body", body @ turn, thick=0.16, soft=0.06)
    sketch.screen("body", ellipse(0, 0.72, 0.15, 0.15) @ turn, "dark", z=0.01)
    sketch.screen("body", rounded((-0.16, 0.16), (0.28, 0.35), 0.02) @ turn, "dark", z=0.01)
    sketch.screen(
        "neck", np.array([(-0.055, 0.84), (0.055, 0.84), (0.05, 2.08), (-0.05, 2.08)]) @ turn, "bark", z=0.02
    )
    for x in (-0.03, 0.0, 0.03):
        sketch.screen(
            "neck",
            np.array([(x - 0.004, 0.84), (x + 0.004, 0.84), (x + 0.004, 2.1), (x - 0.004, 2.1)]) @ turn,
            "bright",
            z=0.02,
        )


def suitcase(sketch: Sketch, chance: Chance) -> None:
    wide, tall, deep = chance.between(0.4, 0.52), chance.between(0.95, 1.2), chance.between(0.2, 0.28)
    sketch.turn_to(chance.between(0.1, 0.55) * chance.sign())
    bar = tall + chance.between(0.22, 0.45)
    grip = wide * 0.45
    sketch.tube(
        "handle",
        [
            (-grip, tall, -deep * 0.4),
            (-grip, bar, -deep * 0.4),
            (grip, bar, -deep * 0.4),
            (grip, tall, -deep * 0.4),
        ],
        0.035,
        "steel",
        smooth=False,
    )
    for x in (-wide * 0.75, wide * 0.75):
        sketch.ball("wheels", (x, 0.09, deep * 0.5), 0.1, "rubber")
    sketch.screen("body", rounded((-wide, wide), (0.1, tall), 0.1), z=deep, thick=2 * deep, soft=0.08)
    for x in np.linspace(-0.6, 0.6, 4) * wide:
        sketch.screen("body", rounded((x - 0.025, x + 0.025), (0.2, tall - 0.1), 0.02), "deep", z=deep)


def television(sketch: Sketch, chance: Chance) -> None:
    wide, tall, thick = chance.between(0.85, 1.0), chance.between(0.95, 1.15), chance.between(0.06, 0.16)
    sketch.turn_to(chance.between(-0.4, 0.4))
    low = chance.between(0.14, 0.24)
    if chance.often(0.5):
        sketch.slab("stand", ellipse(0, 0, wide * 0.45, 0.22), thick=0.05)
        sketch.screen("stand", [(-0.1, 0.04), (0.1, 0.04), (0.08, low + 0.1), (-0.08, low + 0.1)], "deep")
    else:
        for side in (-1.0, 1.0):
            sketch.tube(
                "stand",
                [(side * wide * 0.5, low + 0.05, 0), (side * wide * 0.66, 0.0, 0.12)],
                0.045,
                smooth=False,
            )
            sketch.tube(
                "stand",
                [(side * wide * 0.5, low + 0.05, 0), (side * wide * 0.6, 0.0, -0.2)],
                0.045,
                smooth=False,
            )
    sketch.screen("frame", rounded((-wide, wide), (low, low + tall), 0.05), z=thick / 2, thick=thick)
    inner = rounded((-wide * 0.92, wide * 0.92), (low + 0.09, low + tall - 0.08), 0.03)
    sketch.screen("screen", inner, "display", z=thick / 2, gain=1.1)
    glare = np.array([(-0.7, 0.9), (-0.2, 0.9), (-0.62, 0.15), (-0.85, 0.15)]) * (wide, tall) + (0, low)
    sketch.screen("screen", glare, "window", z=thick / 2)


def _flare(wide: float, high: float) -> tuple[Floats, Floats]:
    """Heights and half widths of a bundle that opens downwards."""
    return np.array([0.0, high]), np.array([wide * 1.1, wide * 0.5])
