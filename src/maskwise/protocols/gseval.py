"""GSEval: the mask mode of GroundingSuite's evaluation (hustvl/GroundingSuite, commit
ff3ea30).

Rule. gIoU is the mean of I / U over rows, 0 where both masks are empty; cIoU here is
the summed I over the summed U, which the published code does not print.

Quirk: a row without a prediction is skipped, and nothing says so. The counts here do.
A mask of another size than the image counts as an empty one; that is our choice.
`mask_type`: see `lisa`.
"""

from maskwise.protocols.metrics import Scores
from maskwise.protocols.question_rule import QuestionRule, score_questions
from maskwise.protocols.scoring_input import OfficialMaskType, ScoringInput

RULE = QuestionRule(ignored="not known", both_empty="zero", wrong_size="empty mask")


def score(inputs: ScoringInput, *, mask_type: OfficialMaskType = "predicted") -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    return score_questions("gseval", inputs, RULE, mask_type)
