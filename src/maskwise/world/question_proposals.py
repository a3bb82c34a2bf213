"""Propose questions about a scene: one function per question type.

A proposal is a guess. A function may return None, raise `AmbiguousError`, or propose a number of targets that the scene
does not have; the grammar executes the logical form and keeps the proposal only if the number is right.
"""

from collections.abc import Callable
from typing import NamedTuple

from maskwise.language.word_forms import is_plural, to_plural
from maskwise.world.catalogue import (
    ABSENT_CATEGORIES,
    AFFORDANCES,
    CATEGORIES,
    COLORS,
    PART_AFFORDANCES,
    PLAIN_COLORS,
    SUPERCATEGORIES,
)
from maskwise.world.logical_forms import (
    HasAffordance,
    HasCategory,
    HasColor,
    HasSupercategory,
    LogicalForm,
    ObjectQuery,
    OccludedBy,
    Occludes,
    PartAffordanceQuery,
    PartNameQuery,
    PartQuery,
    Predicate,
    UnionQuery,
    Unoccluded,
)
from maskwise.world.referring_expressions import ReferringExpressions, noun_phrase


class QuestionProposal(NamedTuple):
    """A question before the mask type is chosen: its logical form and its words.

    `number` is the number of targets that the words imply: 0, 1 or 2 (two or more). `plural`: grammatical number of the
    noun phrase `np`. `ask`: a question with the same meaning, if any.
    """

    form: LogicalForm
    np: str
    number: int
    plural: bool = False
    ask: str | None = None


def _referring(expressions: ReferringExpressions) -> QuestionProposal | None:
    place = expressions.sample_object()
    described = expressions.describe(place)
    if (
        place is None
        or described is None
        or described[0].execute(expressions.scene) != (place,)
    ):
        return None
    return QuestionProposal(
        *described, 1, is_plural(expressions.scene.nodes[place].category)
    )


def _function(expressions: ReferringExpressions) -> QuestionProposal | None:
    return (
        _the_kind(expressions)
        if expressions.rng.bernoulli(0.2)
        else _the_use(expressions)
    )


def _the_kind(expressions: ReferringExpressions) -> QuestionProposal:
    kind = expressions.rng.choice(list(SUPERCATEGORIES))
    return QuestionProposal(ObjectQuery((HasSupercategory(kind),)), f"the {kind}", 1)


def _the_use(expressions: ReferringExpressions) -> QuestionProposal:
    rng = expressions.rng
    use = _likely_use(expressions)
    to = rng.choice(AFFORDANCES[use].to)
    np = rng.choice(
        (
            f"something to {to}",
            f"the thing you would {to}",
            f"the object one could {to}",
        )
    )
    ask = rng.choice(
        (
            f"what could I {to}",
            f"what here is good to {to}",
            f"which of these would you {to}",
        )
    )
    if AFFORDANCES[use].needs and rng.bernoulli(0.35):
        ask = f"{rng.choice(AFFORDANCES[use].needs)}. {rng.choice(_HELP)}"
    return QuestionProposal(ObjectQuery((HasAffordance(use),)), np, 1, False, ask)


_HELP = (
    "What here would help",
    "What should I take",
    "Which of these things do I need",
)


def _part(expressions: ReferringExpressions) -> QuestionProposal | None:
    place = expressions.sample_object()
    described = (
        expressions.shortest(place)
        if expressions.rng.bernoulli(0.5)
        else expressions.describe(place)
    )
    if (
        place is None
        or described is None
        or described[0].execute(expressions.scene) != (place,)
    ):
        return None
    form, phrase = described
    category = expressions.scene.nodes[place].category
    part = expressions.rng.choice(CATEGORIES[category].parts)
    owned = (
        form == ObjectQuery((HasCategory(category),))
        and not is_plural(category)
        and expressions.rng.bernoulli(0.5)
    )
    np = f"the {category}'s {part}" if owned else f"the {part} of {phrase}"
    return QuestionProposal(PartQuery(part, form), np, 1, is_plural(part))


def _part_function(expressions: ReferringExpressions) -> QuestionProposal | None:
    uses = [
        name
        for name, use in PART_AFFORDANCES.items()
        if expressions.categories.intersection(dict(use.yes))
    ]
    if not uses:
        return None
    name = expressions.rng.choice(uses)
    form = PartAffordanceQuery(name)
    found = form.execute(expressions.scene)
    np = expressions.rng.choice(PART_AFFORDANCES[name].names)
    ask = expressions.rng.choice(PART_AFFORDANCES[name].asks)
    plural = _plural(np)
    several = len(found) > 1
    if several:
        np = f"all {np}" if plural else np.replace("the ", "every ", 1)
    return QuestionProposal(form, np, 2 if several else 1, plural, ask)


