"""Which item of which source is drawn at which position: a function of the seed and the position alone.

Positions are divided into blocks. Within a block every source has its exact share, in an order shuffled per block; the
items of a source come in an order shuffled per epoch. Nothing has to be stored to continue at any position.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from maskwise.arrays import Int64Array
from maskwise.errors import MaskwiseError

BLOCK = 1000
"""Positions per block: rates are exact to a thousandth."""


class MixedOrder:
    """An endless order of items of several sources.

    sizes: the number of items of each source. rates: how often each is drawn, in proportion; others are not drawn.
    windows: of sources that are read in order, how many items that follow each other are shuffled among themselves.
    """

    def __init__(
        self,
        sizes: Mapping[str, int],
        rates: Mapping[str, float],
        seed: int,
        *,
        windows: Mapping[str, int] | None = None,
    ) -> None:
        self.names = tuple(rates)
        empty = [name for name in self.names if not sizes[name]]
        if empty:
            raise MaskwiseError(f"sources without a usable sample: {', '.join(empty)}")
        self.seed = seed
        self.sizes = [sizes[name] for name in self.names]
        self.windows = [(windows or {}).get(name) for name in self.names]
        own_rates = [rates[name] for name in self.names]
        self.quotas = _apportion(own_rates)
        # Positions are drawn nearly in order: a few blocks, and a few epochs per source, are in use at a time.
        self._block = lru_cache(4)(self._make_block)
        self._epoch = lru_cache(4 * len(self.names))(self._make_epoch)

    def draw(self, position: int) -> tuple[str, int]:
        """The source and item at a position."""
        block, place = divmod(position, BLOCK)
        order, ordinals = self._block(block)
        source = int(order[place])
        # How often the source was drawn before this position.
        before = block * self.quotas[source] + int(ordinals[place])
        epoch, index = divmod(before, self.sizes[source])
        permutation = self._epoch(source, epoch)
        return self.names[source], int(permutation[index])

    def expected(self, positions: int) -> dict[str, int]:
        """How many of the first positions each source gets."""
        blocks, rest = divmod(positions, BLOCK)
        last_order, _ = self._block(blocks)
        last_counts = np.bincount(last_order[:rest], minlength=len(self.names))
        expected = {}
        for source, name in enumerate(self.names):
            complete = blocks * self.quotas[source]
            expected[name] = complete + int(last_counts[source])
        return expected

    def _make_block(self, block: int) -> tuple[Int64Array, Int64Array]:
        """The source of each position of a block, and how many of the same source come before it in the block."""
        order = np.repeat(np.arange(len(self.names)), self.quotas)
        # 0 and 1 in the seeds: blocks and epochs must not share random numbers.
        random = np.random.default_rng((self.seed, 0, block))
        random.shuffle(order)
        ordinals = np.zeros(BLOCK, np.int64)
        for source, quota in enumerate(self.quotas):
            ordinals[order == source] = np.arange(quota)
        return order, ordinals

    def _make_epoch(self, source: int, epoch: int) -> Int64Array:
        """The items of a source in the order of an epoch."""
        random = np.random.default_rng((self.seed, 1, source, epoch))
        size = self.sizes[source]
        window = self.windows[source] or size
        parts = []
        for first in range(0, size, window):
            count = min(window, size - first)
            parts.append(first + random.permutation(count))
        return np.concatenate(parts)


def _apportion(rates: list[float]) -> list[int]:
    """BLOCK positions in proportion to rates, by largest remainders; every source gets at least one."""
    shares = np.array(rates) / sum(rates)
    exact = shares * BLOCK
    whole = np.floor(exact)
    quotas = np.maximum(whole, 1).astype(int)
    remainders = exact - whole
    # Of equal remainders the first source comes first.
    order = np.argsort(-remainders, kind="stable")
    for source in order:
        if quotas.sum() < BLOCK:
            quotas[source] += 1
    # Sources that were raised to one position take it from the largest.
    while quotas.sum() > BLOCK:
        quotas[np.argmax(quotas)] -= 1
    return [int(quota) for quota in quotas]
