"""Union per question: all predicted masks of a question against all its targets, as StAR and others score MMR and MUSE.

Rule. IoU of the two unions, 1 where both are empty. gIoU is the mean over questions, cIoU the summed intersection over
the summed union (StAR, `calculate_iou.py`).

Quirks: how many masks there are, and which is which, does not matter; one mask over everything named scores as well as
the right ones. Figures are not comparable with those of `mmr` or `muse`. A missing or failed reply counts as an empty
mask; to a question without target it earns nothing.
"""

import numpy as np

from maskwise.protocols.metrics import Metric, Scores
from maskwise.protocols.prediction_columns import PREDICTED
from maskwise.protocols.scoring_input import ScoringInput

DESCRIPTION = "union of masks per question against the union of targets, both empty = 1; mean over questions"


def score(inputs: ScoringInput) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    overlaps = inputs.overlaps("requested")
    scorable, merged = overlaps.scorable, overlaps.merged
    intersection, union = np.where(scorable, merged.intersection, 0), np.where(scorable, merged.union, 0)
    empty = scorable & (union == 0) & (inputs.predictions.state == PREDICTED)
    statuses = inputs.statuses({"a target has no mask of the type wanted": ~scorable})
    return Scores(
        protocol="union",
        options={},
        statuses=statuses,
        metrics={
            "giou": Metric(
                np.where(empty, 1.0, intersection / np.maximum(union, 1)), scorable.astype(np.int64)
            ),
            "ciou": Metric(intersection, union),
        },
    )
