"""Questions of the grammar about parts of objects, alone and together with the objects; neither is named."""

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from maskwise.builder.facts import RegionFacts, suitable
from maskwise.builder.grammar import (
    MAX_TARGETS,
    AnswerPhrase,
    ProposedQuestion,
    enumerate_phrases,
)
from maskwise.builder.knowledge import PartTrait, load_knowledge
from maskwise.builder.object_questions import GrammarContext
from maskwise.language.word_forms import NUMBERS, to_plural


class PartUse(NamedTuple):
    """Parts of one object that are good for something, all that the object has, and the phrase for them."""

    whole: RegionFacts
    trait: PartTrait
    parts: tuple[RegionFacts, ...]
    phrases: list[AnswerPhrase]


def find_parts(context: GrammarContext) -> list[PartUse]:
    """All uses of parts that the annotations settle, object by object."""
    uses = []
    for whole in context.facts.objects:
        parts = context.facts.parts_of.get(whole.id, ())
        present = {part.noun.text for part in parts}
        for trait in load_knowledge().part_traits.values():
            fits = present & trait.parts and not present & trait.maybe
            if not fits or (trait.of and whole.noun.known not in trait.of):
                continue
            wanted = tuple(part for part in parts if part.noun.text in trait.parts)
            phrases = _refer(context, whole, wanted)
            if phrases is not None:
                uses.append(PartUse(whole, trait, wanted, phrases))
    return uses


def ask_parts(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """What a part is for: "Where would your hand go to hold the drinking vessel?"."""
    for whole, trait, parts, phrases in find_parts(context):
        if whole.id in context.descriptions:
            question = context.random.choice(trait.ask).replace(
                "{whole}", context.descriptions[whole.id]
            )
            answer = (*enumerate_phrases(phrases), f" would {trait.does}.")
            yield ProposedQuestion(question, answer, "part", parts)


def ask_two_parts(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """Two parts of one object by what they are for."""
    for a, b in itertools.combinations(find_parts(context), 2):
        whole = context.descriptions.get(a.whole.id)
        if a.whole is not b.whole or whole is None or set(a.parts) & set(b.parts):
            continue
        question = f"Which parts of {whole} would {a.trait.does}, and which would {b.trait.does}?"
        answer = (
            *enumerate_phrases(a.phrases),
            f" would {a.trait.does}, and ",
            *enumerate_phrases(b.phrases),
            f" would {b.trait.does}.",
        )
        yield ProposedQuestion(question, answer, "two parts", (*a.parts, *b.parts))


def ask_objects_with_parts(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """An object by its use, and one of its parts: "What could cut bread, and where would you hold it?"."""
    by_whole: dict[str, list[PartUse]] = {}
    for use in find_parts(context):
        by_whole.setdefault(use.whole.id, []).append(use)
    for _, trait, objects, (name, *_) in context.answerable:
        if len(objects) != 1 or objects[0].id not in by_whole:
            continue
        part = context.random.choice(by_whole[objects[0].id])
        asked = _say_it(context.random.choice(part.trait.ask))
        question = (
            f"{context.random.choice(trait.ask)} And {asked[:1].lower()}{asked[1:]}"
        )
        answer = (
            name,
            f" would {trait.does}, and ",
            *enumerate_phrases(part.phrases),
            f" would {part.trait.does}.",
        )
        yield ProposedQuestion(
            question, answer, "object and part", (*objects, *part.parts)
        )


def ask_alike_parts(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """The same function on all objects of a kind: "Which parts of the vehicles would roll along the ground?"."""
    uses = find_parts(context)
    functions = sorted({use.trait.does for use in uses})
    for kind in load_knowledge().classes.values():
        group = [
            region
            for region in context.facts.objects
            if region.noun.known in kind.objects
        ]
        if len(group) < 2 or not context.facts.settle(kind):
            continue
        for does in functions:
            alike = [
                use for use in uses if use.trait.does == does and use.whole in group
            ]
            phrases = list(itertools.chain.from_iterable(use.phrases for use in alike))
            parts = tuple(itertools.chain.from_iterable(use.parts for use in alike))
            # A kind is asked about only if every object of it has such a part.
            if len(alike) == len(group) and len(parts) <= MAX_TARGETS:
                question = f"Which parts of the {kind.plural} would {does}?"
                answer = (*enumerate_phrases(phrases), f" would {does}.")
                yield ProposedQuestion(question, answer, "alike parts", parts)


def _say_it(question: str) -> str:
    """A question about the parts of an object that was just mentioned: "the bulb of {whole}" is "its bulb"."""
    return re.sub(r"\b(?:the )(\w+) of \{whole\}", r"its \1", question).replace(
        "{whole}", "it"
    )


def _refer(
    context: GrammarContext, whole: RegionFacts, parts: Sequence[RegionFacts]
) -> list[AnswerPhrase] | None:
    """Phrases for parts of one object; None if one cannot be asked about or the object cannot be singled out."""
    if (
        whole.id not in context.names
        or len(suitable(parts)) < len(parts)
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
