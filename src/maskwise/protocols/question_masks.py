"""All masks of a question as one, of the requested type: those of a prediction, and those of the targets."""

from dataclasses import dataclass

import numpy as np

from maskwise.arrays import BoolArray
from maskwise.masks import Masks
from maskwise.protocols.ground_truth import GroundTruth
from maskwise.protocols.prediction_columns import PREDICTED, PredictionColumns
from maskwise.protocols.scoring_input import ScoringInput


@dataclass(frozen=True)
class QuestionMasks:
    """One mask per question: of the prediction, empty where nothing was drawn, and of the targets.

    answered: bool [samples], False for predictions that failed or are missing.
    """

    predicted: Masks
    targets: Masks
    answered: BoolArray


def merge_question_masks(
    truth: GroundTruth, predictions: PredictionColumns
) -> QuestionMasks:
    """Merge the masks of each question. Regions of a prediction that says "no target" are left out."""
    rows = np.arange(len(truth))
    drawn = ~predictions.no_target[predictions.sample]
    inputs = ScoringInput(truth, predictions.keep_regions(drawn))
    overlaps = inputs.overlaps("requested")
    return QuestionMasks(
        predicted=overlaps.pred.unions(rows, truth.image_size),
        targets=overlaps.target.unions(rows, truth.image_size),
        answered=inputs.predictions.state == PREDICTED,
    )
