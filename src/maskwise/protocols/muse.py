"""MUSE: `ar_validate()` and `match_pred()` of PixelLM (commit ebf0792).

Rule. Per question min(n, m) predictions and targets are matched. A matched pair scores as in LISA, a remaining target
against an empty prediction, a remaining prediction against an empty target. Per image the scores of all its questions
are added and divided by max(predictions, targets) of the whole image, which is also its weight. cIoU sums all pairs.

Quirks:
- The official matching cost (cross entropy plus Dice on 12,544 random points) differs from run to run. Here pairs
  maximise the total IoU, which is reproducible; what does not overlap is paired in order. `pairs` injects another
  matching.
- The divisor is not the sum over questions of max(n, m), so it can be smaller than the number of scored pairs.
- Official remaining predictions are never thresholded: only logits in [0.5, 1] count as foreground, so a confident
  extra mask has an empty union and scores 1. `raw_logits=True` repeats that and needs the counts of logits
  (`PredictionColumns.logits`); the default thresholds all masks alike.
- An empty extra mask has an empty union with its empty target and scores 1, so a model wins by appending empty masks:
  with one target and a wrong mask, gIoU is 0; with nine empty masks more it is 0.9. By default such masks count as
  absent, in the pairs and in the divisor. `empty_extras="official"` counts them as the published code does. Scores say
  how many there were.
- Pixels where pieces of a target overlap (value 2) belong to neither class, as in LISA.
- An image with neither predictions nor targets stops the official code; here it adds nothing, and its samples are
  excluded.
- Sums run in float32: `legacy_float32` repeats that; the default is exact.

A missing or failed prediction counts as no mask. A sample's row carries its own pairs and its share of its image's
divisor, so a row may exceed 1. `mask_type` and `epsilon`: see `lisa`.
"""

from dataclasses import replace
from typing import Literal

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.errors import ProtocolError
from maskwise.protocols.lisa_counts import (
    FOREGROUND,
    TwoClassCounts,
    count_pairs,
    count_predictions,
    count_targets,
    finish,
)
from maskwise.protocols.mask_pairs import unpaired
from maskwise.protocols.matching import match, pair_remaining
from maskwise.protocols.metrics import CountedNotice, Scores, int_sums, sums
from maskwise.protocols.overlaps import Overlaps
from maskwise.protocols.scoring_input import OfficialMaskType, ScoringInput

EmptyExtras = Literal["absent", "official"]


def score(
    inputs: ScoringInput,
    *,
    mask_type: OfficialMaskType = "predicted",
    empty_extras: EmptyExtras = "absent",
    raw_logits: bool = False,
    pairs: Int64Array | None = None,
    legacy_float32: bool = False,
    epsilon: bool = True,
) -> Scores:
    """Score a whole dataset; see the module's text for the rule. pairs: int64 [k, 2], predicted region and target of
    each matched pair, by position among all.
    """
    overlaps = inputs.overlaps(mask_type)
    matched = np.stack(match_by_iou(overlaps), 1) if pairs is None else pairs
    is_empty_extra = find_empty_extras(overlaps, matched[:, 0])
    absent = is_empty_extra
    if empty_extras == "official":
        absent = np.zeros_like(is_empty_extra)
    counts = pair(overlaps, raw_logits=raw_logits, pairs=matched, absent=absent)
    kept_preds = np.bincount(
        overlaps.predictions.sample[~absent], minlength=len(inputs)
    )
    scores = finish(
        "muse",
        inputs,
        counts,
        weight=share_divisor(overlaps, counts, kept_preds),
        statuses=inputs.statuses(
            {
                "no target and no prediction: the protocol has no term for it": (
                    (kept_preds == 0) & (overlaps.pairs.targets == 0)
                ),
                "a target of the image has no mask of the requested type": ~scorable_images(
                    overlaps
                ),
            }
        ),
        options={
            "mask_type": mask_type,
            "empty_extras": empty_extras,
            "epsilon": epsilon,
            "legacy_float32": legacy_float32,
        },
    )
    extras = _notice(int(is_empty_extra.sum()), empty_extras)
    return replace(scores, counted_notices=(extras,))


