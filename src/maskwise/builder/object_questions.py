"""Questions of the grammar about whole objects, none of which says what they are called.

Each function proposes question-answer pairs of one family. A question is proposed only if the annotations settle which
objects answer it: all that do are targets, and nothing in the image is a matter of opinion.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import NamedTuple

from maskwise.builder.facts import ImageFacts, RegionFacts, suitable
from maskwise.builder.grammar import (
    MAX_TARGETS,
    AnswerPhrase,
    ProposedQuestion,
    enumerate_phrases,
    refer,
)
from maskwise.builder.knowledge import Trait, load_knowledge
from maskwise.builder.noun_phrases import (
    MIN_RATIO,
    describe_objects,
    name_objects,
    nearest,
    outermost,
)

MAX_PAIRS = 12
"""Pairs of traits that are proposed for one image: more than a recipe ever takes."""

NEEDS_SHARE = 0.6
"""Share of the pairs with two wishes that are asked as wishes; the others ask for uses,
so that both wordings occur often."""

NEEDS = (
    (
        "Somebody wants to {want} and to {then}. What here would they need?",
        "they would need ",
    ),
    (
        "What in this scene helps somebody who wants to {want} and then to {then}?",
        "they could use ",
    ),
    (
        "Suppose you want to {want} and afterwards to {then}. What would you look for?",
        "you would look for ",
    ),
)
"""Questions about two wishes, and how their answers begin."""


class AnswerableTrait(NamedTuple):
    """A trait by name, all objects of an image that fulfil it, and a phrase for each."""

    name: str
    trait: Trait
    objects: list[RegionFacts]
    phrases: list[AnswerPhrase]

    def goes_with(self, other: "AnswerableTrait") -> bool:
        """Whether somebody would ask about both at once, and they are fulfilled by different things."""
        names = {self.name, other.name}
        own_nouns = {region.noun.known for region in self.objects}
        other_nouns = {region.noun.known for region in other.objects}
        together = any(names <= theme for theme in load_knowledge().themes.values())
        targets = len(self.objects) + len(other.objects)
        different = own_nouns.isdisjoint(other_nouns)
        return together and different and targets <= MAX_TARGETS


@dataclass(frozen=True)
class GrammarContext:
    """The facts of an image with phrases for its objects, and the generator that chooses wordings."""

    facts: ImageFacts
    random: Random

    @cached_property
    def names(self) -> dict[str, str]:
        """A phrase with its name for every object that can be singled out, by id."""
        return name_objects(self.facts)

    @cached_property
    def descriptions(self) -> dict[str, str]:
        """A phrase without its name for every object that can be singled out, by id."""
        return describe_objects(self.facts)

    @cached_property
    def traits(self) -> list[tuple[str, Trait, list[RegionFacts]]]:
        """What some objects are good for, by name, with all objects that are; nothing people would disagree about."""
        return [
            (
                name,
                trait,
                [
                    region
                    for region in self.facts.objects
                    if region.noun.known in trait.objects
                ],
            )
            for name, trait in load_knowledge().traits.items()
            if self.facts.known & trait.objects and self.facts.settle(trait)
        ]

    @cached_property
    def answerable(self) -> list[AnswerableTrait]:
        """Traits whose objects can all be asked about and referred to."""
        answerable = []
        for name, trait, objects in self.traits:
            phrases = self.refer_to(objects)
            if phrases is not None:
                answerable.append(AnswerableTrait(name, trait, objects, phrases))
        return answerable

    def refer_to(self, objects: Sequence[RegionFacts]) -> list[AnswerPhrase] | None:
        """A phrase for each object; None unless all can be asked about and named."""
        if len(suitable(objects)) < len(objects):
            return None
        return refer(objects, self.names)


def ask_uses(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """What something is good for: "What could be raised for a toast?"."""
    for _, trait, objects, phrases in context.answerable:
        question = context.random.choice(trait.ask)
        if question == trait.ask[0]:
            answer = (*enumerate_phrases(phrases), f" would {trait.does}.")
        else:
            answer = ("that would be ", *enumerate_phrases(phrases), ".")
        yield ProposedQuestion(question, answer, "use", tuple(objects))


def ask_two_uses(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """Two needs at once, answered by different objects."""
    pairs = [
        pair
        for pair in itertools.combinations(context.answerable, 2)
        if pair[0].goes_with(pair[1])
    ]
    for first, second in context.random.sample(pairs, min(MAX_PAIRS, len(pairs))):
        want = first.trait.want
        then = second.trait.want
        if want and then and context.random.random() < NEEDS_SHARE:
            question, answer = _answer_needs(
                context, want, first.phrases, then, second.phrases
            )
        else:
            does = first.trait.does
            also_does = second.trait.does
            question = f"What here would {does}, and what would {also_does}?"
            answer = (
                *enumerate_phrases(first.phrases),
                f" would {does}, and ",
                *enumerate_phrases(second.phrases),
                f" would {also_does}.",
            )
        targets = (*first.objects, *second.objects)
        yield ProposedQuestion(question, answer, "two uses", targets)


def _answer_needs(
    context: GrammarContext,
    want: str,
    first: list[AnswerPhrase],
    then: str,
    second: list[AnswerPhrase],
) -> tuple[str, tuple[str | AnswerPhrase, ...]]:
    """A question about two wishes of a person, and its answer."""
    question, opening = context.random.choice(NEEDS)
    if "you " in question:
        want = want.replace("their ", "your ")
        then = then.replace("their ", "your ")
    answer = (
        opening,
        *enumerate_phrases(first, "or"),
        f" to {want}, and ",
        *enumerate_phrases(second, "or"),
        f" to {then}.",
    )
    return question.format(want=want, then=then), answer


def ask_choices(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """One of several things of the same use, singled out by place: "... Take the one nearest to the camera."."""
    for _, trait, objects in context.traits:
        if len(objects) < 2 or trait.ask[0].startswith("Who"):
            continue
        for wish, region in _choices(objects):
            if region.is_suitable and region.id in context.names:
                question = f"{context.random.choice(trait.ask)} {wish}"
                answer = (
                    "that is ",
                    AnswerPhrase(context.names[region.id], (region.number,)),
                    ".",
                )
                yield ProposedQuestion(question, answer, "choice", (region,))


def _choices(objects: Sequence[RegionFacts]) -> Iterator[tuple[str, RegionFacts]]:
    farthest = "on the" if len(objects) == 2 else "farthest to the"
    for side, region in outermost(objects).items():
        yield f"Pick the one {farthest} {side}.", region
    front = nearest(objects)
    if front is not None:
        yield "Choose the one closest to the camera.", front


def ask_kinds(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """One of several objects of a kind: "Which of the animals is hidden the most?"."""
    for kind in load_knowledge().classes.values():
        group = [
            region
            for region in context.facts.objects
            if region.noun.known in kind.objects
        ]
        if len(group) >= 2 and context.facts.settle(kind):
            for question, reason, region in _superlatives(
                group, f"Which of the {'two ' * (len(group) == 2)}{kind.plural}"
            ):
                yield from _answer_superlative(
                    context, question, reason, region, "kind"
                )
    people = [
        region for region in context.facts.objects if region.noun.known == "person"
    ]
    if len(people) >= 2:
        for question, reason, region in _superlatives(people, "Which of the people"):
            yield from _answer_superlative(
                context,
                question.replace("Which of the people", "Who"),
                reason,
                region,
                "kind",
            )


def _superlatives(
    group: Sequence[RegionFacts], which: str
) -> Iterator[tuple[str, str, RegionFacts]]:
    """Questions with the verb phrase of their answers and the object that is meant."""
    more, than = (
        ("more", "than the other")
        if len(group) == 2
        else ("the most", "than the others")
    )
    large = sorted(group, key=lambda region: -region.share)
    if large[0].share >= MIN_RATIO * large[1].share:
        yield (
            f"{which} takes up {more} space in the image?",
            f"takes up more space {than}",
            large[0],
        )
    front = nearest(group)
    if front is not None:
        closest = "closer" if len(group) == 2 else "closest"
        yield (
            f"{which} is {closest} to the camera?",
            f"is closer to the camera {than}",
            front,
        )
    hidden = sorted(group, key=lambda region: -(region.occlusion or 0.0))
    if hidden[0].is_occluded and (hidden[0].occlusion or 0) >= MIN_RATIO * (
        hidden[1].occlusion or 0
    ):
        yield f"{which} is hidden {more}?", f"is hidden more {than}", hidden[0]
    if len(group) > 2 and hidden[-2].is_occluded and hidden[-1].is_complete:
        yield f"{which} can be seen completely?", "can be seen completely", hidden[-1]


def _answer_superlative(
    context: GrammarContext,
    question: str,
    reason: str,
    region: RegionFacts,
    family: str,
) -> Iterator[ProposedQuestion]:
    if region.is_suitable and region.id in context.names:
        answer = (
            AnswerPhrase(context.names[region.id], (region.number,)),
            f" {reason}.",
        )
        yield ProposedQuestion(question, answer, family, (region,))


def ask_occluders(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """What is in front of something: "What blocks the view of the toilet?"."""
    for hidden, front in context.facts.hidden_by.items():
        phrases = context.refer_to(front)
        anchor = _anchor(context, hidden, front)
        if phrases is None or anchor is None:
            continue
        question = context.random.choice(
            (
                f"What keeps us from seeing all of {anchor}?",
                f"What is partly in front of {anchor}?",
                f"What would have to be moved to see the whole of {anchor}?",
            )
        )
        verb = "covers" if len(front) == 1 and not front[0].noun.is_plural else "cover"
        answer = (*enumerate_phrases(phrases), f" {verb} a part of {anchor}.")
        yield ProposedQuestion(question, answer, "occluder", front)


def ask_hidden(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """What is behind something: "What is partly hidden behind the tree trunk?"."""
    behind: dict[str, list[RegionFacts]] = {}
    for hidden, front in context.facts.hidden_by.items():
        for region in front:
            behind.setdefault(region.id, []).append(_find_object(context, hidden))
    for id, objects in behind.items():
        phrases = context.refer_to(objects)
        anchor = _anchor(context, id, objects)
        flat = load_knowledge().background | load_knowledge().surfaces
        if (
            phrases is None
            or anchor is None
            or any(region.noun.known in flat for region in objects)
        ):
            continue
        question = context.random.choice(
            (
                f"What is partly hidden behind {anchor}?",
                f"What could be seen better from the other side of {anchor}?",
            )
        )
        verb = "is" if len(objects) == 1 and not objects[0].noun.is_plural else "are"
        answer = (
            *enumerate_phrases(phrases),
            f" {verb} partly hidden behind {anchor}.",
        )
        yield ProposedQuestion(question, answer, "hidden", tuple(objects))


def ask_surfaces(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """What stands on something: "What has been put on the dish?"."""
    for surface, upon in context.facts.standing_on.items():
        phrases = context.refer_to(upon)
        anchor = _anchor(context, surface, upon)
        if phrases is None or anchor is None:
            continue
        question = context.random.choice(
            (
                f"What would slide off if {anchor} were tilted?",
                f"What has been put on {anchor}?",
            )
        )
        verb = "is" if len(upon) == 1 and not upon[0].noun.is_plural else "are"
        answer = (*enumerate_phrases(phrases), f" {verb} on {anchor}.")
        yield ProposedQuestion(question, answer, "surface", upon)


def _anchor(
    context: GrammarContext, id: str, targets: Sequence[RegionFacts]
) -> str | None:
    """The name of an object that a question mentions; None for background and if it gave away the name of a target."""
    region = _find_object(context, id)
    if region.noun.known in load_knowledge().background:
        return None
    words = set(region.noun.text.split())
    if any(
        words & set(target.noun.text.split()) or region.noun.known == target.noun.known
        for target in targets
    ):
        return context.descriptions.get(id) if _differs(context, id, targets) else None
    return context.names.get(id)


def _find_object(context: GrammarContext, id: str) -> RegionFacts:
    return next(region for region in context.facts.objects if region.id == id)


def _differs(context: GrammarContext, id: str, targets: Sequence[RegionFacts]) -> bool:
    """Whether the description of an object says nothing that is in the name of a target."""
    words = set(context.descriptions.get(id, "").split())
    return not any(words & set(target.noun.text.split()) for target in targets)


Ask = Callable[[GrammarContext], Iterator[ProposedQuestion]]
