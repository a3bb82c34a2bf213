"""GSVA: `eval_gres()` of GSVA's solver.py (commit 618dc79), another rule for gRefCOCO.

Rule. As `gres`, with these differences, all kept:
- A target is empty when it has no pixel; no flag of the annotation is read.
- A prediction that says "nothing here" ([REJ]) to a question with targets keeps its intersection and its IoU: only
  T-acc suffers.
- A missed no-target question adds its union to cIoU only if the dataset is gRefCOCO (`grefcoco=False` otherwise).
- IoU is I / (U + 1e-8), gIoU divides by the count + 1e-5, cIoU by the union + 1e-10.
- N-acc and T-acc are plain ratios; without any no-target question, or without any other, the official code stops. Here
  the undefined value is left undefined.
- Masks are thresholded at logit >= 0, where LISA, MMR and PixelLM use > 0: threshold them so before scoring.
- The sums end in float32: `legacy_float32` repeats that; the default is exact.

A missing or failed prediction counts as an empty mask without [REJ]. `mask_type` and `epsilon`: see `lisa`.
"""

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.protocols.lisa_counts import CIOU_EPSILON, GIOU_EPSILON
from maskwise.protocols.metrics import MetricTerms, Scores
from maskwise.protocols.scoring_input import (
    NO_TARGET_MASK,
    OfficialMaskType,
    ScoringInput,
)

PAIR_EPSILON = 1e-8


def score(
    inputs: ScoringInput,
    *,
    mask_type: OfficialMaskType = "predicted",
    grefcoco: bool = True,
    legacy_float32: bool = False,
    epsilon: bool = True,
) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    overlaps = inputs.overlaps(mask_type)
    scorable = overlaps.scorable
    called_empty = inputs.predictions.no_target
    empty = scorable & (overlaps.merged.target == 0)
    targeted = scorable & ~empty
    intersection = np.where(targeted, overlaps.merged.intersection, 0)
    union = np.where(
        targeted | (empty & ~called_empty & grefcoco), overlaps.merged.union, 0
    )
    iou = _iou(intersection, union, targeted=targeted, epsilon=epsilon)
    iou[empty] = called_empty[empty]
    count = scorable.astype(np.int64)
    return Scores(
        protocol="gsva",
        options={
            "mask_type": mask_type,
            "grefcoco": grefcoco,
            "epsilon": epsilon,
            "legacy_float32": legacy_float32,
        },
        statuses=inputs.statuses({NO_TARGET_MASK: ~scorable}),
        metrics={
            "giou": MetricTerms(
                iou, count, GIOU_EPSILON if epsilon else 0.0, gate=count
            ),
            "ciou": MetricTerms(
                intersection, union, CIOU_EPSILON if epsilon else 0.0, gate=count
            ),
            "n_acc": MetricTerms(
                (empty & called_empty).astype(np.int64), empty.astype(np.int64)
            ),
            "t_acc": MetricTerms(
                (targeted & ~called_empty).astype(np.int64), targeted.astype(np.int64)
            ),
        },
        legacy=_sum_in_float32(iou, intersection, union, count)
        if legacy_float32 and scorable.any()
        else {},
    )


def _iou(
    intersection: Int64Array, union: Int64Array, *, targeted: BoolArray, epsilon: bool
) -> Float64Array:
    value = (
        intersection / (union + PAIR_EPSILON)
        if epsilon
        else intersection / np.maximum(union, 1)
    )
    return np.where(targeted, value, 0.0)


def _sum_in_float32(
    iou: Float64Array, intersection: Int64Array, union: Int64Array, count: Int64Array
) -> dict[str, float]:
    """The official meters: IoU per mask in float64, pixel counts and the final division in float32."""
    top, bottom = (
        np.cumsum(column, dtype=np.float32)[-1] for column in (intersection, union)
    )
    total = np.float32(iou.sum()) / np.float32(float(count.sum()) + GIOU_EPSILON)
    return {
        "giou": float(total),
        "ciou": float(top / (bottom + np.float32(CIOU_EPSILON))),
    }
