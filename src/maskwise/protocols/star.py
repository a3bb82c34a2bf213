"""StAR: `evaluation_star.py` and `calculate_iou.py` (commit 3ba7b9a), also used there
for MMR and MUSE.

Rule. The joined predicted masks of a question against its truth; gIoU is the mean of I
/ U over records, cIoU the summed I over the summed U.

Truth: the hub copies count ignored pixels as target.

Quirks of the published code, all kept:
- Two empty masks score 1, also where the answer could not be parsed: on an empty truth
  a failure is rewarded.
- A question without a record, or with a mask of another size, is left out.
- On MMR and MUSE the masks of a question are joined: not comparable with `mmr` or
  `muse`, which count masks.

`mask_type`: see `lisa`.
"""

from maskwise.protocols.metrics import Scores
from maskwise.protocols.question_rule import QuestionRule, score_questions
from maskwise.protocols.scoring_input import OfficialMaskType, ScoringInput

RULE = QuestionRule(ignored="target", both_empty="one")


def score(inputs: ScoringInput, *, mask_type: OfficialMaskType = "predicted") -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    return score_questions("star", inputs, RULE, mask_type)
