"""The paints of an object, from its color and material."""

import colorsys

from maskwise.world.catalogue import COLORS, MATERIALS
from maskwise.world.facets import Paint
from maskwise.world.random_streams import RandomStream

Rgb = tuple[float, float, float]

FIXED: dict[str, Paint] = {
    "steel": Paint((0.66, 0.68, 0.71), 0.5),
    "bright": Paint((0.86, 0.87, 0.89), 0.6),
    "dark": Paint((0.12, 0.12, 0.13), 0.2),
    "stone": Paint((0.3, 0.31, 0.33), 0.1),
    "rubber": Paint((0.15, 0.15, 0.16), 0.1),
    "paper": Paint((0.93, 0.91, 0.85), 0.0),
    "cream": Paint((0.95, 0.93, 0.87), 0.05),
    "coffee": Paint((0.23, 0.13, 0.08), 0.2),
    "wine": Paint((0.42, 0.05, 0.12), 0.3),
    "bark": Paint((0.36, 0.23, 0.14), 0.05, "wood"),
    "soil": Paint((0.22, 0.15, 0.11), 0.0, "cloth"),
    "leaf": Paint((0.24, 0.5, 0.2), 0.1),
    "moss": Paint((0.16, 0.4, 0.18), 0.1),
    "flame": Paint((1.0, 0.66, 0.16), 0.0),
    "glow": Paint((1.0, 0.94, 0.72), 0.0),
    "cherry": Paint((0.75, 0.06, 0.12), 0.5),
    "straw": Paint((0.8, 0.65, 0.35), 0.0),
    "display": Paint((0.09, 0.13, 0.2), 0.3),
    "window": Paint((0.45, 0.58, 0.68), 0.4),
}
"""Paints that do not depend on the object: blades, screens, leaves."""


def paints_for(color: str, material: str, rng: RandomStream) -> dict[str, Paint]:
    """The paints of one object by role.

    `main` in its color; `deep` and `shade` darker; `accent` a print on it; `trim` for
    handles, bases and lids; and the fixed ones.
    """
    finish = MATERIALS[material]
    main = _vary(COLORS[color], rng)
    mean_brightness = sum(main) / 3
    # A print must stand out: dark on light objects, light on dark ones.
    if mean_brightness > 0.55:
        accents = ((0.35, 0.36, 0.42), (0.62, 0.55, 0.5))
    else:
        accents = ((0.94, 0.92, 0.86), (0.88, 0.8, 0.62))
    accent = rng.choice(accents)
    body = Paint(main, finish.gloss, finish.texture)
    darker_body = body._replace(rgb=_scaled(main, 0.85))
    trims = (FIXED["dark"], FIXED["steel"], FIXED["bark"], darker_body)
    return FIXED | {
        "main": body,
        "deep": body._replace(rgb=_scaled(main, 0.72)),
        "shade": body._replace(rgb=_scaled(main, 0.62)),
        # Prints are a little duller than the surface they are on.
        "accent": Paint(accent, finish.gloss * 0.7),
        "trim": rng.choice(trims),
    }


def _vary(rgb: Rgb, rng: RandomStream) -> Rgb:
    """A random variation of a color, too small to be called by another name."""
    hue, saturation, value = colorsys.rgb_to_hsv(*rgb)
    hue = (hue + rng.uniform(-0.012, 0.012)) % 1.0
    saturation = min(1.0, saturation * rng.uniform(0.88, 1.08))
    value = min(0.97, value * rng.uniform(0.9, 1.08))
    return colorsys.hsv_to_rgb(hue, saturation, value)


def _scaled(rgb: Rgb, factor: float) -> Rgb:
    """The color, brighter or darker by a factor."""
    red, green, blue = rgb
    return red * factor, green * factor, blue * factor
