"""MUSE: `ar_validate()` and `match_pred()` of PixelLM (commit ebf0792).

Rule. Per question min(n, m) predictions and targets are matched; a matched pair scores as in LISA, a target left over
against an empty prediction, a prediction left over against an empty target. Per image the scores of all its questions
are added and divided by max(predictions, targets) of the whole image, which is also its weight. cIoU adds up all.

Quirks:
- The official matching costs (cross entropy plus Dice on 12,544 random points) differ from run to run. Here pairs
  maximise the total IoU, which is reproducible; `pairs` injects another matching.
- The divisor is not the sum over questions of max(n, m), so it can be smaller than the number of scored pairs.
- Official predictions left over are never thresholded: only logits in [0.5, 1] count as foreground, so a confident
  extra mask has an empty union and scores 1. `raw_logits=True` repeats that and needs the counts of logits
  (`Replies.logits`); the default thresholds all masks alike.
- Pixels where pieces of a target overlap (value 2) are neither class, as in LISA.
- An image with neither predictions nor targets stops the official code; here it adds nothing.
- Sums run in float32: `legacy_float32` repeats that; the default is exact.

A missing or failed reply counts as no mask. A sample's row carries its own pairs, and the share of its image's
divisor that its pairs have, so a row may exceed 1. `epsilon=False` leaves the epsilons out.
"""

import numpy as np

from maskwise.errors import ProtocolError
from maskwise.protocols.evaluation import Evaluation, Plane
from maskwise.protocols.matching import match
from maskwise.protocols.metrics import Flags, Floats, Int64s, Scores, sums, whole_sums
from maskwise.protocols.pairs import left_over
from maskwise.protocols.terms import (
    FOREGROUND,
    Terms,
    count_pairs,
    count_predictions,
    count_targets,
    finish,
)

RULE = (
    "matched per question, left-over masks and targets count, divided by the larger count of the whole image"
)


def score(
    evaluation: Evaluation,
    *,
    raw_logits: bool = False,
    pairs: Int64s | None = None,
    legacy_float32: bool = False,
    epsilon: bool = True,
) -> Scores:
    """Score a whole dataset; see the module's text for the rule. pairs: int64 [k, 2], predicted region and target of
    each matched pair, by position among all.
    """
    plane = evaluation.plane("wanted")
    judged = judged_images(plane)
    terms = pair(plane, raw_logits=raw_logits, pairs=pairs)
    return finish(
        "muse",
        evaluation,
        terms,
        weight=share_divisor(plane, terms),
        verdicts=evaluation.verdicts(
            {
                "no target and no prediction: the rule has no term for it": (
                    (plane.index.preds == 0) & (plane.index.targets == 0)
                ),
                "a target of the image has no mask of the type wanted": ~judged,
            }
        ),
        epsilon=epsilon,
        legacy_float32=legacy_float32,
    )


def judged_images(plane: Plane) -> Flags:
    """Whether all targets of each sample's image have a mask, bool [samples]."""
    cluster = plane.truth.cluster
    judged: Flags = whole_sums(cluster, (~plane.judged).astype(np.int64), plane.truth.clusters) == 0
    return judged[cluster]


def pair(plane: Plane, *, raw_logits: bool = False, pairs: Int64s | None = None) -> Terms:
    """The scored pairs, question by question: matched ones by prediction, targets left over, predictions left over."""
    pred, target = (pairs[:, 0], pairs[:, 1]) if pairs is not None else match_by_iou(plane)
    alone_target, alone_pred = (
        left_over(len(plane.target.area), target),
        left_over(len(plane.pred.area), pred),
    )
    extra = count_raw_logits(plane, alone_pred) if raw_logits else count_predictions(plane, alone_pred)
    terms = Terms.concat([count_pairs(plane, pred, target), count_targets(plane, alone_target), extra])
    order = np.argsort(terms.sample, kind="stable")
    return terms.select(order[judged_images(plane)[terms.sample[order]]])


def match_by_iou(plane: Plane) -> tuple[Int64s, Int64s]:
    """The matching with the largest total IoU of the matched-pair rule (0 / 0 = 1), by prediction."""
    index = plane.index
    if plane.overlap[0].any():
        terms = count_pairs(plane, index.pred, index.target)
        matched = match(index, terms.iou(epsilon=False)[:, FOREGROUND])
    else:
        matched = plane.matched
    return index.pred[matched], index.target[matched]


def count_raw_logits(plane: Plane, pred: Int64s) -> Terms:
    """Predictions against empty planes as the official code counts them: by raw logits in the bins of [0, 1]."""
    logits = plane.replies.logits
    if logits is None:
        raise ProtocolError(
            "raw_logits needs predictions with logits; these are masks, score them without it"
        )
    zero, low, high = logits[pred].T
    sample = plane.replies.sample[pred]
    frame = plane.frame[sample]
    return Terms(sample, np.stack([zero, np.zeros_like(zero)], 1), np.stack([low + frame - zero, high], 1))


def share_divisor(plane: Plane, terms: Terms) -> Floats:
    """Each sample's share of its image's divisor, by its number of scored pairs: float64 [samples]."""
    cluster, images = plane.truth.cluster, plane.truth.clusters
    scored = np.bincount(terms.sample, minlength=len(cluster))
    divisor = np.maximum(
        whole_sums(cluster, plane.index.preds, images), whole_sums(cluster, plane.index.targets, images)
    )
    of_image = np.maximum(sums(cluster, scored, images), 1.0)
    return scored * (divisor / of_image)[cluster]
