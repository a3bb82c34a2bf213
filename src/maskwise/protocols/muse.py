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
  (`PredictionColumns.logits`); the default thresholds all masks alike.
- Pixels where pieces of a target overlap (value 2) are neither class, as in LISA.
- An image with neither predictions nor targets stops the official code; here it adds nothing.
- Sums run in float32: `legacy_float32` repeats that; the default is exact.

A missing or failed reply counts as no mask. A sample's row carries its own pairs, and the share of its image's
divisor that its pairs have, so a row may exceed 1. `epsilon=False` leaves the epsilons out.
"""

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.errors import ProtocolError
from maskwise.protocols.mask_pairs import unpaired
from maskwise.protocols.matching import match
from maskwise.protocols.metrics import Scores, int_sums, sums
from maskwise.protocols.overlaps import Overlaps
from maskwise.protocols.scoring_input import ScoringInput
from maskwise.protocols.two_class_counts import (
    FOREGROUND,
    TwoClassCounts,
    count_pairs,
    count_predictions,
    count_targets,
    finish,
)

DESCRIPTION = (
    "matched per question, left-over masks and targets count, divided by the larger count of the whole image"
)


def score(
    inputs: ScoringInput,
    *,
    raw_logits: bool = False,
    pairs: Int64Array | None = None,
    legacy_float32: bool = False,
    epsilon: bool = True,
) -> Scores:
    """Score a whole dataset; see the module's text for the rule. pairs: int64 [k, 2], predicted region and target of
    each matched pair, by position among all.
    """
    overlaps = inputs.overlaps("requested")
    scorable = scorable_images(overlaps)
    pair_counts = pair(overlaps, raw_logits=raw_logits, pairs=pairs)
    return finish(
        "muse",
        inputs,
        pair_counts,
        weight=share_divisor(overlaps, pair_counts),
        statuses=inputs.statuses(
            {
                "no target and no prediction: the rule has no term for it": (
                    (overlaps.index.preds == 0) & (overlaps.index.targets == 0)
                ),
                "a target of the image has no mask of the type wanted": ~scorable,
            }
        ),
        epsilon=epsilon,
        legacy_float32=legacy_float32,
    )


def scorable_images(overlaps: Overlaps) -> BoolArray:
    """Whether all targets of each sample's image have a mask, bool [samples]."""
    cluster = overlaps.ground_truth.cluster
    scorable: BoolArray = (
        int_sums(cluster, (~overlaps.scorable).astype(np.int64), overlaps.ground_truth.cluster_count) == 0
    )
    return scorable[cluster]


def pair(overlaps: Overlaps, *, raw_logits: bool = False, pairs: Int64Array | None = None) -> TwoClassCounts:
    """The scored pairs, question by question: matched ones by prediction, targets left over, predictions left over."""
    pred, target = (pairs[:, 0], pairs[:, 1]) if pairs is not None else match_by_iou(overlaps)
    alone_target, alone_pred = (
        unpaired(len(overlaps.target.area), target),
        unpaired(len(overlaps.pred.area), pred),
    )
    extra = count_raw_logits(overlaps, alone_pred) if raw_logits else count_predictions(overlaps, alone_pred)
    pair_counts = TwoClassCounts.concat(
        [count_pairs(overlaps, pred, target), count_targets(overlaps, alone_target), extra]
    )
    order = np.argsort(pair_counts.sample, kind="stable")
    return pair_counts.select(order[scorable_images(overlaps)[pair_counts.sample[order]]])


def match_by_iou(overlaps: Overlaps) -> tuple[Int64Array, Int64Array]:
    """The matching with the largest total IoU of the matched-pair rule (0 / 0 = 1), by prediction."""
    index = overlaps.index
    if overlaps.piece_overlap.present.any():
        pair_counts = count_pairs(overlaps, index.pred, index.target)
        matched = match(index, pair_counts.iou(epsilon=False)[:, FOREGROUND])
    else:
        matched = overlaps.matched
    return index.pred[matched], index.target[matched]


def count_raw_logits(overlaps: Overlaps, pred: Int64Array) -> TwoClassCounts:
    """Predictions against empty planes as the official code counts them: by raw logits in the bins of [0, 1]."""
    logits = overlaps.predictions.logits
    if logits is None:
        raise ProtocolError(
            "raw_logits needs predictions with logits; these are masks, score them without it"
        )
    zero, low, high = logits[pred].T
    sample = overlaps.predictions.sample[pred]
    frame = overlaps.counted_pixels[sample]
    return TwoClassCounts(
        sample, np.stack([zero, np.zeros_like(zero)], 1), np.stack([low + frame - zero, high], 1)
    )


def share_divisor(overlaps: Overlaps, pair_counts: TwoClassCounts) -> Float64Array:
    """Each sample's share of its image's divisor, by its number of scored pairs: float64 [samples]."""
    cluster, images = overlaps.ground_truth.cluster, overlaps.ground_truth.cluster_count
    scored = np.bincount(pair_counts.sample, minlength=len(cluster))
    divisor = np.maximum(
        int_sums(cluster, overlaps.index.preds, images), int_sums(cluster, overlaps.index.targets, images)
    )
    of_image = np.maximum(sums(cluster, scored, images), 1.0)
    return scored * (divisor / of_image)[cluster]
