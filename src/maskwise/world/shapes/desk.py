"""Tools and devices."""

import math

import numpy as np

from maskwise.world.facets import (
    FacetBuilder,
    Floats,
    Point,
    ellipse,
    rotation,
    rounded,
    tapered,
)
from maskwise.world.random_streams import RandomStream
from maskwise.world.shapes.orientation import SIDES, lying_turn


def scissors(builder: FacetBuilder, rng: RandomStream) -> None:
    """Open scissors lying level: two blades, two handles with a ring, a screw.

    Varies: the opening (half angle between the blades, radians), the blade length and
    the direction. The pivot is the origin; the blades point along +x.
    """
    opening = rng.uniform(0.25, 0.5)
    blade_length = rng.uniform(0.9, 1.1)
    builder.turn_to(lying_turn(rng, 0.7))

    blade = np.array(
        [
            (-0.1, -0.13),
            (0.25, -0.16),
            (blade_length, 0.0),
            (0.25, 0.08),
            (-0.1, 0.13),
        ]
    )
    for side in SIDES:
        mirrored_blade = blade * (1, side)
        opened_blade = mirrored_blade @ rotation(opening * side)
        builder.slab("blades", opened_blade, "steel", thick=0.04)

    ring = _finger_ring()
    for side in SIDES:
        opening_turn = rotation(opening * side)
        # Behind the pivot each shank bends outwards, so that the rings do not touch.
        shank = np.array(
            [
                (0.02, -0.08),
                (0.02, 0.08),
                (-0.4, 0.1 - side * 0.1),
                (-0.4, -0.1 - side * 0.1),
            ]
        )
        builder.slab("handles", shank @ opening_turn, thick=0.06)
        ring_center = np.array([(-0.62, -side * 0.16)]) @ opening_turn
        builder.slab("handles", ring + ring_center, thick=0.06, soft=0.06)

    screw = (0.02, 0.1, 0)
    builder.ball("blades", screw, 0.04, "dark")


def _finger_ring() -> Floats:
    """The outline of a ring as one polygon: the outer ellipse, a cut, the inner one.

    The inner ellipse runs backwards, so that the polygon leaves the hole empty.
    """
    outer = ellipse(0, 0, 0.38, 0.36)
    inner = ellipse(0, 0, 0.21, 0.19)
    return np.concatenate([outer, outer[:1], inner[:1], inner[::-1]])


def hammer(builder: FacetBuilder, rng: RandomStream) -> None:
    """A hammer lying level: a wooden or plastic handle along -x, a steel head across.

    Varies: the handle length, its half width, the half length of the head and the
    direction.
    """
    handle_length = rng.uniform(1.1, 1.4)
    half_width = rng.uniform(0.14, 0.18)
    head_half_length = rng.uniform(0.42, 0.52)
    builder.turn_to(lying_turn(rng, 0.6))

    # The handle is thickest at its end, where it is held.
    near_edge = np.array(
        [
            (-handle_length, -half_width * 1.2),
            (-handle_length * 0.6, -half_width),
            (0.1, -half_width * 0.8),
        ]
    )
    far_edge = (near_edge * (1, -1))[::-1]
    handle = np.concatenate([near_edge, far_edge])
    builder.slab("handle", handle, thick=0.1, soft=half_width)

    head_z = (-head_half_length, head_half_length * 0.9)
    builder.cuboid("head", (-0.02, 0.32), (0.0, 0.3), head_z, "steel")
    # The striking face is a little wider than the head.
    face_z = (head_half_length * 0.6, head_half_length * 1.05)
    builder.cuboid("head", (-0.06, 0.36), (-0.0, 0.33), face_z, "steel")


def book(builder: FacetBuilder, rng: RandomStream) -> None:
    """A closed book lying level: two covers, the pages between them, the spine.

    Varies: half width, half depth, thickness (of the lower cover and the pages) and
    the turn. The spine is on the side that the turn shows to the viewer.
    """
    half_width = rng.uniform(0.55, 0.7)
    half_depth = rng.uniform(0.42, 0.52)
    thickness = rng.uniform(0.14, 0.3)
    # At least 0.25 radians, so that the spine is visible.
    turn = rng.uniform(0.25, 0.9) * rng.sign()
    builder.turn_to(turn)
    cover_thickness = 0.04
    top = thickness + cover_thickness
    width = (-half_width, half_width)
    depth = (-half_depth, half_depth)

    builder.cuboid("cover", width, (0, cover_thickness), depth)

    # The pages end inside the covers: 0.05 at the spine's opposite side, 0.03 in front.
    if turn > 0:
        spine_side = -1.0
        pages_left = -half_width
        pages_right = half_width - 0.05
    else:
        spine_side = 1.0
        pages_left = -half_width + 0.05
        pages_right = half_width
    pages_end = half_depth - 0.03
    builder.cuboid(
        "pages",
        (pages_left, pages_right),
        (cover_thickness, thickness),
        (-pages_end, pages_end),
        "paper",
    )
    # Two dark lines suggest the sheets.
    for height_share in (0.35, 0.65):
        low = cover_thickness + (thickness - cover_thickness) * height_share
        high = low + 0.015
        sheet_line = [
            (pages_left, low),
            (pages_right, low),
            (pages_right, high),
            (pages_left, high),
        ]
        builder.screen("pages", sheet_line, "shade", z=pages_end, gain=0.9)

    spine_x = spine_side * half_width
    spine = [
        (spine_x, 0, -half_depth),
        (spine_x, 0, half_depth),
        (spine_x, top, half_depth),
        (spine_x, top, -half_depth),
    ]
    builder.panel("spine", spine, (spine_side, 0, 0), "deep")

    builder.cuboid("cover", width, (thickness, top), depth)
    # Two lines of the title.
    title_lines = ((half_width * 0.5, 0.25), (half_width * 0.35, -0.05))
    for half_length, near_z in title_lines:
        line_width = (-half_length, half_length)
        builder.level("cover", line_width, (near_z - 0.12, near_z), top, "accent")


