"""Choose among the questions that a grammar proposes for an image."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from maskwise.builder.facts import ImageFacts
from maskwise.builder.grammar import ProposedQuestion
from maskwise.builder.wording import introduce
from maskwise.language.category_names import find_category_name
from maskwise.language.word_forms import capitalize_first

PROMINENT = 0.01
"""Share of the image from which on an object is easy to see. Smaller ones are more often labelled wrongly or have
neighbors of their kind that nobody annotated, so they are asked about where nothing else is left."""


def mix(
    families: Sequence[Sequence[ProposedQuestion]],
    count: int,
    random: Random,
    *,
    most: int,
    facts: ImageFacts | None = None,
    multi_share: float | None = None,
) -> list[ProposedQuestion]:
    """At most `count` proposals, and `most` of a family, taken from the families in turn.

    Within a family, one about objects that were asked about least comes first, then one about objects that are easy to
    see. No question, no answer and no logical form occurs twice. facts: of the image, to leave out questions that name
    a target. multi_share: the share of questions about several targets that is aimed at; None leaves it to chance.
    """
    chosen: list[ProposedQuestion] = []
    asked: Counter[str] = Counter()
    seen: set[object] = set()
    taken: Counter[int] = Counter()
    shuffled = [random.sample(list(family), len(family)) for family in families]
    while len(chosen) < count:
        fresh = [
            [
                proposal
                for proposal in family
                if not {proposal.question, proposal.answer, proposal.form} & seen
            ]
            if taken[place] < most
            else []
            for place, family in enumerate(shuffled)
        ]
        if multi_share is not None:
            fresh = _prefer_count(fresh, random.random() < multi_share)
        places = [place for place, family in enumerate(fresh) if family]
        if not places:
            break
        place = min(places, key=lambda place: taken[place])
        best = min(fresh[place], key=lambda proposal: _preference(proposal, asked))
        shuffled[place].remove(best)
        if facts is not None and names_target(best, facts):
            continue
        taken[place] += 1
        chosen.append(best)
        seen |= {best.question, best.answer, best.form} - {None}
        asked.update(region.id for region in best.about)
    return chosen


def _preference(
    proposal: ProposedQuestion, asked: Mapping[str, int]
) -> tuple[int, bool]:
    """How often an object of a proposal was asked about, and whether one is small."""
    times = max((asked[region.id] for region in proposal.about), default=0)
    return times, any(region.share < PROMINENT for region in proposal.about)


def _prefer_count(
    families: Sequence[list[ProposedQuestion]], several: bool
) -> list[list[ProposedQuestion]]:
    """The proposals about several targets or about one, as wanted; all if there are none of these."""
    wanted = [
        [proposal for proposal in family if (len(proposal.about) > 1) == several]
        for family in families
    ]
    return wanted if any(wanted) else list(families)


def names_target(proposal: ProposedQuestion, facts: ImageFacts) -> bool:
    """Whether a question contains the name of a target or of the object that it is a part of."""
    for target in proposal.about:
        for id in (target.id, target.part_of):
            region = None if id is None else facts.image.by_id.get(id)
            if region is not None and find_category_name(
                proposal.question, region.name
            ):
                return True
    return False


def add_introduction(
    proposal: ProposedQuestion, facts: ImageFacts, random: Random
) -> ProposedQuestion:
    """The proposal, sometimes with a sentence that tells who asks; the sentence names no target either."""
    before, after = introduce(proposal.question, random)
    question = before + capitalize_first(proposal.question) + after
    longer = replace(proposal, question=question)
    return proposal if names_target(longer, facts) else longer
