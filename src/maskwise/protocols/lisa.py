"""LISA: `validate()` of LISA's train_ds.py (dvlab-research/LISA, commit 3cb2d43), as used for ReasonSeg and RefCOCO.

Rule. The k-th predicted mask meets the k-th target of its question; the longer list is cut. A pair scores
I / (U + 1e-5), plus 1 where the union is empty. gIoU is the mean over target masks (not over images); cIoU the summed
intersection over the summed union.

Quirks, all kept:
- Extra predictions are dropped. A target without a prediction scores 0 in gIoU, but is absent from cIoU.
- Ignored pixels win over the target; pixels where pieces of a target overlap (value 2) are neither class: predicting
  them enlarges the union, leaving them out costs nothing.
- Both empty scores 1. An empty target that is missed scores 0, and what was predicted there enters cIoU.
- Sums run in float32: `legacy_float32` repeats that (images in dataset order); the default is exact.
- Several GPUs pad the last batch with duplicates; that is not repeated here.

The code always has one mask a question. Here a question without targets is one empty mask, and a reply without regions
to it one empty prediction. A missing or failed reply leaves its targets unpaired, as fewer masks would.
`epsilon=False` leaves the epsilons out.
"""

import numpy as np

from maskwise.protocols.mask_pairs import pair_in_order
from maskwise.protocols.metrics import Scores
from maskwise.protocols.overlaps import Overlaps
from maskwise.protocols.prediction_columns import PREDICTED
from maskwise.protocols.scoring_input import ScoringInput
from maskwise.protocols.two_class_counts import TwoClassCounts, count_pairs, count_predictions, finish

DESCRIPTION = "k-th mask with k-th target of the question, mean over target masks; extra masks are free"


def score(inputs: ScoringInput, *, legacy_float32: bool = False, epsilon: bool = True) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    overlaps = inputs.overlaps("requested")
    weight = np.where(overlaps.scorable, np.maximum(inputs.ground_truth.counts, 1), 0)
    return finish(
        "lisa",
        inputs,
        pair(overlaps),
        weight=weight,
        statuses=inputs.statuses({"a target has no mask of the type wanted": ~overlaps.scorable}),
        epsilon=epsilon,
        legacy_float32=legacy_float32,
    )


def pair(overlaps: Overlaps) -> TwoClassCounts:
    """The scored pairs, in dataset order."""
    index = overlaps.index
    sample, pred, target = pair_in_order(index.pred_offsets, index.target_offsets)
    scorable = overlaps.scorable[sample]
    paired = count_pairs(overlaps, pred[scorable], target[scorable])
    answered = (index.targets == 0) & (overlaps.predictions.state == PREDICTED)
    extra = count_predictions(overlaps, index.pred_offsets[:-1][answered & (index.preds > 0)])
    silent = np.flatnonzero(answered & (index.preds == 0))
    nothing = np.zeros(len(silent), np.int64)
    frame = np.stack([overlaps.counted_pixels[silent], nothing], 1)
    pair_counts = TwoClassCounts.concat([paired, extra, TwoClassCounts(silent, frame, frame)])
    return pair_counts.select(np.argsort(pair_counts.sample, kind="stable"))
