"""Kitchenware and tableware."""

import math

import numpy as np

from maskwise.world.facets import FacetBuilder, curve
from maskwise.world.random_streams import RandomStream
from maskwise.world.shapes.orientation import lying_turn

CUTLERY_TURN = 0.75
"""How far cutlery turns away from the image plane at most, in radians."""


def mug(builder: FacetBuilder, rng: RandomStream) -> None:
    """A mug with a handle on its left or right.

    Varies: height, upper and lower radius, side and reach of the handle, heights at
    which the handle is attached, its thickness, a printed band (35 %), coffee (50 %).
    """
    height = rng.uniform(0.8, 1.15)
    radius = rng.uniform(0.37, 0.5)
    foot_radius = radius * rng.uniform(0.82, 1.0)
    side = rng.sign()
    handle_reach = rng.uniform(0.3, 0.42)
    handle_top = rng.uniform(0.78, 0.88) * height
    handle_bottom = rng.uniform(0.18, 0.3) * height
    handle_radius = radius + handle_reach

    # The ends lie inside the body, so that no gap is visible.
    handle = [
        (side * radius * 0.9, handle_top, 0),
        (side * handle_radius * 0.92, handle_top, 0),
        (side * handle_radius, (handle_top + handle_bottom) / 2, 0),
        (side * handle_radius * 0.88, handle_bottom, 0),
        (side * foot_radius * 0.92, handle_bottom, 0),
    ]
    builder.tube("handle", handle, rng.uniform(0.06, 0.085))

    body = [
        (0, foot_radius * 0.93),
        (0.05, foot_radius),
        (height * 0.5, (radius + foot_radius) / 2),
        (height, radius),
    ]
    builder.lathe("body", body)
    has_band = rng.bernoulli(0.35)
    if has_band:
        band_y = rng.uniform(0.25, 0.5) * height
        band_radius = foot_radius + (radius - foot_radius) * band_y / height
        band_top = (band_y + 0.16 * height, band_radius + 0.01)
        builder.band("body", (band_y, band_radius), band_top)
    builder.disc("body", height, radius, hollow=True, rim=0.1)
    has_coffee = rng.bernoulli(0.5)
    if has_coffee:
        builder.disc("body", height - 0.1, radius * 0.84, "coffee")


def bowl(builder: FacetBuilder, rng: RandomStream) -> None:
    """An open bowl on a foot.

    Varies: radius, height, and a printed band below the rim (40 %).
    """
    radius = rng.uniform(0.62, 0.78)
    height = rng.uniform(0.45, 0.62)

    builder.lathe("foot", [(0, 0.27), (0.09, 0.24)])
    body = [
        (0.07, 0.25),
        (0.12, 0.36),
        (height * 0.5, radius * 0.82),
        (height, radius),
    ]
    builder.lathe("body", body)
    has_band = rng.bernoulli(0.4)
    if has_band:
        band_bottom = (height * 0.72, radius * 0.925)
        band_top = (height * 0.86, radius * 0.97)
        builder.band("body", band_bottom, band_top)
    builder.disc("body", height, radius, hollow=True, rim=0.07)


def bottle(builder: FacetBuilder, rng: RandomStream) -> None:
    """A bottle: body with a label, a neck that narrows, a cap.

    Varies: radius and height of the body, radius of the neck, its length, height of
    the shoulder, height of the label, radius of the cap.
    """
    radius = rng.uniform(0.24, 0.33)
    body_height = rng.uniform(0.75, 1.05)
    neck_radius = rng.uniform(0.085, 0.12)
    neck_length = rng.uniform(0.35, 0.6)
    shoulder_y = body_height + rng.uniform(0.12, 0.25)
    neck_top = shoulder_y + neck_length * 0.6

    neck = [
        (body_height - 0.02, radius * 0.98),
        (body_height + 0.08, radius * 0.8),
        (shoulder_y, neck_radius * 1.15),
        (neck_top, neck_radius),
    ]
    builder.lathe("neck", neck)
    body = [
        (0, radius * 0.94),
        (0.06, radius),
        (body_height * 0.5, radius),
        (body_height, radius * 0.98),
    ]
    builder.lathe("body", body)
    label_y = rng.uniform(0.18, 0.3) * body_height
    builder.band("body", (label_y, radius), (label_y + 0.42 * body_height, radius))

    cap_radius = neck_radius * rng.uniform(1.15, 1.35)
    cap_top = neck_top + 0.14
    cap = [(neck_top - 0.03, cap_radius), (cap_top, cap_radius)]
    builder.lathe("cap", cap, "trim")
    builder.disc("cap", cap_top, cap_radius, "trim")


