"""Random choices that depend on seed, split and index alone."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")

STREAMS = ("layout", "backdrop", "noise", "questions")
"""A scene draws each of these from a stream of its own, so that one may change without moving the others."""


class Chance:
    """A stream of choices. Everything is made of uniform doubles, the steadiest thing numpy promises."""

    __slots__ = ("random",)

    def __init__(self, seeds: np.random.SeedSequence) -> None:
        self.random = np.random.Generator(np.random.PCG64(seeds)).random

    def between(self, low: float, high: float) -> float:
        """Uniform in [low, high)."""
        return low + (high - low) * self.random()

    def below(self, stop: int) -> int:
        """Uniform whole number in [0, stop)."""
        return int(self.random() * stop)

    def often(self, share: float) -> bool:
        """True in this share of cases."""
        return self.random() < share

    def sign(self) -> float:
        """-1 or 1."""
        return -1.0 if self.random() < 0.5 else 1.0

    def pick(self, items: Sequence[T]) -> T:
        """One of the items, all alike."""
        return items[int(self.random() * len(items))]

    def weighted(self, items: Sequence[T], weights: Sequence[float]) -> T:
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
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order


def streams(seed: int, split: int, index: int) -> dict[str, Chance]:
    """The independent streams of one scene."""
    root = np.random.SeedSequence(seed, spawn_key=(split, index))
    return {name: Chance(child) for name, child in zip(STREAMS, root.spawn(len(STREAMS)))}
