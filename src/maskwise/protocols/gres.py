"""GRES: `ReferEvaluator` of ReLA (commit 3ca9551), the rule of gRefCOCO.

Rule. Per question the union of the predicted masks is compared with the union of the targets. Without targets: IoU 1 if
the prediction says so, else 0. gIoU is the mean over all questions, cIoU the summed intersection over the summed union,
P@t the share of questions with targets whose IoU reaches t. N-acc: share of no-target questions recognised; T-acc:
share of questions with targets not called empty.

Quirks of the published code, all kept:
- "Says so" is the flag `no_target`, never an empty mask. The masks of such a prediction are not cleared: for a question
  with targets its intersection counts as 0, but its union is added. A recognised no-target question adds 0.
- A no-target question is one without targets in the annotation, never one with an empty target mask. A question with
  targets whose union is 0 scores 0, not 1.
- In a group without a no-target question both N-acc and T-acc are 0: these are `n_acc` and `t_acc`. The metrics
  `no_target_accuracy` and `target_accuracy` are the plain definitions, undefined where there is nothing to average.
- Official results are percentages, except N-acc and T-acc, and are computed at 480 x 480; here all are fractions, at
  the size of the image.
- gRefCOCO results are given per `source`: see that slice.

A missing or failed prediction counts as an empty mask without the flag. `mask_type`: see `lisa`.
"""

import numpy as np

from maskwise.protocols.metrics import MetricTerms, Scores
from maskwise.protocols.scoring_input import (
    NO_TARGET_MASK,
    OfficialMaskType,
    ScoringInput,
)

THRESHOLDS = (0.7, 0.8, 0.9)


def score(inputs: ScoringInput, *, mask_type: OfficialMaskType = "predicted") -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    overlaps = inputs.overlaps(mask_type)
    merged = overlaps.merged
    scorable = overlaps.scorable
    empty = inputs.ground_truth.counts == 0
    called_empty = inputs.predictions.no_target
    hit = scorable & ~empty & ~called_empty
    intersection = np.where(hit, merged.intersection, 0)
    union = np.where(scorable & ~(empty & called_empty), merged.union, 0)
    iou = np.where(empty & called_empty, 1.0, intersection / np.maximum(union, 1))
    targeted = (scorable & ~empty).astype(np.int64)
    no_target = empty.astype(np.int64)
    rightly_empty = (empty & called_empty).astype(np.int64)
    kept = hit.astype(np.int64)
    precision = {
        f"p@{t}": MetricTerms(
            (scorable & ~empty & (iou >= t)).astype(np.int64), targeted
        )
        for t in THRESHOLDS
    }
    return Scores(
        protocol="gres",
        options={"mask_type": mask_type},
        statuses=inputs.statuses({NO_TARGET_MASK: ~scorable}),
        metrics={
            "giou": MetricTerms(iou, scorable.astype(np.int64)),
            "ciou": MetricTerms(intersection, union),
            **precision,
            "n_acc": MetricTerms(rightly_empty, no_target, empty=0.0, gate=no_target),
            "t_acc": MetricTerms(kept, targeted, empty=0.0, gate=no_target),
            "no_target_accuracy": MetricTerms(rightly_empty, no_target),
            "target_accuracy": MetricTerms(kept, targeted),
        },
    )
