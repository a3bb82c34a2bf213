"""Intersection and IoU of predicted masks and target masks, measured once for all protocols."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.masks import Masks
from maskwise.protocols.ground_truth import GroundTruth
from maskwise.protocols.mask_pairs import MaskPairs
from maskwise.protocols.mask_selection import (
    SelectedMasks,
    disjoint_intersection_areas,
    intersection_areas,
    replace_masks,
)
from maskwise.protocols.matching import match
from maskwise.protocols.metrics import int_sums
from maskwise.protocols.prediction_columns import PredictionColumns


@dataclass(frozen=True)
class MergedAreas:
    """Areas of the union of each sample's predicted masks, of the union of its targets, and of the intersection of the
    two unions: int64 [samples] each.
    """

    intersection: Int64Array
    pred: Int64Array
    target: Int64Array

    @property
    def union(self) -> Int64Array:
        """Pixels in either."""
        return self.pred + self.target - self.intersection


class PieceOverlap(NamedTuple):
    """Where the source's own pieces of a target overlap. present: bool [targets]; masks: the pixels; area: int64
    [targets].
    """

    present: BoolArray
    masks: Masks
    area: Int64Array


class Overlaps:
    """One mask per predicted region and per target, and what they share.

    counted_pixels: int64 [samples], image pixels that are not ignored. scorable: bool [samples], whether all targets
    have a mask of the selected type.
    """

    def __init__(
        self,
        ground_truth: GroundTruth,
        predictions: PredictionColumns,
        index: MaskPairs,
        *,
        pred: SelectedMasks,
        target: SelectedMasks,
    ) -> None:
        self.ground_truth, self.predictions, self.index = ground_truth, predictions, index
        self.pred, self.target, self.threads = pred, target, pred.threads
        ignored = np.zeros(len(ground_truth), np.int64)
        ignored[ground_truth.ignore.present] = ground_truth.ignore.masks[ground_truth.ignore.present].area()
        self.counted_pixels = ground_truth.image_size.astype(np.int64).prod(1) - ignored
        self.scorable = np.bincount(ground_truth.sample[~target.known], minlength=len(ground_truth)) == 0

    @cached_property
    def intersection(self) -> Int64Array:
        """Pixels shared by each pair of the index, int64 [pairs]."""
        return self._measure(self.index.pred, self.index.target)

    @cached_property
    def iou(self) -> Float64Array:
        """IoU of each pair, 1 where both masks are known and empty, 0 where one is not known."""
        index = self.index
        union = self.pred.area[index.pred] + self.target.area[index.target] - self.intersection
        empty = (union == 0) & self.pred.known[index.pred] & self.target.known[index.target]
        return np.where(empty, 1.0, self.intersection / np.maximum(union, 1))

    @cached_property
    def matched(self) -> Int64Array:
        """The pairs of the one-to-one matching with the largest total IoU, positions in the index."""
        return match(self.index, self.iou)

    def shared(self, pred: Int64Array, target: Int64Array) -> Int64Array:
        """Pixels shared by predicted regions and targets of one image, int64 [k]. Pairs of one sample are looked up."""
        sample = self.predictions.sample[pred]
        same = sample == self.ground_truth.sample[target]
        out = np.empty(len(pred), np.int64)
        out[same] = self.intersection[self.index.find(sample[same], pred[same], target[same])]
        out[~same] = self._measure(pred[~same], target[~same])
        return out

    @cached_property
    def piece_overlap(self) -> PieceOverlap:
        """Where the pieces of each target overlap."""
        present = self.ground_truth.overlap.present & self.target.known
        rows = np.flatnonzero(present)
        pixels = self.target.masks
        area = np.zeros(len(present), np.int64)
        if len(rows):
            inside = self.target.masks[rows] & self.ground_truth.overlap.masks[rows]
            area[rows] = inside.area()
            pixels = replace_masks(pixels, rows, inside)
        return PieceOverlap(present, pixels, area)

    @cached_property
    def merged(self) -> MergedAreas:
        """The union of each sample's predicted masks against the union of its targets."""
        index, count = self.index, len(self.ground_truth)
        pixels = disjoint_intersection_areas(
            (self.pred, index.pred), (self.target, index.target), self.intersection, threads=self.threads
        )
        shared = int_sums(index.sample, pixels, count)
        areas = (int_sums(part.sample, part.disjoint.area, count) for part in (self.pred, self.target))
        return MergedAreas(shared, *areas)

    def _measure(self, pred: Int64Array, target: Int64Array) -> Int64Array:
        return intersection_areas((self.pred, pred), (self.target, target), threads=self.threads)
