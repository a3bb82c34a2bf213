"""Questions about a scene: a logical form is chosen, executed, and only then put into words.

A question is kept when its form gives the number of targets its words promise, when every target shows enough of
itself, and when nothing about it is unclear. The answer names every target, so that each mask belongs to a phrase.
"""

from collections.abc import Iterator
from typing import NamedTuple

from maskwise.schema import Answer, Phrase
from maskwise.world.catalogue import HELD_OUT, PLURAL_NOUNS, SPLITS
from maskwise.world.chance import Chance
from maskwise.world.forms import Both, Form, Objects, Unclear
from maskwise.world.items import Inventory, Item
from maskwise.world.queries import PROPOSERS, Query
from maskwise.world.speaker import Speaker
from maskwise.world.wording import Family, Intent, Wording, put, slots, usable

TRIES = 12
"""How often a question of one type is attempted before another type is drawn."""

AMODAL = 0.47
"""Share of questions that want the amodal mask."""

FAVOURED = {"ask": 0.6, "front": 0.25}
"""How often a question that can be put with this slot is: there are fewer families with it."""

TWICE = 0.2
"""How often a query is asked in both intents, so that only the words tell which mask is wanted."""

QUESTION_TYPES: dict[str, float] = {
    "referring": 0.24,
    "function": 0.13,
    "part": 0.16,
    "part function": 0.08,
    "several": 0.13,
    "none": 0.16,
    "occlusion": 0.1,
}
"""How often each type is drawn."""


class Question(NamedTuple):
    """A question about a scene. targets: positions among the items, left to right, in the answer's order. np: the noun
    phrase for what is asked for.
    """

    text: str
    np: str
    mask_type: Intent
    targets: tuple[int, ...]
    answer: Answer
    form: Form
    tags: dict[str, str]


def write_questions(scene: Inventory, split: str, count: int, chance: Chance) -> list[Question]:
    """Up to `count` different questions; fewer only where a scene gives no more."""
    if not scene.items:
        return []
    asked: dict[str, Question] = {}
    for question in _propose_questions(Speaker(scene, chance), split, 4 * count):
        asked.setdefault(question.text, question)
        if len(asked) == count:
            break
    return list(asked.values())


def _propose_questions(speaker: Speaker, split: str, draws: int) -> Iterator[Question]:
    types, weights = list(QUESTION_TYPES), list(QUESTION_TYPES.values())
    for _ in range(draws):
        kind = speaker.chance.weighted(types, weights)
        query = _find_query(speaker, kind)
        if query is None:
            continue
        intents: list[Intent] = ["amodal" if speaker.chance.often(AMODAL) else "visible"]
        if speaker.chance.often(TWICE):
            intents = ["visible", "amodal"]
        for intent in intents:
            yield _put_question(speaker, query, kind, intent=intent, split=split)


def _find_query(speaker: Speaker, kind: str) -> Query | None:
    """A query of this type that the scene answers as its words promise, or None after TRIES attempts."""
    for _ in range(TRIES):
        try:
            query = PROPOSERS[kind](speaker)
            if query is not None and _keeps_promise(speaker, query):
                return query
        except Unclear:
            continue
    return None


def _keeps_promise(speaker: Speaker, query: Query) -> bool:
    targets = query.form.find(speaker.scene)
    as_many = len(targets) == query.number or len(targets) > query.number == 2
    return as_many and all(speaker.shows(speaker.scene.items[place]) for place in targets)


def _put_question(speaker: Speaker, query: Query, kind: str, *, intent: Intent, split: str) -> Question:
    scene, chance = speaker.scene, speaker.chance
    targets = query.form.find(scene)
    part = not isinstance(query.form, Objects | Both)
    wording = Wording(query.np, query.ask, _front(speaker, targets), query.plural, part)
    families = usable(wording, intent, novel=chance.often(SPLITS[split].novel))
    for slot, share in FAVOURED.items():
        special = [pair for pair in families if slot in slots(pair[1][0].lower())]
        if special and chance.often(share):
            families = special
            break
    family, templates = chance.pick(families)
    items = [scene.items[place] for place in targets]
    tags = {"question_type": kind, "level": "part" if part else "object"} | _tags(items, family)
    tags |= {"split": split, "setting": scene.setting}
    text = put(chance.pick(templates), wording)
    return Question(text, query.np, intent, targets, write_answer(items, intent), query.form, tags)


def _front(speaker: Speaker, targets: tuple[int, ...]) -> str | None:
    """The object that hides a single target most, if it can be named simply."""
    scene = speaker.scene
    if len(targets) != 1:
        return None
    hiders = scene.hiders(targets[0])
    if hiders.sum() < 0.05 * scene.items[targets[0]].full:
        return None
    front = next(place for place in speaker.objects if scene.items[place].order == hiders.argmax() + 1)
    item, named = scene.items[front], speaker.simple(front)
    return named[1] if named and speaker.shows(item) and item.category not in PLURAL_NOUNS else None


def _tags(items: list[Item], family: Family) -> dict[str, str]:
    unseen = any(item.colour in HELD_OUT[item.category] for item in items)
    hidden = max((item.hidden for item in items), default=0.0)
    return {
        "family": family.name,
        "wording": "held out" if family.novel else "seen",
        "colours": "held out" if unseen else "seen",
        "targets": ("none", "one", "several")[min(len(items), 2)],
        "hidden": "none" if hidden < 0.01 else "little" if hidden < 0.25 else "much",
    }


def write_answer(items: list[Item], intent: Intent) -> Answer:
    """Names every target in order, each name a phrase; says so when there is none."""
    if not items:
        return Answer(text="There is nothing like that here.")
    text = "They are " if len(items) > 1 or (items[0].part or items[0].category) in PLURAL_NOUNS else "It is "
    phrases = []
    for number, item in enumerate(items):
        text += "" if number == 0 else " and " if number == len(items) - 1 else ", "
        name = f"the {item.name}"
        phrases.append(Phrase(start=len(text), stop=len(text) + len(name), regions=(number,)))
        text += name
    text += ", shown whole." if intent == "amodal" else "."
    return Answer(text=text, phrases=tuple(phrases))
