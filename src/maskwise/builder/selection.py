"""Choose among the questions that a grammar proposes for an image."""

from collections import Counter
from collections.abc import Sequence
from random import Random

from maskwise.builder.grammar import ProposedQuestion


def mix(
    families: Sequence[Sequence[ProposedQuestion]],
    count: int,
    random: Random,
    *,
    most: int,
) -> list[ProposedQuestion]:
    """At most `count` proposals, and `most` of a family, taken from the families in turn.

    Within a family, one about objects that were asked about least comes first. No question and no answer occurs twice.
    """
    chosen: list[ProposedQuestion] = []
    asked: Counter[str] = Counter()
    seen: set[object] = set()
    shuffled = [random.sample(list(family), len(family)) for family in families]
    for _ in range(most):
        for family in shuffled:
            fresh = [
                proposal
                for proposal in family
                if proposal.question not in seen and proposal.answer not in seen
            ]
            if not fresh or len(chosen) == count:
                continue
            best = min(
                fresh,
                key=lambda proposal: max(
                    (asked[region.id] for region in proposal.about), default=0
                ),
            )
            chosen.append(best)
            seen |= {best.question, best.answer}
            asked.update(region.id for region in best.about)
    return chosen
