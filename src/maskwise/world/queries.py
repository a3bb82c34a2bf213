"""What to ask of a scene: for every question type a function that proposes a query.

A proposal is a guess. It may come back as None, raise `Unclear`, or promise a number of targets the scene does not
have; the grammar executes its form and keeps it only if all is as promised.
"""

from collections.abc import Callable
from typing import NamedTuple

from maskwise.world.catalogue import (
    ABSENT,
    CATEGORIES,
    COLOURS,
    KINDS,
    PART_PLURALS,
    PART_USES,
    PLAIN_COLOURS,
    PLURAL_NOUNS,
    USES,
)
from maskwise.world.forms import (
    Before,
    Behind,
    Both,
    Clear,
    Coloured,
    Form,
    Is,
    IsKind,
    Objects,
    Parts,
    PartsFor,
    PartsNamed,
    Serves,
    Test,
)
from maskwise.world.speaker import Speaker, noun_phrase


class Query(NamedTuple):
    """What is asked for, before the choice of intent: a form, and its words. `number` is how many targets the words
    promise: 0, 1 or 2 (two or more). `plural`: how `np` agrees. `ask`: a question that means the same, if any.
    """

    form: Form
    np: str
    number: int
    plural: bool = False
    ask: str | None = None


def _referring(speaker: Speaker) -> Query | None:
    place = speaker.someone()
    described = speaker.describe(place)
    if place is None or described is None or described[0].find(speaker.scene) != (place,):
        return None
    return Query(*described, 1, speaker.scene.items[place].category in PLURAL_NOUNS)


def _function(speaker: Speaker) -> Query | None:
    return _the_kind(speaker) if speaker.chance.often(0.2) else _the_use(speaker)


def _the_kind(speaker: Speaker) -> Query:
    kind = speaker.chance.pick(list(KINDS))
    return Query(Objects((IsKind(kind),)), f"the {kind}", 1)


def _the_use(speaker: Speaker) -> Query:
    chance, use = speaker.chance, _likely_use(speaker)
    to = chance.pick(USES[use].to)
    np = chance.pick((f"something to {to}", f"the thing you would {to}", f"the object one could {to}"))
    ask = chance.pick((f"what could I {to}", f"what here is good to {to}", f"which of these would you {to}"))
    if USES[use].needs and chance.often(0.35):
        ask = f"{chance.pick(USES[use].needs)}. {chance.pick(_HELP)}"
    return Query(Objects((Serves(use),)), np, 1, False, ask)


_HELP = ("What here would help", "What should I take", "Which of these things do I need")


def _part(speaker: Speaker) -> Query | None:
    place = speaker.someone()
    described = speaker.simple(place) if speaker.chance.often(0.5) else speaker.describe(place)
    if place is None or described is None or described[0].find(speaker.scene) != (place,):
        return None
    form, phrase = described
    category = speaker.scene.items[place].category
    part = speaker.chance.pick(CATEGORIES[category].parts)
    owned = form == Objects((Is(category),)) and category not in PLURAL_NOUNS and speaker.chance.often(0.5)
    np = f"the {category}'s {part}" if owned else f"the {part} of {phrase}"
    return Query(Parts(part, form), np, 1, part in PLURAL_NOUNS)


def _part_function(speaker: Speaker) -> Query | None:
    uses = [name for name, use in PART_USES.items() if speaker.categories.intersection(dict(use.yes))]
    if not uses:
        return None
    name = speaker.chance.pick(uses)
    form = PartsFor(name)
    found = form.find(speaker.scene)
    np, ask = speaker.chance.pick(PART_USES[name].names), speaker.chance.pick(PART_USES[name].asks)
    plural, several = _plural(np), len(found) > 1
    if several:
        np = f"all {np}" if plural else np.replace("the ", "every ", 1)
    return Query(form, np, 2 if several else 1, plural, ask)


def _several(speaker: Speaker) -> Query | None:
    return speaker.chance.pick(_PLURALS)(speaker)