def wine_glass(builder: FacetBuilder, rng: RandomStream) -> None:
    """A wine glass: base, stem, bowl, and wine in it (60 %).

    Varies: greatest radius of the bowl, stem height, bowl height, radius of the base
    and of the mouth.
    """
    radius = rng.uniform(0.28, 0.38)
    stem_height = rng.uniform(0.45, 0.7)
    bowl_height = rng.uniform(0.5, 0.75)
    base_radius = radius * rng.uniform(0.8, 1.0)
    rim_y = stem_height + bowl_height

    builder.lathe("base", [(0, base_radius), (0.035, base_radius * 0.92), (0.07, 0.06)])
    stem = [(0.05, 0.05), (stem_height * 0.5, 0.035), (stem_height + 0.03, 0.05)]
    builder.lathe("stem", stem)
    mouth_radius = radius * rng.uniform(0.72, 0.95)
    bowl_profile = [
        (stem_height, 0.05),
        (stem_height + 0.1 * bowl_height, radius * 0.7),
        (stem_height + 0.4 * bowl_height, radius),
        (rim_y, mouth_radius),
    ]
    builder.lathe("bowl", bowl_profile)
    builder.disc("bowl", rim_y, mouth_radius, hollow=True, rim=0.07)
    has_wine = rng.bernoulli(0.6)
    if has_wine:
        wine_y = stem_height + bowl_height * 0.86
        builder.disc("bowl", wine_y, mouth_radius * 0.88, "wine")


def teapot(builder: FacetBuilder, rng: RandomStream) -> None:
    """A teapot: round body, lid with a knob, spout on one side, handle on the other.

    Varies: radius, height, side of the spout, thickness of the handle, height of the
    spout's lip, and a printed band (40 %).
    """
    radius = rng.uniform(0.48, 0.6)
    height = rng.uniform(0.6, 0.8)
    side = rng.sign()

    # Both ends lie inside the body, so that no gap is visible; so do the spout's.
    handle = [
        (-side * radius * 0.7, height * 0.88, 0),
        (-side * (radius + 0.3), height * 0.9, 0),
        (-side * (radius + 0.34), height * 0.5, 0),
        (-side * radius * 0.85, height * 0.25, 0),
    ]
    builder.tube("handle", handle, rng.uniform(0.055, 0.075))
    lip_y = rng.uniform(0.85, 1.05) * height
    spout = [
        (side * radius * 0.7, height * 0.25, 0),
        (side * (radius + 0.12), height * 0.45, 0),
        (side * (radius + 0.26), lip_y * 0.85, 0),
        (side * (radius + 0.4), lip_y, 0),
    ]
    builder.tube("spout", spout, [0.17, 0.12, 0.075, 0.06])

    top_radius = radius * 0.5
    body = [
        (0, radius * 0.62),
        (0.06, radius * 0.72),
        (height * 0.45, radius),
        (height * 0.82, radius * 0.8),
        (height, top_radius),
    ]
    builder.lathe("body", body)
    has_band = rng.bernoulli(0.4)
    if has_band:
        band_bottom = (height * 0.42, radius * 0.99)
        band_top = (height * 0.58, radius * 0.98)
        builder.band("body", band_bottom, band_top)

    lid = [
        (height - 0.02, top_radius * 1.1),
        (height + 0.04, top_radius),
        (height + 0.13, top_radius * 0.35),
    ]
    builder.lathe("lid", lid, "trim")
    builder.ball("lid", (0, height + 0.2, 0), 0.085, "trim")


def pan(builder: FacetBuilder, rng: RandomStream) -> None:
    """A frying pan with a handle to one side.

    Varies: radius, height of the rim, side and length of the handle, and how far the
    handle points to the viewer (z at its end).
    """
    radius = rng.uniform(0.55, 0.68)
    rim_height = rng.uniform(0.16, 0.28)
    side = rng.sign()
    handle_length = rng.uniform(0.7, 0.95)
    handle_z = rng.uniform(-0.25, 0.45)

    handle_start = (side * radius * 0.86, rim_height * 0.8, handle_z * 0.4)
    handle_middle = (
        side * (radius + handle_length * 0.5),
        rim_height * 1.15,
        handle_z * 0.8,
    )
    handle_end = (side * (radius + handle_length), rim_height * 1.3, handle_z)
    handle = [handle_start, handle_middle, handle_end]
    builder.tube("handle", handle, [0.065, 0.075, 0.09], "trim")

    body = [(0, radius * 0.84), (0.03, radius * 0.88), (rim_height, radius)]
    builder.lathe("body", body)
    builder.disc("body", rim_height, radius, hollow=True, rim=0.06)
    builder.disc("body", rim_height * 0.3, radius * 0.78, "dark")


