"""Union per question: all predicted masks of a question against all its targets, as StAR and others score MMR and MUSE.

Rule. IoU of the two unions, 1 where both are empty. gIoU is the mean over questions, cIoU the summed intersection over
the summed union (StAR, `calculate_iou.py`).

Quirks: the number of masks does not matter, nor which mask belongs to which target; one mask over all targets scores as
well as the right ones. Results are not comparable with those of `mmr` or `muse`. A missing or failed prediction counts
as an empty mask; on a question without targets it scores 0. `mask_type`: see `lisa`.
"""

import numpy as np

from maskwise.protocols.metrics import MetricTerms, Scores
from maskwise.protocols.prediction_columns import PREDICTED
from maskwise.protocols.scoring_input import (
    NO_TARGET_MASK,
    OfficialMaskType,
    ScoringInput,
)


def score(inputs: ScoringInput, *, mask_type: OfficialMaskType = "predicted") -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    overlaps = inputs.overlaps(mask_type)
    scorable = overlaps.scorable
    merged = overlaps.merged
    intersection = np.where(scorable, merged.intersection, 0)
    union = np.where(scorable, merged.union, 0)
    empty = scorable & (union == 0) & (inputs.predictions.state == PREDICTED)
    iou = np.where(empty, 1.0, intersection / np.maximum(union, 1))
    return Scores(
        protocol="union",
        options={"mask_type": mask_type},
        statuses=inputs.statuses({NO_TARGET_MASK: ~scorable}),
        metrics={
            "giou": MetricTerms(iou, scorable.astype(np.int64)),
            "ciou": MetricTerms(intersection, union),
        },
    )
