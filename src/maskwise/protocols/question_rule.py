"""Rules that compare one mask per question with the truth: a general scorer with every
choice stated as an option.

Most rules published since 2024 join the predicted masks of a question to one mask and
compare it with one truth. They differ in what an ignored pixel is, in what two empty
masks are worth, in what happens without a mask or without a record of the question, and
in their epsilons. `QuestionRule` names these choices; the modules `segzero`,
`visionreasoner`, `star`, `lens`, `unipixel`, `xsam`, `sa2va` and `gseval` are presets
of it.

Symbols in their texts: T = pixels of all targets, G = ignored pixels, P = predicted
pixels, I and U = intersection and union of prediction and truth.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.protocols.metrics import MetricTerms, Scores
from maskwise.protocols.prediction_columns import FAILED, MISSING
from maskwise.protocols.scoring_input import (
    NO_TARGET_MASK,
    OfficialMaskType,
    ScoringInput,
)

Ignored = Literal["dropped", "target", "background", "not known"]
"""What an ignored pixel is: in neither mask; part of the truth; not part of the truth; what the targets say."""

BothEmpty = Literal["one", "zero", "left out"]
"""What a question is worth whose prediction and truth have no pixel."""

Outcome = Literal["empty mask", "zero", "zero outside cIoU", "left out"]
"""How a question without a mask is counted.