def _several(expressions: ReferringExpressions) -> QuestionProposal | None:
    return expressions.rng.choice(_PLURALS)(expressions)


def _every_category(expressions: ReferringExpressions) -> QuestionProposal | None:
    rng = expressions.rng
    if rng.bernoulli(0.35):
        kind = rng.choice(list(SUPERCATEGORIES))
        return QuestionProposal(
            ObjectQuery((HasSupercategory(kind),)),
            rng.choice(_ALL).format(nouns=SUPERCATEGORIES[kind].plural),
            2,
            True,
        )
    category = expressions.sample_any_object().category
    nouns = CATEGORIES[category].plural
    return QuestionProposal(
        ObjectQuery((HasCategory(category),)),
        rng.choice(_ALL).format(nouns=nouns),
        2,
        True,
    )


_ALL = (
    "all the {nouns}",
    "the {nouns}",
    "all {nouns} in the picture",
    "all of the {nouns}",
)


def _every_color(expressions: ReferringExpressions) -> QuestionProposal | None:
    color = expressions.sample_any_object().color
    if color in PLAIN_COLORS:
        return None
    np = expressions.rng.choice(
        (
            f"all {color} things",
            f"the {color} objects",
            f"all things that are {color}",
        )
    )
    return QuestionProposal(ObjectQuery((HasColor(color, cautious=True),)), np, 2, True)


def _every_use(expressions: ReferringExpressions) -> QuestionProposal | None:
    rng = expressions.rng
    use = _likely_use(expressions)
    to = rng.choice(AFFORDANCES[use].to)
    np = rng.choice(
        (
            f"all the things you could {to}",
            f"the objects one could {to}",
            f"all things to {to}",
        )
    )
    ask = rng.choice(
        (f"which things could I {to}", f"what are the things here to {to}")
    )
    if AFFORDANCES[use].needs and rng.bernoulli(0.3):
        ask = f"{rng.choice(AFFORDANCES[use].needs)}. Which things here would help"
    return QuestionProposal(ObjectQuery((HasAffordance(use),)), np, 2, True, ask)


def _pair(expressions: ReferringExpressions) -> QuestionProposal | None:
    one = expressions.sample_object()
    other = expressions.sample_object()
    if one is None or other is None or one == other:
        return None
    first = expressions.shortest(one)
    second = expressions.shortest(other)
    if first is None or second is None:
        return None
    return QuestionProposal(
        UnionQuery((first[0], second[0])), f"{first[1]} and {second[1]}", 2, True
    )


def _every_part(expressions: ReferringExpressions) -> QuestionProposal | None:
    rng = expressions.rng
    category = expressions.sample_any_object().category
    part = rng.choice(CATEGORIES[category].parts)
    nouns = to_plural(part)
    if rng.bernoulli(0.5):
        if part not in _PARTS_ALONE:
            return None
        return QuestionProposal(
            PartNameQuery(part), rng.choice(_ALL).format(nouns=nouns), 2, True
        )
    form = PartQuery(part, ObjectQuery((HasCategory(category),)))
    return QuestionProposal(
        form, f"the {nouns} of all the {CATEGORIES[category].plural}", 2, True
    )


_PARTS_ALONE = (
    "handle",
    "lid",
    "wheels",
    "legs",
    "screen",
    "stem",
    "blade",
    "spout",
    "leaves",
)
"""Parts that can be asked for without their object."""


def _every_hidden(expressions: ReferringExpressions) -> QuestionProposal | None:
    hidden = expressions.rng.bernoulli(0.5)
    predicate: Predicate = OccludedBy() if hidden else Unoccluded()
    return QuestionProposal(
        ObjectQuery((predicate,)),
        expressions.rng.choice(_HIDDEN if hidden else _CLEAR),
        2,
        True,
    )


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


def _occlusion(expressions: ReferringExpressions) -> QuestionProposal | None:
    rng = expressions.rng
    place = expressions.sample_object()
    named = expressions.shortest(place)
    if named is None:
        return None
    behind = rng.bernoulli(0.5)
    predicate: Predicate = OccludedBy(named[0]) if behind else Occludes(named[0])
    words, asks = _BEHIND if behind else _BEFORE
    return QuestionProposal(
        ObjectQuery((predicate,)),
        rng.choice(words).format(other=named[1]),
        1,
        False,
        rng.choice(asks).format(other=named[1]),
    )


