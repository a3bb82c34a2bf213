"""X-SAM: `img_reaseg_dataset.py`, `img_reaseg_evaluator.py` and `utils/iou.py` (commit
2e76946).

Rule. The predicted mask of a question against its truth; gIoU is the mean of I / U over
questions, cIoU the summed I over the summed U, without epsilons. X-SAM prints percent;
values here are fractions.

Truth: ignored pixels are dropped from both masks.

Quirks of the published code:
- Questions without a pixel of target outside the ignored ones are dropped when the
  dataset is loaded. `pipeline=False` is the evaluator alone, which scores them: two
  empty masks are 1, and cIoU is 1 where the summed U is 0.
- A question without a record is left out.
- Not repeated: its decoder turns a mask one pixel wide into a square one.

`mask_type`: see `lisa`.
"""

from maskwise.protocols.metrics import Scores
from maskwise.protocols.question_rule import QuestionRule, score_questions
from maskwise.protocols.scoring_input import OfficialMaskType, ScoringInput

RULE = QuestionRule(ignored="dropped", both_empty="one", empty_truth="left out")
EVALUATOR_RULE = QuestionRule(ignored="dropped", both_empty="one", empty_ciou=1.0)


def score(
    inputs: ScoringInput,
    *,
    pipeline: bool = True,
    mask_type: OfficialMaskType = "predicted",
) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    rule = RULE if pipeline else EVALUATOR_RULE
    return score_questions(
        "xsam", inputs, rule, mask_type, options={"pipeline": pipeline}
    )