def knife(builder: FacetBuilder, rng: RandomStream) -> None:
    """A kitchen knife lying level; the blade points along +x, its edge to the viewer.

    Varies: handle length, blade length, blade width, direction, handle half width.
    """
    handle_length = rng.uniform(0.6, 0.8)
    blade_length = rng.uniform(0.9, 1.2)
    blade_width = rng.uniform(0.4, 0.55)
    builder.turn_to(lying_turn(rng, CUTLERY_TURN))

    blade = [
        (0.0, -blade_width * 0.5),
        (blade_length * 0.7, -blade_width * 0.5),
        (blade_length, -blade_width * 0.1),
        (blade_length * 0.9, blade_width * 0.3),
        (blade_length * 0.6, blade_width * 0.5),
        (0.0, blade_width * 0.5),
    ]
    builder.slab("blade", blade, "steel", thick=0.04)
    # The ground strip along the edge, on top of the blade.
    edge = [
        (0.0, blade_width * 0.22),
        (blade_length * 0.88, blade_width * 0.2),
        (blade_length * 0.6, blade_width * 0.5),
        (0, blade_width * 0.5),
    ]
    builder.slab("blade", edge, "bright", base=0.04, thick=0.0)
    _add_handle(builder, -handle_length, 0.05, rng.uniform(0.18, 0.23))


def fork(builder: FacetBuilder, rng: RandomStream) -> None:
    """A fork lying level; its four tines point along +x.

    Varies: handle length, half width of the head, direction, handle half width.
    """
    handle_length = rng.uniform(0.8, 1.05)
    half_width = rng.uniform(0.3, 0.38)
    builder.turn_to(lying_turn(rng, CUTLERY_TURN))

    # Centers of the tines as shares of the half width.
    for tine in (-0.9, -0.3, 0.3, 0.9):
        outline = [
            (0.3, half_width * (tine - 0.2)),
            (0.85, half_width * (tine - 0.13)),
            (0.85, half_width * (tine + 0.13)),
            (0.3, half_width * (tine + 0.2)),
        ]
        builder.slab("tines", outline, "steel", thick=0.05)
    root = [
        (-0.05, -0.06),
        (0.12, -half_width * 0.8),
        (0.34, -half_width * 1.1),
        (0.34, half_width * 1.1),
        (0.12, half_width * 0.8),
        (-0.05, 0.06),
    ]
    builder.slab("tines", root, "steel", thick=0.05)
    _add_handle(builder, -handle_length, 0.0, rng.uniform(0.14, 0.18))


def spoon(builder: FacetBuilder, rng: RandomStream) -> None:
    """A spoon lying level; its oval bowl points along +x.

    Varies: handle length, half width and half length of the bowl, direction, handle
    half width.
    """
    handle_length = rng.uniform(0.8, 1.0)
    half_width = rng.uniform(0.36, 0.44)
    half_length = rng.uniform(0.36, 0.46)
    builder.turn_to(lying_turn(rng, CUTLERY_TURN))

    angles = np.linspace(0, 2 * math.pi, 20, endpoint=False)
    oval_x = half_length + half_length * np.cos(angles)
    oval_z = half_width * np.sin(angles)
    oval = np.stack([oval_x, oval_z], 1)
    builder.slab("bowl", oval, "steel", thick=0.06)
    # The hollow: the same oval, smaller about the same center.
    center = (half_length, 0)
    hollow = (oval - center) * 0.78 + center
    builder.slab("bowl", hollow, "steel", base=0.06, thick=0.0, soft=0.1)
    _add_handle(builder, -handle_length, 0.08, rng.uniform(0.13, 0.17))


def candle(builder: FacetBuilder, rng: RandomStream) -> None:
    """A burning candle on a round holder.

    Varies: radius and height of the wax, radius of the holder, lean of the flame. The
    flame is drawn in the image plane: it has no body and no shading.
    """
    radius = rng.uniform(0.13, 0.2)
    height = rng.uniform(0.55, 1.0)
    holder_radius = radius + rng.uniform(0.16, 0.26)
    wax_bottom = 0.06
    wax_top = wax_bottom + height

    holder = [
        (0, holder_radius * 0.75),
        (0.05, holder_radius),
        (0.1, holder_radius * 0.98),
    ]
    builder.lathe("holder", holder, "trim")
    builder.disc("holder", 0.1, holder_radius, "trim", hollow=True, rim=0.12)
    builder.lathe("wax", [(wax_bottom, radius), (wax_top, radius * 0.97)])
    builder.disc("wax", wax_top, radius * 0.97, rim=0.15)

    flame_y = wax_top * builder.rise
    flame_points = np.array(
        [
            (0, 0.02),
            (0.075, 0.1),
            (0.07, 0.2),
            (0.0, 0.42),
            (-0.07, 0.2),
            (-0.075, 0.1),
            (0, 0.02),
        ]
    )
    lean = rng.uniform(-0.05, 0.05)
    # The lean grows along the outline; 19 = 6 spans of 3 points and the last point.
    lean_shares = np.linspace(0, 1, 19)[:, None]
    flame = curve(flame_points, 3) + np.array([lean, 0]) * lean_shares
    builder.add("flame", flame * 1.25 + (0, flame_y), "flame", 1.0)
    # The bright core.
    builder.add("flame", flame * 0.65 + (0, flame_y + 0.02), "glow", 1.0)


