"""R2SM: one mask a question, of the type its words want (arXiv 2506.01795). No code was published; this is our reading.

What is known: a question that asks for the whole shape of a partly hidden object wants the amodal mask, any other the
visible one; the reply is one mask; gIoU and cIoU are reported. What we chose, and the other readings as options:

- `reply_mask="said"`: the mask is of the type the reply decided on (named, or the only one it holds); one that holds
  both and decides nothing is judged by its visible mask, R2SM's default. `"wanted"`: where a reply holds both, the
  one of the type wanted is taken, which tells it the right type.
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

from maskwise.protocols.aura import Answers, check_answers, match_types
from maskwise.protocols.evaluation import Evaluation, Plane
from maskwise.protocols.metrics import Int64s, Metric, Scores, sums, whole_sums
from maskwise.protocols.pairs import left_over
from maskwise.protocols.tables import AMODAL, ANSWERED, BOTH, VISIBLE

Columns = tuple[NDArray[Any], NDArray[Any]]
RULE = (
    "one mask a question, of the type the reply decided on, against the type the question wants (our reading)"
)


def score(
    evaluation: Evaluation,
    *,
    reply_mask: Literal["said", "wanted"] = "said",
    matching: Literal["union", "iou", "order"] = "union",
    answers: Answers = "any",
) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    check_answers("r2sm", evaluation, answers)
    plane = evaluation.plane(reply_mask)
    wanted = evaluation.truth.wanted
    if matching == "union":
        giou, ciou = _by_question(plane)
    else:
        giou, ciou = _by_target(plane, match_types(evaluation, [plane], matching))
    judged = plane.judged & (wanted != BOTH)
    metrics = {}
    for suffix, rows in (("", judged), ("_visible", wanted == VISIBLE), ("_amodal", wanted == AMODAL)):
        keep = judged & rows
        for name, (top, bottom) in (("giou", giou), ("ciou", ciou)):
            metrics[name + suffix] = Metric(np.where(keep, top, 0), np.where(keep, bottom, 0))
    return Scores(
        protocol="r2sm",
        options={"reply_mask": reply_mask, "matching": matching, "answers": answers},
        verdicts=evaluation.verdicts(
            {
                "the question wants both masks": wanted == BOTH,
                "a target has no mask of the type wanted": ~plane.judged,
            }
        ),
        metrics=metrics,
    )


def _by_question(plane: Plane) -> tuple[Columns, Columns]:
    """Numerators and denominators of gIoU and cIoU, unions against unions."""
    merged = plane.merged
    both_empty = (merged.union == 0) & (plane.replies.state == ANSWERED)
    value = np.where(both_empty, 1.0, merged.intersection / np.maximum(merged.union, 1))
    return (value, np.ones(len(value), np.int64)), (merged.intersection, merged.union)


def _by_target(plane: Plane, pairs: Int64s) -> tuple[Columns, Columns]:
    """The same, pair by pair; a target nobody met counts 0 and adds its pixels to the union."""
    index, truth, count = plane.index, plane.truth, len(plane.truth)
    sample, pred, target = index.sample[pairs], index.pred[pairs], index.target[pairs]
    left = left_over(len(plane.target.area), target)
    shared = plane.intersection[pairs]
    union = whole_sums(sample, plane.pred.area[pred] + plane.target.area[target] - shared, count)
    union += whole_sums(truth.sample[left], plane.target.area[left], count)
    return (sums(sample, plane.iou[pairs], count), truth.counts), (whole_sums(sample, shared, count), union)
