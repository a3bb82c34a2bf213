"""The offline chooser: matches the words of a question with the detector's categories and with measured attributes.

It knows the 80 categories of COCO, words for them, kinds of things ("animal"), what they are for, positions, sizes,
colors and simple relations. It does not reason. When nothing matches it says so and lists what it can find.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from maskwise.language.lexicons import word_set
from maskwise.language.phrases import phrase_key
from maskwise.language.word_forms import is_form_among, is_plural, to_plural
from maskwise.models.photo.choice import Choice, ChosenPhrase
from maskwise.models.photo.colors import color_share
from maskwise.models.photo.encoded_photo import EncodedPhoto
from maskwise.models.photo.proposals import Proposal
from maskwise.models.photo.question import (
    NounPhrase,
    Order,
    ParsedQuestion,
    parse_question,
)
from maskwise.models.photo.relations import MIN_STRENGTH, relation_strength
from maskwise.models.photo.vocabulary import COCO_CATEGORIES, VOCABULARY

MIN_SCORE = 0.1
"""Lowest score of a detection that may be an answer: the question names what to look for."""

SURE_SCORE = 0.3
"""From this score on a detection counts whatever the others have."""

MIN_SHARE = 0.3
"""Below SURE_SCORE it counts from this share of the best score of its category on, and a label counts from this share
of the best label of its object on."""

MAX_LOOKED_FOR = 3

MIN_COLOR = 0.15
"""Share of an object's pixels that must have a color which the question names."""

MAX_LISTED = 8

SMALL_WORDS = word_set("the a to in on of and or with for when around many")
"""Words of uses that need not occur in a question."""


class MatchChooser:
    """Chooses by words. min_score: lowest score of a detection that may be an answer."""

    name = "match"

    def __init__(self, min_score: float = MIN_SCORE) -> None:
        self.min_score = min_score

    def choose(self, photo: EncodedPhoto, questions: Sequence[str]) -> list[Choice]:
        """One choice per question, in order."""
        return [self._choose(photo, parse_question(question)) for question in questions]

    def _choose(self, photo: EncodedPhoto, question: ParsedQuestion) -> Choice:
        for noun in (*question.targets, question.anchor):
            if noun is not None:
                photo.look_for(noun.categories, noun.count or MAX_LOOKED_FOR)
        scores = category_scores(photo.proposals, self.min_score)
        phrases = []
        for target in _targets(question, _listed(scores)):
            candidates = _candidates(photo, scores, target)
            if question.relation is not None and question.anchor is not None:
                anchors = _select(
                    photo, _candidates(photo, scores, question.anchor), question.anchor
                )
                # Without the anchor the relation cannot be checked: the detector may have missed it.
                candidates = (
                    _related(photo, candidates, anchors, question, target)
                    if anchors
                    else candidates
                )
            if regions := _select(photo, candidates, target):
                phrases.append(
                    ChosenPhrase(_name(regions, scores, target), tuple(regions))
                )
        return _answer(phrases) if phrases else _nothing(scores, question)


def category_scores(
    proposals: Sequence[Proposal], min_score: float
) -> list[dict[str, float]]:
    """Per proposal, the categories it may be, with their scores."""
    return [
        {name: score for name, score in one.labels.items() if score >= min_score}
        for one in proposals
    ]


def _targets(question: ParsedQuestion, present: set[str]) -> list[NounPhrase]:
    """What is asked for. Where the question leaves the category open, what it is for decides, or else its place."""
    named = [target for target in question.targets if target.categories]
    if named and len(named) == len(question.targets):
        return [_narrowed(target, question, present) for target in named]
    suited = categories_for_use(question.words, present - question.mentioned)
    if suited:
        return [NounPhrase(frozenset(suited), "", count=None)]
    # "the thing on the table": anything there. Without a relation nothing is known about what is meant.
    if question.relation is not None and not named:
        return list(question.targets[:1]) or [NounPhrase(frozenset(), "", count=None)]
    return []


def _narrowed(
    target: NounPhrase, question: ParsedQuestion, present: set[str]
) -> NounPhrase:
    """A kind of thing ("utensil") reduced to the categories with the use that the question describes, if any."""
    suited = categories_for_use(question.words, present & target.categories)
    return (
        replace(target, categories=frozenset(suited))
        if suited and len(target.categories) > 1
        else target
    )


def categories_for_use(words: frozenset[str], present: set[str]) -> set[str]:
    """The categories among `present` whose uses fit a question best; none if no use is mentioned."""
    fits = {name: _use_score(name, words) for name in present}
    best = max(fits.values(), default=0.0)
    return {name for name, fit in fits.items() if fit == best} if best > 0 else set()


def _use_score(category: str, words: frozenset[str]) -> float:
    """Words of uses whose words all occur in the question; a use that several categories share says less."""
    return sum(
        len(key) / _shared_uses()[key]
        for key in _uses()[category]
        if all(is_form_among(word, words) for word in key)
    )


