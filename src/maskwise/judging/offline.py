"""The offline judge: an answer is right if its words name the targets, by name, synonym, kind or plural.

It compares words and masks and knows nothing of the image. Where an answer says more than the truth does, or names a
target by less than its name, the verdict is the most likely one and not certain: a language model, or a person, has to
look.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from maskwise.judging.case import AnswerCase
from maskwise.language.category_names import PREPOSITIONS
from maskwise.language.naming import (
    Naming,
    affirmed,
    find_naming,
    noun_of,
    other_colors,
    says_absent,
    unexplained_words,
    words_for,
)
from maskwise.language.tokens import split_words
from maskwise.language.word_forms import join_words, singular_forms
from maskwise.protocols.answers import normalise
from maskwise.runs.judgments import Verdict
from maskwise.schema import Region

MAX_WORDS = 5
"""Unexplained words that a reason quotes."""

LANDMARKS = PREPOSITIONS - {"of", "and"}
"""Words after which a thing may be named to say where another one is: "the one on the table"."""


@dataclass(frozen=True)
class NamedRegions:
    """What an answer names: targets by id with how they are named, and other regions of the image."""

    targets: dict[str, Naming]
    others: list[Region]

    def is_named_fully(self, target: Region) -> bool:
        """Whether all words of a target's name are said."""
        return self.targets.get(target.id) == "full"


def judge_words(case: AnswerCase) -> Verdict:
    """The verdict on one answer, by its words and masks alone."""
    if case.answer is None:
        return Verdict(
            sample=case.sample.id,
            correct=False,
            grounded=False,
            complete=False,
            hallucinated=False,
            reason=case.why_no_answer,
            origin="no answer",
        )
    if not case.sample.targets:
        return _judge_without_targets(case, case.answer)
    named = _find_named(case, affirmed(case.answer))
    is_denied = says_absent(case.answer) and not named.targets
    no_target = case.prediction is not None and case.prediction.no_target
    if is_denied or (no_target and not named.targets):
        return Verdict(
            sample=case.sample.id,
            correct=False,
            grounded=False,
            complete=False,
            hallucinated=False,
            reason="the answer says that nothing is there, but there is a target",
            certain=no_target,
        )
    return _judge_names(case, case.answer, named)


def _judge_without_targets(case: AnswerCase, answer: str) -> Verdict:
    """Where nothing is asked for that is there, the right answer says so."""
    assert case.prediction is not None, "there is an answer"
    regions = case.prediction.regions
    is_right = case.prediction.no_target or says_absent(answer)
    known = [case.sample.question, case.true_answer or ""]
    is_plain = case.prediction.no_target or not unexplained_words(answer, known)
    reason = "the answer says, rightly, that nothing is there"
    if not is_right:
        reason = "nothing is there, but the answer does not say so"
    return Verdict(
        sample=case.sample.id,
        correct=is_right,
        grounded=is_right and not regions,
        complete=is_right,
        hallucinated=not is_right,
        reason=reason,
        # Words without a mask may say that nothing is there in a way that is not in our list.
        certain=is_plain if is_right else bool(regions),
    )


def _judge_names(case: AnswerCase, answer: str, named: NamedRegions) -> Verdict:
    """Whether the answer names all targets, and nothing else in their place."""
    targets = case.sample.targets
    is_same = normalise(answer) == normalise(case.true_answer or "")
    missing = [target for target in targets if target.id not in named.targets]
    unsure = [target for target in targets if not named.is_named_fully(target)]
    known = [case.sample.question, case.true_answer or ""]
    for target in targets:
        known += [target.name, words_for(affirmed(answer), target.name)]
    known += [region.name for region in named.others]
    wrong_colors = other_colors(affirmed(answer), known) if unsure else []
    unexplained = unexplained_words(affirmed(answer), known)
    complete = is_same or not missing
    extra = [] if is_same else named.others
    correct = complete and not extra and not wrong_colors
    is_accepted = is_same or (correct and not unsure and not unexplained)
    # All words are understood, and they do not name the target.
    is_refused = (
        bool(missing)
        and len(unsure) == len(missing)
        and bool(named.targets or extra)
        and not unexplained
        and LANDMARKS.isdisjoint(split_words(answer))
    )
    return Verdict(
        sample=case.sample.id,
        correct=correct,
        grounded=_is_grounded(case, named),
        complete=complete,
        hallucinated=bool(wrong_colors) or _names_absent(case, unexplained),
        reason=_explain(missing, unsure, extra, wrong_colors, unexplained),
        certain=is_accepted or is_refused,
    )


