"""Random streams that depend only on seed, split and index."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")

STREAMS = ("layout", "background", "noise", "questions", "dialogues")
"""Each scene has one independent stream per purpose, so that a change of one does not affect the others."""


class RandomStream:
    """A random stream. It uses only uniform doubles, whose sequence numpy keeps stable."""

    __slots__ = ("random",)

    def __init__(self, seeds: np.random.SeedSequence) -> None:
        self.random = np.random.Generator(np.random.PCG64(seeds)).random

    def uniform(self, low: float, high: float) -> float:
        """Uniform in [low, high)."""
        return low + (high - low) * self.random()

    def integer(self, stop: int) -> int:
        """Uniform integer in [0, stop)."""
        return int(self.random() * stop)

    def bernoulli(self, probability: float) -> bool:
        """True with this probability."""
        return self.random() < probability

    def sign(self) -> float:
        """-1 or 1."""
        return -1.0 if self.random() < 0.5 else 1.0

    def choice(self, items: Sequence[T]) -> T:
        """One of the items, uniformly."""
        return items[int(self.random() * len(items))]

    def weighted_choice(self, items: Sequence[T], weights: Sequence[float]) -> T:
        """One of the items, by weight; weights are not negative and not all zero."""
        point = self.random() * sum(weights)
        for item, weight in zip(items, weights):
            point -= weight
            if point < 0:
                return item
        return items[-1]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in a random order."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = self.integer(last + 1)
            order[last], order[other] = order[other], order[last]
        return order


def scene_streams(seed: int, split: int, index: int) -> dict[str, RandomStream]:
    """The independent streams of one scene."""
    root = np.random.SeedSequence(seed, spawn_key=(split, index))
    return {
        name: RandomStream(child)
        for name, child in zip(STREAMS, root.spawn(len(STREAMS)))
    }