def find_empty_extras(overlaps: Overlaps, matched_preds: Int64Array) -> BoolArray:
    """Whether each predicted mask has no pixels and is matched with no target, bool [regions]."""
    is_extra = np.ones(len(overlaps.pred.area), bool)
    is_extra[matched_preds] = False
    is_empty_extra: BoolArray = is_extra & (overlaps.pred.area == 0)
    return is_empty_extra


def _notice(extras: int, empty_extras: EmptyExtras) -> CountedNotice:
    """What a reader has to know about empty extra masks, if there are any."""
    rest = "beyond the targets count as absent; PixelLM's code scores each 1 (option empty_extras=official)."
    if empty_extras == "official":
        rest = "beyond the targets score 1 each, as in PixelLM's code: every further one raises gIoU."
    return CountedNotice(extras, "empty mask", rest)


def scorable_images(overlaps: Overlaps) -> BoolArray:
    """Whether all targets of each sample's image have a mask, bool [samples]."""
    cluster = overlaps.ground_truth.cluster
    images = overlaps.ground_truth.cluster_count
    scorable: BoolArray = (
        int_sums(cluster, (~overlaps.scorable).astype(np.int64), images) == 0
    )
    return scorable[cluster]


def pair(
    overlaps: Overlaps,
    *,
    raw_logits: bool = False,
    pairs: Int64Array | None = None,
    absent: BoolArray | None = None,
) -> TwoClassCounts:
    """The scored pairs, question by question: matched by prediction, remaining targets, remaining predictions.

    pairs: as for `score`; absent: bool [regions], remaining predictions that do not count.
    """
    pred, target = (
        (pairs[:, 0], pairs[:, 1]) if pairs is not None else match_by_iou(overlaps)
    )
    alone_target = unpaired(len(overlaps.target.area), target)
    alone_pred = unpaired(len(overlaps.pred.area), pred)
    if absent is not None:
        alone_pred = alone_pred[~absent[alone_pred]]
    extra = count_raw_logits if raw_logits else count_predictions
    counts = TwoClassCounts.concat(
        [
            count_pairs(overlaps, pred, target),
            count_targets(overlaps, alone_target),
            extra(overlaps, alone_pred),
        ]
    )
    order = np.argsort(counts.sample, kind="stable")
    return counts.select(order[scorable_images(overlaps)[counts.sample[order]]])


def match_by_iou(overlaps: Overlaps) -> tuple[Int64Array, Int64Array]:
    """The matching with the largest total IoU of the matched-pair rule (0 / 0 = 1), sorted by prediction."""
    pairs = overlaps.pairs
    area = overlaps.target.area - overlaps.piece_overlap.area
    if overlaps.piece_overlap.present.any():
        counts = count_pairs(overlaps, pairs.pred, pairs.target)
        matched = match(pairs, counts.iou(epsilon=False)[:, FOREGROUND])
    else:
        matched = overlaps.matched
    empty = (
        overlaps.pred.known & (overlaps.pred.area == 0),
        overlaps.target.known & (area == 0),
    )
    return pair_remaining(
        pairs, (pairs.pred[matched], pairs.target[matched]), empty=empty
    )


def count_raw_logits(overlaps: Overlaps, pred: Int64Array) -> TwoClassCounts:
    """Predictions against empty targets as the official code counts them: raw logits in the bins of [0, 1]."""
    logits = overlaps.predictions.logits
    if logits is None:
        raise ProtocolError(
            "raw_logits needs predictions with logits; these are masks, score them without it"
        )
    zero, low, high = logits[pred].T
    sample = overlaps.predictions.sample[pred]
    pixels = overlaps.counted_pixels[sample]
    return TwoClassCounts(
        sample,
        np.stack([zero, np.zeros_like(zero)], 1),
        np.stack([low + pixels - zero, high], 1),
    )


def share_divisor(
    overlaps: Overlaps, counts: TwoClassCounts, preds: Int64Array
) -> Float64Array:
    """Each sample's share of its image's divisor, by its number of scored pairs: float64 [samples].

    preds: int64 [samples], predicted masks that count.
    """
    cluster = overlaps.ground_truth.cluster
    images = overlaps.ground_truth.cluster_count
    scored = np.bincount(counts.sample, minlength=len(cluster))
    divisor = np.maximum(
        int_sums(cluster, preds, images),
        int_sums(cluster, overlaps.pairs.targets, images),
    )
    of_image = np.maximum(sums(cluster, scored, images), 1.0)
    return scored * (divisor / of_image)[cluster]
