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
from maskwise.world.shapes.orientation import SIDES


def plant(builder: FacetBuilder, rng: RandomStream) -> None:
    """A plant: leaves that spread like a fan from a pot with a rim and soil.

    Varies: lower and upper radius of the pot, its height, the number of leaves (6 to
    8), their greatest length and half width; each leaf its length, bend and green.
    """
    foot_radius = rng.uniform(0.22, 0.28)
    pot_radius = rng.uniform(0.32, 0.4)
    pot_height = rng.uniform(0.42, 0.6)
    leaf_count = 6 + rng.integer(3)
    longest_leaf = rng.uniform(0.7, 1.1)

    pot = [(0, foot_radius), (pot_height, pot_radius)]
    builder.lathe("pot", pot, smooth=False)
    rim_radius = pot_radius * 1.1
    rim_bottom = (pot_height - 0.12, pot_radius * 1.04)
    rim = [rim_bottom, (pot_height, rim_radius)]
    builder.lathe("pot", rim, smooth=False)
    builder.disc("pot", pot_height, rim_radius, hollow=True, rim=0.12)
    builder.disc("pot", pot_height - 0.04, pot_radius * 0.85, "soil")

    leaf_half_width = rng.uniform(0.11, 0.19)
    # Directions in radians from upright, shuffled: no side is always in front.
    directions = np.linspace(-1.25, 1.25, leaf_count).tolist()
    for direction in rng.shuffled(directions):
        length = longest_leaf * rng.uniform(0.7, 1.0)
        bend = rng.uniform(0.1, 0.5)
        across = math.sin(direction)
        up = math.cos(direction)
        # The more a leaf points sideways, the lower its tip hangs.
        droop = abs(across) * bend * 0.4
        root = (across * 0.06, pot_height - 0.03, 0.0)
        middle_x = across * length * 0.5
        middle_y = pot_height + up * length * 0.55 + bend * 0.12
        middle = (middle_x, middle_y, 0.0)
        tip_y = pot_height + up * length * 0.95 - droop
        tip = (across * length, tip_y, 0.0)
        # Two leaves of three are light green.
        paint = rng.choice(("leaf", "leaf", "moss"))
        half_widths = [0.03, leaf_half_width, 0.0]
        builder.tube("leaves", [root, middle, tip], half_widths, paint)


def box(builder: FacetBuilder, rng: RandomStream) -> None:
    """A closed box with a lid that is slightly larger than the body.

    Varies: half width, height, half depth, turn, lid height (a share of the height),
    and whether the lid is darker than the body.
    """
    half_width = rng.uniform(0.42, 0.65)
    height = rng.uniform(0.5, 0.85)
    half_depth = rng.uniform(0.38, 0.52)
    # At least 0.2 radians, so that two sides are visible.
    turn = rng.uniform(0.2, 0.75) * rng.sign()
    builder.turn_to(turn)
    lid_height = rng.uniform(0.16, 0.26) * height

    builder.cuboid(
        "body", (-half_width, half_width), (0, height), (-half_depth, half_depth)
    )
    overhang = 0.04
    builder.cuboid(
        "lid",
        (-half_width - overhang, half_width + overhang),
        (height - lid_height, height + 0.02),
        (-half_depth - overhang, half_depth + overhang),
        rng.choice(("deep", "main")),
    )


