"""VisionReasoner: `evaluation_segmentation.py` and `calculate_iou_with_bbox*.py`
(dvlab-research/VisionReasoner, c013132).

Rule. The joined predicted masks of a question against its truth; gIoU is the mean of I
/ U over records, cIoU the summed I over the summed U (0 where that is 0).

Truth: the hub copies count ignored pixels as target.

Quirks of the published code, all kept:
- Two empty masks score 0, so a right "none" is never rewarded.
- An answer without a mask, or one that cannot be parsed, is an empty mask. A question
  without a record is left out.
- Masks are joined until the first of another size than the image.
- `no_object=True` (`calculate_iou_with_bbox_nonobj.py`, used for gRefCOCO): an empty
  truth without any predicted mask scores 1, also if the answer could not be parsed; a
  predicted mask without pixels does not qualify. `n_acc` is the share of these among
  empty truths, 0 if there are none. cIoU is unchanged.

`mask_type`: see `lisa`.
"""

from dataclasses import replace

import numpy as np

from maskwise.arrays import BoolArray
from maskwise.masks import Mask, Masks
from maskwise.protocols.metrics import MetricTerms, Scores
from maskwise.protocols.prediction_columns import MISSING
from maskwise.protocols.question_rule import (
    QuestionAreas,
    QuestionRule,
    measure_questions,
    score_questions,
)
from maskwise.protocols.scoring_input import OfficialMaskType, ScoringInput

RULE = QuestionRule(
    ignored="target", both_empty="zero", wrong_size="empty mask", empty_ciou=0.0
)


def score(
    inputs: ScoringInput,
    *,
    no_object: bool = False,
    mask_type: OfficialMaskType = "predicted",
) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    areas = measure_questions(inputs, RULE.ignored, mask_type)
    for sample in np.flatnonzero(inputs.wrong_size).tolist():
        _join_until_wrong_size(inputs, areas, sample)
    scores = score_questions(
        "visionreasoner",
        inputs,
        RULE,
        mask_type,
        areas=areas,
        options={"no_object": no_object},
    )
    return reward_silence(inputs, scores, areas) if no_object else scores


def reward_silence(
    inputs: ScoringInput, scores: Scores, areas: QuestionAreas
) -> Scores:
    """Score 1 for an empty truth without any predicted mask, and add `n_acc`."""
    giou = scores.metrics["giou"]
    recorded = (inputs.predictions.state != MISSING) & (giou.denominator > 0)
    empty_truth = recorded & (areas.truth == 0)
    silent: BoolArray = empty_truth & (inputs.given.counts == 0)
    value = np.where(silent, 1.0, giou.numerator)
    n_acc = MetricTerms(
        silent.astype(np.int64),
        empty_truth.astype(np.int64),
        empty=0.0,
        gate=empty_truth.astype(np.int64),
    )
    metrics = {
        **scores.metrics,
        "giou": replace(giou, numerator=value),
        "n_acc": n_acc,
    }
    return replace(scores, metrics=metrics)


def _join_until_wrong_size(
    inputs: ScoringInput, areas: QuestionAreas, sample: int
) -> None:
    """Measure the masks of a question before the first one of another size; changes `areas` in place."""
    given = inputs.given
    truth = inputs.ground_truth
    size = (int(truth.image_size[sample, 0]), int(truth.image_size[sample, 1]))
    predicted: list[Mask] = []
    for region in range(given.offsets[sample], given.offsets[sample + 1]):
        column = given.visible if given.visible.present[region] else given.amodal
        mask = column.masks[region]
        if mask.size != size:
            break
        predicted.append(mask)
    targets = [
        truth.visible.masks[target]
        for target in range(truth.offsets[sample], truth.offsets[sample + 1])
    ]
    if truth.ignore.present[sample]:
        targets.append(truth.ignore.masks[sample])
    joined = _join(predicted, size)
    wanted = _join(targets, size)
    areas.intersection[sample] = (joined & wanted).area
    areas.union[sample] = (joined | wanted).area


def _join(masks: list[Mask], size: tuple[int, int]) -> Mask:
    if not masks:
        return Mask.empty(*size)
    return Masks.from_masks(masks).merge([0, len(masks)], size)[0]
