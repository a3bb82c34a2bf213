"""UniPixel: `dataset/utils.py`, `eval/infer_seg.py` and `eval/eval_refcoco.py` (commit
5c8e941).

Rule. The predicted mask of a question against its truth; gIoU is the mean of I / U over
questions, 1 where U is 0; cIoU is the summed I over the summed U, without epsilons.

Truth: ignored pixels are background. The code means to drop them, but draws -1 into an
unsigned plane, where it becomes 0, so that the mask of pixels to keep never acts.

The published code always has one mask per question (the first); predictions with
several are joined here, as in the published vectors. An answer without a mask, a failed
and a missing one count as an empty mask. `mask_type`: see `lisa`.
"""

from maskwise.protocols.metrics import Scores
from maskwise.protocols.question_rule import QuestionRule, score_questions
from maskwise.protocols.scoring_input import OfficialMaskType, ScoringInput

RULE = QuestionRule(
    ignored="background",
    both_empty="one",
    missing="empty mask",
    wrong_size="empty mask",
)


def score(inputs: ScoringInput, *, mask_type: OfficialMaskType = "predicted") -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    return score_questions("unipixel", inputs, RULE, mask_type)
