"""Furniture."""

from maskwise.world.facets import FacetBuilder
from maskwise.world.random_streams import RandomStream


def chair(builder: FacetBuilder, rng: RandomStream) -> None:
    """A chair: four legs, a seat, a back that is solid or made of bars.

    Varies: half width, half depth, seat height, height of the back above the seat,
    half width of a leg, seat thickness, turn, and the kind of back (half of the
    chairs have a solid one).
    """
    half_width = rng.uniform(0.36, 0.44)
    half_depth = rng.uniform(0.34, 0.42)
    seat_y = rng.uniform(0.62, 0.75)
    top_y = seat_y + rng.uniform(0.65, 0.9)
    leg_half_width = rng.uniform(0.035, 0.055)
    seat_thickness = rng.uniform(0.06, 0.12)
    builder.turn_to(rng.uniform(-0.75, 0.75))
    width = (-half_width, half_width)
    back_z = -half_depth
    # From the back to the front: later facets cover earlier ones.
    _add_legs(builder, (half_width, half_depth), seat_y, leg_half_width, back=True)

    has_solid_back = rng.bernoulli(0.5)
    if has_solid_back:
        builder.cuboid("back", width, (seat_y, top_y), (back_z, back_z + 0.08))
    else:
        bar_width = 0.09
        bar_lefts = (
            -half_width,
            -half_width * 0.36,
            half_width * 0.28,
            half_width - bar_width,
        )
        for left in bar_lefts:
            bar_x = (left, left + bar_width)
            builder.cuboid("back", bar_x, (seat_y, top_y), (back_z, back_z + 0.07))
        rail_y = (top_y - 0.16, top_y)
        builder.cuboid("back", width, rail_y, (back_z, back_z + 0.08))

    seat_range = (seat_y, seat_y + seat_thickness)
    builder.cuboid("seat", width, seat_range, (-half_depth, half_depth))
    _add_legs(builder, (half_width, half_depth), seat_y, leg_half_width, back=False)


def table(builder: FacetBuilder, rng: RandomStream) -> None:
    """A table: round on one central leg (40 %), or rectangular on four legs.

    Varies: half width, half depth, height, half width of a leg, thickness of the top,
    the kind, and the turn of a rectangular one. The radius of a round top follows
    the half width, its foot the half depth.
    """
    half_width = rng.uniform(0.75, 0.95)
    half_depth = rng.uniform(0.42, 0.6)
    height = rng.uniform(0.65, 0.85)
    leg_half_width = rng.uniform(0.04, 0.07)
    top_thickness = rng.uniform(0.07, 0.13)
    top_y = height + top_thickness

    is_round = rng.bernoulli(0.4)
    if is_round:
        column = [
            (0, half_depth * 0.6),
            (0.05, half_depth * 0.5),
            (0.1, 0.08),
            (height, 0.08),
        ]
        builder.lathe("legs", column, smooth=False)
        radius = half_width * 0.85
        builder.lathe("top", [(height, radius), (top_y, radius)], smooth=False)
        builder.disc("top", top_y, radius)
        return

    builder.turn_to(rng.uniform(-0.6, 0.6))
    # The legs stand a little inside the edge of the top.
    leg_frame = (half_width * 0.94, half_depth * 0.92)
    _add_legs(builder, leg_frame, height, leg_half_width, back=True)
    _add_legs(builder, leg_frame, height, leg_half_width, back=False)
    builder.cuboid(
        "top", (-half_width, half_width), (height, top_y), (-half_depth, half_depth)
    )


def sofa(builder: FacetBuilder, rng: RandomStream) -> None:
    """A sofa: feet, back, two arms, a seat with two or three cushions.

    Varies: half width, half depth, seat height, height of the back and of the arms
    above the seat, arm thickness and turn. Sofas from a half width of 0.88 have three
    cushions.
    """
    half_width = rng.uniform(0.75, 1.0)
    half_depth = rng.uniform(0.36, 0.44)
    seat_y = rng.uniform(0.3, 0.38)
    top_y = seat_y + rng.uniform(0.4, 0.55)
    arm_y = seat_y + rng.uniform(0.16, 0.28)
    arm_thickness = rng.uniform(0.16, 0.22)
    turn = rng.uniform(-0.45, 0.45)
    builder.turn_to(turn)
    # Everything but the feet begins at this height.
    base_y = 0.1
    back_thickness = 0.2

    foot_width = 0.08
    foot_z = (half_depth - 0.1, half_depth - 0.02)
    for left in (-half_width * 0.9, half_width * 0.9 - foot_width):
        builder.cuboid("feet", (left, left + foot_width), (0, base_y), foot_z, "bark")

    back_z = (-half_depth, -half_depth + back_thickness)
    builder.cuboid("back", (-half_width, half_width), (base_y, top_y), back_z)

    # The turn decides which arm is nearer to the viewer; that one is drawn last.
    left_arm = (-half_width, -half_width + arm_thickness)
    right_arm = (half_width - arm_thickness, half_width)
    if turn > 0:
        far_arm = right_arm
        near_arm = left_arm
    else:
        far_arm = left_arm
        near_arm = right_arm
    arm_back_z = -half_depth + 0.1
    builder.cuboid("arms", far_arm, (base_y, arm_y), (arm_back_z, half_depth))

    cushion_bottom = seat_y - 0.08
    cushion_back_z = -half_depth + back_thickness
    builder.cuboid(
        "seat",
        (-half_width + arm_thickness, half_width - arm_thickness),
        (base_y, cushion_bottom),
        (cushion_back_z, half_depth - 0.02),
    )
    cushion_count = 2 if half_width < 0.88 else 3
    cushion_width = 2 * (half_width - arm_thickness) / cushion_count
    # From the far side to the near one.
    order = range(cushion_count)
    if turn >= 0:
        order = range(cushion_count - 1, -1, -1)
    # The gap between two cushions is twice this wide.
    margin = 0.012
    for cushion in order:
        left = -half_width + arm_thickness + cushion * cushion_width
        builder.cuboid(
            "seat",
            (left + margin, left + cushion_width - margin),
            (cushion_bottom, seat_y + 0.06),
            (cushion_back_z, half_depth + 0.01),
        )

    builder.cuboid("arms", near_arm, (base_y, arm_y), (arm_back_z, half_depth + 0.02))


def _add_legs(
    builder: FacetBuilder,
    frame: tuple[float, float],
    height: float,
    leg_half_width: float,
    *,
    back: bool,
) -> None:
    """Add the two back or the two front legs.

    frame: half width and half depth of the rectangle whose corners the legs fill.
    The pairs are added separately because the seat lies between them in depth.
    """
    half_width, half_depth = frame
    front_z = half_depth - leg_half_width
    z = -front_z if back else front_z
    leg_z = (z - leg_half_width, z + leg_half_width)
    for x in (-half_width + leg_half_width, half_width - leg_half_width):
        leg_x = (x - leg_half_width, x + leg_half_width)
        builder.cuboid("legs", leg_x, (0, height), leg_z, "trim")
