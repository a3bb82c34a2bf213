"""Furniture."""

from maskwise.world.facets import FacetBuilder
from maskwise.world.random_streams import RandomStream


def chair(builder: FacetBuilder, rng: RandomStream) -> None:
    wide = rng.uniform(0.36, 0.44)
    deep = rng.uniform(0.34, 0.42)
    seat = rng.uniform(0.62, 0.75)
    top = seat + rng.uniform(0.65, 0.9)
    leg = rng.uniform(0.035, 0.055)
    thick = rng.uniform(0.06, 0.12)
    builder.turn_to(rng.uniform(-0.75, 0.75))
    _legs(builder, wide, deep, seat, leg, back=True)
    if rng.bernoulli(0.5):
        builder.cuboid("back", (-wide, wide), (seat, top), (-deep, -deep + 0.08))
    else:
        for x in (-wide, -wide * 0.36, wide * 0.28, wide - 0.09):
            builder.cuboid("back", (x, x + 0.09), (seat, top), (-deep, -deep + 0.07))
        builder.cuboid("back", (-wide, wide), (top - 0.16, top), (-deep, -deep + 0.08))
    builder.cuboid("seat", (-wide, wide), (seat, seat + thick), (-deep, deep))
    _legs(builder, wide, deep, seat, leg, back=False)


def table(builder: FacetBuilder, rng: RandomStream) -> None:
    wide = rng.uniform(0.75, 0.95)
    deep = rng.uniform(0.42, 0.6)
    tall = rng.uniform(0.65, 0.85)
    leg = rng.uniform(0.04, 0.07)
    thick = rng.uniform(0.07, 0.13)
    if rng.bernoulli(0.4):
        builder.lathe(
            "legs",
            [(0, deep * 0.6), (0.05, deep * 0.5), (0.1, 0.08), (tall, 0.08)],
            smooth=False,
        )
        builder.lathe(
            "top", [(tall, wide * 0.85), (tall + thick, wide * 0.85)], smooth=False
        )
        builder.disc("top", tall + thick, wide * 0.85)
        return
    builder.turn_to(rng.uniform(-0.6, 0.6))
    _legs(builder, wide * 0.94, deep * 0.92, tall, leg, back=True)
    _legs(builder, wide * 0.94, deep * 0.92, tall, leg, back=False)
    builder.cuboid("top", (-wide, wide), (tall, tall + thick), (-deep, deep))


def sofa(builder: FacetBuilder, rng: RandomStream) -> None:
    wide = rng.uniform(0.75, 1.0)
    deep = rng.uniform(0.36, 0.44)
    seat = rng.uniform(0.3, 0.38)
    top = seat + rng.uniform(0.4, 0.55)
    arm = seat + rng.uniform(0.16, 0.28)
    thick = rng.uniform(0.16, 0.22)
    turn = rng.uniform(-0.45, 0.45)
    builder.turn_to(turn)
    for x in (-wide * 0.9, wide * 0.9 - 0.08):
        builder.cuboid(
            "feet", (x, x + 0.08), (0, 0.1), (deep - 0.1, deep - 0.02), "bark"
        )
    builder.cuboid("back", (-wide, wide), (0.1, top), (-deep, -deep + 0.2))
    far = (-wide, -wide + thick)
    near = (wide - thick, wide)
    if turn > 0:
        far, near = near, far
    builder.cuboid("arms", far, (0.1, arm), (-deep + 0.1, deep))
    builder.cuboid(
        "seat",
        (-wide + thick, wide - thick),
        (0.1, seat - 0.08),
        (-deep + 0.2, deep - 0.02),
    )
    count = 2 if wide < 0.88 else 3
    span = 2 * (wide - thick) / count
    order = range(count) if turn < 0 else range(count - 1, -1, -1)
    for cushion in order:
        left = -wide + thick + cushion * span
        builder.cuboid(
            "seat",
            (left + 0.012, left + span - 0.012),
            (seat - 0.08, seat + 0.06),
            (-deep + 0.2, deep + 0.01),
        )
    builder.cuboid("arms", near, (0.1, arm), (-deep + 0.1, deep + 0.02))


def _legs(
    builder: FacetBuilder,
    wide: float,
    deep: float,
    tall: float,
    half: float,
    *,
    back: bool,
) -> None:
    z = -deep + half if back else deep - half
    for x in (-wide + half, wide - half):
        builder.cuboid(
            "legs", (x - half, x + half), (0, tall), (z - half, z + half), "trim"
        )
