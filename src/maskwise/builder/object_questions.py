"""Questions of the grammar about whole objects, none of which says what they are called.

Each function proposes question-answer pairs of one family. A question is proposed only if the annotations settle which
objects answer it: exactly those that fulfil its logical form are targets.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import NamedTuple, TypeVar

from maskwise.builder.facts import ImageFacts, RegionFacts
from maskwise.builder.grammar import (
    MAX_TARGETS,
    AnswerPhrase,
    AnswerPieces,
    ProposedQuestion,
    enumerate_phrases,
    refer,
    refer_to_groups,
)
from maskwise.builder.knowledge import Fact, load_knowledge
from maskwise.builder.logical_forms import (
    Both,
    Counted,
    Either,
    Form,
    HasFact,
    HiddenBy,
    Hides,
    Measure,
    Most,
    OfKind,
    StandsOn,
    TheRegion,
    ToTheSide,
    Without,
)
from maskwise.builder.noun_phrases import describe_objects, name_objects
from maskwise.builder.wording import (
    ask_about,
    base_form,
    choose_hedge,
    describe,
    is_about_one,
    load_frames,
    negated,
    number_word,
    plural_kind,
    usual_plural,
    usual_singular,
)
from maskwise.language.tokens import split_words

Item = TypeVar("Item")

MOST_PROPOSED = 5
"""Proposals of one family for one image: more than a recipe ever takes."""

MOST_WITH_PEOPLE = 2
"""The same for a thing and a person at once: people are all alike in what can be asked about them."""

MOST_PAIRED = 20
"""Facts that are combined in pairs: 190 pairs are enough to choose from."""

MIN_ROW = 3
"""A row of two has no members but its ends."""

MAX_FUNCTION_WORD = 4
"""Longer words are counted as content words: "with", "from" and "that" are none."""

PERSON = "person"

MEASURES: dict[Measure, tuple[tuple[str, str], ...]] = {
    "left": (
        ("is farther to the left", "is farthest to the left"),
        ("is nearer to the left edge", "is nearest to the left edge"),
    ),
    "right": (
        ("is farther to the right", "is farthest to the right"),
        ("is nearer to the right edge", "is nearest to the right edge"),
    ),
    "large": (
        ("takes up more of the image", "takes up the largest area of the image"),
        ("looks bigger here", "looks biggest here"),
    ),
    "small": (
        ("takes up less of the image", "takes up the smallest area of the image"),
        ("looks smaller here", "looks smallest here"),
    ),
    "near": (
        ("is closer to the camera", "is closest to the camera"),
        ("is nearer to the viewer", "is nearest to the viewer"),
    ),
    "hidden": (
        ("is covered more by other things", "is covered most by other things"),
        ("is hidden more", "is hidden most"),
    ),
    "high": (
        ("is higher up in the image", "is highest up in the image"),
        ("is nearer to the upper edge", "is nearest to the upper edge"),
    ),
    "low": (
        ("is lower down in the image", "is lowest down in the image"),
        ("is nearer to the lower edge", "is nearest to the lower edge"),
    ),
}
"""Verb phrases for one of two and for one of several."""

AMONG_KINDS = (
    "Of the {n} {kinds}, which one",
    "Which of the {n} {kinds}",
    "Compare the {n} {kinds}: which one",
)
AMONG_PEOPLE = (
    "Who",
    "Of everyone here, who",
    "Comparing everyone in view, who",
)
AMONG_DESCRIBED = (
    "Of {np}, which one",
    "Compare {np}: which one",
    "Look at {np}. Which one",
)
"""Beginnings of questions for one of several. Those about people mention no number, so a superlative follows them."""


class SettledFact(NamedTuple):
    """A fact with the objects of which it is true, from left to right, and a phrase for each.

    kind: that of all objects; None if they have none or several.
    """

    fact: Fact
    form: Form
    objects: list[RegionFacts]
    phrases: list[AnswerPhrase]
    kind: str | None

    @property
    def description(self) -> str:
        """A noun phrase that singles out the objects without their names."""
        return describe(self.fact, self.kind, len(self.objects))


@dataclass(frozen=True)
class GrammarContext:
    """The facts of an image with phrases for its objects, and the generator that chooses wordings.

    needs_amodal: objects without an amodal mask are not asked about. grouped: an answer may name several objects in
    one phrase.
    """

    facts: ImageFacts
    random: Random
    needs_amodal: bool = False
    grouped: bool = False

    @cached_property
    def names(self) -> dict[str, str]:
        """A phrase with its name for every object that can be singled out, by id."""
        return name_objects(self.facts)

    @cached_property
    def descriptions(self) -> dict[str, str]:
        """A phrase without its name for every object that can be singled out, by id."""
        return describe_objects(self.facts)

    @cached_property
    def possible(self) -> list[Fact]:
        """The facts that are true of some object, in the order of the table."""
        knowledge = load_knowledge()
        facts: dict[str, Fact] = {}
        for category in sorted(self.facts.by_category):
            for fact in knowledge.facts_of.get(category, ()):
                facts[fact.key] = fact
        return list(facts.values())

    @cached_property
    def settled(self) -> list[SettledFact]:
        """The facts that the annotations settle, if all objects of which they are true can be asked about."""
        settled = []
        for fact in self.possible:
            form = HasFact(fact.key)
            objects = self.targets_of(form)
            phrases = self.refer_to(objects)
            if phrases is not None:
                kind = shared_kind(objects)
                settled.append(SettledFact(fact, form, objects, phrases, kind))
        return settled

    @cached_property
    def stated(self) -> list[SettledFact]:
        """Settled facts that describe objects in a noun phrase."""
        return [
            item
            for item in self.settled
            if item.fact.kind in ("does", "use")
            and (len(item.objects) == 1 or not is_about_one(item.fact.text))
        ]

    @cached_property
    def groups(self) -> list[tuple[str, Form, list[RegionFacts], str | None]]:
        """Sets of two to six objects with a phrase for the set: by kind, or by what is true of all of them."""
        groups: list[tuple[str, Form, list[RegionFacts], str | None]] = []
        for kind, noun_class in load_knowledge().kinds.items():
            if noun_class.closed:
                objects = self.targets_of(OfKind(kind))
                if 2 <= len(objects) <= MAX_TARGETS:
                    beginnings = AMONG_PEOPLE if kind == PERSON else AMONG_KINDS
                    text = self.random.choice(beginnings).format(
                        n=number_word(len(objects)), kinds=noun_class.plural
                    )
                    groups.append((text, OfKind(kind), objects, kind))
        for item in self.stated:
            if len(item.objects) >= 2 and item.kind != PERSON:
                text = self.random.choice(AMONG_DESCRIBED).format(np=_all(item))
                groups.append((text, item.form, item.objects, item.kind))
        return groups

    def targets_of(self, form: Form) -> list[RegionFacts]:
        """The regions that fulfil a form, from left to right; none if people would disagree."""
        extension = form.extension(self.facts)
        if not extension.is_settled:
            return []
        regions = [self.facts.regions[number - 1] for number in sorted(extension.yes)]
        return sorted(regions, key=lambda region: region.center[0])

    def can_ask(self, region: RegionFacts) -> bool:
        """Whether a region is large and visible enough, and has the masks that are asked for."""
        return (
            region.is_suitable
            and region.number not in self.facts.doubtful
            and (region.has_amodal or not self.needs_amodal)
        )

    def refer_to(self, objects: Sequence[RegionFacts]) -> list[AnswerPhrase] | None:
        """A phrase for each object; None unless all can be asked about and named."""
        if not all(self.can_ask(region) for region in objects):
            return None
        if self.grouped:
            return refer_to_groups(objects, self.names, self.by_noun)
        return refer(objects, self.names)

    @cached_property
    def by_noun(self) -> dict[str, list[RegionFacts]]:
        """The objects of each noun, without nouns of which there is a crowd."""
        groups: dict[str, list[RegionFacts]] = {}
        for region in self.facts.objects:
            if region.noun.known not in self.facts.crowds:
                groups.setdefault(region.noun.text, []).append(region)
        return groups

    def sample(self, items: Sequence[Item], count: int) -> list[Item]:
        """At most so many of the items, in random order."""
        return self.random.sample(items, min(count, len(items)))


def shared_kind(objects: Iterable[RegionFacts]) -> str | None:
    """The kind of all objects; None if they have none or several."""
    kind_of = load_knowledge().kind_of
    kinds = {kind_of.get(region.noun.known or "") for region in objects}
    return kinds.pop() if len(kinds) == 1 else None


def _all(item: SettledFact) -> str:
    """A phrase for several objects with their number."""
    return item.description.replace("the ", f"the {number_word(len(item.objects))} ", 1)


def ask_uses(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """What something does or is good for: "What could be raised for a toast?"."""
    for item in context.sample(context.settled, MOST_PROPOSED):
        count = len(item.objects)
        question = ask_about(item.fact, count, item.kind, context.random)
        answer = _answer(item, context.random)
        yield ProposedQuestion(question, answer, "use", tuple(item.objects), item.form)


def _answer(item: SettledFact, random: Random) -> AnswerPieces:
    """A sentence that names the objects of a fact."""
    pieces = enumerate_phrases(item.phrases)
    is_single = len(item.objects) == 1 and not item.objects[0].noun.is_plural
    if item.fact.kind == "does" and (is_single or not is_about_one(item.fact.text)):
        return (*pieces, f" {inflect(item.fact, item.objects)}.")
    if item.fact.kind == "event":
        return (*pieces, f" would {base_form(item.fact.text)}.")
    if item.kind == PERSON:
        return ("that would be ", *pieces, ".")
    opening = random.choice(("that would be ", "one would choose ", "the answer is "))
    return (opening, *pieces, ".")


def inflect(fact: Fact, objects: Sequence[RegionFacts]) -> str:
    """The verb phrase of a fact after the names of objects."""
    is_plural = len(objects) > 1 or objects[0].noun.is_plural
    return usual_plural(fact) if is_plural else usual_singular(fact)


def ask_riddles(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """Two things that are true of the same objects: "It purrs when stroked, and it lands on its feet after a fall."."""
    candidates = [
        fact
        for fact in context.possible
        if fact.kind == "does" and PERSON not in fact.yes
    ]
    pairs = [
        (first, second)
        for first, second in itertools.combinations(
            context.sample(candidates, MOST_PAIRED), 2
        )
        if first.yes & second.yes & context.facts.by_category.keys()
        and not _content_words(first.text) & _content_words(second.text)
    ]
    frames = load_frames()
    for first, second in context.sample(pairs, MOST_PROPOSED):
        form = Both((HasFact(first.key), HasFact(second.key)))
        objects = context.targets_of(form)
        phrases = context.refer_to(objects)
        about_one = is_about_one(first.text) or is_about_one(second.text)
        if phrases is None or (about_one and len(objects) > 1):
            continue
        section = "riddle" if len(objects) == 1 else "riddle plural"
        question = context.random.choice(frames[section]).format(
            vps=usual_singular(first),
            vps2=usual_singular(second),
            vpp=usual_plural(first),
            vpp2=usual_plural(second),
        )
        verb = "is" if len(objects) == 1 and not objects[0].noun.is_plural else "are"
        answer = (*enumerate_phrases(phrases), f" {verb} meant.")
        yield ProposedQuestion(question, answer, "riddle", tuple(objects), form)


def _content_words(phrase: str) -> set[str]:
    """The longer words of a verb phrase: two clues with one of them in common say the same twice."""
    return {word for word in split_words(phrase) if len(word) > MAX_FUNCTION_WORD}


def ask_two_uses(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """Two things at once, answered by different objects."""
    items = context.sample(context.stated, MOST_PAIRED)
    different = [
        pair for pair in itertools.combinations(items, 2) if _are_different(*pair)
    ]
    related = [pair for pair in different if _are_related(*pair)]
    # Nobody asks for the fridge and for a voter in one breath if there is an oven.
    things = [pair for pair in related if PERSON not in {item.kind for item in pair}]
    chosen = context.sample(things, MOST_PROPOSED)
    for pair in chosen or context.sample(related or different, MOST_WITH_PEOPLE):
        first, second = context.sample(pair, 2)
        question = _ask_for_two(first, second, context.random)
        answer = (
            *enumerate_phrases(first.phrases),
            _clause(first),
            *([", and "] if context.random.random() < 0.6 else ["; "]),
            *enumerate_phrases(second.phrases),
            f"{_clause(second)}.",
        )
        about = (*first.objects, *second.objects)
        form = Either((first.form, second.form))
        yield ProposedQuestion(question, answer, "two uses", about, form)


def _are_related(first: SettledFact, second: SettledFact) -> bool:
    """Whether the things are usually found in one place, so that somebody would ask about both at once."""
    places = (first.fact.place, second.fact.place)
    return places[0] == places[1] or "anywhere" in places


def _are_different(first: SettledFact, second: SettledFact) -> bool:
    """Whether different things fulfil the two facts."""
    both_people = first.kind == PERSON and second.kind == PERSON
    numbers = {region.number for region in first.objects}
    overlap = any(region.number in numbers for region in second.objects)
    few = len(first.phrases) + len(second.phrases) <= MAX_TARGETS
    same_noun = {region.noun.known for region in first.objects} & {
        region.noun.known for region in second.objects
    }
    return few and not (both_people or overlap or same_noun)


def ask_three_uses(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """Three things at once, each answered by one object."""
    items = context.sample(context.stated, MOST_PAIRED)
    singles = [item for item in items if len(item.objects) == 1 and item.kind != PERSON]
    triples = [
        triple
        for triple in itertools.combinations(singles, 3)
        if all(_are_different(*pair) for pair in itertools.combinations(triple, 2))
    ]
    for triple in context.sample(triples, MOST_PROPOSED):
        phrases = [item.phrases[0] for item in triple]
        question = context.random.choice(THREE).format(
            *(item.description for item in triple)
        )
        answer = ("these are ", *enumerate_phrases(phrases), ", in this order.")
        about = tuple(item.objects[0] for item in triple)
        form = Either(tuple(item.form for item in triple))
        yield ProposedQuestion(question, answer, "three uses", about, form)


TWO = (
    "{first}, and {second}?",
    "Two questions: {first}? And {second}?",
    "{first}? And {second}?",
    "For two points: {first}, and {second}?",
    "Please mark both: {first_np}, and {second_np}.",
    "Find {first_np} as well as {second_np}.",
    "I am looking for {first_np} and for {second_np}.",
    "Find both {first_np} and {second_np}.",
    "Outline {first_np}, then {second_np}.",
    "Two captions are missing. One is about {first_np}, the other about {second_np}. Where do they belong?",
    "A story is about {first_np} and {second_np}. Who or what is meant?",
    "For a collage, cut out {first_np} and {second_np}.",
)
"""Questions about two things: clauses with a question word, or noun phrases."""

THREE = (
    "Find {0}, {1} and {2}.",
    "Please mark three things: {0}, {1} and {2}.",
    "Three hints lead to three masks: {0}, {1}, and finally {2}.",
    "Where are {0}, {1} and {2}?",
    "A memory trainer names three items: {0}, {1} and {2}. Which are they?",
)
"""Questions about three things, by noun phrases."""


def _ask_for_two(first: SettledFact, second: SettledFact, random: Random) -> str:
    return random.choice(TWO).format(
        first=_interrogative(first),
        second=_interrogative(second),
        first_np=first.description,
        second_np=second.description,
    )


def _interrogative(item: SettledFact) -> str:
    """A clause with a question word: "what barks", "who reads", "what would you sit on"."""
    word = "who" if item.kind == PERSON else "what"
    if item.fact.kind == "use":
        return f"{word} would you {base_form(item.fact.text)}"
    return f"{word} {usual_singular(item.fact)}"


def _clause(item: SettledFact) -> str:
    """The verb phrase after the names of the objects."""
    if item.fact.kind == "use":
        is_plural = len(item.objects) > 1 or item.objects[0].noun.is_plural
        pronoun = "whom" if item.kind == PERSON else "what"
        verb = base_form(item.fact.text)
        return f" {'are' if is_plural else 'is'} {pronoun} one would {verb}"
    return f" {inflect(item.fact, item.objects)}"


def ask_choices(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """One of several by place, size or occlusion: "Of the three animals, which one is closest to the camera?"."""
    combinations = [
        (group, measure)
        for group, measure in itertools.product(context.groups, MEASURES)
        # Those in the background are the smallest, and often nobody has marked them.
        if (group[3], measure) != (PERSON, "small")
    ]
    for group, measure in context.sample(combinations, 2 * MOST_PROPOSED):
        text, among, objects, kind = group
        form = Most(measure, among)
        targets = context.targets_of(form)
        phrases = context.refer_to(targets)
        if phrases is None:
            continue
        verbs = context.random.choice(MEASURES[measure])
        verb = verbs[0 if len(objects) == 2 and kind != PERSON else 1]
        pronoun = "these are " if targets[0].noun.is_plural else "that is "
        answer = (pronoun, phrases[0], ".")
        yield ProposedQuestion(
            f"{text} {verb}?", answer, "choice", tuple(targets), form
        )


def ask_counts(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """All objects of a kind, with their number: "There are three animals here. Which are they?"."""
    for kind, noun_class in load_knowledge().kinds.items():
        if not noun_class.closed or kind == PERSON:
            continue
        objects = context.targets_of(OfKind(kind))
        phrases = context.refer_to(objects)
        if phrases is None or len(objects) < 2:
            continue
        form = Counted(len(objects), OfKind(kind))
        frame = context.random.choice(load_frames()["count"])
        number = number_word(len(objects))
        question = frame.format(n=number, kinds=noun_class.plural)
        answer = (
            f"the {number} {noun_class.plural} are ",
            *enumerate_phrases(phrases),
            ".",
        )
        yield ProposedQuestion(question, answer, "count", tuple(objects), form)


def ask_ends(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """Both ends of a row of three or more: "Which animal comes first from the left, and which one last?"."""
    for kind, noun_class in load_knowledge().kinds.items():
        among = OfKind(kind)
        group = context.targets_of(among) if noun_class.closed else []
        if len(group) < MIN_ROW:
            continue
        form = Either((Most("left", among), Most("right", among)))
        objects = context.targets_of(form)
        phrases = context.refer_to(objects)
        if phrases is None:
            continue
        section = "ends of a row of people" if kind == PERSON else "ends of a row"
        question = context.random.choice(load_frames()[section]).format(
            n=number_word(len(group)), kind=kind, kinds=noun_class.plural
        )
        answer = ("from left to right, these are ", *enumerate_phrases(phrases), ".")
        yield ProposedQuestion(question, answer, "ends", tuple(objects), form)


def ask_remaining(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """Elimination: all of a kind but those of which something is true: "Which of the animals does not bark?"."""
    for item in context.sample(context.stated, 2 * MOST_PROPOSED):
        if item.kind in (None, PERSON) or not load_knowledge().kinds[item.kind].closed:
            continue
        form = Without(OfKind(item.kind), item.form)
        objects = context.targets_of(form)
        phrases = context.refer_to(objects)
        if phrases is None:
            continue
        question = _ask_without(item, len(objects), context.random)
        verb = "remains" if len(objects) == 1 else "remain"
        answer = (*enumerate_phrases(phrases), f" {verb}.")
        yield ProposedQuestion(question, answer, "elimination", tuple(objects), form)


def _ask_without(item: SettledFact, count: int, random: Random) -> str:
    kinds = plural_kind(item.kind)
    hedge = choose_hedge(item.fact)
    if item.fact.kind == "does" and random.random() < 0.5:
        return (
            f"Which of the {kinds} {negated(item.fact.text, hedge, plural=count > 1)}?"
        )
    remaining = f"which {kinds if count > 1 else item.kind} remain{'s' * (count == 1)}"
    frame = random.choice(
        (
            "Leave out {np}: {remaining}?",
            "If you take away {np}, {remaining}?",
            "Apart from {np}, {remaining}?",
            "Ignore {np}. {Remaining}?",
        )
    )
    return frame.format(
        np=item.description,
        remaining=remaining,
        Remaining=remaining.capitalize(),
    )


COMPARED: tuple[Measure, ...] = ("large", "left", "right", "high", "low")


def ask_comparisons(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """One of two things that are described: "Which takes up more of the image: what barks or what purrs?"."""
    singles = [item for item in context.stated if len(item.objects) == 1]
    pairs = [
        pair
        for pair in itertools.combinations(singles, 2)
        if pair[0].objects[0] is not pair[1].objects[0]
        and pair[0].objects[0].noun.known != pair[1].objects[0].noun.known
    ]
    for first, second in context.sample(pairs, MOST_PROPOSED):
        measure = context.random.choice(COMPARED)
        form = Most(measure, Either((first.form, second.form)))
        targets = context.targets_of(form)
        phrases = context.refer_to(targets)
        if phrases is None:
            continue
        verb = context.random.choice(MEASURES[measure])[0]
        question = f"Which {verb}: {first.description} or {second.description}?"
        pronoun = "these are " if targets[0].noun.is_plural else "that is "
        answer = (pronoun, phrases[0], ".")
        yield ProposedQuestion(question, answer, "comparison", tuple(targets), form)


def ask_neighbors(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """What is beside something: "Which vehicle is to the left of the animal that barks?"."""
    knowledge = load_knowledge()
    present = context.facts.by_category.keys()
    kinds = [
        kind
        for kind, value in knowledge.kinds.items()
        if value.closed and present & value.objects
    ]
    singles = [item for item in context.stated if len(item.objects) == 1]
    combinations = list(itertools.product(singles, kinds, ("left", "right")))
    for item, kind, side in context.sample(combinations, 2 * MOST_PROPOSED):
        if item.kind == kind:
            continue
        beside = ToTheSide("left" if side == "left" else "right", item.form)
        form = Both((OfKind(kind), beside))
        objects = context.targets_of(form)
        phrases = context.refer_to(objects)
        if phrases is None:
            continue
        plural = len(objects) > 1
        verb = "are" if plural else "is"
        noun = knowledge.kinds[kind].plural if plural else kind
        subject = "Who is" if kind == PERSON else f"Which {noun} {verb}"
        question = f"{subject} to the {side} of {item.description}?"
        place = f"to the {side} of {item.phrases[0].text}"
        answer = (*enumerate_phrases(phrases), f" {verb} {place}.")
        yield ProposedQuestion(question, answer, "neighbor", tuple(objects), form)


OCCLUDER_QUESTIONS = (
    "What keeps us from seeing all of {anchor}?",
    "What is partly in front of {anchor}?",
    "What would have to be moved to see the whole of {anchor}?",
    "What blocks a part of the view of {anchor}?",
    "If {anchor} should be fully visible, what must go?",
    "What covers a piece of {anchor}?",
    "The photographer wants a clear view of {anchor}. What is in the way?",
)
HIDDEN_QUESTIONS = (
    "What is partly hidden behind {anchor}?",
    "What could be seen better from the other side of {anchor}?",
    "What peeks out from behind {anchor}?",
    "If {anchor} were removed, of what would we see more?",
    "Of what does {anchor} cover a part?",
)
SURFACE_QUESTIONS = (
    "What would slide off if {anchor} were tilted?",
    "What has been put on {anchor}?",
    "What has to be cleared away before {anchor} can be wiped?",
    "What rests on {anchor}?",
)


def ask_occluders(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """What is in front of something: "What blocks the view of the toilet?"."""
    for hidden in context.facts.hidden_by:
        yield from _relate(context, hidden, Hides, OCCLUDER_QUESTIONS, "occluder")


def ask_hidden(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """What is behind something: "What is partly hidden behind the tree trunk?"."""
    fronts = {
        region.id for front in context.facts.hidden_by.values() for region in front
    }
    for front in sorted(fronts):
        yield from _relate(context, front, HiddenBy, HIDDEN_QUESTIONS, "hidden")


def ask_surfaces(context: GrammarContext) -> Iterator[ProposedQuestion]:
    """What stands on something: "What has been put on the dish?"."""
    for surface in context.facts.standing_on:
        yield from _relate(context, surface, StandsOn, SURFACE_QUESTIONS, "surface")


ANSWERS = {
    "occluder": ("covers a part of", "cover a part of"),
    "hidden": ("is partly hidden behind", "are partly hidden behind"),
    "surface": ("is on", "are on"),
}


def _relate(
    context: GrammarContext,
    id: str,
    relation: Callable[[Form], Form],
    questions: Sequence[str],
    family: str,
) -> Iterator[ProposedQuestion]:
    """A question about what stands in a relation to an object, which is named or described."""
    anchor = next(region for region in context.facts.objects if region.id == id)
    table = load_knowledge().table
    if anchor.noun.known in table.background or id not in context.names:
        return
    name = context.names[id]
    described = [item for item in context.stated if item.objects == [anchor]]
    form: Form = TheRegion(anchor.number)
    text = name
    if described and context.random.random() < 0.5:
        item = context.random.choice(described)
        form = item.form
        text = item.description
    objects = context.targets_of(relation(form))
    phrases = context.refer_to(objects)
    flat = table.background | table.surfaces
    is_flat = any(region.noun.known in flat for region in objects)
    if phrases is None or (family == "hidden" and is_flat):
        return
    is_plural = len(objects) > 1 or objects[0].noun.is_plural
    verb = ANSWERS[family][is_plural]
    question = context.random.choice(questions).format(anchor=text)
    answer = (*enumerate_phrases(phrases), f" {verb} {name}.")
    yield ProposedQuestion(question, answer, family, tuple(objects), relation(form))


Ask = Callable[[GrammarContext], Iterator[ProposedQuestion]]