def teddy_bear(builder: FacetBuilder, rng: RandomStream) -> None:
    """A sitting teddy bear made of ellipsoids; arms are tubes.

    Varies: the radius of the body and of the head; everything else follows them.
    """
    body_radius = rng.uniform(0.34, 0.42)
    head_radius = rng.uniform(0.27, 0.33)
    body_y = body_radius * 0.95
    head_y = body_y + body_radius * 0.75 + head_radius * 0.75

    ear_y = head_y + head_radius * 0.78
    for side in SIDES:
        ear_x = side * head_radius * 0.8
        ear = (ear_x, ear_y, -0.1)
        builder.ball("ears", ear, head_radius * 0.42)
        # Slightly nearer to the viewer, so that it lies on the ear.
        inner_ear = (ear_x, ear_y, -0.05)
        builder.ball("ears", inner_ear, head_radius * 0.22, "accent")

    builder.ball("body", (0, body_y, 0), body_radius, tall=1.1)
    belly = (0, body_y - 0.03, 0.1)
    builder.ball("body", belly, body_radius * 0.62, "accent", tall=1.05)

    for side in SIDES:
        shoulder_y = body_y + body_radius * 0.6
        elbow_y = body_y + body_radius * 0.15
        paw_y = body_y - body_radius * 0.3
        # z grows towards the viewer: the arms reach forward.
        shoulder = (side * body_radius * 0.75, shoulder_y, 0)
        elbow = (side * body_radius * 1.25, elbow_y, 0.1)
        paw = (side * body_radius * 1.3, paw_y, 0.2)
        builder.tube("arms", [shoulder, elbow, paw], [0.12, 0.13, 0.13])
        # The legs point at the viewer: a ball, and the sole in front of it.
        leg = (side * body_radius * 0.85, 0.2, 0.3)
        builder.ball("legs", leg, 0.23, wide=1.05)
        sole = (side * body_radius * 0.88, 0.2, 0.36)
        builder.ball("legs", sole, 0.12, "accent")

    builder.ball("head", (0, head_y, 0), head_radius, wide=1.1)
    muzzle_y = head_y - head_radius * 0.3
    muzzle = (0, muzzle_y, 0.0)
    builder.ball("head", muzzle, head_radius * 0.45, "accent", tall=0.8)
    nose_y = head_y - head_radius * 0.16
    nose = (0, nose_y, 0.0)
    builder.ball("head", nose, head_radius * 0.15, "dark", tall=0.75)
    for side in SIDES:
        eye = (side * head_radius * 0.38, head_y + head_radius * 0.22, 0.0)
        builder.ball("head", eye, head_radius * 0.12, "dark")


def hat(builder: FacetBuilder, rng: RandomStream) -> None:
    """A hat: a flat round brim, a crown, a band around the crown.

    Varies: radius of the brim, lower radius, height and upper radius of the crown.
    """
    brim_radius = rng.uniform(0.68, 0.85)
    crown_radius = rng.uniform(0.36, 0.44)
    height = rng.uniform(0.4, 0.65)
    top_radius = crown_radius * rng.uniform(0.72, 0.95)
    brim_thickness = 0.04

    brim = [(0, brim_radius), (brim_thickness, brim_radius)]
    builder.lathe("brim", brim, smooth=False)
    builder.disc("brim", brim_thickness, brim_radius, rim=0.05)
    middle_radius = (crown_radius + top_radius) / 2
    crown = [
        (brim_thickness, crown_radius),
        (height * 0.7, middle_radius),
        (height, top_radius),
    ]
    builder.lathe("crown", crown)
    builder.disc("crown", height, top_radius, rim=0.1)
    band_top = 0.05 + height * 0.24
    builder.band("band", (0.05, crown_radius), (band_top, crown_radius))


def toy_car(builder: FacetBuilder, rng: RandomStream) -> None:
    """A toy car seen from its side: body, cabin with two windows, four wheels, a light.

    Varies: half length, body height, half depth, turn, cabin height, wheel radius,
    how far the windscreen lies back from the nose, and the driving direction.
    """
    half_length = rng.uniform(0.8, 0.95)
    body_height = rng.uniform(0.34, 0.42)
    half_depth = rng.uniform(0.2, 0.28)
    builder.turn_to(rng.uniform(-0.45, 0.45))
    cabin_height = rng.uniform(0.3, 0.4)
    wheel_radius = rng.uniform(0.19, 0.23)
    setback = rng.uniform(0.05, 0.25)
    direction = rng.sign()
    # The cabin begins a little below the upper edge of the body, which covers the gap.
    cabin_y = body_height + 0.14
    cabin_z = half_depth * 0.85
    axle_xs = (-0.52 * half_length, 0.52 * half_length)

    # The wheels of the far side, behind the body.
    for x in axle_xs:
        wheel = ellipse(x, wheel_radius, wheel_radius, wheel_radius)
        far_z = -half_depth + 0.1
        builder.screen("wheels", wheel, "rubber", z=far_z, thick=0.1)

    # x as a share of the half length, for a car that drives to the right.
    cabin_top = cabin_y + cabin_height
    cabin = np.array(
        [
            (-0.5, cabin_y),
            (-0.36, cabin_top),
            (0.3 - setback, cabin_top),
            (0.52 - setback, cabin_y),
        ]
    )
    cabin *= (half_length * direction, 1)
    builder.screen("body", cabin, z=cabin_z, thick=half_depth * 1.7)
    body_y = (0.13, body_height + 0.16)
    body = rounded((-half_length, half_length), body_y, 0.1)
    builder.screen("body", body, z=half_depth, thick=2 * half_depth)
    for pane in _window_panes(cabin):
        builder.screen("windows", pane, "window", z=cabin_z)

    near_z = half_depth + 0.05
    for x in axle_xs:
        tire = ellipse(x, wheel_radius, wheel_radius, wheel_radius)
        builder.screen("wheels", tire, "rubber", z=near_z, thick=0.1, soft=0.04)
        hub_radius = wheel_radius * 0.5
        hub = ellipse(x, wheel_radius, hub_radius, hub_radius)
        builder.screen("wheels", hub, "bright", z=near_z)

    headlight_x = direction * half_length * 0.92
    headlight = ellipse(headlight_x, body_height * 0.85, 0.06, 0.07)
    builder.screen("body", headlight, "glow", z=half_depth + 0.01)


