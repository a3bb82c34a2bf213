"""MMR: `validate()` of MMR's train_ds.py (commit 702a7b6).

Rule. The targets of all questions about an image are put in one list, likewise the predicted masks; then LISA's rule
(see `lisa`): k-th with k-th, mean over target masks.

Quirks, all kept:
- A wrong number of masks for one question shifts the pairing of all later questions about the image.
- An image without any predicted mask is skipped: it counts in neither figure, which flatters a silent model. Its
  samples are unscored here.
- Extra predictions are dropped; targets left over score 0 in gIoU and are absent from cIoU.
- The official figures are made with the true answer in the prompt (`Prediction.forced`), which fixes number and order
  of the masks. The rule itself does not ask, and neither does this code.
- An image with predictions but no target at all stops the official code; here it adds nothing.
- Sums run in float32: `legacy_float32` repeats that; the default is exact.

A missing or failed reply counts as no mask. `epsilon=False` leaves the epsilons out.
"""

import numpy as np

from maskwise.protocols.evaluation import Evaluation, Plane
from maskwise.protocols.metrics import Flags, Scores, whole_sums
from maskwise.protocols.pairs import flatten, in_order
from maskwise.protocols.tables import offsets_of
from maskwise.protocols.terms import Terms, count_pairs, finish

RULE = "all questions of an image in one list, k-th mask with k-th target; images without any mask left out"


def score(evaluation: Evaluation, *, legacy_float32: bool = False, epsilon: bool = True) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    plane = evaluation.plane("wanted")
    kept, judged = evaluated(plane)
    verdicts = evaluation.verdicts(
        {
            "no target: the rule has no term for it": plane.index.targets == 0,
            "no mask predicted for the whole image: the rule leaves it out": ~kept,
            "a target of the image has no mask of the type wanted": ~judged,
        }
    )
    return finish(
        "mmr",
        evaluation,
        pair(plane),
        weight=np.where(kept & judged, evaluation.truth.counts, 0),
        verdicts=verdicts,
        epsilon=epsilon,
        legacy_float32=legacy_float32,
    )


def evaluated(plane: Plane) -> tuple[Flags, Flags]:
    """Whether each sample's image has any prediction, and whether all its targets can be judged; bool [samples]."""
    cluster = plane.truth.cluster
    images = plane.truth.clusters
    predicted = whole_sums(cluster, plane.index.preds, images) > 0
    judged = whole_sums(cluster, (~plane.judged).astype(np.int64), images) == 0
    return predicted[cluster], judged[cluster]


def pair(plane: Plane) -> Terms:
    """The scored pairs, image by image in the order images first appear."""
    cluster, index = plane.truth.cluster, plane.index
    images = plane.truth.clusters
    order = np.argsort(cluster, kind="stable")
    preds = offsets_of(whole_sums(cluster, index.preds, images))
    targets = offsets_of(whole_sums(cluster, index.targets, images))
    _, pred, target = in_order(preds, targets)
    pred = flatten(index.pred_offsets, order)[pred]
    target = flatten(index.target_offsets, order)[target]
    judged = evaluated(plane)[1][plane.truth.sample[target]]
    return count_pairs(plane, pred[judged], target[judged])
