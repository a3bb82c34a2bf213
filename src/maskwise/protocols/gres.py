"""GRES: `ReferEvaluator` of ReLA (commit 3ca9551), the rule of gRefCOCO.

Rule. Per question the union of the predicted masks meets the union of the targets. With no target: IoU 1 if the reply
says so, else 0. gIoU is the mean over all questions, cIoU the summed intersection over the summed union, P@t the share
of questions with targets whose IoU reaches t. N-acc: share of no-target questions recognised; T-acc: share of questions
with targets not called empty.

Quirks, all kept:
- "Says so" is the flag `no_target`, never an empty mask; the masks of a reply that says so are not cleared: to a
  question with targets its intersection counts as 0, but its union is added. A recognised no-target question adds 0.
- A question with targets whose union is 0 scores 0, not 1.
- In a group without a no-target question both N-acc and T-acc are 0 (`n_acc`, `t_acc`); `no_target_accuracy` and
  `target_accuracy` are the plain definitions.
- Official figures are percentages, except N-acc and T-acc, and are made at 480 x 480; here all are fractions, at the
  size of the image.
- gRefCOCO figures are given per `source`: see that slice.

A missing or failed reply counts as an empty mask without the flag.
"""

import numpy as np

from maskwise.protocols.metrics import Metric, Scores
from maskwise.protocols.scoring_input import ScoringInput

DESCRIPTION = (
    "union of masks per question; no-target questions are scorable by the reply's flag; mean over questions"
)
THRESHOLDS = (0.7, 0.8, 0.9)


def score(inputs: ScoringInput) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    overlaps = inputs.overlaps("requested")
    merged, scorable = overlaps.merged, overlaps.scorable
    empty, said_empty = inputs.ground_truth.counts == 0, inputs.predictions.no_target
    hit = scorable & ~empty & ~said_empty
    intersection = np.where(hit, merged.intersection, 0)
    union = np.where(scorable & ~(empty & said_empty), merged.union, 0)
    iou = np.where(empty & said_empty, 1.0, intersection / np.maximum(union, 1))
    targeted, no_target = scorable & ~empty, empty.astype(np.int64)
    found = (empty & said_empty).astype(np.int64)
    statuses = inputs.statuses({"a target has no mask of the type wanted": ~scorable})
    precision = {
        f"p@{t}": Metric((targeted & (iou >= t)).astype(np.int64), targeted.astype(np.int64))
        for t in THRESHOLDS
    }
    return Scores(
        protocol="gres",
        options={},
        statuses=statuses,
        metrics={
            "giou": Metric(iou, scorable.astype(np.int64)),
            "ciou": Metric(intersection, union),
            **precision,
            "n_acc": Metric(found, no_target, empty=0.0, gate=no_target),
            "t_acc": Metric(hit.astype(np.int64), targeted.astype(np.int64), empty=0.0, gate=no_target),
            "no_target_accuracy": Metric(found, no_target),
            "target_accuracy": Metric(hit.astype(np.int64), targeted.astype(np.int64)),
        },
    )
