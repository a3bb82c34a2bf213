"""Toys, clothes and other things about the house."""

import math

import numpy as np

from maskwise.world.chance import Chance
from maskwise.world.sketch import Ball, Floats, Round, Sketch, curve, ellipse, rotation, rounded, tapered


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
        out, up = math.sin(angle), math.cos(angle)
        root = (out * 0.06, tall - 0.03, 0.0)
        middle = (out * long * 0.5, tall + up * long * 0.55 + bend * 0.12, 0.0)
        tip = (out * long, tall + up * long * 0.95 - abs(out) * bend * 0.4, 0.0)
        sketch.tube("leaves", [root, middle, tip], [0.03, broad, 0.0], chance.pick(("leaf", "leaf", "moss")))


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
    long, tall, deep = chance.between(0.8, 0.95), chance.between(0.34, 0.42), chance.between(0.2, 0.28)
    sketch.turn_to(chance.between(-0.45, 0.45))
    cabin, wheel, nose = chance.between(0.3, 0.4), chance.between(0.19, 0.23), chance.between(0.05, 0.25)
    side, low = chance.sign(), tall + 0.14
    for x in (-0.52 * long, 0.52 * long):
        sketch.screen("wheels", ellipse(x, wheel, wheel, wheel), "rubber", z=-deep + 0.1, thick=0.1)
    roof = np.array([(-0.5, low), (-0.36, low + cabin), (0.3 - nose, low + cabin), (0.52 - nose, low)])
    roof *= (long * side, 1)
    sketch.screen("body", roof, z=deep * 0.85, thick=deep * 1.7)
    sketch.screen("body", rounded((-long, long), (0.13, tall + 0.16), 0.1), z=deep, thick=2 * deep)
    for pane in _panes(roof):
        sketch.screen("windows", pane, "window", z=deep * 0.85)
    for x in (-0.52 * long, 0.52 * long):
        sketch.screen(
            "wheels", ellipse(x, wheel, wheel, wheel), "rubber", z=deep + 0.05, thick=0.1, soft=0.04
        )
        sketch.screen("wheels", ellipse(x, wheel, wheel * 0.5, wheel * 0.5), "bright", z=deep + 0.05)
    sketch.screen("body", ellipse(side * long * 0.92, tall * 0.85, 0.06, 0.07), "glow", z=deep + 0.01)


def _panes(roof: Floats) -> tuple[Floats, Floats]:
    """Two windows within a cabin: the cabin's outline, shrunk and parted."""
    middle = roof.mean(0)
    a, b, c, d = (roof - middle) * (0.8, 0.68) + middle + np.array([0, 0.02])
    low, high = (a + d) / 2, (b + c) / 2
    gap = (d - a) * (0.04, 0)
    return np.array([a, b, high - gap, low - gap]), np.array([low + gap, high + gap, c, d])


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
    root, turn = 0.55, rotation(-lean)
    upright = np.array([1.0, sketch.rise])
    bottom, top = np.array([(0.0, root * 0.8), (0.0, root + long)]) @ turn
    sketch.tube("handle", [(*bottom, 0.0), (*top, 0.0)], 0.06, smooth=False)
    fan = tapered((0.0, wide * 1.1), (root, wide * 0.5)) @ turn
    opening = np.array([0.0, root * sketch.rise]), np.array([wide * 1.1, wide * 0.5])
    sketch.add("bristles", fan * upright, "straw", Round(0.0, *opening))
    for step in np.linspace(-0.85, 0.85, 8):
        straw = np.array([(wide * 0.5 * step, root), (wide * 1.1 * step, 0.0)])
        sketch.seam("bristles", straw @ turn * upright)
    collar = tapered((root - 0.08, wide * 0.6), (root + 0.12, wide * 0.3)) @ turn
    sketch.add("bristles", collar * upright, "main", 0.9)


