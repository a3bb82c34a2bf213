"""MMR: `validate()` of MMR's train_ds.py (commit 702a7b6).

Rule. The targets of all questions about an image are put in one list, likewise the predicted masks; then LISA's rule
(see `lisa`): k-th with k-th, mean over target masks.

Quirks of the published code, all kept:
- A wrong number of masks for one question shifts the pairing of all later questions about the image.
- An image without any predicted mask is skipped: it counts in neither metric, which favours a model that returns
  nothing. Its samples are excluded here.
- Extra predictions are dropped; remaining targets score 0 in gIoU and are absent from cIoU.
- The official results are made with the true answer in the prompt (`Prediction.forced`), which fixes number and order
  of the masks. The rule itself does not ask, and neither does this code.
- An image with predictions but no target at all stops the official code; here it adds nothing.
- Sums run in float32: `legacy_float32` repeats that; the default is exact.

A missing or failed prediction counts as no mask. A question without targets has no term: the rule cannot express it.
`mask_type` and `epsilon`: see `lisa`.
"""

import numpy as np

from maskwise.arrays import BoolArray
from maskwise.protocols.lisa_counts import TwoClassCounts, count_pairs, finish
from maskwise.protocols.mask_pairs import pair_in_order
from maskwise.protocols.metrics import Scores, int_sums
from maskwise.protocols.overlaps import Overlaps
from maskwise.protocols.ragged import counts_to_offsets, flatten
from maskwise.protocols.scoring_input import NO_TARGET, OfficialMaskType, ScoringInput


def score(
    inputs: ScoringInput,
    *,
    mask_type: OfficialMaskType = "predicted",
    legacy_float32: bool = False,
    epsilon: bool = True,
) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    overlaps = inputs.overlaps(mask_type)
    kept, scorable = evaluated(overlaps)
    statuses = inputs.statuses(
        {
            NO_TARGET: overlaps.pairs.targets == 0,
            "no mask predicted for the whole image: the protocol leaves it out": ~kept,
            "a target of the image has no mask of the requested type": ~scorable,
        }
    )
    return finish(
        "mmr",
        inputs,
        pair(overlaps),
        weight=np.where(kept & scorable, inputs.ground_truth.counts, 0),
        statuses=statuses,
        options={
            "mask_type": mask_type,
            "epsilon": epsilon,
            "legacy_float32": legacy_float32,
        },
    )


def evaluated(overlaps: Overlaps) -> tuple[BoolArray, BoolArray]:
    """Whether each sample's image has any prediction, and whether all its targets have a mask; bool [samples]."""
    cluster = overlaps.ground_truth.cluster
    images = overlaps.ground_truth.cluster_count
    predicted = int_sums(cluster, overlaps.pairs.preds, images) > 0
    scorable = int_sums(cluster, (~overlaps.scorable).astype(np.int64), images) == 0
    return predicted[cluster], scorable[cluster]


def pair(overlaps: Overlaps) -> TwoClassCounts:
    """The scored pairs, image by image in the order images first appear."""
    cluster = overlaps.ground_truth.cluster
    pairs = overlaps.pairs
    images = overlaps.ground_truth.cluster_count
    order = np.argsort(cluster, kind="stable")
    preds = counts_to_offsets(int_sums(cluster, pairs.preds, images))
    targets = counts_to_offsets(int_sums(cluster, pairs.targets, images))
    _, pred, target = pair_in_order(preds, targets)
    pred = flatten(pairs.pred_offsets, order)[pred]
    target = flatten(pairs.target_offsets, order)[target]
    scorable = evaluated(overlaps)[1][overlaps.ground_truth.sample[target]]
    return count_pairs(overlaps, pred[scorable], target[scorable])
