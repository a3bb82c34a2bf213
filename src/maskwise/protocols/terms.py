"""The two-class arithmetic that LISA began and MMR and PixelLM (MUSE) share.

A pair of planes has an intersection and a union for background and foreground (LISA's intersectionAndUnionGPU): values
other than 0 and 1 belong to neither, ignored pixels are removed from both. A pair scores I / (U + 1e-5), plus 1 where
the union is empty. gIoU divides by a count of masks + 1e-5, cIoU by the summed union + 1e-10. Only foreground is
reported.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maskwise.masks import pair_areas
from maskwise.protocols.evaluation import Evaluation, Plane
from maskwise.protocols.metrics import Floats, Int64s, Metric, Scores, Verdicts, sums, whole_sums

PAIR_EPSILON, GIOU_EPSILON, CIOU_EPSILON = 1e-5, 1e-5, 1e-10
FOREGROUND = 1
Float32s = NDArray[np.float32]


@dataclass(frozen=True)
class Terms:
    """Scored pairs in the official order. sample: int64 [k]; intersection, union: int64 [k, 2], background first."""

    sample: Int64s
    intersection: Int64s
    union: Int64s

    def iou(self, *, epsilon: bool = True) -> Floats:
        """What each pair scores, float64 [k, 2]; without epsilon I / U, 1 where U is 0."""
        divisor = self.union + PAIR_EPSILON if epsilon else np.maximum(self.union, 1).astype(np.float64)
        value: Floats = self.intersection / divisor + (self.union == 0)
        return value

    def metrics(self, weight: Floats | Int64s, *, epsilon: bool = True) -> dict[str, Metric]:
        """gIoU and cIoU; weight [samples] is each sample's share of gIoU's denominator."""
        count = len(weight)
        value = sums(self.sample, self.iou(epsilon=epsilon)[:, FOREGROUND], count)
        top = whole_sums(self.sample, self.intersection[:, FOREGROUND], count)
        bottom = whole_sums(self.sample, self.union[:, FOREGROUND], count)
        return {
            "giou": Metric(value, weight, GIOU_EPSILON if epsilon else 0.0, gate=weight),
            "ciou": Metric(top, bottom, CIOU_EPSILON if epsilon else 0.0, gate=weight),
        }

    def select(self, rows: Int64s) -> "Terms":
        """Some of the pairs, in the order given."""
        return Terms(self.sample[rows], self.intersection[rows], self.union[rows])

    @staticmethod
    def concat(parts: "list[Terms]") -> "Terms":
        """Several lists of pairs, one after the other."""
        return Terms(
            np.concatenate([part.sample for part in parts]),
            np.concatenate([part.intersection for part in parts]),
            np.concatenate([part.union for part in parts]),
        )


def count_pairs(plane: Plane, pred: Int64s, target: Int64s) -> Terms:
    """The two-class counts of pairs (positions among all regions); the sample is the target's.

    Pixels where pieces of a target overlap have value 2 or more in the official planes: neither class.
    """
    shared = plane.shared(pred, target)
    overlaps, pixels, doubled_area = plane.overlap
    rows = np.flatnonzero(overlaps[target])
    doubled = np.zeros(len(pred), np.int64)
    doubled[rows] = pair_areas(plane.pred.masks[pred[rows]], pixels[target[rows]]).intersection
    sample = plane.truth.sample[target]
    area, any_target = plane.pred.area[pred], plane.target.area[target]
    inside = shared - doubled
    union = area + (any_target - doubled_area[target]) - inside
    frame = plane.frame[sample]
    background = np.stack([frame - (area + any_target - shared), frame - shared])
    return Terms(sample, np.stack([background[0], inside], 1), np.stack([background[1], union], 1))


def count_targets(plane: Plane, target: Int64s) -> Terms:
    """Targets against planes with nothing predicted."""
    sample, frame = plane.truth.sample[target], plane.frame[plane.truth.sample[target]]
    area = plane.target.area[target]
    single = area - plane.overlap[2][target]
    nothing = np.zeros(len(target), np.int64)
    return Terms(sample, np.stack([frame - area, nothing], 1), np.stack([frame, single], 1))


def count_predictions(plane: Plane, pred: Int64s) -> Terms:
    """Predictions against planes without a target."""
    sample, frame = plane.replies.sample[pred], plane.frame[plane.replies.sample[pred]]
    area = plane.pred.area[pred]
    nothing = np.zeros(len(pred), np.int64)
    return Terms(sample, np.stack([frame - area, nothing], 1), np.stack([frame, area], 1))


def finish(
    protocol: str,
    evaluation: Evaluation,
    terms: Terms,
    *,
    weight: Floats | Int64s,
    verdicts: Verdicts,
    epsilon: bool,
    legacy_float32: bool,
) -> Scores:
    """The scores of a LISA-like protocol. weight: [samples], shares of gIoU's denominator."""
    legacy: dict[str, float] = {}
    if legacy_float32:
        truth = evaluation.truth
        per_image = np.rint(sums(truth.cluster, weight, truth.clusters)).astype(np.int64)
        running = run_float32(terms, truth.cluster, per_image)
        if running.giou is not None and running.ciou is not None:
            legacy = {"giou": running.giou, "ciou": running.ciou}
    return Scores(
        protocol=protocol,
        options={"epsilon": epsilon, "legacy_float32": legacy_float32},
        verdicts=verdicts,
        metrics=terms.metrics(weight, epsilon=epsilon),
        legacy=legacy,
    )