def umbrella(sketch: Sketch, chance: Chance) -> None:
    wide, dome, tall = chance.between(0.75, 0.9), chance.between(0.45, 0.6), chance.between(0.95, 1.15)
    side, ribs = chance.sign(), 6
    sketch.tube("pole", [(0, 0.12, 0), (0, tall + dome + 0.12, 0)], 0.028, "steel", smooth=False)
    hook = [(0, 0.38), (0, 0.12), (side * 0.09, 0.02), (side * 0.2, 0.06), (side * 0.22, 0.16)]
    sketch.tube("handle", [(x, y, 0.0) for x, y in hook], 0.055, "trim")
    low, high = tall * sketch.rise, (tall + dome) * sketch.rise
    arc, waves = np.linspace(math.pi, 0, 25), np.linspace(0, 1, ribs * 4 + 1)
    roof = np.stack([wide * np.cos(arc), low + (high - low) * np.sin(arc) ** 0.85], 1)
    hem = np.stack([wide * (1 - 2 * waves), low + 0.09 * np.abs(np.sin(ribs * math.pi * waves))], 1)
    sketch.add("canopy", np.concatenate([roof, hem]), "main", Ball(0, low, wide * 1.05, (high - low) * 1.1))
    for edge in np.linspace(-wide, wide, ribs + 1)[1:-1]:
        sketch.seam("canopy", np.array([(edge, low), (edge * 0.8, low + (high - low) * 0.55), (0, high)]))


def guitar(sketch: Sketch, chance: Chance) -> None:
    lean, plump = chance.between(-0.2, 0.2), chance.between(0.42, 0.5)
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
    sketch.screen("neck", tapered((0.8, 0.06), (2.1, 0.05)) @ turn, "bark", thick=0.06)
    sketch.screen("head", tapered((2.05, 0.09), (2.4, 0.12)) @ turn, "deep", thick=0.05)
    for side in (-1, 1):
        for level in (2.14, 2.24, 2.34):
            sketch.screen("head", ellipse(side * 0.14, level, 0.035, 0.03)[::3] @ turn, "bright")
    sketch.screen("body", body @ turn, thick=0.16, soft=0.06)
    sketch.screen("body", ellipse(0, 0.72, 0.15, 0.15) @ turn, "dark", z=0.01)
    sketch.screen("body", rounded((-0.16, 0.16), (0.28, 0.35), 0.02) @ turn, "dark", z=0.01)
    sketch.screen("neck", tapered((0.84, 0.055), (2.08, 0.05)) @ turn, "bark", z=0.02)
    for x in (-0.03, 0.0, 0.03):
        sketch.screen("neck", tapered((0.84, 0.004), (2.1, 0.004), x) @ turn, "bright", z=0.02)


def suitcase(sketch: Sketch, chance: Chance) -> None:
    wide, tall, deep = chance.between(0.4, 0.52), chance.between(0.95, 1.2), chance.between(0.2, 0.28)
    sketch.turn_to(chance.between(0.1, 0.55) * chance.sign())
    bar, grip, back = tall + chance.between(0.22, 0.45), wide * 0.45, -deep * 0.4
    hoop = [(-grip, tall, back), (-grip, bar, back), (grip, bar, back), (grip, tall, back)]
    sketch.tube("handle", hoop, 0.035, "steel", smooth=False)
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
        sketch.screen("stand", tapered((0.04, 0.1), (low + 0.1, 0.08)), "deep")
    else:
        for side in (-wide, wide):
            for foot in ((side * 0.66, 0.0, 0.12), (side * 0.6, 0.0, -0.2)):
                sketch.tube("stand", [(side * 0.5, low + 0.05, 0), foot], 0.045, smooth=False)
    sketch.screen("frame", rounded((-wide, wide), (low, low + tall), 0.05), z=thick / 2, thick=thick)
    inner = rounded((-wide * 0.92, wide * 0.92), (low + 0.09, low + tall - 0.08), 0.03)
    sketch.screen("screen", inner, "display", z=thick / 2, gain=1.1)
    glare = np.array([(-0.7, 0.9), (-0.2, 0.9), (-0.62, 0.15), (-0.85, 0.15)]) * (wide, tall)
    sketch.screen("screen", glare + np.array([0, low]), "window", z=thick / 2)
