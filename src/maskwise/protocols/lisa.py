"""LISA: `validate()` of LISA's train_ds.py (dvlab-research/LISA, commit 3cb2d43), as used for ReasonSeg and RefCOCO.

Rule. The k-th predicted mask is compared with the k-th target of its question; the longer list is cut. A pair scores
I / (U + 1e-5), plus 1 where the union is empty. gIoU is the mean over target masks (not over images); cIoU is the
summed intersection over the summed union.

Quirks of the published code, all kept:
- Extra predictions are dropped. With fewer masks than targets, the remaining targets score 0 in gIoU and are absent
  from cIoU.
- Ignored pixels take precedence over the target. Pixels where pieces of a target overlap (value 2) belong to neither
  class: predicting them enlarges the union, leaving them out costs nothing.
- Two empty masks score 1. An empty target with a non-empty prediction scores 0, and the prediction enters cIoU.
- Sums run in float32: `legacy_float32` repeats that (images in dataset order); the default is exact.
- Several GPUs pad the last batch with duplicates; that is not repeated here.

The published code always has one mask per question and stops without one. Here:
- No predicted mask counts as one empty mask, so the first target enters the union of cIoU. `no_mask` is the share of
  such questions. Failed and missing predictions are treated alike, but never score: they are compared with the first
  target that has pixels. With the targets (empty, A), no mask scores 0.5, a failed prediction 0.
- A question without targets is one empty target. If all targets of a question are empty, it is a question without
  targets: a prediction without masks is right.

`mask_type="predicted"`: of a prediction that holds both masks, the one of its predicted type is scored (the visible one
if it states none). `"requested"` takes the mask of the requested type, which reveals the right type to the prediction.
`epsilon=False` leaves the epsilons out.
"""

import numpy as np

from maskwise.arrays import BoolArray, Int64Array
from maskwise.protocols.lisa_counts import (
    TwoClassCounts,
    count_pairs,
    count_predictions,
    count_targets,
    finish,
)
from maskwise.protocols.mask_pairs import pair_in_order
from maskwise.protocols.metrics import MetricTerms, Scores, int_sums
from maskwise.protocols.overlaps import Overlaps
from maskwise.protocols.prediction_columns import PREDICTED
from maskwise.protocols.ragged import flatten
from maskwise.protocols.scoring_input import (
    NO_TARGET_MASK,
    OfficialMaskType,
    ScoringInput,
)


def score(
    inputs: ScoringInput,
    *,
    mask_type: OfficialMaskType = "predicted",
    legacy_float32: bool = False,
    epsilon: bool = True,
) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    overlaps = inputs.overlaps(mask_type)
    scorable = overlaps.scorable
    return finish(
        "lisa",
        inputs,
        pair(overlaps),
        weight=np.where(scorable, np.maximum(inputs.ground_truth.counts, 1), 0),
        statuses=inputs.statuses({NO_TARGET_MASK: ~scorable}),
        options={
            "mask_type": mask_type,
            "epsilon": epsilon,
            "legacy_float32": legacy_float32,
        },
        more={
            "no_mask": MetricTerms(
                (scorable & (overlaps.pairs.preds == 0)).astype(np.int64),
                scorable.astype(np.int64),
            )
        },
    )


def pair(overlaps: Overlaps) -> TwoClassCounts:
    """The scored pairs, in dataset order."""
    pairs = overlaps.pairs
    scorable = overlaps.scorable
    sample, pred, target = pair_in_order(pairs.pred_offsets, pairs.target_offsets)
    keep = scorable[sample]
    no_target = (
        scorable & (pairs.targets == 0) & (overlaps.predictions.state == PREDICTED)
    )
    silent = np.flatnonzero(no_target & (pairs.preds == 0))
    zero = np.zeros(len(silent), np.int64)
    image = np.stack([overlaps.counted_pixels[silent], zero], 1)
    counts = TwoClassCounts.concat(
        [
            count_pairs(overlaps, pred[keep], target[keep]),
            count_targets(overlaps, _targets_without_masks(overlaps)),
            count_predictions(
                overlaps, pairs.pred_offsets[:-1][no_target & (pairs.preds > 0)]
            ),
            TwoClassCounts(silent, image, image),
        ]
    )
    return counts.select(np.argsort(counts.sample, kind="stable"))


def _targets_without_masks(overlaps: Overlaps) -> Int64Array:
    """The targets that are compared with an empty mask because nothing was predicted for their question: the first of
    each question, or all of them where none has a pixel.
    """
    pairs = overlaps.pairs
    area = overlaps.target.area
    sample = overlaps.ground_truth.sample
    is_predicted = overlaps.predictions.state == PREDICTED
    missing: BoolArray = overlaps.scorable & (pairs.preds == 0) & (pairs.targets > 0)
    empty = int_sums(sample, area, len(missing)) == 0
    all_empty = flatten(
        pairs.target_offsets, np.flatnonzero(missing & empty & is_predicted)
    )
    first = pairs.target_offsets[:-1][missing & ~empty & is_predicted]
    # A failed prediction would score 1 against an empty target.
    is_asked = (missing & ~is_predicted)[sample] & (area > 0)
    asked = np.flatnonzero(is_asked)
    _, first_places = np.unique(sample[asked], return_index=True)
    return np.sort(np.concatenate([first, all_empty, asked[first_places]]))