def laptop(builder: FacetBuilder, rng: RandomStream) -> None:
    """An open laptop: a screen that leans back, behind a keyboard with a touch pad.

    Varies: half width, half depth of the keyboard, screen height, turn, and how far
    the screen leans back per unit of height.
    """
    half_width = rng.uniform(0.62, 0.75)
    half_depth = rng.uniform(0.4, 0.48)
    screen_height = rng.uniform(0.75, 0.9)
    builder.turn_to(rng.uniform(-0.5, 0.5))
    lean = rng.uniform(0.1, 0.25)
    hinge_z = -half_depth
    # The normal of the screen: almost to the front, a little upwards.
    screen_normal = (0, 0.15, 0.98)

    frame = _leaning_rectangle(half_width, (0.0, screen_height), hinge_z, lean)
    builder.panel("screen", frame, screen_normal)
    display_y = (0.09, screen_height * 0.93)
    display = _leaning_rectangle(half_width * 0.92, display_y, hinge_z, lean)
    builder.panel("screen", display, screen_normal, "display", gain=1.2)
    # A reflection: a triangle from the upper edge of the display to its middle.
    reflection = [
        display[3],
        display[2],
        (half_width * 0.184, screen_height * 0.5, hinge_z),
    ]
    builder.panel("screen", reflection, screen_normal, "window", gain=1.2)

    keyboard_top = 0.05
    builder.cuboid(
        "keyboard",
        (-half_width, half_width),
        (0, keyboard_top),
        (-half_depth, half_depth * 1.05),
    )
    key_field_x = (-half_width * 0.88, half_width * 0.88)
    key_field_z = (-half_depth * 0.75, half_depth * 0.25)
    builder.level("keyboard", key_field_x, key_field_z, keyboard_top, "dark")
    key_row_x = (-half_width * 0.85, half_width * 0.85)
    for row in (-0.62, -0.37, -0.13, 0.12):
        key_row_z = (half_depth * row, half_depth * (row + 0.07))
        builder.level("keyboard", key_row_x, key_row_z, keyboard_top, "stone")
    touch_pad_x = (-half_width * 0.25, half_width * 0.25)
    touch_pad_z = (half_depth * 0.45, half_depth * 0.9)
    builder.level("keyboard", touch_pad_x, touch_pad_z, keyboard_top, "deep")


def _leaning_rectangle(
    half_width: float, y: tuple[float, float], hinge_z: float, lean: float
) -> list[Point]:
    """The corners of a rectangle between two heights that leans back from a hinge.

    Order: lower left, lower right, upper right, upper left.
    """
    low, high = y
    low_z = hinge_z - lean * low
    high_z = hinge_z - lean * high
    return [
        (-half_width, low, low_z),
        (half_width, low, low_z),
        (half_width, high, high_z),
        (-half_width, high, high_z),
    ]


