"""The offline chooser: matches the words of a question with the detector's categories and with measured attributes.

It knows the 80 categories of COCO, words for them, kinds of things ("animal"), what they are for, positions, sizes,
colors and simple relations. It does not reason. When nothing matches it says so and lists what it can find. Where a
question takes a target for granted and no word tells which, it guesses what stands out, and says that this is a guess.

Where the photo has a labeler, nouns that are in no table are looked for among all proposals, by their words.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from maskwise.language.lexicons import word_set
from maskwise.language.phrases import PhraseKey, phrase_key
from maskwise.language.word_forms import (
    is_form_among,
    is_plural,
    join_words,
    to_plural,
    to_singular,
    with_article,
)
from maskwise.models.photo.choice import Choice, ChosenPhrase
from maskwise.models.photo.colors import color_share
from maskwise.models.photo.encoded_photo import EncodedPhoto
from maskwise.models.photo.modifiers import Order
from maskwise.models.photo.proposals import Proposal, mask_iou
from maskwise.models.photo.question import (
    NounPhrase,
    ParsedQuestion,
    PartPlace,
    RelationTo,
    parse_question,
    part_places,
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

UNDECIDED = 0.5
"""Probability of an order about which the completion network says nothing; then the boxes tell. On 46 pairs of COCOA's
5 photos the network is right in 76 %, with boxes wherever it is within 0.1 of this in 70 %, boxes alone in 46 %."""

SAME_OBJECT = 0.7
"""A proposal with a larger IoU with something that the question leaves out is left out too."""

MIN_INSIDE = 0.85
MAX_PART = 0.6
"""A part lies inside the whole with this share of its pixels, and has at most this share of those of the whole."""

MIN_RELATIVE_STRENGTH = 0.5
"""Of all objects in a relation those count that stand in it at least so well, relative to the best."""

GUESSED = "this region"
"""What an answer calls a region that it has no word for."""

SMALL_WORDS = word_set("the a to in on of and or with for when around many")
"""Words of uses that need not occur in a question."""

CategoryScores = list[dict[str, float]]
"""Per proposal, the categories it may be, with their scores."""


class MatchChooser:
    """Chooses by words. min_score: lowest score of a detection that may be an answer. guess: whether the most plausible
    region is returned, and called a guess, where a question takes a target for granted and no word tells which.
    """

    name = "match"

    def __init__(self, min_score: float = MIN_SCORE, *, guess: bool = True) -> None:
        self.min_score = min_score
        self.guess = guess

    def choose(self, photo: EncodedPhoto, questions: Sequence[str]) -> list[Choice]:
        """One choice per question, in order."""
        open_nouns = photo.labeler is not None
        if open_nouns:
            # For every question, so that an answer does not depend on the questions before it.
            photo.look_around()
        return [
            self._choose(photo, parse_question(question, open_nouns=open_nouns))
            for question in questions
        ]

    def _choose(self, photo: EncodedPhoto, question: ParsedQuestion) -> Choice:
        for noun in _mentioned_nouns(question):
            photo.look_for(
                noun.categories,
                noun.count or MAX_LOOKED_FOR,
                at_least=noun.count if noun.numbered and noun.count else 1,
            )
        open_labels = _find_open_labels(photo, question)
        scores = category_scores(photo.proposals, self.min_score)
        for name, labelled in open_labels.items():
            for row, probability in labelled.items():
                scores[row][name] = probability
        excluded = _excluded(photo, scores, question)
        phrases = []
        remarks = []
        problems = []
        for target in _targets(question, _sure_categories(scores)):
            selection = _find(photo, scores, target, excluded)
            if not selection.regions:
                problems.append(selection.problem)
            elif target.part is not None:
                return self._choose_part(photo, target, selection.regions)
            else:
                name = _name(selection.regions, scores, target, question)
                phrases.append(ChosenPhrase(name, tuple(selection.regions)))
                remarks += selection.remarks
        if phrases:
            return _choose_phrases(phrases, remarks, question)
        if self.guess and _may_guess(question):
            guess = _guess(photo)
            if guess is not None:
                return guess
        return _choose_nothing(scores, question, problems)

    def _choose_part(
        self, photo: EncodedPhoto, target: NounPhrase, owners: list[int]
    ) -> Choice:
        """Parts have no detector. A proposal inside the whole may be the part: the labeler tells, or it is a guess."""
        if self.guess or photo.labeler is not None:
            for owner in owners:
                photo.look_inside(owner)
        scores = category_scores(photo.proposals, self.min_score)
        whole = f"the {target.text}"
        part = f"the {target.part} of {whole}"
        labelled = _labelled_parts(photo, owners, to_singular(target.part or ""))
        if labelled:
            return Choice(f"It is {part}.", (ChosenPhrase(part, tuple(labelled)),))
        regions = find_part(photo, scores, owners, target.part or "")
        if self.guess and regions:
            return Choice(
                f"I know whole objects, not their parts. My guess at {part} is {GUESSED}.",
                (ChosenPhrase(GUESSED, tuple(regions)),),
            )
        return Choice(
            f"I know whole objects, not their parts such as {part}. I can find {whole}."
        )


def _find_open_labels(
    photo: EncodedPhoto, question: ParsedQuestion
) -> dict[str, dict[int, float]]:
    """For every noun of a question that is in no table the proposals it labels, with probabilities."""
    names: set[str] = set()
    for noun in _mentioned_nouns(question):
        names |= noun.categories - _known_categories()
    return {name: photo.label(name) for name in sorted(names)}


@cache
def _known_categories() -> frozenset[str]:
    return frozenset(COCO_CATEGORIES)


def _labelled_parts(photo: EncodedPhoto, owners: Sequence[int], part: str) -> list[int]:
    """The likeliest part of this name inside each owner, where the labeler finds one."""
    parts = []
    for owner in owners:
        inside = [
            row
            for row in range(len(photo.proposals))
            if _is_inside(photo.proposals[row], photo.proposals[owner])
        ]
        labelled = photo.label(part, among=inside)
        if labelled:
            parts.append(max(labelled, key=lambda row: labelled[row]))
    return parts


class _Selection(NamedTuple):
    """regions: positions of proposals. problem: why there are none. remarks: what the answer should add."""

    regions: list[int]
    problem: str
    remarks: list[str]


def _mentioned_nouns(question: ParsedQuestion) -> list[NounPhrase]:
    """The targets and exceptions, and what they are related to."""
    nouns = []
    for noun in (*question.targets, *question.exceptions):
        nouns.append(noun)
        if noun.relation is not None:
            nouns.append(noun.relation.anchor)
    return nouns


def _excluded(
    photo: EncodedPhoto, scores: CategoryScores, question: ParsedQuestion
) -> set[int]:
    """The proposals that the question leaves out, and those that show the same."""
    excluded: set[int] = set()
    for exception in question.exceptions:
        excluded.update(_find(photo, scores, exception, set()).regions)
    same = set()
    for row, proposal in enumerate(photo.proposals):
        for other in excluded:
            if mask_iou(proposal.inside, photo.proposals[other].inside) > SAME_OBJECT:
                same.add(row)
    return excluded | same


def _find(
    photo: EncodedPhoto,
    scores: CategoryScores,
    target: NounPhrase,
    excluded: set[int],
) -> _Selection:
    """The proposals that a noun phrase means. A relation to something that is not found cannot be checked: the detector
    may have missed it.
    """
    name = target.text or "object"
    present = _candidates(photo, scores, replace(target, color=None, other_than=None))
    if not present:
        return _Selection([], f"I find no such {name}.", [])
    candidates = _candidates(photo, scores, target)
    if not candidates:
        return _Selection(
            [], f"I find {with_article(name)}, but none that is {_colors(target)}.", []
        )
    candidates = {
        row: score for row, score in candidates.items() if row not in excluded
    }
    if not candidates:
        return _Selection([], f"I find no {name} besides what is left out.", [])
    remarks = []
    if target.relation is not None:
        relation = target.relation
        anchor = relation.anchor
        anchors = _select(photo, _candidates(photo, scores, anchor), anchor)
        if anchors:
            candidates = _related(photo, candidates, anchors, relation, target)
        elif not relation.negated:
            remarks.append(f"I find no {anchor.text} to compare with.")
        if not candidates:
            problem = f"I find {with_article(name)}, but none {_in_words(relation)}."
            return _Selection([], problem, [])
    regions = _select(photo, candidates, target)
    if target.numbered and target.count and len(regions) < target.count:
        remarks.append(f"I find only {len(regions)} of {target.count}.")
    return _Selection(regions, "", remarks)


def _colors(target: NounPhrase) -> str:
    return target.color or f"not {target.other_than}"


def _in_words(relation: RelationTo) -> str:
    """As in "behind the car"."""
    anchor = relation.anchor.text
    if relation.inverted:
        return f"that the {anchor} is {relation.words}"
    if relation.words == "without":
        return f"without {with_article(anchor)}"
    words = f"{relation.words} the {anchor}"
    return f"that is not {words}" if relation.negated else words


def category_scores(proposals: Sequence[Proposal], min_score: float) -> CategoryScores:
    """Per proposal, the labels that have at least this score."""
    scores = []
    for proposal in proposals:
        labels = proposal.labels.items()
        scores.append({name: score for name, score in labels if score >= min_score})
    return scores


def _targets(question: ParsedQuestion, present: set[str]) -> list[NounPhrase]:
    """What is asked for. Where the question leaves the category open, its use decides, or else the description."""
    named = [target for target in question.targets if target.categories]
    if named and len(named) == len(question.targets):
        return [_narrowed(target, question, present) for target in named]
    first = question.targets[0] if question.targets else NounPhrase(frozenset(), "")
    # "What could cut the bread?" does not ask for the bread.
    suited = categories_for_use(question.words, present - question.mentioned)
    if suited:
        return [replace(first, categories=frozenset(suited), text="", count=None)]
    # "the thing on the table", "everything except the cup"
    if named:
        return []
    return [
        target
        for target in question.targets
        if target.described or (question.exceptions and target.count is None)
    ]


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
    # What only the labeler knows has no uses.
    for use in _uses().get(category, ()):
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
        inside = photo.proposals[row].inside
        if noun.color is not None:
            share = color_share(photo.pixels, inside, noun.color)
            if share < MIN_COLOR:
                continue
            score *= share
        if noun.other_than is not None:
            share = color_share(photo.pixels, inside, noun.other_than)
            if share >= MIN_COLOR:
                continue
        candidates[row] = score
    # A weak detection does not count beside a good one, unless the number that is asked for needs it.
    enough = min(SURE_SCORE, MIN_SHARE * max(candidates.values(), default=0.0))
    good = {row: score for row, score in candidates.items() if score >= enough}
    if noun.numbered and noun.count and len(good) < noun.count:
        best = sorted(candidates, key=lambda row: -candidates[row])
        return {row: candidates[row] for row in best[: noun.count]}
    return good


def _related(
    photo: EncodedPhoto,
    candidates: dict[int, float],
    anchors: list[int],
    relation: RelationTo,
    target: NounPhrase,
) -> dict[int, float]:
    """The candidates that stand in a relation to an anchor, or to none if it is negated, with its strength, by
    position.
    """
    related = {}
    for row, score in candidates.items():
        strengths = [
            _strength(photo, row, anchor, relation)
            for anchor in anchors
            if anchor != row
        ]
        strength = max(strengths, default=0.0)
        if relation.negated:
            if strength < MIN_STRENGTH and row not in anchors:
                related[row] = score
        elif strength >= MIN_STRENGTH:
            # Where a single object is asked for, the surest detection counts more.
            related[row] = strength * score if target.count == 1 else strength
    if relation.negated or target.count == 1:
        return related
    clear = MIN_RELATIVE_STRENGTH * max(related.values(), default=0.0)
    return {row: strength for row, strength in related.items() if strength >= clear}


def _strength(
    photo: EncodedPhoto, row: int, anchor: int, relation: RelationTo
) -> float:
    """How well a proposal stands in a relation to another one, from 0 to 1."""
    if relation.inverted:
        row, anchor = anchor, row
    if relation.name in {"behind", "in_front_of"}:
        front, back = (anchor, row) if relation.name == "behind" else (row, anchor)
        order = photo.front_probability(front, back)
        if order is not None and order != UNDECIDED:
            return order if order > UNDECIDED else 0.0
    return relation_strength(
        relation.name, photo.proposals[row].box, photo.proposals[anchor].box
    )


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


def _name(
    regions: list[int],
    scores: CategoryScores,
    target: NounPhrase,
    question: ParsedQuestion,
) -> str:
    """The word of the question, or the category where the question did not name it; with a number where it counts."""
    text = target.text if target.categories else ""
    if question.counts and text:
        number = len(regions)
        singular = " ".join((*text.split()[:-1], to_singular(text.split()[-1])))
        return f"{number} {to_plural(singular) if number > 1 else singular}"
    if text:
        return f"the {text}"
    counts = Counter(_best_category(scores[row]) for row in regions)
    names = []
    for name, count in counts.items():
        names.append(f"the {to_plural(name)}" if count > 1 else f"the {name}")
    return " and ".join(names)


def _choose_phrases(
    phrases: list[ChosenPhrase], remarks: list[str], question: ParsedQuestion
) -> Choice:
    # "the red and the blue cup" are two targets of one name.
    merged: dict[str, tuple[int, ...]] = {}
    for phrase in phrases:
        regions = merged.get(phrase.text, ())
        new = tuple(region for region in phrase.regions if region not in regions)
        merged[phrase.text] = regions + new
    texts = []
    chosen = []
    for text, regions in merged.items():
        several = len(regions) > len(phrases[0].regions) and len(merged) == 1
        name = to_plural(text) if several and not question.counts else text
        texts.append(name)
        chosen.append(ChosenPhrase(name, regions))
    text = " and ".join(texts)
    plural = is_plural(text) or (question.counts and not text.startswith("1 "))
    if question.counts:
        start = "There are" if plural else "There is"
    else:
        start = "They are" if plural else "It is"
    return Choice(" ".join((f"{start} {text}.", *remarks)), tuple(chosen))


def _choose_nothing(
    scores: CategoryScores, question: ParsedQuestion, problems: Sequence[str]
) -> Choice:
    """An answer without a target, which says what could have been asked for."""
    sure = _sure_categories(scores)
    listed = [name for name in COCO_CATEGORIES if name in sure]
    if problems:
        problem = problems[0]
    elif question.exceptions:
        names = join_words([f"the {one.text}" for one in question.exceptions], "or")
        problem = f"This leaves out {names}, and asks for nothing else that I know."
    else:
        problem = "I do not know what this asks for."
    hint = "I find no object that I know."
    if listed:
        hint = f"I can find these: {', '.join(listed[:MAX_LISTED])}."
    return Choice(f"{problem} {hint}")


def _may_guess(question: ParsedQuestion) -> bool:
    """Whether a guess is better than no answer: there is a target by the question, and no word of it names a category
    that would have been found.
    """
    names_category = any(
        target.categories and not _is_kind(target) for target in question.targets
    )
    return question.presupposes and not names_category and not question.exceptions


def _is_kind(target: NounPhrase) -> bool:
    """Whether a noun means several categories, as "animal" does."""
    return len(target.categories) > 1


def _guess(photo: EncodedPhoto) -> Choice | None:
    """The proposal that is most like what stands out."""
    if not photo.proposals or not photo.salient.any():
        return None
    fits = [mask_iou(proposal.inside, photo.salient) for proposal in photo.proposals]
    best = int(np.argmax(fits))
    text = f"I do not know what this asks for. My guess is {GUESSED}, because it stands out."
    return Choice(text, (ChosenPhrase(GUESSED, (best,)),))


def find_part(
    photo: EncodedPhoto, scores: CategoryScores, owners: Sequence[int], part: str
) -> list[int]:
    """A proposal inside each of the owners that may be the part of this name: where such a part usually is, the surest
    first. Empty if nothing is inside.
    """
    regions = []
    place = part_places().get(to_singular(part), "anywhere")
    for owner in owners:
        whole = photo.proposals[owner]
        fits = {}
        for row, proposal in enumerate(photo.proposals):
            is_other_object = max(scores[row].values(), default=0.0) >= SURE_SCORE
            if _is_inside(proposal, whole) and not is_other_object:
                fits[row] = proposal.score * _place_fit(proposal, whole, place)
        if fits:
            regions.append(max(fits, key=lambda row: fits[row]))
    return regions


def _is_inside(part: Proposal, whole: Proposal) -> bool:
    """Whether a proposal may be a part of another one."""
    shared = int((part.inside & whole.inside).sum())
    lies_inside = shared >= MIN_INSIDE * part.pixels
    return lies_inside and part.pixels <= MAX_PART * whole.pixels


def _place_fit(part: Proposal, whole: Proposal, place: PartPlace) -> float:
    """From 0 to 1: how well the center of a part lies where it should."""
    height = (part.box.center_y - whole.box.top) / max(1.0, whole.box.height)
    if place == "anywhere":
        return 1.0
    wanted = height if place == "bottom" else 1 - height
    return min(1.0, max(0.0, wanted))
