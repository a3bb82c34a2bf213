"""Questions of the grammar about parts of objects, alone and together with the objects; neither is named."""

import itertools
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from maskwise.builder.facts import RegionFacts
from maskwise.builder.grammar import (
    MAX_TARGETS,
    AnswerPhrase,
    ProposedQuestion,
    enumerate_phrases,
)
from maskwise.builder.knowledge import PartFact, load_knowledge
from maskwise.builder.logical_forms import (
    Either,
    Form,
    HasPartFact,
    OfKind,
    TheRegion,
)
from maskwise.builder.object_questions import MOST_PROPOSED, GrammarContext
from maskwise.builder.wording import base_form, plural_form, third_person
from maskwise.language.word_forms import NUMBERS, to_plural


class PartUse(NamedTuple):
    """Parts of one object of which a fact is true, with phrases for them."""

    whole: RegionFacts
    fact: PartFact
    parts: list[RegionFacts]
    phrases: list[AnswerPhrase]

    @property
    def form(self) -> Form:
        """The parts of this one object."""
        return HasPartFact(self.fact.key, TheRegion(self.whole.number))

    def verb(self, whole: str) -> str:
        """The verb phrase of the fact after "which part": "keeps it from falling"."""
        text = self.fact.text.replace("@", whole)
        if self.fact.kind == "use":
            return f"would you {base_form(text)}"
        return plural_form(text) if len(self.parts) > 1 else third_person(text)


@lru_cache(maxsize=2)  # four families of questions ask for the same
def find_parts(context: GrammarContext) -> list[PartUse]:
    """All facts about parts that the annotations settle, object by object."""
    uses = []
    knowledge = load_knowledge()
    for whole in context.facts.objects:
        if whole.id not in context.facts.parts_of or whole.id not in context.names:
            continue
        for fact in knowledge.part_facts_of.get(whole.noun.known or "", ()):
            form = HasPartFact(fact.key, TheRegion(whole.number))
            parts = context.targets_of(form)
            phrases = _refer(context, whole, parts)
            if phrases is not None:
                uses.append(PartUse(whole, fact, parts, phrases))
    return uses