@cache
def _uses() -> dict[str, tuple[tuple[str, ...], ...]]:
    return {
        words.category: tuple(
            tuple(w for w in phrase_key(use) if w not in SMALL_WORDS)
            for use in words.uses
        )
        for words in VOCABULARY
    }


@cache
def _shared_uses() -> dict[tuple[str, ...], int]:
    counts: dict[tuple[str, ...], int] = {}
    for uses in _uses().values():
        for key in uses:
            counts[key] = counts.get(key, 0) + 1
    return counts


def _listed(scores: list[dict[str, float]]) -> set[str]:
    """The categories that are surely there."""
    best = [max(names, key=lambda name: names[name]) for names in scores if names]
    sure = [max(names.values()) >= SURE_SCORE for names in scores if names]
    return {name for name, is_sure in zip(best, sure) if is_sure}


def _candidates(
    photo: EncodedPhoto, scores: list[dict[str, float]], noun: NounPhrase
) -> dict[int, float]:
    """Proposals of the noun's categories and color, with their scores."""
    found = {}
    for row, names in enumerate(scores):
        fitting = [
            score
            for name, score in names.items()
            if not noun.categories or name in noun.categories
        ]
        if not fitting or max(fitting) < MIN_SHARE * max(names.values()):
            continue
        share = 1.0
        if noun.color is not None:
            share = color_share(photo.pixels, photo.proposals[row].inside, noun.color)
        if share >= (0 if noun.color is None else MIN_COLOR):
            found[row] = max(fitting) * share
    enough = min(SURE_SCORE, MIN_SHARE * max(found.values(), default=0.0))
    return {row: score for row, score in found.items() if score >= enough}


def _related(
    photo: EncodedPhoto,
    candidates: dict[int, float],
    anchors: list[int],
    question: ParsedQuestion,
    target: NounPhrase,
) -> dict[int, float]:
    """The candidates that stand in the question's relation to an anchor. One that is asked for singly is the best."""
    assert question.relation is not None, "a question with an anchor has a relation"
    strengths = {}
    for row, score in candidates.items():
        box = photo.proposals[row].box
        each = [
            relation_strength(question.relation, box, photo.proposals[anchor].box)
            for anchor in anchors
            if anchor != row
        ]
        if max(each, default=0.0) >= MIN_STRENGTH:
            strengths[row] = max(each) * (score if target.count == 1 else 1.0)
    return strengths


def _select(
    photo: EncodedPhoto, candidates: dict[int, float], noun: NounPhrase
) -> list[int]:
    """As many of the candidates as the noun asks for, by its order or else by score."""
    best = sorted(candidates, key=lambda row: -candidates[row])
    if noun.order is not None:
        best = sorted(best, key=lambda row: _order_key(photo, row, noun.order))
        count = noun.count or (len(best) if noun.rank == 0 else 1)
        return best[noun.rank : noun.rank + count]
    return best if noun.count is None else best[: noun.count]


def _order_key(photo: EncodedPhoto, row: int, order: Order | None) -> float:
    """The smallest is the first in an order."""
    left, top, right, bottom = photo.proposals[row].box
    width, height = photo.image.size
    x = (left + right) / 2
    y = (top + bottom) / 2
    area = photo.proposals[row].area
    keys = {
        "left": x,
        "right": -x,
        "top": y,
        "bottom": -y,
        "middle": float(np.hypot(x / width - 0.5, y / height - 0.5)),
        "largest": -area,
        "smallest": area,
        "nearest": -bottom,
        "farthest": bottom,
    }
    return keys[order] if order is not None else 0.0


def _name(
    regions: list[int], scores: list[dict[str, float]], target: NounPhrase
) -> str:
    """The word of the question, or the category where the question did not name it."""
    if target.text and target.categories:
        return f"the {target.text}"
    names = Counter(
        max(scores[row], key=lambda name: scores[row][name]) for row in regions
    )
    return " and ".join(
        f"the {to_plural(name) if count > 1 else name}" for name, count in names.items()
    )


def _answer(phrases: list[ChosenPhrase]) -> Choice:
    text = " and ".join(phrase.text for phrase in phrases)
    start = "They are" if is_plural(text) else "It is"
    return Choice(f"{start} {text}.", tuple(phrases))


def _nothing(scores: list[dict[str, float]], question: ParsedQuestion) -> Choice:
    present = _listed(scores)
    listed = [name for name in COCO_CATEGORIES if name in present]
    found = (
        f"I can find these: {', '.join(listed[:MAX_LISTED])}."
        if listed
        else "I find no object that I know."
    )
    wanted = [target.text for target in question.targets if target.categories]
    start = (
        f"I find no such {wanted[0]}."
        if wanted
        else "I do not know what this asks for."
    )
    return Choice(f"{start} {found}")