def _every_category(speaker: Speaker) -> Query | None:
    chance = speaker.chance
    if chance.often(0.35):
        kind = chance.pick(list(KINDS))
        return Query(Objects((IsKind(kind),)), chance.pick(_ALL).format(nouns=KINDS[kind].plural), 2, True)
    category = speaker.anyone().category
    nouns = CATEGORIES[category].plural
    return Query(Objects((Is(category),)), chance.pick(_ALL).format(nouns=nouns), 2, True)


_ALL = ("all the {nouns}", "the {nouns}", "all {nouns} in the picture", "all of the {nouns}")


def _every_colour(speaker: Speaker) -> Query | None:
    colour = speaker.anyone().colour
    if colour in PLAIN_COLOURS:
        return None
    np = speaker.chance.pick(
        (f"all {colour} things", f"the {colour} objects", f"all things that are {colour}")
    )
    return Query(Objects((Coloured(colour, wary=True),)), np, 2, True)


def _every_use(speaker: Speaker) -> Query | None:
    chance = speaker.chance
    use = _likely_use(speaker)
    to = chance.pick(USES[use].to)
    np = chance.pick((f"all the things you could {to}", f"the objects one could {to}", f"all things to {to}"))
    ask = chance.pick((f"which things could I {to}", f"what are the things here to {to}"))
    if USES[use].needs and chance.often(0.3):
        ask = f"{chance.pick(USES[use].needs)}. Which things here would help"
    return Query(Objects((Serves(use),)), np, 2, True, ask)


def _pair(speaker: Speaker) -> Query | None:
    one, other = speaker.someone(), speaker.someone()
    if one is None or other is None or one == other:
        return None
    first, second = speaker.simple(one), speaker.simple(other)
    if first is None or second is None:
        return None
    return Query(Both((first[0], second[0])), f"{first[1]} and {second[1]}", 2, True)


def _every_part(speaker: Speaker) -> Query | None:
    chance = speaker.chance
    category = speaker.anyone().category
    part = chance.pick(CATEGORIES[category].parts)
    nouns = part if part in PLURAL_NOUNS else PART_PLURALS.get(part, f"{part}s")
    if chance.often(0.5):
        if part not in _PARTS_ALONE:
            return None
        return Query(PartsNamed(part), chance.pick(_ALL).format(nouns=nouns), 2, True)
    form = Parts(part, Objects((Is(category),)))
    return Query(form, f"the {nouns} of all the {CATEGORIES[category].plural}", 2, True)


_PARTS_ALONE = ("handle", "lid", "wheels", "legs", "screen", "stem", "blade", "spout", "leaves")
"""Parts that can be asked for without their object."""


def _every_hidden(speaker: Speaker) -> Query | None:
    hidden = speaker.chance.often(0.5)
    test: Test = Behind() if hidden else Clear()
    return Query(Objects((test,)), speaker.chance.pick(_HIDDEN if hidden else _CLEAR), 2, True)


_HIDDEN = (
    "all objects that are partly hidden",
    "the things that stand behind something",
    "the partly covered objects",
)
_CLEAR = (
    "all objects that nothing stands in front of",
    "the objects in plain view",
    "the things no other thing covers",
)


def _occlusion(speaker: Speaker) -> Query | None:
    chance = speaker.chance
    place = speaker.someone()
    named = speaker.simple(place)
    if named is None:
        return None
    behind = chance.often(0.5)
    test: Test = Behind(named[0]) if behind else Before(named[0])
    words, asks = _BEHIND if behind else _BEFORE
    return Query(
        Objects((test,)),
        chance.pick(words).format(other=named[1]),
        1,
        False,
        chance.pick(asks).format(other=named[1]),
    )


_BEHIND = (
    (
        "the object behind {other}",
        "the thing {other} partly hides",
        "whatever is tucked behind {other}",
        "the object half hidden by {other}",
    ),
    ("what is behind {other}", "what does {other} partly cover", "which object does {other} block from view"),
)
_BEFORE = (
    (
        "the object in front of {other}",
        "the thing that hides part of {other}",
        "whatever blocks the view of {other}",
        "the object covering {other}",
    ),
    (
        "what stands in front of {other}",
        "what keeps us from seeing all of {other}",
        "which object covers part of {other}",
    ),
)


