"""Pairs of predicted regions and targets: those that may share pixels, and those that protocols form by order."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maskwise.arrays import BoolArray, Int32Array, Int64Array

ABSENT = -1
"""Position of a pair that is not in a list of pairs."""

BLOCK = 2**20
"""Box comparisons done at once: bounds the memory that is needed while pairs are searched."""


@dataclass(frozen=True)
class MaskPairs:
    """Pairs of a predicted region and a target of one sample, sorted by region, then by target.

    pred_offsets, target_offsets: int64 [samples + 1], where the regions of each sample lie among all regions.
    sample, pred, target: int64 [pairs]; regions by position among all.
    """

    pred_offsets: Int64Array
    target_offsets: Int64Array
    sample: Int64Array
    pred: Int64Array
    target: Int64Array

    def __len__(self) -> int:
        return len(self.pred)

    @classmethod
    def all(cls, pred_offsets: Int64Array, target_offsets: Int64Array) -> "MaskPairs":
        """Every predicted region with every target of its sample."""
        blocks = _pair_blocks(pred_offsets, target_offsets)
        return cls(pred_offsets, target_offsets, *_join_blocks(blocks))

    @classmethod
    def overlapping(
        cls,
        pred_offsets: Int64Array,
        target_offsets: Int64Array,
        *,
        pred_box: Int32Array,
        target_box: Int32Array,
    ) -> "MaskPairs":
        """The pairs whose boxes overlap. Memory is linear in regions and pairs found. Boxes: int32 [regions, 4]."""
        kept: list[tuple[Int64Array, ...]] = []
        for sample, pred, target in _pair_blocks(pred_offsets, target_offsets):
            rows = np.flatnonzero(boxes_overlap(pred_box[pred], target_box[target]))
            kept.append((sample[rows], pred[rows], target[rows]))
        return cls(pred_offsets, target_offsets, *_join_blocks(kept))

    @cached_property
    def preds(self) -> Int64Array:
        """Number of predicted regions of each sample."""
        return np.diff(self.pred_offsets)

    @cached_property
    def targets(self) -> Int64Array:
        """Number of targets of each sample."""
        return np.diff(self.target_offsets)

    @cached_property
    def _keys(self) -> Int64Array:
        return self._key(self.pred, self.target)

    def _key(self, pred: Int64Array, target: Int64Array) -> Int64Array:
        """One number per pair; ascending in the order of the pairs."""
        target_count = np.int64(self.target_offsets[-1] + 1)
        return pred * target_count + target

    def find(self, pred: Int64Array, target: Int64Array) -> Int64Array:
        """Positions of the given pairs, ABSENT where a pair is not listed."""
        wanted = self._key(pred, target)
        position = np.searchsorted(self._keys, wanted)
        # No key is -1: it stands behind the last pair, where a search may end.
        key_at = np.append(self._keys, np.int64(-1))[position]
        return np.where(key_at == wanted, position, ABSENT)


def _join_blocks(blocks: Iterable[tuple[Int64Array, ...]]) -> list[Int64Array]:
    """Sample, region and target of all blocks; empty columns if there is no block."""
    nothing = np.zeros(0, np.int64)
    columns = zip(*[(nothing, nothing, nothing), *blocks])
    return [np.concatenate(column) for column in columns]


def _pair_blocks(
    pred_offsets: Int64Array, target_offsets: Int64Array
) -> Iterator[tuple[Int64Array, ...]]:
    """Sample, region and target of all pairs within samples, in blocks of about BLOCK pairs."""
    pred_counts = np.diff(pred_offsets)
    target_counts = np.diff(target_offsets)
    owner = np.repeat(np.arange(len(pred_counts)), pred_counts)
    pair_ends = np.cumsum(target_counts[owner])
    first = 0
    while first < len(owner):
        done = pair_ends[first - 1] if first else 0
        last = int(np.searchsorted(pair_ends, done + BLOCK, side="right"))
        # At least one region, even if it has more pairs than a block.
        last = max(first + 1, last)
        counts = target_counts[owner[first:last]]
        pred = np.repeat(np.arange(first, last), counts)
        sample = owner[pred]
        yield sample, pred, target_offsets[sample] + _ranks(counts)
        first = last


def _ranks(counts: Int64Array) -> Int64Array:
    """0, 1, ... within each of several adjacent groups of these sizes."""
    starts = np.cumsum(counts) - counts
    return np.arange(counts.sum()) - np.repeat(starts, counts)


def boxes_overlap(a: Int32Array, b: Int32Array) -> BoolArray:
    """Whether two boxes share pixels, row by row; a box without pixels overlaps nothing.

    a, b: int32 [n, 4], left, top, right, bottom.
    """
    # Column by column: numpy takes six times as long for two columns at a time.
    across = np.maximum(a[:, 0], b[:, 0]) < np.minimum(a[:, 2], b[:, 2])
    down = np.maximum(a[:, 1], b[:, 1]) < np.minimum(a[:, 3], b[:, 3])
    return across & down


def pair_in_order(
    first: Int64Array, second: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Pair the k-th of each group with the k-th, as far as the shorter list goes (Python's zip).

    first, second: int64 [groups + 1] offsets. Returns the group and the two positions of every pair.
    """
    counts = np.minimum(np.diff(first), np.diff(second))
    group = np.repeat(np.arange(len(counts)), counts)
    rank = _ranks(counts)
    return group, first[group] + rank, second[group] + rank


def unpaired(count: int, paired: Int64Array) -> Int64Array:
    """Positions below `count` that are in no pair, ascending."""
    free = np.ones(count, bool)
    free[paired] = False
    return np.flatnonzero(free)


def pairs_within(offsets: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Every two different members of each group, the earlier first. offsets: int64 [groups + 1]."""
    counts = np.diff(offsets)
    members = np.arange(offsets[-1])
    # How many members of its group come after each member.
    later_counts = np.repeat(offsets[1:], counts) - members - 1
    earlier = np.repeat(members, later_counts)
    later = earlier + 1 + _ranks(later_counts)
    return earlier, later
