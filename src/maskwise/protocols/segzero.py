"""Seg-Zero: `evaluation.py`, `evaluation_visionreasoner.py` and `calculate_iou.py`
(dvlab-research/Seg-Zero, 42a3345).

Rule. The joined predicted masks of a question against its truth; gIoU is the mean of I
/ U over the records that the script wrote. The scripts print no cIoU; ours is the
summed I over the summed U of the same records.

Truth: the hub copy of ReasonSeg (`create_reasonseg_hf.py`) counts ignored pixels as
target.

Quirks of the published code, all kept:
- Where prediction and truth are both empty, unpacking fails and the question is left
  out.
- `form="single"` (one box, `evaluation.py`): an answer without a box, or one that
  cannot be parsed, is a record with I = 0 and U = truth, which counts 0 even where the
  truth is empty.
- `form="multi"` (`evaluation_visionreasoner.py`): an answer without a box is an empty
  mask; only an answer that cannot be parsed is such a record.
- A question without a record (a crashed shard), or with a mask of another size, is left
  out, and nothing says so. The counts here do.

`mask_type`: see `lisa`.
"""

from typing import Literal

from maskwise.protocols.metrics import Scores
from maskwise.protocols.question_rule import QuestionRule, score_questions
from maskwise.protocols.scoring_input import OfficialMaskType, ScoringInput

RULES = {
    "single": QuestionRule(
        ignored="target", both_empty="left out", no_mask="zero", failed="zero"
    ),
    "multi": QuestionRule(ignored="target", both_empty="left out", failed="zero"),
}


def score(
    inputs: ScoringInput,
    *,
    form: Literal["single", "multi"] = "single",
    mask_type: OfficialMaskType = "predicted",
) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    return score_questions(
        "segzero", inputs, RULES[form], mask_type, options={"form": form}
    )