_BEHIND = (
    (
        "the object behind {other}",
        "the thing {other} partly hides",
        "whatever is tucked behind {other}",
        "the object half hidden by {other}",
    ),
    (
        "what is behind {other}",
        "what does {other} partly cover",
        "which object does {other} block from view",
    ),
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


def _none(expressions: ReferringExpressions) -> QuestionProposal | None:
    return expressions.rng.choice(_ABSENCES)(expressions)


def _absent_thing(expressions: ReferringExpressions) -> QuestionProposal | None:
    one, many = expressions.rng.choice(ABSENT_CATEGORIES)
    plural = expressions.rng.bernoulli(0.2)
    return QuestionProposal(
        ObjectQuery((HasCategory(one),)),
        f"all the {many}" if plural else f"the {one}",
        0,
        plural,
    )


def _absent_category(expressions: ReferringExpressions) -> QuestionProposal | None:
    rng = expressions.rng
    # The setting of a table scene is a table too.
    category = rng.choice([name for name in CATEGORIES if name != "table"])
    words = noun_phrase(
        category,
        rng.choice(CATEGORIES[category].colors) if rng.bernoulli(0.4) else None,
    )
    return QuestionProposal(
        ObjectQuery((HasCategory(category, cautious=True),)),
        f"the {words}",
        0,
        is_plural(category),
    )


def _absent_color(expressions: ReferringExpressions) -> QuestionProposal | None:
    node = expressions.sample_any_object()
    color = expressions.rng.choice(
        [color for color in COLORS if color not in PLAIN_COLORS]
    )
    form = ObjectQuery((HasCategory(node.category), HasColor(color, cautious=True)))
    return QuestionProposal(
        form,
        f"the {noun_phrase(node.category, color)}",
        0,
        is_plural(node.category),
    )


def _absent_use(expressions: ReferringExpressions) -> QuestionProposal | None:
    use = expressions.rng.choice(list(AFFORDANCES))
    to = expressions.rng.choice(AFFORDANCES[use].to)
    return QuestionProposal(
        ObjectQuery((HasAffordance(use),)),
        f"something to {to}",
        0,
        False,
        f"what could I {to}",
    )


def _absent_relation(expressions: ReferringExpressions) -> QuestionProposal | None:
    place = expressions.sample_object()
    if place is None:
        return None
    category = expressions.scene.nodes[place].category
    related = expressions.relate(
        [HasCategory(category)], category, expressions.sample_relation(place)
    )
    return QuestionProposal(*related, 0, is_plural(category)) if related else None


def _absent_part(expressions: ReferringExpressions) -> QuestionProposal | None:
    place = expressions.sample_object()
    named = expressions.shortest(place) if place is not None else None
    if place is None or named is None:
        return None
    part = expressions.rng.choice(_FOREIGN_PARTS)
    stem = part.rstrip("s")
    if any(
        name.rstrip("s") == stem
        for name in CATEGORIES[expressions.scene.nodes[place].category].parts
    ):
        return None
    return QuestionProposal(
        PartQuery(part, named[0]), f"the {part} of {named[1]}", 0, is_plural(part)
    )


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
"""Parts that are clearly absent from objects that do not have them."""


def _absent_part_use(expressions: ReferringExpressions) -> QuestionProposal | None:
    name = expressions.rng.choice(list(PART_AFFORDANCES))
    np = expressions.rng.choice(PART_AFFORDANCES[name].names)
    return QuestionProposal(
        PartAffordanceQuery(name),
        np,
        0,
        _plural(np),
        expressions.rng.choice(PART_AFFORDANCES[name].asks),
    )


_PLURALS = (
    _every_category,
    _every_color,
    _every_use,
    _pair,
    _pair,
    _every_part,
    _every_hidden,
)

_ABSENCES = (
    _absent_thing,
    _absent_category,
    _absent_category,
    _absent_color,
    _absent_color,
    _absent_use,
    _absent_relation,
    _absent_part,
    _absent_part_use,
)

PROPOSERS: dict[str, Callable[[ReferringExpressions], QuestionProposal | None]] = {
    "referring": _referring,
    "function": _function,
    "part": _part,
    "part function": _part_function,
    "several": _several,
    "none": _none,
    "occlusion": _occlusion,
}


def _likely_use(expressions: ReferringExpressions) -> str:
    """An affordance that some object of the scene has, if there is one."""
    fitting = [
        name
        for name, use in AFFORDANCES.items()
        if expressions.categories.intersection(use.yes)
    ]
    return expressions.rng.choice(fitting or list(AFFORDANCES))


def _plural(phrase: str) -> bool:
    """Whether a noun phrase from the catalogue ("the parts that ...") is plural."""
    return phrase.split()[1].endswith("s") or phrase.split()[2].endswith("parts")
