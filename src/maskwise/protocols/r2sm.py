"""R2SM: one mask per question, of the type its words request (arXiv 2506.01795). No code was published; this is our
reading.

What is known: a question that asks for the whole shape of a partly hidden object requests the amodal mask, any other
the visible one; the prediction is one mask; gIoU and cIoU are reported. What we chose, and the other readings as
options:

- `mask_type="predicted"`: the mask of the type the prediction chose (stated, or the only one it holds); one that holds
  both and states none is scored by its visible mask, R2SM's default. `"requested"`: where a prediction holds both, the
  mask of the requested type is taken, which reveals the right type.
- `matching="union"`: the task has one mask, so several regions count as their union, and so do several targets.
  `"iou"` and `"order"`: pairs as in `aura`, each target with pixels one term, unmatched targets 0, extra masks free.
- `answers="any"`: `"free"` or `"forced"` refuses the others.

gIoU is the mean IoU over questions (or over targets, when matched), 1 where both masks are empty, as in LISA; cIoU is
cumulative. `mask_type_accuracy` is the share of questions with targets whose prediction chose the requested type; one
that holds both masks and states none has chosen none. It does not enter gIoU and cIoU: an object that is not occluded
has two equal masks, so a wrong type costs nothing there. `giou_visible`, `mask_type_accuracy_amodal` and so on are the
same over the questions that request that type. A question that requests both has no term. A missing or failed
prediction counts as an empty mask and never scores.
"""

from typing import Literal

import numpy as np

from maskwise.arrays import NumberArray
from maskwise.protocols.aura import Answers, RegionPairs, check_answers, match_types
from maskwise.protocols.ground_truth import AMODAL, BOTH, VISIBLE
from maskwise.protocols.mask_pairs import unpaired
from maskwise.protocols.metrics import MetricTerms, Scores, int_sums, sums
from maskwise.protocols.overlaps import Overlaps
from maskwise.protocols.prediction_columns import PREDICTED
from maskwise.protocols.scoring_input import (
    NO_TARGET_MASK,
    OfficialMaskType,
    ScoringInput,
)

Ratio = tuple[NumberArray, NumberArray]
"""Numerator and denominator of a metric, [samples] each."""


def score(
    inputs: ScoringInput,
    *,
    mask_type: OfficialMaskType = "predicted",
    matching: Literal["union", "iou", "order"] = "union",
    answers: Answers = "any",
) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    check_answers("r2sm", inputs, answers)
    overlaps = inputs.overlaps(mask_type)
    requested = inputs.ground_truth.requested_type
    if matching == "union":
        giou, ciou = _by_question(overlaps)
    else:
        giou, ciou = _by_target(overlaps, match_types(inputs, [overlaps], matching))
    scorable = overlaps.scorable & (requested != BOTH)
    targets = np.bincount(inputs.ground_truth.sample, minlength=len(inputs))
    answered = inputs.predictions.state == PREDICTED
    right_type = answered & (inputs.predicted_type == requested) & (targets > 0)
    type_accuracy = (right_type.astype(np.int64), (targets > 0).astype(np.int64))
    ratios = {"giou": giou, "ciou": ciou, "mask_type_accuracy": type_accuracy}
    metrics = {}
    for suffix, rows in (
        ("", scorable),
        ("_visible", requested == VISIBLE),
        ("_amodal", requested == AMODAL),
    ):
        keep = scorable & rows
        for name, (top, bottom) in ratios.items():
            metrics[name + suffix] = MetricTerms(
                np.where(keep, top, 0), np.where(keep, bottom, 0)
            )
    return Scores(
        protocol="r2sm",
        options={"mask_type": mask_type, "matching": matching, "answers": answers},
        statuses=inputs.statuses(
            {
                "the question requests both masks": requested == BOTH,
                NO_TARGET_MASK: ~overlaps.scorable,
            }
        ),
        metrics=metrics,
    )


def _by_question(overlaps: Overlaps) -> tuple[Ratio, Ratio]:
    """gIoU and cIoU of unions against unions."""
    merged = overlaps.merged
    both_empty = (merged.union == 0) & (overlaps.predictions.state == PREDICTED)
    value = np.where(both_empty, 1.0, merged.intersection / np.maximum(merged.union, 1))
    return (value, np.ones(len(value), np.int64)), (merged.intersection, merged.union)


def _by_target(overlaps: Overlaps, pairs: RegionPairs) -> tuple[Ratio, Ratio]:
    """gIoU and cIoU of matched pairs. An unmatched target scores 0 and adds its pixels to the union; a question whose
    targets have no pixels is one term, right if nothing was predicted.
    """
    area = overlaps.target.area
    sample = overlaps.ground_truth.sample
    count = len(overlaps.ground_truth)
    pred, target = pairs
    has_pixels = area[target] > 0
    pred = pred[has_pixels]
    target = target[has_pixels]
    shared = overlaps.shared(pred, target)
    areas = overlaps.pred.area[pred] + area[target] - shared
    left = unpaired(len(area), target)
    union = int_sums(sample[target], areas, count) + int_sums(
        sample[left], area[left], count
    )
    terms = np.bincount(sample[area > 0], minlength=count)
    predicted = int_sums(overlaps.predictions.sample, overlaps.pred.area, count)
    silent = (terms == 0) & (predicted == 0) & (overlaps.predictions.state == PREDICTED)
    value = sums(sample[target], shared / np.maximum(areas, 1), count) + silent
    return (value, np.maximum(terms, 1)), (
        int_sums(sample[target], shared, count),
        union,
    )
