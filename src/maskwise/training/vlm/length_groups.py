"""Steps of items of about the same length, so that less is padding and processes wait less for each other."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from maskwise.arrays import Int64Array

WINDOW_STEPS = 64
"""Steps whose items are sorted together: a window has items of most lengths, and batches stay near their place."""


class LengthGroups:
    """The positions of a stage in another order, which depends on the seed alone.

    The positions of a window are sorted by length and cut into steps; the steps of the window are shuffled. Every
    position is drawn once. length_of: of the item at a position. positions: of the stage. batch_size: of a step.
    """

    def __init__(
        self,
        length_of: Callable[[int], float],
        *,
        positions: int,
        batch_size: int,
        seed: int,
    ) -> None:
        self.length_of = length_of
        self.positions = positions
        self.batch_size = batch_size
        self.seed = seed
        # Positions are drawn nearly in order: two windows are in use at their border.
        self._window = lru_cache(2)(self._make_window)

    def __getitem__(self, place: int) -> int:
        """The position that is drawn at a place of the stage."""
        window, inside = divmod(place, WINDOW_STEPS * self.batch_size)
        return int(self._window(window)[inside])

    def _make_window(self, window: int) -> Int64Array:
        """The positions of a window, step by step."""
        size = WINDOW_STEPS * self.batch_size
        first = window * size
        inside = np.arange(first, min(first + size, self.positions))
        lengths = np.array([self.length_of(int(position)) for position in inside])
        # Stable: items of one length keep the order of their positions.
        steps = inside[np.argsort(lengths, kind="stable")].reshape(-1, self.batch_size)
        # 3 in the seed: not the random numbers of blocks (0), epochs (1) and questions (2).
        random = np.random.default_rng((self.seed, 3, window))
        shuffled: Int64Array = random.permutation(steps).ravel()
        return shuffled
