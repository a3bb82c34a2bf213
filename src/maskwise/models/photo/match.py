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
from maskwise.language.phrases import PhraseKey, phrase_key
from maskwise.language.word_forms import is_form_among, is_plural, to_plural
from maskwise.models.photo.choice import Choice, ChosenPhrase
from maskwise.models.photo.colors import color_share
from maskwise.models.photo.encoded_photo import EncodedPhoto
from maskwise.models.photo.proposals import Proposal
from maskwise.models.photo.question import (
    NounPhrase,
    Order,
    ParsedQuestion,
    Relation,
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
"""Weak detections that become proposals where a question asks for all objects of a category."""

MIN_COLOR = 0.15
"""Share of an object's pixels that must have a color which the question names."""

MAX_LISTED = 8
"""Categories that an answer without a target lists."""

SMALL_WORDS = word_set("the a to in on of and or with for when around many")
"""Words of uses that need not occur in a question."""

CategoryScores = list[dict[str, float]]
"""Per proposal, the categories it may be, with their scores."""


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
        anchors: list[int] = []
        if question.anchor is not None:
            anchors = _select(
                photo, _candidates(photo, scores, question.anchor), question.anchor
            )
        phrases = []
        for target in _targets(question, _sure_categories(scores)):
            candidates = _candidates(photo, scores, target)
            # Without the anchor the relation cannot be checked: the detector may have missed it.
            if question.relation is not None and anchors:
                candidates = _related(
                    photo, candidates, anchors, question.relation, target
                )
            regions = _select(photo, candidates, target)
            if regions:
                name = _name(regions, scores, target)
                phrases.append(ChosenPhrase(name, tuple(regions)))
        if not phrases:
            return _choose_nothing(scores, question)
        return _choose_phrases(phrases)


def category_scores(proposals: Sequence[Proposal], min_score: float) -> CategoryScores:
    """Per proposal, the labels that have at least this score."""
    scores = []
    for proposal in proposals:
        labels = proposal.labels.items()
        scores.append({name: score for name, score in labels if score >= min_score})
    return scores


def _targets(question: ParsedQuestion, present: set[str]) -> list[NounPhrase]:
    """What is asked for. Where the question leaves the category open, what it is for decides, or else its place."""
    named = [target for target in question.targets if target.categories]
    if named and len(named) == len(question.targets):
        return [_narrowed(target, question, present) for target in named]
    # "What could cut the bread?" does not ask for the bread.
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
    if len(target.categories) <= 1:
        return target
    suited = categories_for_use(question.words, present & target.categories)
    if not suited:
        return target
    return replace(target, categories=frozenset(suited))


def categories_for_use(words: frozenset[str], present: set[str]) -> set[str]:
    """The categories among `present` whose uses fit a question best; none if no use is mentioned."""
    fits = {name: _use_score(name, words) for name in present}
    best = max(fits.values(), default=0.0)
    if best == 0:
        return set()
    return {name for name, fit in fits.items() if fit == best}


def _use_score(category: str, words: frozenset[str]) -> float:
    """Words of uses whose words all occur in the question; a use that several categories share says less."""
    score = 0.0
    for use in _uses()[category]:
        if all(is_form_among(word, words) for word in use):
            score += len(use) / _categories_with_use()[use]
    return score


@cache
def _uses() -> dict[str, list[PhraseKey]]:
    """The uses of every category, without small words."""
    uses: dict[str, list[PhraseKey]] = {}
    for words in VOCABULARY:
        keys = [phrase_key(use) for use in words.uses]
        uses[words.category] = [
            tuple(word for word in key if word not in SMALL_WORDS) for key in keys
        ]
    return uses


@cache
def _categories_with_use() -> Counter[PhraseKey]:
    """How many categories have each use."""
    counts: Counter[PhraseKey] = Counter()
    for uses in _uses().values():
        counts.update(uses)
    return counts


def _best_category(names: dict[str, float]) -> str:
    return max(names, key=lambda name: names[name])


def _sure_categories(scores: CategoryScores) -> set[str]:
    """The categories that are surely there."""
    sure = set()
    for names in scores:
        if names and max(names.values()) >= SURE_SCORE:
            sure.add(_best_category(names))
    return sure


def _candidates(
    photo: EncodedPhoto, scores: CategoryScores, noun: NounPhrase
) -> dict[int, float]:
    """Proposals of the noun's categories and color, with their scores, by position."""
    candidates = {}
    for row, names in enumerate(scores):
        fitting = [
            score
            for name, score in names.items()
            if not noun.categories or name in noun.categories
        ]
        if not fitting or max(fitting) < MIN_SHARE * max(names.values()):
            continue
        score = max(fitting)
        if noun.color is not None:
            share = color_share(photo.pixels, photo.proposals[row].inside, noun.color)
            if share < MIN_COLOR:
                continue
            score *= share
        candidates[row] = score
    # A weak detection does not count beside a good one.
    enough = min(SURE_SCORE, MIN_SHARE * max(candidates.values(), default=0.0))
    return {row: score for row, score in candidates.items() if score >= enough}


def _related(
    photo: EncodedPhoto,
    candidates: dict[int, float],
    anchors: list[int],
    relation: Relation,
    target: NounPhrase,
) -> dict[int, float]:
    """The candidates that stand in a relation to an anchor, with its strength, by position."""
    related = {}
    for row, score in candidates.items():
        box = photo.proposals[row].box
        strengths = [
            relation_strength(relation, box, photo.proposals[anchor].box)
            for anchor in anchors
            if anchor != row
        ]
        strength = max(strengths, default=0.0)
        if strength >= MIN_STRENGTH:
            # Where a single object is asked for, the surest detection counts more.
            related[row] = strength * score if target.count == 1 else strength
    return related


def _select(
    photo: EncodedPhoto, candidates: dict[int, float], noun: NounPhrase
) -> list[int]:
    """As many of the candidates as the noun asks for, by its order or else by score."""
    best = sorted(candidates, key=lambda row: -candidates[row])
    if noun.order is not None:
        # Sorting is stable: among equals the better score comes first.
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
    keys: dict[Order | None, float] = {
        None: 0.0,
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
    return keys[order]


def _name(regions: list[int], scores: CategoryScores, target: NounPhrase) -> str:
    """The word of the question, or the category where the question did not name it."""
    if target.text and target.categories:
        return f"the {target.text}"
    counts = Counter(_best_category(scores[row]) for row in regions)
    names = []
    for name, count in counts.items():
        names.append(f"the {to_plural(name)}" if count > 1 else f"the {name}")
    return " and ".join(names)


def _choose_phrases(phrases: list[ChosenPhrase]) -> Choice:
    text = " and ".join(phrase.text for phrase in phrases)
    start = "They are" if is_plural(text) else "It is"
    return Choice(f"{start} {text}.", tuple(phrases))


def _choose_nothing(scores: CategoryScores, question: ParsedQuestion) -> Choice:
    """An answer without a target, which says what could have been asked for."""
    sure = _sure_categories(scores)
    listed = [name for name in COCO_CATEGORIES if name in sure]
    asked = [target.text for target in question.targets if target.categories]
    problem = "I do not know what this asks for."
    if asked:
        problem = f"I find no such {asked[0]}."
    hint = "I find no object that I know."
    if listed:
        hint = f"I can find these: {', '.join(listed[:MAX_LISTED])}."
    return Choice(f"{problem} {hint}")