def clock(builder: FacetBuilder, rng: RandomStream) -> None:
    """A round alarm clock on two feet: frame, face, four hour marks, two hands.

    Varies: radius, thickness, turn, whether it has two bells (55 %), and the time.
    """
    radius = rng.uniform(0.48, 0.55)
    thickness = rng.uniform(0.2, 0.32)
    builder.turn_to(rng.uniform(-0.45, 0.45))
    # The clock stands 0.12 above the ground, on its feet.
    center_y = radius + 0.12

    for side in SIDES:
        foot = [(side * 0.3, 0.2, -thickness * 0.3), (side * 0.42, 0.0, 0.0)]
        builder.tube("feet", foot, 0.06, "trim", smooth=False)
    has_bells = rng.bernoulli(0.55)
    if has_bells:
        bell_y = center_y + radius * 0.92
        for side in SIDES:
            bell_center = (side * radius * 0.6, bell_y, -thickness / 2)
            builder.ball("frame", bell_center, 0.19, "trim", tall=0.8)

    frame = ellipse(0, center_y, radius, radius)
    builder.screen("frame", frame, thick=thickness, soft=0.1)
    face_radius = radius * 0.8
    face = ellipse(0, center_y, face_radius, face_radius)
    builder.screen("face", face, "cream", gain=1.05)

    # Marks at 3, 12, 9 and 6 o'clock, at two thirds of the radius.
    for x, y in ((0.66, 0), (0, 0.66), (-0.66, 0), (0, -0.66)):
        mark = ellipse(x * radius, center_y + y * radius, 0.025, 0.025)
        # Every fourth point: a mark is a pixel or two wide, a hexagon is enough.
        builder.screen("face", mark[::4], "dark")

    # The hour hand is shorter and broader than the minute hand.
    for reach, half_width in ((0.45, 0.056), (0.7, 0.041)):
        upright_hand = tapered((0.0, half_width), (reach * radius, half_width * 0.5))
        hand = upright_hand @ rotation(rng.uniform(0, 2 * math.pi))
        # Slightly in front of the face.
        builder.screen("hands", hand + np.array([0, center_y]), "dark", z=0.01)


def camera(builder: FacetBuilder, rng: RandomStream) -> None:
    """A camera: a body with viewfinder and grip, a button, a lens, a flash.

    Varies: half width, height, thickness, turn, lens radius and lens length.
    """
    half_width = rng.uniform(0.58, 0.7)
    height = rng.uniform(0.62, 0.75)
    thickness = rng.uniform(0.3, 0.4)
    builder.turn_to(rng.uniform(-0.5, 0.5))
    front_z = thickness * 0.3

    builder.cuboid(
        "body", (-half_width, half_width), (0, height), (-thickness, front_z)
    )
    viewfinder_x = (-half_width * 0.35, half_width * 0.35)
    viewfinder_z = (-thickness * 0.8, thickness * 0.2)
    builder.cuboid("body", viewfinder_x, (height, height + 0.16), viewfinder_z, "deep")
    button_x = (half_width * 0.55, half_width * 0.85)
    button_z = (-thickness * 0.5, -thickness * 0.1)
    builder.cuboid("button", button_x, (height, height + 0.08), button_z, "trim")
    grip = tapered((0, half_width), (height * 0.55, half_width))
    builder.screen("body", grip, "deep", z=front_z)

    lens_radius = rng.uniform(0.26, 0.31)
    lens_y = height * 0.48
    lens_length = rng.uniform(0.2, 0.35)
    lens_z = front_z + lens_length
    barrel = ellipse(0, lens_y, lens_radius, lens_radius)
    builder.screen("lens", barrel, "dark", z=lens_z, thick=lens_length, soft=0.05)
    glass = ellipse(0, lens_y, lens_radius * 0.72, lens_radius * 0.72)
    builder.screen("lens", glass, "display", z=lens_z, gain=0.9)
    # A reflection in the upper left of the glass.
    offset = lens_radius * 0.25
    reflection = ellipse(-offset, lens_y + offset, lens_radius * 0.2, lens_radius * 0.2)
    builder.screen("lens", reflection, "window", z=lens_z)

    flash_x = (-half_width * 0.92, -half_width * 0.55)
    flash_y = (height * 0.7, height * 0.9)
    flash = rounded(flash_x, flash_y, 0.03)
    builder.screen("flash", flash, "paper", z=front_z, gain=1.1)


def lamp(builder: FacetBuilder, rng: RandomStream) -> None:
    """A table lamp: a round base, a stem and a shade that glows inside.

    Varies: base radius, stem height, shade height, lower and upper radius of the
    shade, and whether the stem is turned (40 %) or straight.
    """
    base_radius = rng.uniform(0.26, 0.38)
    stem_height = rng.uniform(0.55, 0.95)
    shade_height = rng.uniform(0.42, 0.58)
    shade_radius = rng.uniform(0.36, 0.5)
    shade_top_radius = shade_radius * rng.uniform(0.45, 0.75)
    shade_top = stem_height + shade_height

    base = [(0, base_radius), (0.05, base_radius * 0.96), (0.1, base_radius * 0.4)]
    builder.lathe("base", base, "trim")
    is_turned = rng.bernoulli(0.4)
    if is_turned:
        stem = [
            (0.08, 0.09),
            (stem_height * 0.35, 0.17),
            (stem_height * 0.7, 0.07),
            (stem_height + 0.1, 0.05),
        ]
    else:
        stem = [(0.08, 0.05), (stem_height + 0.1, 0.045)]
    builder.lathe("stem", stem, "trim")

    # The lower opening, then the shade in front of it, then the upper opening.
    builder.disc("shade", stem_height, shade_radius, "glow")
    shade = [(stem_height, shade_radius), (shade_top, shade_top_radius)]
    builder.lathe("shade", shade, smooth=False)
    builder.disc("shade", shade_top, shade_top_radius, "glow", rim=0.12)
