"""Attacks inside an L-infinity budget: no pixel changes by more than some levels of 255.

`square_attack` knows the model's answers only: random search with squares of shrinking size
(Andriushchenko et al., "Square Attack", ECCV 2020). `gradient_attack` knows the gradient of
the model's loss: projected gradient descent (Madry et al., ICLR 2018).
"""

from collections.abc import Callable

import numpy as np

from maskwise.arrays import Float64Array, UInt8Array

FIRST_SHARE = 0.3
"""The share of the image that a square of the first queries covers; it is halved at the
steps of SHRINKING, as in the paper for few queries."""

SHRINKING = (0.05, 0.15, 0.35, 0.6, 0.8)
"""Shares of the queries after which squares become smaller."""

STEP_RATIO = 2.5
"""All steps of a gradient attack together may go this many times the budget (Madry)."""


def random_noise(
    pixels: UInt8Array, budget: int, rng: np.random.Generator
) -> UInt8Array:
    """Every value changed by the budget, up or down: the largest change without any search."""
    signs = rng.choice([-budget, budget], pixels.shape)
    return _within(pixels, signs)


def square_attack(
    pixels: UInt8Array,
    score: Callable[[UInt8Array], float],
    *,
    budget: int,
    queries: int,
    rng: np.random.Generator,
) -> UInt8Array:
    """The image with the lowest score among those asked about. queries: calls of `score`."""
    height, width = pixels.shape[:2]
    # Vertical stripes to begin with, as in the paper.
    stripes = rng.choice([-budget, budget], (1, width, 3))
    change = np.broadcast_to(stripes, pixels.shape).copy()
    best = score(_within(pixels, change))
    for query in range(1, queries):
        side = _square_side(query / queries, height, width)
        top = int(rng.integers(height - side[0] + 1))
        left = int(rng.integers(width - side[1] + 1))
        tried = change.copy()
        signs = rng.choice([-budget, budget], (1, 1, 3))
        tried[top : top + side[0], left : left + side[1]] = signs
        reached = score(_within(pixels, tried))
        # Equal scores are taken too: scores of masks often do not move.
        if reached <= best:
            best = reached
            change = tried
    return _within(pixels, change)


def gradient_attack(
    pixels: UInt8Array,
    gradient: Callable[[UInt8Array], Float64Array],
    *,
    budget: int,
    steps: int,
    rng: np.random.Generator,
) -> UInt8Array:
    """The image after some steps up the loss. gradient: of the loss, by pixel value."""
    change = rng.uniform(-budget, budget, pixels.shape)
    length = STEP_RATIO * budget / steps
    for _ in range(steps):
        upwards = np.sign(gradient(_within(pixels, change)))
        change = np.clip(change + length * upwards, -budget, budget)
    return _within(pixels, change)


def _square_side(done: float, height: int, width: int) -> tuple[int, int]:
    halvings = sum(done >= step for step in SHRINKING)
    share = np.sqrt(FIRST_SHARE / 2**halvings)
    return max(1, round(share * height)), max(1, round(share * width))


def _within(pixels: UInt8Array, change: np.typing.NDArray[np.number]) -> UInt8Array:
    """The changed image; values stay bytes, so that the budget holds exactly."""
    whole = np.trunc(change).astype(np.int16)
    changed = np.clip(pixels.astype(np.int16) + whole, 0, 255)
    return np.asarray(changed, np.uint8)
