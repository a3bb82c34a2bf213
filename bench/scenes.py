"""Synthetic masks that look like annotations: wobbly outlines, predictions a little off their truth."""

import numpy as np
from numpy.typing import NDArray

from maskwise.masks import Masks

Floats = NDArray[np.float64]


def blob(
    rng: np.random.Generator, center: Floats, radius: float, points: int = 60
) -> Floats:
    """A closed outline [x, y, ...] around center: a few low harmonics and a little roughness."""
    angles = np.linspace(0, 2 * np.pi, points, endpoint=False)
    reach = np.ones(points)
    for harmonic in range(2, 7):
        reach += rng.normal(0, 0.25 / harmonic) * np.cos(
            harmonic * angles + rng.uniform(0, 2 * np.pi)
        )
    reach += rng.normal(0, 0.02, points)
    stretch = rng.uniform(0.6, 1.6)
    outline = (
        np.stack([np.cos(angles) * stretch, np.sin(angles) / stretch], 1)
        * (radius * reach)[:, None]
    )
    return (center + outline).ravel()


def outline_pairs(
    count: int, height: int, width: int, *, seed: int = 0, points: int = 60
) -> tuple[list[Floats], list[Floats]]:
    """Truth and prediction outlines."""
    rng = np.random.default_rng(seed)
    truth = []
    guess = []
    for _ in range(count):
        center = rng.uniform([0.2 * width, 0.2 * height], [0.8 * width, 0.8 * height])
        radius = min(height, width) * rng.uniform(0.05, 0.17)
        outline = blob(rng, center, radius, points)
        truth.append(outline)
        guess.append(outline + rng.normal(0, 0.04 * radius, outline.shape))
    return truth, guess


def mask_pairs(
    count: int, height: int, width: int, seed: int = 0
) -> tuple[Masks, Masks]:
    """Truth and prediction masks."""
    truth, guess = outline_pairs(count, height, width, seed=seed)
    return Masks.draw_polygons(truth, (height, width)), Masks.draw_polygons(
        guess, (height, width)
    )
