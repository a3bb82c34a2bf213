"""Union per question: all predicted masks of a question against all its targets, as StAR and others score MMR and MUSE.

Rule. IoU of the two unions, 1 where both are empty. gIoU is the mean over questions, cIoU the summed intersection over
the summed union (StAR, `calculate_iou.py`).

Quirks: how many masks there are, and which is which, does not matter; one mask over everything named scores as well as
the right ones. Figures are not comparable with those of `mmr` or `muse`. A missing or failed reply counts as an empty
mask; to a question without target it earns nothing.
"""

import numpy as np

from maskwise.protocols.evaluation import Evaluation
from maskwise.protocols.metrics import Metric, Scores
from maskwise.protocols.tables import ANSWERED

RULE = "union of masks per question against the union of targets, both empty = 1; mean over questions"


def score(evaluation: Evaluation) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    plane = evaluation.plane("wanted")
    judged, merged = plane.judged, plane.merged
    intersection, union = np.where(judged, merged.intersection, 0), np.where(judged, merged.union, 0)
    empty = judged & (union == 0) & (evaluation.replies.state == ANSWERED)
    verdicts = evaluation.verdicts({"a target has no mask of the type wanted": ~judged})
    return Scores(
        protocol="union",
        options={},
        verdicts=verdicts,
        metrics={
            "giou": Metric(
                np.where(empty, 1.0, intersection / np.maximum(union, 1)), judged.astype(np.int64)
            ),
            "ciou": Metric(intersection, union),
        },
    )