def _window_panes(cabin: Floats) -> tuple[Floats, Floats]:
    """Two windows (4, 2) within a cabin's outline (4, 2): the outline shrunk and divided.

    The corners of the cabin are: lower back, upper back, upper front, lower front.
    """
    center = cabin.mean(0)
    # A little above the center, so that more of the body shows below the windows.
    lift = np.array([0, 0.02])
    shrunk = (cabin - center) * (0.8, 0.68)
    glass = shrunk + center + lift
    lower_back, upper_back, upper_front, lower_front = glass
    lower_middle = (lower_back + lower_front) / 2
    upper_middle = (upper_back + upper_front) / 2
    half_gap = (lower_front - lower_back) * (0.04, 0)
    upper_left = upper_middle - half_gap
    lower_left = lower_middle - half_gap
    back_pane = np.array([lower_back, upper_back, upper_left, lower_left])
    upper_right = upper_middle + half_gap
    lower_right = lower_middle + half_gap
    front_pane = np.array([lower_right, upper_right, upper_front, lower_front])
    return back_pane, front_pane


def bucket(builder: FacetBuilder, rng: RandomStream) -> None:
    """An open bucket with an arched handle.

    Varies: lower and upper radius, height, how far the handle leans to the front, and
    how high it arches.
    """
    foot_radius = rng.uniform(0.3, 0.36)
    radius = rng.uniform(0.44, 0.52)
    height = rng.uniform(0.7, 0.95)
    rim_radius = radius * 1.05

    builder.lathe("body", [(0, foot_radius), (height, radius)], smooth=False)
    rim = [(height * 0.9, radius * 1.0), (height, rim_radius)]
    builder.lathe("body", rim, smooth=False)
    builder.disc("body", height, rim_radius, hollow=True, rim=0.07)

    lean = rng.uniform(-0.3, 0.5)
    arch_height = rng.uniform(0.35, 0.6)
    # Half an ellipse from the left to the right of the rim; the curve is smoothed.
    path = []
    for angle in np.linspace(0, math.pi, 7):
        up = math.sin(angle)
        x = -radius * 1.02 * math.cos(angle)
        y = height + arch_height * up
        z = lean * up
        path.append((x, y, z))
    builder.tube("handle", path, 0.04, "trim")


def broom(builder: FacetBuilder, rng: RandomStream) -> None:
    """A broom that stands on its bristles and leans to one side.

    Varies: the lean, handle length and half width of the bristles. The bristles are
    drawn in the image plane, because a fan has no body to project.
    """
    lean = rng.uniform(-0.4, 0.4)
    handle_length = rng.uniform(1.1, 1.4)
    half_width = rng.uniform(0.36, 0.46)
    bristle_height = 0.55
    lower_half_width = half_width * 1.1
    upper_half_width = half_width * 0.5
    leaning = rotation(-lean)
    # Heights of outlines in the image plane are shortened as by the projection.
    to_image = np.array([1.0, builder.rise])

    handle_bottom = (0.0, bristle_height * 0.8)
    handle_top = (0.0, bristle_height + handle_length)
    bottom, top = np.array([handle_bottom, handle_top]) @ leaning
    handle = [(*bottom, 0.0), (*top, 0.0)]
    builder.tube("handle", handle, 0.06, smooth=False)

    fan_bottom = (0.0, lower_half_width)
    fan_top = (bristle_height, upper_half_width)
    fan = tapered(fan_bottom, fan_top) @ leaning
    fan_ys = np.array([0.0, bristle_height * builder.rise])
    fan_widths = np.array([lower_half_width, upper_half_width])
    fan_shading = LatheShading(0.0, fan_ys, fan_widths)
    builder.add("bristles", fan * to_image, "straw", fan_shading)
    # Straws across the fan, as shares of its half width.
    for share in np.linspace(-0.85, 0.85, 8):
        upper_end = (half_width * 0.5 * share, bristle_height)
        lower_end = (half_width * 1.1 * share, 0.0)
        straw = np.array([upper_end, lower_end])
        builder.seam("bristles", straw @ leaning * to_image)

    collar_bottom = (bristle_height - 0.08, half_width * 0.6)
    collar_top = (bristle_height + 0.12, half_width * 0.3)
    collar = tapered(collar_bottom, collar_top) @ leaning
    builder.add("bristles", collar * to_image, "main", 0.9)


