"""Sa2VA: `evaluation/dataset/RES.py` and `projects/ST/eval/lisa_reasoning_eval.py`
(commits 9832e1a and d01bf3f).

Rule. A question scores I / (U + 1e-5), plus 1 where U is 0. gIoU is the mean over all
questions, without epsilon; cIoU ("Acc" there) is the summed I over the summed U +
1e-10.

`version`, the three published forms:
- `2025-10` (9832e1a): all predicted masks joined; no mask is an empty mask.
- `2025-09` (d01bf3f): the first predicted mask; a question without a mask counts 0 in
  gIoU and is absent from cIoU, which can only raise cIoU. The code stops at an image
  without any mask; here it goes on.
- `reasonseg` (9832e1a, the evaluation of ReasonSeg): as `2025-09`, with a scrambled
  truth. The plane of 0, 1 and 255 (ignored) is encoded as if it were binary: read
  column by column, every change of value flips between background and foreground, so
  that an ignored area beside a target turns everything after it inside out.

The truth of the first two is that of the targets; they know no ignored pixels. Sums run
there in float32; here they are exact. `epsilon=False` leaves the epsilons out.
`mask_type`: see `lisa`.
"""

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from maskwise.arrays import Int64Array
from maskwise.masks import Masks, pair_areas
from maskwise.protocols.metrics import Scores
from maskwise.protocols.question_rule import (
    QuestionAreas,
    QuestionRule,
    measure_questions,
    score_questions,
)
from maskwise.protocols.scoring_input import OfficialMaskType, ScoringInput

Version = Literal["2025-10", "2025-09", "reasonseg"]

JOINED = QuestionRule(
    ignored="not known",
    both_empty="one",
    missing="empty mask",
    wrong_size="empty mask",
    pair_epsilon=1e-5,
    sum_epsilon=1e-10,
)
FIRST = replace(
    JOINED,
    masks="first",
    no_mask="zero outside cIoU",
    failed="zero outside cIoU",
    missing="zero outside cIoU",
    wrong_size="zero outside cIoU",
)
RULES = {"2025-10": JOINED, "2025-09": FIRST, "reasonseg": FIRST}


def score(
    inputs: ScoringInput,
    *,
    version: Version = "2025-10",
    epsilon: bool = True,
    mask_type: OfficialMaskType = "predicted",
) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    rule = RULES[version]
    if not epsilon:
        rule = replace(rule, pair_epsilon=0.0, sum_epsilon=0.0)
    areas = measure_questions(inputs, rule.ignored, mask_type, masks=rule.masks)
    if version == "reasonseg":
        areas = scrambled_areas(inputs, areas, mask_type)
    return score_questions(
        "sa2va",
        inputs,
        rule,
        mask_type,
        areas=areas,
        options={"version": version, "epsilon": epsilon},
    )


def scrambled_areas(
    inputs: ScoringInput, areas: QuestionAreas, mask_type: OfficialMaskType
) -> QuestionAreas:
    """The areas against the scrambled truth; only questions with ignored pixels differ."""
    samples = np.flatnonzero(inputs.ground_truth.ignore.present)
    if not len(samples):
        return areas
    size = inputs.ground_truth.image_size[samples]
    targets = inputs.overlaps(mask_type).target.unions(samples, size)
    ignored = inputs.ground_truth.ignore.masks[samples]
    truth = scramble(targets, ignored)
    plain = inputs.first_masks.without_ignore.overlaps(mask_type)
    measured = pair_areas(plain.pred.unions(samples, size), truth)
    intersection = areas.intersection.copy()
    union = areas.union.copy()
    truth_area = areas.truth.copy()
    intersection[samples] = measured.intersection
    union[samples] = measured.a + measured.b - measured.intersection
    truth_area[samples] = measured.b
    return QuestionAreas(intersection, union, truth_area)


def scramble(targets: Masks, ignored: Masks) -> Masks:
    """Masks that flip wherever the plane of target and ignored pixels changes its value, in column order.

    No pixel may be in both.
    """
    runs = []
    for target, ignore in zip(targets.to_runs(), ignored.to_runs()):
        changes = np.union1d(_change_positions(target), _change_positions(ignore))
        runs.append(np.diff(changes, prepend=0).tolist())
    for item, (height, width) in enumerate(targets.size.tolist()):
        runs[item].append(height * width - sum(runs[item]))
    return Masks.from_runs(runs, targets.size)


def _change_positions(runs: NDArray[np.uint32]) -> Int64Array:
    """Positions where a mask changes its value. A first run of 0 is a change at 0; the end of the image is none."""
    ends: Int64Array = np.cumsum(runs, dtype=np.int64)[:-1]
    return ends