def apple(builder: FacetBuilder, rng: RandomStream) -> None:
    """An apple with a stem and one leaf, which point to the same side.

    Varies: radius, height and side.
    """
    radius = rng.uniform(0.44, 0.52)
    height = rng.uniform(0.74, 0.88)
    side = rng.sign()

    flesh = [
        (0, radius * 0.45),
        (0.06, radius * 0.66),
        (height * 0.35, radius * 0.95),
        (height * 0.65, radius),
        (height * 0.9, radius * 0.72),
        (height * 0.97, radius * 0.42),
    ]
    builder.lathe("flesh", flesh)
    # The hollow around the stem.
    builder.disc("flesh", height * 0.97, radius * 0.3, "deep")
    stem = [
        (0, height * 0.9, 0),
        (side * 0.02, height + 0.1, 0),
        (side * 0.09, height + 0.26, 0),
    ]
    builder.tube("stem", stem, 0.035, "bark")

    leaf_points = [
        (0.0, 0.0),
        (side * 0.16, 0.1),
        (side * 0.34, 0.1),
        (side * 0.46, 0.02),
    ]
    leaf = [(x + side * 0.02, y + height + 0.06, 0) for x, y in leaf_points]
    builder.tube("leaf", leaf, [0.0, 0.1, 0.09, 0.0], "leaf")


def cupcake(builder: FacetBuilder, rng: RandomStream) -> None:
    """A cupcake: a pleated wrapper, icing in three layers, a cherry on top (60 %).

    Varies: lower and upper radius and height of the wrapper, radius and height of the
    icing.
    """
    foot_radius = rng.uniform(0.27, 0.33)
    radius = rng.uniform(0.4, 0.46)
    wrapper_height = rng.uniform(0.38, 0.48)

    builder.lathe("wrapper", [(0, foot_radius), (wrapper_height, radius)], "trim")
    # The pleats are lines in the image plane, as shares of the half width.
    pleat_bottom = 0.02 - 0.6 * foot_radius * builder.tilt
    pleat_top = (wrapper_height - 0.02) * builder.rise
    for share in np.linspace(-0.8, 0.8, 6):
        lower_end = (foot_radius * share, pleat_bottom)
        upper_end = (radius * share, pleat_top)
        builder.seam("wrapper", np.array([lower_end, upper_end]))

    icing_radius = radius * rng.uniform(1.06, 1.2)
    icing_height = rng.uniform(0.45, 0.6)
    icing_top = wrapper_height + icing_height
    icing = [
        (wrapper_height - 0.03, icing_radius * 0.95),
        (wrapper_height + 0.07, icing_radius),
        (wrapper_height + icing_height * 0.32, icing_radius * 0.74),
        (wrapper_height + icing_height * 0.42, icing_radius * 0.76),
        (wrapper_height + icing_height * 0.64, icing_radius * 0.48),
        (wrapper_height + icing_height * 0.74, icing_radius * 0.48),
        (icing_top, 0.03),
    ]
    builder.lathe("icing", icing)
    has_cherry = rng.bernoulli(0.6)
    if has_cherry:
        builder.ball("icing", (0, icing_top + 0.05, 0), 0.09, "cherry")


def _add_handle(
    builder: FacetBuilder, start: float, stop: float, half_width: float
) -> None:
    """The handle of a piece of cutlery, from x = start (its broad end) to x = stop."""
    outline = [
        (start, -half_width * 0.6),
        (start + 0.06, -half_width),
        (start + 0.3, -half_width * 0.85),
        (stop, -half_width * 0.62),
        (stop, half_width * 0.62),
        (start + 0.3, half_width * 0.85),
        (start + 0.06, half_width),
        (start, half_width * 0.6),
    ]
    builder.slab("handle", outline, thick=0.08, soft=half_width)
