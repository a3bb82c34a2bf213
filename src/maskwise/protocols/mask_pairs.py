"""Which prediction can meet which target: all pairs within each question, as columns."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from maskwise.arrays import Int64Array


@dataclass(frozen=True)
class MaskPairs:
    """All (prediction, target) pairs of each sample, samples in order, targets fastest.

    pred_offsets, target_offsets: int64 [samples + 1], where each sample's regions lie among all regions.
    """

    pred_offsets: Int64Array
    target_offsets: Int64Array

    @cached_property
    def preds(self) -> Int64Array:
        """Predicted regions of each sample."""
        return np.diff(self.pred_offsets)

    @cached_property
    def targets(self) -> Int64Array:
        """Targets of each sample."""
        return np.diff(self.target_offsets)

    @cached_property
    def first(self) -> Int64Array:
        """int64 [samples + 1]: where each sample's pairs begin."""
        return np.concatenate([[0], np.cumsum(self.preds * self.targets)])

    @cached_property
    def sample(self) -> Int64Array:
        """Sample of each pair."""
        return np.repeat(np.arange(len(self.preds)), self.preds * self.targets)

    @cached_property
    def pred(self) -> Int64Array:
        """Predicted region of each pair, by position among all."""
        return np.repeat(np.arange(self.pred_offsets[-1]), np.repeat(self.targets, self.preds))

    @cached_property
    def target(self) -> Int64Array:
        """Target of each pair, by position among all."""
        within = np.arange(self.first[-1]) - self.first[self.sample]
        column: Int64Array = within % np.maximum(self.targets, 1)[self.sample]
        return self.target_offsets[self.sample] + column

    def find(self, sample: Int64Array, pred: Int64Array, target: Int64Array) -> Int64Array:
        """Positions of the given pairs; pred and target by position among all regions."""
        row, column = pred - self.pred_offsets[sample], target - self.target_offsets[sample]
        position: Int64Array = self.first[sample] + row * self.targets[sample] + column
        return position


def pair_in_order(first: Int64Array, second: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Pair the k-th of each group with the k-th, as far as the shorter list goes (Python's zip).

    first, second: int64 [groups + 1] offsets. Returns the group and the two positions of every pair.
    """
    counts = np.minimum(np.diff(first), np.diff(second))
    group = np.repeat(np.arange(len(counts)), counts)
    rank = np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts)
    return group, first[group] + rank, second[group] + rank


def unpaired(count: int, taken: Int64Array) -> Int64Array:
    """Positions below `count` that were not taken, rising."""
    free = np.ones(count, bool)
    free[taken] = False
    return np.flatnonzero(free)


def pairs_within(offsets: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Every two different members of each group, the earlier first. offsets: int64 [groups + 1]."""
    counts = np.diff(offsets)
    later = np.repeat(offsets[1:], counts) - np.arange(offsets[-1]) - 1
    one = np.repeat(np.arange(offsets[-1]), later)
    return one, one + 1 + np.arange(len(one)) - np.repeat(np.cumsum(later) - later, later)
