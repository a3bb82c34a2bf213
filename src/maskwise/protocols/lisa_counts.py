"""Intersection and union of background and foreground, as LISA counts them; shared with MMR and PixelLM (MUSE).

A pair of label maps has an intersection and a union per class (LISA's intersectionAndUnionGPU). Values other than 0 and
1 belong to neither class; ignored pixels are removed from both maps. A pair scores I / (U + 1e-5), plus 1 where the
union is empty. gIoU divides by a number of masks + 1e-5, cIoU by the summed union + 1e-10. Only the foreground is
reported.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from maskwise.arrays import Float32Array, Float64Array, Int64Array
from maskwise.masks import pair_areas
from maskwise.protocols.metrics import (
    MetricTerms,
    SampleStatuses,
    Scores,
    int_sums,
    sums,
)
from maskwise.protocols.overlaps import Overlaps
from maskwise.protocols.scoring_input import ScoringInput

PAIR_EPSILON = 1e-5
GIOU_EPSILON = 1e-5
CIOU_EPSILON = 1e-10
FOREGROUND = 1


@dataclass(frozen=True)
class TwoClassCounts:
    """Counted pairs in the official order. sample: int64 [k]; intersection, union: int64 [k, 2], background first."""

    sample: Int64Array
    intersection: Int64Array
    union: Int64Array

    def iou(self, *, epsilon: bool = True) -> Float64Array:
        """The score of each pair, float64 [k, 2]; without epsilon I / U, and 1 where U is 0."""
        divisor = (
            self.union + PAIR_EPSILON
            if epsilon
            else np.maximum(self.union, 1).astype(np.float64)
        )
        value: Float64Array = self.intersection / divisor + (self.union == 0)
        return value

    def metrics(
        self, weight: Float64Array | Int64Array, *, epsilon: bool = True
    ) -> dict[str, MetricTerms]:
        """gIoU and cIoU; weight [samples] is each sample's share of gIoU's denominator."""
        count = len(weight)
        value = sums(self.sample, self.iou(epsilon=epsilon)[:, FOREGROUND], count)
        top = int_sums(self.sample, self.intersection[:, FOREGROUND], count)
        bottom = int_sums(self.sample, self.union[:, FOREGROUND], count)
        return {
            "giou": MetricTerms(
                value, weight, GIOU_EPSILON if epsilon else 0.0, gate=weight
            ),
            "ciou": MetricTerms(
                top, bottom, CIOU_EPSILON if epsilon else 0.0, gate=weight
            ),
        }

    def select(self, rows: Int64Array) -> "TwoClassCounts":
        """Some of the pairs, in the order given."""
        return TwoClassCounts(
            self.sample[rows], self.intersection[rows], self.union[rows]
        )

    @staticmethod
    def concat(parts: "list[TwoClassCounts]") -> "TwoClassCounts":
        """Several lists of pairs, concatenated."""
        return TwoClassCounts(
            np.concatenate([part.sample for part in parts]),
            np.concatenate([part.intersection for part in parts]),
            np.concatenate([part.union for part in parts]),
        )


def count_pairs(
    overlaps: Overlaps, pred: Int64Array, target: Int64Array
) -> TwoClassCounts:
    """The two-class counts of pairs (positions among all regions); the sample is the target's.

    Pixels where pieces of a target overlap have value 2 or more in the official code and belong to neither class.
    """
    shared = overlaps.shared(pred, target)
    pieces = overlaps.piece_overlap
    rows = np.flatnonzero(pieces.present[target])
    doubled = np.zeros(len(pred), np.int64)
    doubled[rows] = pair_areas(
        overlaps.pred.masks[pred[rows]], pieces.masks[target[rows]]
    ).intersection
    sample = overlaps.ground_truth.sample[target]
    area = overlaps.pred.area[pred]
    any_target = overlaps.target.area[target]
    inside = shared - doubled
    union = area + (any_target - pieces.area[target]) - inside
    frame = overlaps.counted_pixels[sample]
    background = np.stack([frame - (area + any_target - shared), frame - shared])
    return TwoClassCounts(
        sample,
        np.stack([background[0], inside], 1),
        np.stack([background[1], union], 1),
    )


def count_targets(overlaps: Overlaps, target: Int64Array) -> TwoClassCounts:
    """Targets against an empty prediction."""
    sample = overlaps.ground_truth.sample[target]
    frame = overlaps.counted_pixels[overlaps.ground_truth.sample[target]]
    area = overlaps.target.area[target]
    single = area - overlaps.piece_overlap.area[target]
    nothing = np.zeros(len(target), np.int64)
    return TwoClassCounts(
        sample, np.stack([frame - area, nothing], 1), np.stack([frame, single], 1)
    )


def count_predictions(overlaps: Overlaps, pred: Int64Array) -> TwoClassCounts:
    """Predictions against an empty target."""
    sample = overlaps.predictions.sample[pred]
    frame = overlaps.counted_pixels[overlaps.predictions.sample[pred]]
    area = overlaps.pred.area[pred]
    nothing = np.zeros(len(pred), np.int64)
    return TwoClassCounts(
        sample, np.stack([frame - area, nothing], 1), np.stack([frame, area], 1)
    )


def finish(
    protocol: str,
    inputs: ScoringInput,
    counts: TwoClassCounts,
    *,
    weight: Float64Array | Int64Array,
    statuses: SampleStatuses,
    options: Mapping[str, Any],
    more: Mapping[str, MetricTerms] | None = None,
) -> Scores:
    """The scores of a protocol of the LISA family. weight: [samples], shares of gIoU's denominator; options: with
    `epsilon` and `legacy_float32`; more: further metrics.
    """
    legacy: dict[str, float] = {}
    if options["legacy_float32"]:
        ground_truth = inputs.ground_truth
        per_image = np.rint(
            sums(ground_truth.cluster, weight, ground_truth.cluster_count)
        ).astype(np.int64)
        totals = sum_in_float32(counts, ground_truth.cluster, per_image)
        if totals.giou is not None and totals.ciou is not None:
            legacy = {"giou": totals.giou, "ciou": totals.ciou}
    return Scores(
        protocol=protocol,
        options=options,
        statuses=statuses,
        metrics={**counts.metrics(weight, epsilon=options["epsilon"]), **(more or {})},
        legacy=legacy,
    )


@dataclass(frozen=True)
class Float32Sums:
    """The official running sums in float32. Per image [p, 2]: intersection, union, iou (already divided by count);
    giou and ciou are undefined (None) where there is no image.
    """

    intersection: Float32Array
    union: Float32Array
    iou: Float32Array
    count: Int64Array
    giou: float | None
    ciou: float | None


def sum_in_float32(
    counts: TwoClassCounts, cluster: Int64Array, weight: Int64Array
) -> Float32Sums:
    """Sum as the official code does: pairs within an image, then images, all in float32.

    cluster: int64 [samples], the images in the order they are evaluated. weight: int64 [images], the number each
    image's sum is divided by and weighs with; an image with weight 0 is not evaluated.
    """
    order = np.argsort(cluster[counts.sample], kind="stable")
    counts = counts.select(order[weight[cluster[counts.sample[order]]] > 0])
    image = (np.cumsum(weight > 0) - 1)[cluster[counts.sample]]
    count = weight[weight > 0]
    union = counts.union.astype(np.float32)
    value = counts.intersection.astype(np.float32) / (union + np.float32(PAIR_EPSILON))
    value += (counts.union == 0).astype(np.float32)
    images = len(count)
    per_image = [
        _add_in_order(column.astype(np.float32), image, images)
        for column in (counts.intersection, counts.union, value)
    ]
    mean = np.divide(per_image[2], count[:, None], dtype=np.float32)
    if not images:
        return Float32Sums(per_image[0], per_image[1], mean, count, None, None)
    top, bottom, total = (
        np.cumsum(column, axis=0, dtype=np.float32)[-1]
        for column in (
            per_image[0],
            per_image[1],
            np.multiply(mean, count[:, None], dtype=np.float32),
        )
    )
    giou = total / np.float32(float(np.float32(count.sum())) + GIOU_EPSILON)
    ciou = top / (bottom + np.float32(CIOU_EPSILON))
    return Float32Sums(
        per_image[0],
        per_image[1],
        mean,
        count,
        float(giou[FOREGROUND]),
        float(ciou[FOREGROUND]),
    )


def _add_in_order(values: Float32Array, groups: Int64Array, count: int) -> Float32Array:
    """Sum of each group [count, 2], added in order: pairwise summation would round differently."""
    out = np.zeros((count, values.shape[1]), np.float32)
    if not len(groups):
        return out
    starts = np.searchsorted(groups, np.arange(count))
    lengths = np.searchsorted(groups, np.arange(count), side="right") - starts
    for rank in range(int(lengths.max())):
        rows = np.flatnonzero(lengths > rank)
        out[rows] += values[starts[rows] + rank]
    return out