@dataclass(frozen=True)
class Running:
    """The official running sums in float32. Per image [p, 2]: intersection, union, iou (already divided by count);
    giou and ciou are undefined (None) where there is no image.
    """

    intersection: Float32s
    union: Float32s
    iou: Float32s
    count: Int64s
    giou: float | None
    ciou: float | None


def run_float32(terms: Terms, cluster: Int64s, weight: Int64s) -> Running:
    """Add up as the official code does: pairs within an image, then images, all in float32.

    cluster: int64 [samples], the images in the order they are evaluated. weight: int64 [images], the number each
    image's sum is divided by and weighs with; an image with weight 0 is not evaluated.
    """
    order = np.argsort(cluster[terms.sample], kind="stable")
    terms = terms.select(order[weight[cluster[terms.sample[order]]] > 0])
    image = (np.cumsum(weight > 0) - 1)[cluster[terms.sample]]
    count = weight[weight > 0]
    union = terms.union.astype(np.float32)
    value = terms.intersection.astype(np.float32) / (union + np.float32(PAIR_EPSILON))
    value += (terms.union == 0).astype(np.float32)
    images = len(count)
    per_image = [
        _add_in_order(column.astype(np.float32), image, images)
        for column in (terms.intersection, terms.union, value)
    ]
    mean = np.divide(per_image[2], count[:, None], dtype=np.float32)
    if not images:
        return Running(per_image[0], per_image[1], mean, count, None, None)
    top, bottom, total = (
        np.cumsum(column, axis=0, dtype=np.float32)[-1]
        for column in (per_image[0], per_image[1], np.multiply(mean, count[:, None], dtype=np.float32))
    )
    giou = total / np.float32(float(np.float32(count.sum())) + GIOU_EPSILON)
    ciou = top / (bottom + np.float32(CIOU_EPSILON))
    return Running(per_image[0], per_image[1], mean, count, float(giou[FOREGROUND]), float(ciou[FOREGROUND]))


def _add_in_order(values: Float32s, groups: Int64s, count: int) -> Float32s:
    """Sum of each group [count, 2], added one after the other: pairwise summation would round differently."""
    out = np.zeros((count, values.shape[1]), np.float32)
    if not len(groups):
        return out
    starts = np.searchsorted(groups, np.arange(count))
    lengths = np.searchsorted(groups, np.arange(count), side="right") - starts
    for rank in range(int(lengths.max())):
        rows = np.flatnonzero(lengths > rank)
        out[rows] += values[starts[rows] + rank]
    return out
