"""Pairs of predicted regions and targets: those that may share pixels, and those that protocols form by order."""

from collections.abc import Iterator
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
        parts = list(_pair_blocks(pred_offsets, target_offsets))
        columns = (
            np.concatenate([np.zeros(0, np.int64), *column]) for column in zip(*parts)
        )
        return cls(
            pred_offsets,
            target_offsets,
            *(columns if parts else [np.zeros(0, np.int64)] * 3),
        )

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
        kept: list[tuple[Int64Array, ...]] = [(np.zeros(0, np.int64),) * 3]
        for sample, pred, target in _pair_blocks(pred_offsets, target_offsets):
            rows = np.flatnonzero(boxes_overlap(pred_box[pred], target_box[target]))
            kept.append((sample[rows], pred[rows], target[rows]))
        return cls(
            pred_offsets,
            target_offsets,
            *(np.concatenate(column) for column in zip(*kept)),
        )

    @cached_property
    def preds(self) -> Int64Array:
        """Number of predicted regions of each sample."""
        return np.diff(self.pred_offsets)

    @cached_property
    def targets(self) -> Int64Array:
        """Number of targets of each sample."""
        return np.diff(self.target_offsets)

    @cached_property
    def _key(self) -> Int64Array:
        return self.pred * np.int64(self.target_offsets[-1] + 1) + self.target

    def find(self, pred: Int64Array, target: Int64Array) -> Int64Array:
        """Positions of the given pairs, ABSENT where a pair is not listed."""
        wanted = pred * np.int64(self.target_offsets[-1] + 1) + target
        position = np.searchsorted(self._key, wanted)
        listed = np.append(self._key, np.int64(-1))[position] == wanted
        return np.where(listed, position, ABSENT)


def _pair_blocks(
    pred_offsets: Int64Array, target_offsets: Int64Array
) -> Iterator[tuple[Int64Array, ...]]:
    """Sample, region and target of all pairs within samples, in blocks of about BLOCK pairs."""
    preds = np.diff(pred_offsets)
    targets = np.diff(target_offsets)
    owner = np.repeat(np.arange(len(preds)), preds)
    ends = np.cumsum(targets[owner])
    first = 0
    while first < len(owner):
        done = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + BLOCK, side="right")))
        counts = targets[owner[first:last]]
        pred = np.repeat(np.arange(first, last), counts)
        sample = owner[pred]
        within = np.arange(len(pred)) - np.repeat(np.cumsum(counts) - counts, counts)
        yield sample, pred, target_offsets[sample] + within
        first = last


def boxes_overlap(one: Int32Array, other: Int32Array) -> BoolArray:
    """Whether two boxes share pixels, row by row; a box without pixels overlaps nothing."""
    low = np.maximum(one[:, :2], other[:, :2])
    high = np.minimum(one[:, 2:], other[:, 2:])
    return (low[:, 0] < high[:, 0]) & (low[:, 1] < high[:, 1])


def pair_in_order(
    first: Int64Array, second: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Pair the k-th of each group with the k-th, as far as the shorter list goes (Python's zip).

    first, second: int64 [groups + 1] offsets. Returns the group and the two positions of every pair.
    """
    counts = np.minimum(np.diff(first), np.diff(second))
    group = np.repeat(np.arange(len(counts)), counts)
    rank = np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts)
    return group, first[group] + rank, second[group] + rank


def unpaired(count: int, paired: Int64Array) -> Int64Array:
    """Positions below `count` that are in no pair, ascending."""
    free = np.ones(count, bool)
    free[paired] = False
    return np.flatnonzero(free)


def pairs_within(offsets: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Every two different members of each group, the earlier first. offsets: int64 [groups + 1]."""
    counts = np.diff(offsets)
    later = np.repeat(offsets[1:], counts) - np.arange(offsets[-1]) - 1
    one = np.repeat(np.arange(offsets[-1]), later)
    return one, one + 1 + np.arange(len(one)) - np.repeat(
        np.cumsum(later) - later, later
    )