def umbrella(builder: FacetBuilder, rng: RandomStream) -> None:
    """An open umbrella standing upright: a canopy with a wavy hem, pole, hooked handle.

    Varies: half width and height of the canopy, height of its hem above the ground,
    and the side to which the handle bends. The canopy is drawn in the image plane.
    """
    half_width = rng.uniform(0.75, 0.9)
    canopy_height = rng.uniform(0.45, 0.6)
    hem_y = rng.uniform(0.95, 1.15)
    side = rng.sign()
    section_count = 6

    pole = [(0, 0.12, 0), (0, hem_y + canopy_height + 0.12, 0)]
    builder.tube("pole", pole, 0.028, "steel", smooth=False)
    hook = [
        (0, 0.38, 0.0),
        (0, 0.12, 0.0),
        (side * 0.09, 0.02, 0.0),
        (side * 0.2, 0.06, 0.0),
        (side * 0.22, 0.16, 0.0),
    ]
    builder.tube("handle", hook, 0.055, "trim")

    # Heights in the image plane are shortened by the projection.
    low = hem_y * builder.rise
    high = (hem_y + canopy_height) * builder.rise
    # The dome from left to right; the exponent makes it fuller than an ellipse.
    angles = np.linspace(math.pi, 0, 25)
    dome_x = half_width * np.cos(angles)
    dome_y = low + (high - low) * np.sin(angles) ** 0.85
    # The hem back to the left: one upward wave per section, four points each.
    position = np.linspace(0, 1, section_count * 4 + 1)
    hem_x = half_width * (1 - 2 * position)
    waves = np.abs(np.sin(section_count * math.pi * position))
    wave_y = low + 0.09 * waves
    hem = np.stack([hem_x, wave_y], 1)
    dome = np.stack([dome_x, dome_y], 1)
    canopy = np.concatenate([dome, hem])
    # Slightly larger than the canopy, so that its edge is not black.
    shading_width = half_width * 1.05
    shading_height = (high - low) * 1.1
    shading = BallShading(0, low, shading_width, shading_height)
    builder.add("canopy", canopy, "main", shading)

    rib_xs = np.linspace(-half_width, half_width, section_count + 1)[1:-1]
    for rib_x in rib_xs:
        bend_y = low + (high - low) * 0.55
        bend = (rib_x * 0.8, bend_y)
        rib = np.array([(rib_x, low), bend, (0, high)])
        builder.seam("canopy", rib)


def guitar(builder: FacetBuilder, rng: RandomStream) -> None:
    """A guitar standing upright: body with sound hole and bridge, neck, head, strings.

    Varies: the lean and the half width of the body at its lower bout.
    """
    lean = rng.uniform(-0.2, 0.2)
    half_width = rng.uniform(0.42, 0.5)
    leaning = rotation(-lean)

    # (half width, height) from the bottom to the neck: lower bout, waist, upper bout.
    contour = np.array(
        [
            (0, 0.0),
            (0.32, 0.03),
            (half_width, 0.3),
            (0.4, 0.55),
            (0.29, 0.72),
            (0.34, 0.95),
            (0.28, 1.1),
            (0, 1.16),
        ]
    )
    right_half = curve(contour, 4)
    left_half = (right_half * (-1, 1))[::-1]
    body = np.concatenate([right_half, left_half])

    neck = tapered((0.8, 0.06), (2.1, 0.05))
    builder.screen("neck", neck @ leaning, "bark", thick=0.06)
    head = tapered((2.05, 0.09), (2.4, 0.12))
    builder.screen("head", head @ leaning, "deep", thick=0.05)
    for side in (-1, 1):
        for peg_y in (2.14, 2.24, 2.34):
            # Every third point: a peg is a pixel or two wide.
            peg = ellipse(side * 0.14, peg_y, 0.035, 0.03)[::3]
            builder.screen("head", peg @ leaning, "bright")

    builder.screen("body", body @ leaning, thick=0.16, soft=0.06)
    sound_hole = ellipse(0, 0.72, 0.15, 0.15)
    builder.screen("body", sound_hole @ leaning, "dark", z=0.01)
    bridge = rounded((-0.16, 0.16), (0.28, 0.35), 0.02)
    builder.screen("body", bridge @ leaning, "dark", z=0.01)

    fingerboard = tapered((0.84, 0.055), (2.08, 0.05))
    builder.screen("neck", fingerboard @ leaning, "bark", z=0.02)
    for x in (-0.03, 0.0, 0.03):
        string = tapered((0.84, 0.004), (2.1, 0.004), x)
        builder.screen("neck", string @ leaning, "bright", z=0.02)