def _find_named(case: AnswerCase, text: str) -> NamedRegions:
    targets = case.sample.targets
    counts = Counter(target.name for target in targets)
    namings = {}
    for target in targets:
        naming = find_naming(text, target.name, counts[target.name])
        if naming is not None:
            namings[target.id] = naming
    # What the question or the true answer mentions is no wrong target.
    mentioned = " ".join([case.sample.question, case.true_answer or ""])
    others = []
    for region in case.others:
        if region.name in counts or find_naming(mentioned, region.name) == "full":
            continue
        if _is_related(region, targets) or not region.name.strip():
            continue
        if find_naming(text, region.name) == "full":
            others.append(region)
    # "The grey lid" is no short name of the orange one if a grey lid is there.
    taken = {noun_of(region.name) for region in others}
    for target in targets:
        if namings.get(target.id) == "short" and noun_of(target.name) in taken:
            del namings[target.id]
    return NamedRegions(namings, others)


def _names_absent(case: AnswerCase, words: Sequence[str]) -> bool:
    """Whether a word is a noun of the dataset that no region of the image has."""
    nouns = {noun_of(region.name) for region in case.others}
    absent = case.vocabulary - nouns
    return any(not singular_forms(word).isdisjoint(absent) for word in words)


def _is_related(region: Region, targets: Sequence[Region]) -> bool:
    """Whether a region is a part of a target, or a target a part of it: naming either may mean the other."""
    ids = {target.id for target in targets}
    return region.part_of in ids or any(
        target.part_of == region.id for target in targets
    )


def _is_grounded(case: AnswerCase, named: NamedRegions) -> bool:
    """Whether a predicted mask is on everything that is named: by the phrase that names it, where phrases are known."""
    prediction = case.prediction
    assert prediction is not None, "there is an answer"
    things = [target for target in case.sample.targets if target.id in named.targets]
    things += named.others
    return bool(things) and all(
        any(thing.id in case.overlaps[number] for number in _meant(case, thing))
        for thing in things
    )


def _meant(case: AnswerCase, thing: Region) -> list[int]:
    """The predicted regions that the words for a thing refer to; all of them where no phrase names it."""
    prediction = case.prediction
    assert prediction is not None, "there is an answer"
    if prediction.answer is None or not prediction.answer.phrases:
        return list(range(len(prediction.regions)))
    text = prediction.answer.text
    numbers: list[int] = []
    for phrase in prediction.answer.phrases:
        if find_naming(text[phrase.start : phrase.stop], thing.name) is not None:
            numbers += phrase.regions
    return numbers


def _explain(
    missing: Sequence[Region],
    unsure: Sequence[Region],
    extra: Sequence[Region],
    colors: Sequence[str],
    unexplained: Sequence[str],
) -> str:
    """Why the verdict is what it is."""
    reasons = []
    if missing:
        reasons.append(f"does not name {_join_names(missing)}")
    if extra:
        reasons.append(f"names {_join_names(extra)}, which is not asked for")
    if colors:
        reasons.append(f"says {join_words(colors)}, which the truth does not")
    short = [target for target in unsure if target not in missing]
    if short:
        reasons.append(f"names {_join_names(short)} by less than the whole name")
    if unexplained:
        words = join_words([f'"{word}"' for word in unexplained[:MAX_WORDS]])
        reasons.append(f"also says {words}")
    return "the answer " + "; ".join(reasons or ["names what is asked for"])


def _join_names(regions: Sequence[Region]) -> str:
    names = list(dict.fromkeys(f'"{region.name}"' for region in regions))
    return join_words(names)