def ask_parts(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """What a part is for: "Which part of the drinking vessel would you grip?"."""
    for use in context.sample(find_parts(context), MOST_PROPOSED):
        whole = _describe_whole(context, use.whole)
        if whole is None:
            continue
        question = _ask_for_parts(context, use, whole)
        yield ProposedQuestion(
            question, _answer(context, use), "part", tuple(use.parts), use.form
        )


def _ask_for_parts(context: GrammarContext, use: PartUse, whole: str) -> str:
    noun = "parts" if len(use.parts) > 1 else "part"
    text = use.fact.text
    if use.fact.kind == "use" and "@" in text:
        verb = base_form(text.replace("@", whole))
        return context.random.choice(
            ("What would you {}?", "What would somebody {}?", "Mark what one would {}.")
        ).format(verb)
    if "@" in text:
        return context.random.choice(
            (
                f"Which {noun} {use.verb(whole)}?",
                f"Mark the {noun} that {use.verb(whole)}.",
            )
            if use.fact.kind == "does"
            else (f"Which {noun} {use.verb(whole)}?",)
        )
    return context.random.choice(
        (
            f"Which {noun} of {whole} {use.verb(whole)}?",
            f"Look at {whole}: which {noun} {use.verb('it')}?",
            f"On {whole}, which {noun} {use.verb('it')}?",
        )
    )


def _describe_whole(context: GrammarContext, whole: RegionFacts) -> str | None:
    """A phrase for an object without its name: by its kind and place, or by what is true of it."""
    described = [item.description for item in context.stated if item.objects == [whole]]
    by_kind = context.descriptions.get(whole.id)
    if by_kind is not None and (not described or context.random.random() < 0.6):
        return by_kind
    return context.random.choice(described) if described else None


def _answer(context: GrammarContext, use: PartUse) -> tuple[str | AnswerPhrase, ...]:
    if use.fact.kind == "use":
        opening = context.random.choice(("that would be ", "the answer is "))
        return (opening, *enumerate_phrases(use.phrases), ".")
    return (*enumerate_phrases(use.phrases), f" {_does(use)}.")


def _does(use: PartUse) -> str:
    """The verb phrase of the fact after the names of the parts."""
    pronoun = "them" if use.whole.noun.is_plural else "it"
    text = use.fact.text.replace("@", pronoun)
    if use.fact.kind == "use":
        verb = "are" if _is_plural(use) else "is"
        return f"{verb} what one would {base_form(text)}"
    return plural_form(text) if _is_plural(use) else third_person(text)


def _is_plural(use: PartUse) -> bool:
    return len(use.parts) > 1 or use.parts[0].noun.is_plural


def ask_two_parts(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """Two parts of one object by what they are for."""
    pairs = [
        (first, second)
        for first, second in itertools.combinations(find_parts(context), 2)
        if first.whole is second.whole and not _overlap(first, second)
    ]
    for first, second in context.sample(pairs, MOST_PROPOSED):
        whole = _describe_whole(context, first.whole)
        if whole is None or len(first.parts) + len(second.parts) > MAX_TARGETS:
            continue
        nouns = ["parts" if len(use.parts) > 1 else "part" for use in (first, second)]
        question = context.random.choice(
            (
                f"Which {nouns[0]} of {whole} {first.verb('it')}, and which {second.verb('it')}?",
                f"Look at {whole}. Which {nouns[0]} {first.verb('it')}, and which {nouns[1]} {second.verb('it')}?",
            )
        )
        answer = (
            *enumerate_phrases(first.phrases),
            f" {_does(first)}, and ",
            *enumerate_phrases(second.phrases),
            f" {_does(second)}.",
        )
        about = (*first.parts, *second.parts)
        form = Either((first.form, second.form))
        yield ProposedQuestion(question, answer, "two parts", about, form)


def _overlap(first: PartUse, second: PartUse) -> bool:
    numbers = {part.number for part in first.parts}
    return any(part.number in numbers for part in second.parts)


def ask_objects_with_parts(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """An object by its use, and parts of it: "What barks, and which part of it wags?"."""
    uses = find_parts(context)
    pairs = [
        (item, use)
        for item in context.stated
        for use in uses
        if item.objects == [use.whole]
    ]
    for item, use in context.sample(pairs, MOST_PROPOSED):
        noun = "parts" if len(use.parts) > 1 else "part"
        text = use.fact.text
        asked = f"which {noun} of it {use.verb('it')}"
        if "@" in text:
            asked = f"which {noun} {use.verb('it')}"
        question = context.random.choice(
            (
                f"Find {item.description}. Also, {asked}?",
                f"Where is {item.description}, and {asked}?",
                f"Please mark {item.description}. And {asked}?",
                f"Can you show me {item.description}, and tell me {asked}?",
            )
        )
        answer = (
            "that is ",
            item.phrases[0],
            "; ",
            *enumerate_phrases(use.phrases),
            f" {_does(use)}.",
        )
        about = (*item.objects, *use.parts)
        form = Either((item.form, HasPartFact(use.fact.key, item.form)))
        yield ProposedQuestion(question, answer, "object and part", about, form)


def ask_alike_parts(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """The same function on all objects of a kind: "Which parts of the vehicles turn round and round?"."""
    uses = find_parts(context)
    by_fact: dict[str, list[PartUse]] = {}
    for use in uses:
        if "@" not in use.fact.text:
            by_fact.setdefault(use.fact.key, []).append(use)
    for kind, noun_class in load_knowledge().kinds.items():
        group = context.targets_of(OfKind(kind))
        if len(group) < 2:
            continue
        for key, alike in by_fact.items():
            members = [use for use in alike if use.whole in group]
            parts = [part for use in members for part in use.parts]
            # A kind is asked about only if every object of it has such a part.
            if len(members) < len(group) or len(parts) > MAX_TARGETS:
                continue
            fact = members[0].fact
            plural = (
                f"would you {base_form(fact.text)}"
                if fact.kind == "use"
                else plural_form(fact.text)
            )
            question = f"Which parts of the {noun_class.plural} {plural}?"
            phrases = [phrase for use in members for phrase in use.phrases]
            answer = ("these are ", *enumerate_phrases(phrases), ".")
            form = HasPartFact(key, OfKind(kind))
            yield ProposedQuestion(question, answer, "alike parts", tuple(parts), form)


def _refer(
    context: GrammarContext, whole: RegionFacts, parts: Sequence[RegionFacts]
) -> list[AnswerPhrase] | None:
    """Phrases for parts of one object; None if one cannot be asked about or the object cannot be singled out."""
    if (
        whole.id not in context.names
        or not parts
        or not all(context.can_ask(part) for part in parts)
        or len(parts) > MAX_TARGETS
    ):
        return None
    owner = context.names[whole.id]
    nouns = {part.noun.text for part in parts}
    if len(nouns) == len(parts):
        return [
            AnswerPhrase(f"the {part.noun.text} of {owner}", (part.number,))
            for part in parts
        ]
    if len(nouns) > 1:
        # "the two legs and the seat" would need a phrase for each of the legs.
        return None
    numbers = tuple(part.number for part in parts)
    plural = to_plural(parts[0].noun.text)
    return [AnswerPhrase(f"the {NUMBERS[len(parts)]} {plural} of {owner}", numbers)]
