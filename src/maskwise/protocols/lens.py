"""LENS: `eval/evaluate_reasonseg.py` (commit 28cf510).

Rule. The predicted mask of a question against its truth; a question scores I / (U +
1e-5), plus 1 where U is 0. gIoU is the mean over questions (number + 1e-5), cIoU the
summed I over the summed U + 1e-8.

Truth: ignored pixels are background, so predicting them costs.

The published code always has one mask per question. Here an answer without a mask, a
failed and a missing one count as an empty mask. Sums run there in float32 and several
GPUs pad with duplicates; neither is repeated. `epsilon=False` leaves the epsilons out.
`mask_type`: see `lisa`.
"""

from dataclasses import replace

from maskwise.protocols.metrics import Scores
from maskwise.protocols.question_rule import QuestionRule, score_questions
from maskwise.protocols.scoring_input import OfficialMaskType, ScoringInput

RULE = QuestionRule(
    ignored="background",
    both_empty="one",
    missing="empty mask",
    wrong_size="empty mask",
    pair_epsilon=1e-5,
    mean_epsilon=1e-5,
    sum_epsilon=1e-8,
)
PLAIN_RULE = replace(RULE, pair_epsilon=0.0, mean_epsilon=0.0, sum_epsilon=0.0)


def score(
    inputs: ScoringInput,
    *,
    epsilon: bool = True,
    mask_type: OfficialMaskType = "predicted",
) -> Scores:
    """Score a whole dataset; see the module's text for the rule."""
    rule = RULE if epsilon else PLAIN_RULE
    return score_questions(
        "lens", inputs, rule, mask_type, options={"epsilon": epsilon}
    )
