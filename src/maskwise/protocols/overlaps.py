"""Intersection and IoU of predicted masks and target masks, measured once for all protocols."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.masks import Masks, pair_areas
from maskwise.protocols.ground_truth import GroundTruth
from maskwise.protocols.mask_pairs import ABSENT, MaskPairs
from maskwise.protocols.mask_selection import (
    SelectedMasks,
    intersection_areas,
    replace_masks,
)
from maskwise.protocols.matching import match
from maskwise.protocols.metrics import int_sums
from maskwise.protocols.prediction_columns import PredictionColumns

HIT = 0.5
"""IoU from which on a prediction counts as having found its target."""
TIE = 1e-10
"""Weight of the criteria that decide between matchings with the same total IoU."""


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
    have a mask of the selected type. same: overlaps of the same masks, except that empty masks are known in one and not
    in the other: intersections are equal.
    """

    def __init__(
        self,
        ground_truth: GroundTruth,
        predictions: PredictionColumns,
        pairs: MaskPairs,
        *,
        pred: SelectedMasks,
        target: SelectedMasks,
        same: "Overlaps | None" = None,
    ) -> None:
        self.ground_truth = ground_truth
        self.predictions = predictions
        self.pairs = pairs
        self.pred = pred
        self.target = target
        self.threads = pred.threads
        self._same = same
        ignored = np.zeros(len(ground_truth), np.int64)
        ignored[ground_truth.ignore.present] = ground_truth.ignore.masks[
            ground_truth.ignore.present
        ].area()
        self.counted_pixels = ground_truth.image_size.astype(np.int64).prod(1) - ignored
        self.scorable = (
            np.bincount(ground_truth.sample[~target.known], minlength=len(ground_truth))
            == 0
        )

    @cached_property
    def intersection(self) -> Int64Array:
        """Pixels shared by each of the pairs, int64 [pairs]."""
        if self._same is not None:
            return self._same.intersection
        return self._measure(self.pairs.pred, self.pairs.target)

    @cached_property
    def iou(self) -> Float64Array:
        """IoU of each of the pairs, 1 where both masks are known and empty, 0 where one is not known."""
        pairs = self.pairs
        union = (
            self.pred.area[pairs.pred]
            + self.target.area[pairs.target]
            - self.intersection
        )
        empty = (
            (union == 0) & self.pred.known[pairs.pred] & self.target.known[pairs.target]
        )
        return np.where(empty, 1.0, self.intersection / np.maximum(union, 1))

    @cached_property
    def matched(self) -> Int64Array:
        """The one-to-one matching with the largest total IoU, positions in `pairs`; masks that do not overlap are not
        matched.
        """
        if self._same is not None and np.array_equal(self.iou, self._same.iou):
            return self._same.matched
        return match(self.pairs, break_ties(self.iou, self.intersection))

    def shared(self, pred: Int64Array, target: Int64Array) -> Int64Array:
        """Pixels shared by predicted regions and targets of one image, int64 [k]. Known pairs are looked up."""
        position = self.pairs.find(pred, target)
        listed = position != ABSENT
        other = ~listed & (
            self.predictions.sample[pred] != self.ground_truth.sample[target]
        )
        out = np.zeros(len(pred), np.int64)
        out[listed] = self.intersection[position[listed]]
        out[other] = self._measure(pred[other], target[other])
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
        """The union of each sample's predicted masks against the union of its targets.

        Where no masks of a sample overlap, areas add up; elsewhere the unions are made.
        """
        count = len(self.ground_truth)
        intersection = int_sums(self.pairs.sample, self.intersection, count)
        pred, target = (
            int_sums(part.sample, part.area, count) for part in (self.pred, self.target)
        )
        pred_masks = self.pred if self._same is None else self._same.pred
        samples = np.flatnonzero(pred_masks.overlapping | self.target.overlapping)
        if len(samples):
            size = self.ground_truth.image_size[samples]
            unions = (part.unions(samples, size) for part in (self.pred, self.target))
            areas = pair_areas(*unions, threads=self.threads)
            intersection[samples] = areas.intersection
            pred[samples] = areas.a
            target[samples] = areas.b
        return MergedAreas(intersection, pred, target)

    def _measure(self, pred: Int64Array, target: Int64Array) -> Int64Array:
        return intersection_areas(
            (self.pred, pred), (self.target, target), threads=self.threads
        )


def break_ties(gain: Float64Array, intersection: Int64Array) -> Float64Array:
    """The gain of pairs, slightly larger for an IoU of HIT or more and for more shared pixels, so that the order of
    regions does not decide between equal totals. Pairs without shared pixels gain nothing.
    """
    shares = intersection / max(int(intersection.max(initial=1)), 1)
    return np.where(
        intersection > 0, gain + TIE * (gain >= HIT) + 0.1 * TIE * shares, 0.0
    )
