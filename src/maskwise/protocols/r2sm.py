"""R2SM: one mask a question, of the type its words want (arXiv 2506.01795). No code was published; this is our reading.

What is known: a question that asks for the whole shape of a partly hidden object wants the amodal mask, any other the
visible one; the reply is one mask; gIoU and cIoU are reported. What we chose, and the other readings as options:

- `mask_type="predicted"`: the mask of the type the prediction chose (stated, or the only one it holds); one that
  holds both and states none is scored by its visible mask, R2SM's default. `"requested"`: where a prediction holds
  both, the mask of the requested type is taken, which reveals the right type.
- `matching="union"`: the task has one mask, so a reply with several regions is their union, and several targets are
  theirs. `"iou"` and `"order"`: pairs as in `aura`, each target one term, targets left over 0, masks left over free.
- `answers="any"`: `"free"` or `"forced"` refuses the others.

gIoU is the mean IoU over questions (or over targets, when matched), 1 where both masks are empty, as in LISA; cIoU is
cumulative. `giou_visible`, `giou_amodal` and so on are the same over the questions that want that type. Type is not
scored by itself: an object that is not occluded has two equal masks. A question that wants both has no term. A
missing or failed reply counts as an empty mask and earns nothing.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from maskwise.arrays import Int64Array
from maskwise.protocols.aura import Answers, check_answers, match_types
from maskwise.protocols.ground_truth import AMODAL, BOTH, VISIBLE
from maskwise.protocols.mask_pairs import unpaired
from maskwise.protocols.metrics import Metric, Scores, int_sums, sums
from maskwise.protocols.overlaps import Overlaps
from maskwise.protocols.prediction_columns import PREDICTED
from maskwise.protocols.scoring_input import ScoringInput

Columns = tuple[NDArray[Any], NDArray[Any]]
DESCRIPTION = (
    "one mask a question, of the type the reply decided on, against the type the question wants (our reading)"
)


def score(
    inputs: ScoringInput,
    *,
    mask_type: Literal["predicted", "requested"] = "predicted",
    matching: Literal["union", "iou", "order"] = "union",
    answers: Answers = "any",
) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    check_answers("r2sm", inputs, answers)
    overlaps = inputs.overlaps(mask_type)
    wanted = inputs.ground_truth.requested_type
    if matching == "union":
        giou, ciou = _by_question(overlaps)
    else:
        giou, ciou = _by_target(overlaps, match_types(inputs, [overlaps], matching))
    scorable = overlaps.scorable & (wanted != BOTH)
    metrics = {}
    for suffix, rows in (("", scorable), ("_visible", wanted == VISIBLE), ("_amodal", wanted == AMODAL)):
        keep = scorable & rows
        for name, (top, bottom) in (("giou", giou), ("ciou", ciou)):
            metrics[name + suffix] = Metric(np.where(keep, top, 0), np.where(keep, bottom, 0))
    return Scores(
        protocol="r2sm",
        options={"mask_type": mask_type, "matching": matching, "answers": answers},
        statuses=inputs.statuses(
            {
                "the question wants both masks": wanted == BOTH,
                "a target has no mask of the type wanted": ~overlaps.scorable,
            }
        ),
        metrics=metrics,
    )


def _by_question(overlaps: Overlaps) -> tuple[Columns, Columns]:
    """Numerators and denominators of gIoU and cIoU, unions against unions."""
    merged = overlaps.merged
    both_empty = (merged.union == 0) & (overlaps.predictions.state == PREDICTED)
    value = np.where(both_empty, 1.0, merged.intersection / np.maximum(merged.union, 1))
    return (value, np.ones(len(value), np.int64)), (merged.intersection, merged.union)


def _by_target(overlaps: Overlaps, pairs: Int64Array) -> tuple[Columns, Columns]:
    """The same, pair by pair; a target nobody met counts 0 and adds its pixels to the union."""
    index, ground_truth, count = overlaps.index, overlaps.ground_truth, len(overlaps.ground_truth)
    sample, pred, target = index.sample[pairs], index.pred[pairs], index.target[pairs]
    left = unpaired(len(overlaps.target.area), target)
    shared = overlaps.intersection[pairs]
    union = int_sums(sample, overlaps.pred.area[pred] + overlaps.target.area[target] - shared, count)
    union += int_sums(ground_truth.sample[left], overlaps.target.area[left], count)
    return (sums(sample, overlaps.iou[pairs], count), ground_truth.counts), (
        int_sums(sample, shared, count),
        union,
    )
