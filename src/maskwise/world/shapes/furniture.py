"""Furniture."""

from maskwise.world.chance import Chance
from maskwise.world.sketch import Sketch


def chair(sketch: Sketch, chance: Chance) -> None:
    wide, deep, seat = chance.between(0.36, 0.44), chance.between(0.34, 0.42), chance.between(0.62, 0.75)
    top, leg, thick = (
        seat + chance.between(0.65, 0.9),
        chance.between(0.035, 0.055),
        chance.between(0.06, 0.12),
    )
    sketch.turn_to(chance.between(-0.75, 0.75))
    _legs(sketch, wide, deep, seat, leg, back=True)
    if chance.often(0.5):
        sketch.cuboid("back", (-wide, wide), (seat, top), (-deep, -deep + 0.08))
    else:
        for x in (-wide, -wide * 0.36, wide * 0.28, wide - 0.09):
            sketch.cuboid("back", (x, x + 0.09), (seat, top), (-deep, -deep + 0.07))
        sketch.cuboid("back", (-wide, wide), (top - 0.16, top), (-deep, -deep + 0.08))
    sketch.cuboid("seat", (-wide, wide), (seat, seat + thick), (-deep, deep))
    _legs(sketch, wide, deep, seat, leg, back=False)


def table(sketch: Sketch, chance: Chance) -> None:
    wide, deep, tall = chance.between(0.75, 0.95), chance.between(0.42, 0.6), chance.between(0.65, 0.85)
    leg, thick = chance.between(0.04, 0.07), chance.between(0.07, 0.13)
    if chance.often(0.4):
        sketch.lathe("legs", [(0, deep * 0.6), (0.05, deep * 0.5), (0.1, 0.08), (tall, 0.08)], smooth=False)
        sketch.lathe("top", [(tall, wide * 0.85), (tall + thick, wide * 0.85)], smooth=False)
        sketch.disc("top", tall + thick, wide * 0.85)
        return
    sketch.turn_to(chance.between(-0.6, 0.6))
    _legs(sketch, wide * 0.94, deep * 0.92, tall, leg, back=True)
    _legs(sketch, wide * 0.94, deep * 0.92, tall, leg, back=False)
    sketch.cuboid("top", (-wide, wide), (tall, tall + thick), (-deep, deep))


def sofa(sketch: Sketch, chance: Chance) -> None:
    wide, deep, seat = chance.between(0.75, 1.0), chance.between(0.36, 0.44), chance.between(0.3, 0.38)
    top, arm, thick = (
        seat + chance.between(0.4, 0.55),
        seat + chance.between(0.16, 0.28),
        chance.between(0.16, 0.22),
    )
    turn = chance.between(-0.45, 0.45)
    sketch.turn_to(turn)
    for x in (-wide * 0.9, wide * 0.9 - 0.08):
        sketch.cuboid("feet", (x, x + 0.08), (0, 0.1), (deep - 0.1, deep - 0.02), "bark")
    sketch.cuboid("back", (-wide, wide), (0.1, top), (-deep, -deep + 0.2))
    far, near = (-wide, -wide + thick), (wide - thick, wide)
    if turn > 0:
        far, near = near, far
    sketch.cuboid("arms", far, (0.1, arm), (-deep + 0.1, deep))
    sketch.cuboid("seat", (-wide + thick, wide - thick), (0.1, seat - 0.08), (-deep + 0.2, deep - 0.02))
    count = 2 if wide < 0.88 else 3
    span = 2 * (wide - thick) / count
    order = range(count) if turn < 0 else range(count - 1, -1, -1)
    for cushion in order:
        left = -wide + thick + cushion * span
        sketch.cuboid(
            "seat",
            (left + 0.012, left + span - 0.012),
            (seat - 0.08, seat + 0.06),
            (-deep + 0.2, deep + 0.01),
        )
    sketch.cuboid("arms", near, (0.1, arm), (-deep + 0.1, deep + 0.02))


def _legs(sketch: Sketch, wide: float, deep: float, tall: float, half: float, *, back: bool) -> None:
    z = -deep + half if back else deep - half
    for x in (-wide + half, wide - half):
        sketch.cuboid("legs", (x - half, x + half), (0, tall), (z - half, z + half), "trim")