def suitcase(builder: FacetBuilder, rng: RandomStream) -> None:
    """An upright suitcase: body with four grooves, two wheels, a pulled-out handle.

    Varies: half width, height, half depth, turn and how far the handle is pulled out.
    """
    half_width = rng.uniform(0.4, 0.52)
    height = rng.uniform(0.95, 1.2)
    half_depth = rng.uniform(0.2, 0.28)
    turn = rng.uniform(0.1, 0.55) * rng.sign()
    builder.turn_to(turn)
    handle_y = height + rng.uniform(0.22, 0.45)
    grip = half_width * 0.45
    handle_z = -half_depth * 0.4

    handle = [
        (-grip, height, handle_z),
        (-grip, handle_y, handle_z),
        (grip, handle_y, handle_z),
        (grip, height, handle_z),
    ]
    builder.tube("handle", handle, 0.035, "steel", smooth=False)
    for x in (-half_width * 0.75, half_width * 0.75):
        builder.ball("wheels", (x, 0.09, half_depth * 0.5), 0.1, "rubber")

    body = rounded((-half_width, half_width), (0.1, height), 0.1)
    builder.screen("body", body, z=half_depth, thick=2 * half_depth, soft=0.08)
    groove_y = (0.2, height - 0.1)
    groove_shares = np.linspace(-0.6, 0.6, 4)
    for x in groove_shares * half_width:
        groove = rounded((x - 0.025, x + 0.025), groove_y, 0.02)
        builder.screen("body", groove, "deep", z=half_depth)


def television(builder: FacetBuilder, rng: RandomStream) -> None:
    """A flat television: frame, screen with a reflection, a stand.

    Varies: half width, height, thickness, turn, height above the ground, and the
    stand: one oval foot (half of the time) or two pairs of struts.
    """
    half_width = rng.uniform(0.85, 1.0)
    height = rng.uniform(0.95, 1.15)
    thickness = rng.uniform(0.06, 0.16)
    builder.turn_to(rng.uniform(-0.4, 0.4))
    low = rng.uniform(0.14, 0.24)
    top = low + height
    front_z = thickness / 2

    has_central_foot = rng.bernoulli(0.5)
    if has_central_foot:
        foot = ellipse(0, 0, half_width * 0.45, 0.22)
        builder.slab("stand", foot, thick=0.05)
        column = tapered((0.04, 0.1), (low + 0.1, 0.08))
        builder.screen("stand", column, "deep")
    else:
        for side in (-half_width, half_width):
            joint = (side * 0.5, low + 0.05, 0)
            front_foot = (side * 0.66, 0.0, 0.12)
            back_foot = (side * 0.6, 0.0, -0.2)
            builder.tube("stand", [joint, front_foot], 0.045, smooth=False)
            builder.tube("stand", [joint, back_foot], 0.045, smooth=False)

    frame = rounded((-half_width, half_width), (low, top), 0.05)
    builder.screen("frame", frame, z=front_z, thick=thickness)
    screen_x = (-half_width * 0.92, half_width * 0.92)
    screen_y = (low + 0.09, top - 0.08)
    screen = rounded(screen_x, screen_y, 0.03)
    builder.screen("screen", screen, "display", z=front_z, gain=1.1)
    # A slanting reflection, as shares of half width and height.
    reflection_shares = np.array(
        [(-0.7, 0.9), (-0.2, 0.9), (-0.62, 0.15), (-0.85, 0.15)]
    )
    lift = np.array([0, low])
    reflection = reflection_shares * (half_width, height) + lift
    builder.screen("screen", reflection, "window", z=front_z)