def _none(speaker: Speaker) -> Query | None:
    return speaker.chance.pick(_ABSENCES)(speaker)


def _absent_thing(speaker: Speaker) -> Query | None:
    one, many = speaker.chance.pick(ABSENT)
    plural = speaker.chance.often(0.2)
    return Query(Objects((Is(one),)), f"all the {many}" if plural else f"the {one}", 0, plural)


def _absent_category(speaker: Speaker) -> Query | None:
    chance = speaker.chance
    # The setting of a table scene is a table too.
    category = chance.pick([name for name in CATEGORIES if name != "table"])
    words = noun_phrase(category, chance.pick(CATEGORIES[category].colours) if chance.often(0.4) else None)
    return Query(Objects((Is(category, wary=True),)), f"the {words}", 0, category in PLURAL_NOUNS)


def _absent_colour(speaker: Speaker) -> Query | None:
    item = speaker.anyone()
    colour = speaker.chance.pick([colour for colour in COLOURS if colour not in PLAIN_COLOURS])
    form = Objects((Is(item.category), Coloured(colour, wary=True)))
    return Query(form, f"the {noun_phrase(item.category, colour)}", 0, item.category in PLURAL_NOUNS)


def _absent_use(speaker: Speaker) -> Query | None:
    use = speaker.chance.pick(list(USES))
    to = speaker.chance.pick(USES[use].to)
    return Query(Objects((Serves(use),)), f"something to {to}", 0, False, f"what could I {to}")


def _absent_relation(speaker: Speaker) -> Query | None:
    place = speaker.someone()
    if place is None:
        return None
    category = speaker.scene.items[place].category
    related = speaker.relate([Is(category)], category, speaker.other(place))
    return Query(*related, 0, category in PLURAL_NOUNS) if related else None


def _absent_part(speaker: Speaker) -> Query | None:
    place = speaker.someone()
    named = speaker.simple(place) if place is not None else None
    if place is None or named is None:
        return None
    part = speaker.chance.pick(_FOREIGN_PARTS)
    stem = part.rstrip("s")
    if any(name.rstrip("s") == stem for name in CATEGORIES[speaker.scene.items[place].category].parts):
        return None
    return Query(Parts(part, named[0]), f"the {part} of {named[1]}", 0, part in PLURAL_NOUNS)


_FOREIGN_PARTS = (
    "spout",
    "wheels",
    "keyboard",
    "flame",
    "icing",
    "tines",
    "bristles",
    "canopy",
    "lens",
    "ears",
    "blade",
    "pages",
)
"""Parts nobody could find on a thing that does not have them."""


def _absent_part_use(speaker: Speaker) -> Query | None:
    name = speaker.chance.pick(list(PART_USES))
    np = speaker.chance.pick(PART_USES[name].names)
    return Query(PartsFor(name), np, 0, _plural(np), speaker.chance.pick(PART_USES[name].asks))


_PLURALS = (_every_category, _every_colour, _every_use, _pair, _pair, _every_part, _every_hidden)

_ABSENCES = (
    _absent_thing,
    _absent_category,
    _absent_category,
    _absent_colour,
    _absent_colour,
    _absent_use,
    _absent_relation,
    _absent_part,
    _absent_part_use,
)

PROPOSERS: dict[str, Callable[[Speaker], Query | None]] = {
    "referring": _referring,
    "function": _function,
    "part": _part,
    "part function": _part_function,
    "several": _several,
    "none": _none,
    "occlusion": _occlusion,
}


def _likely_use(speaker: Speaker) -> str:
    """A use that something in the scene serves, where there is one."""
    fitting = [name for name, use in USES.items() if speaker.categories.intersection(use.yes)]
    return speaker.chance.pick(fitting or list(USES))


def _plural(phrase: str) -> bool:
    """Whether a noun phrase from the catalogue ("the parts that ...") is plural."""
    return phrase.split()[1].endswith("s") or phrase.split()[2].endswith("parts")