`empty mask`: as a mask without pixels, so that `BothEmpty` applies. `zero`: 0 in gIoU even where the truth is empty,
and the truth in the union of cIoU. `zero outside cIoU`: 0 in gIoU, nothing in cIoU. `left out`: in no sum.
"""

LEFT_OUT = "left out by the published script"
"""Reason to exclude a sample that the rule does not count; `reasons_to_leave_out` says why in each case."""


@dataclass(frozen=True)
class QuestionRule:
    """One choice for every question on which published rules differ.

    masks: all predicted masks joined, or the first alone. no_mask: the model answered without a mask. failed: its
    reply could not be used. missing: there is no record of the question. wrong_size: a mask has another size than
    the image. empty_truth: whether questions without a pixel of truth are scored. pair_epsilon is added to each U,
    mean_epsilon to the number of questions, sum_epsilon to the summed U. empty_ciou: cIoU where the summed U is 0.
    """

    ignored: Ignored
    both_empty: BothEmpty
    masks: Literal["union", "first"] = "union"
    no_mask: Outcome = "empty mask"
    failed: Outcome = "empty mask"
    missing: Outcome = "left out"
    wrong_size: Outcome = "left out"
    empty_truth: Literal["scored", "left out"] = "scored"
    pair_epsilon: float = 0.0
    mean_epsilon: float = 0.0
    sum_epsilon: float = 0.0
    empty_ciou: float | None = None


@dataclass(frozen=True)
class QuestionAreas:
    """Pixels of each question, int64 [samples]: shared by prediction and truth, in either, in the truth."""

    intersection: Int64Array
    union: Int64Array
    truth: Int64Array


def measure_questions(
    inputs: ScoringInput,
    ignored: Ignored,
    mask_type: OfficialMaskType,
    *,
    masks: Literal["union", "first"] = "union",
) -> QuestionAreas:
    """The joined predicted masks of every question against the truth of the rule.

    Ignored pixels take precedence over targets, except where the rule does not know them.
    """
    if masks == "first":
        inputs = inputs.first_masks
    everything = inputs.without_ignore.overlaps(mask_type).merged
    if ignored == "not known":
        return QuestionAreas(
            everything.intersection, everything.union, everything.target
        )
    outside = inputs.overlaps(mask_type).merged
    if ignored == "dropped":
        return QuestionAreas(outside.intersection, outside.union, outside.target)
    predicted_inside = everything.pred - outside.pred
    if ignored == "background":
        return QuestionAreas(
            outside.intersection, outside.union + predicted_inside, outside.target
        )
    ignored_area = ignored_areas(inputs)
    return QuestionAreas(
        outside.intersection + predicted_inside,
        outside.union + ignored_area,
        outside.target + ignored_area,
    )


def ignored_areas(inputs: ScoringInput) -> Int64Array:
    """Ignored pixels of each question, int64 [samples]."""
    ignore = inputs.ground_truth.ignore
    area = np.zeros(len(inputs), np.int64)
    area[ignore.present] = ignore.masks[ignore.present].area()
    return area


@dataclass(frozen=True)
class QuestionValues:
    """What each question adds to the sums of a rule, [samples] each.

    counted: in gIoU. summed: in cIoU. value: the IoU, or what stands for it.
    """

    counted: BoolArray
    summed: BoolArray
    value: Float64Array


def value_questions(
    inputs: ScoringInput,
    rule: QuestionRule,
    areas: QuestionAreas,
    scorable: BoolArray,
) -> QuestionValues:
    """Apply the choices of a rule to the areas. scorable: bool [samples]."""
    both_empty = areas.union == 0
    value = areas.intersection / np.maximum(areas.union + rule.pair_epsilon, 1e-300)
    value = np.where(both_empty, float(rule.both_empty == "one"), value)
    counted = scorable.copy()
    if rule.both_empty == "left out":
        counted &= ~both_empty
    if rule.empty_truth == "left out":
        counted &= areas.truth > 0
    summed = counted.copy()
    for rows, outcome in without_masks(inputs, rule):
        if outcome == "empty mask":
            continue
        value[rows] = 0.0
        counted[rows] = scorable[rows] & (outcome != "left out")
        summed[rows] = scorable[rows] & (outcome == "zero")
    return QuestionValues(counted, summed, value)


def without_masks(
    inputs: ScoringInput, rule: QuestionRule
) -> list[tuple[BoolArray, Outcome]]:
    """The questions without a mask by their cause, bool [samples], with what the rule does about them."""
    state = inputs.predictions.state
    no_record = state == MISSING
    failed = (state == FAILED) & ~inputs.wrong_size
    answered = ~no_record & (state != FAILED)
    return [
        (answered & (inputs.predictions.counts == 0), rule.no_mask),
        (failed, rule.failed),
        (inputs.wrong_size, rule.wrong_size),
        (no_record, rule.missing),
    ]


def reasons_to_leave_out(
    inputs: ScoringInput, rule: QuestionRule, areas: QuestionAreas, left_out: BoolArray
) -> dict[str, BoolArray]:
    """Why each question that a rule does not count is left out: the samples by reason, bool [samples] each."""
    causes = {
        # A question that is dropped when the dataset is loaded is never asked: this cause comes first.
        "no target pixel": (areas.truth == 0) & (rule.empty_truth == "left out"),
        "no prediction": inputs.predictions.state == MISSING,
        "a mask of another size": inputs.wrong_size,
        "two empty masks": areas.union == 0,
    }
    reasons = {}
    rest = left_out.copy()
    for cause, rows in causes.items():
        reasons[f"{LEFT_OUT}: {cause}"] = rest & rows
        rest &= ~rows
    return {**reasons, LEFT_OUT: rest}


def score_questions(
    protocol: str,
    inputs: ScoringInput,
    rule: QuestionRule,
    mask_type: OfficialMaskType,
    *,
    areas: QuestionAreas | None = None,
    options: dict[str, Any] | None = None,
) -> Scores:
    """Score a whole dataset by a rule. areas: if they are not those that `measure_questions` gives."""
    if areas is None:
        areas = measure_questions(inputs, rule.ignored, mask_type, masks=rule.masks)
    scorable = inputs.overlaps(mask_type).scorable
    values = value_questions(inputs, rule, areas, scorable)
    counted = values.counted.astype(np.int64)
    intersection = np.where(values.summed, areas.intersection, 0)
    union = np.where(values.summed, areas.union, 0)
    gate = union if rule.empty_ciou is not None else None
    return Scores(
        protocol=protocol,
        options={"mask_type": mask_type, **(options or {})},
        statuses=inputs.statuses(
            {
                **reasons_to_leave_out(inputs, rule, areas, scorable & ~values.counted),
                NO_TARGET_MASK: ~scorable,
            }
        ),
        metrics={
            "giou": MetricTerms(
                values.value * counted, counted, rule.mean_epsilon, gate=counted
            ),
            "ciou": MetricTerms(
                intersection,
                union,
                rule.sum_epsilon,
                empty=rule.empty_ciou,
                gate=gate,
            ),
        },
    )
