"""Noun phrases for the objects of a scene, each with the logical form it stands for."""

from collections.abc import Callable
from functools import partial

from maskwise.world.catalogue import CATEGORIES, MATERIALS
from maskwise.world.chance import Chance
from maskwise.world.forms import (
    LEAST_PIXELS,
    LEAST_SHARE,
    Before,
    Behind,
    Beside,
    Best,
    Coloured,
    Is,
    Made,
    Objects,
    Test,
    Unclear,
    colour_shows,
)
from maskwise.world.items import Inventory, Item

Described = tuple[Objects, str]

BEST: tuple[tuple[Best, tuple[str, ...]], ...] = (
    ("leftmost", ("the leftmost {noun}", "the {noun} furthest to the left", "the {noun} on the far left")),
    (
        "rightmost",
        ("the rightmost {noun}", "the {noun} furthest to the right", "the {noun} on the far right"),
    ),
    ("largest", ("the largest {noun}", "the biggest {noun}")),
    ("smallest", ("the smallest {noun}", "the tiniest {noun}")),
)

Relation = tuple[Callable[[Objects], Test], tuple[str, ...]]
Relative = tuple[Relation, int]

LEFT: Relation = (partial(Beside, "left"), ("to the left of", "left of", "on the left side of"))
RIGHT: Relation = (partial(Beside, "right"), ("to the right of", "right of", "on the right side of"))
BEHIND: Relation = (Behind, ("behind", "partly hidden behind", "half covered by", "tucked behind"))
BEFORE: Relation = (
    Before,
    ("in front of", "standing in front of", "partly covering", "that blocks the view of"),
)
RELATIONS = (LEFT, RIGHT, BEHIND, BEFORE)


class Speaker:
    """Speaks of one scene. `describe` and `relate` may raise `Unclear`."""

    def __init__(self, scene: Inventory, chance: Chance) -> None:
        self.scene, self.chance = scene, chance
        self.objects = scene.objects()
        self.categories = {scene.items[place].category for place in self.objects}

    def shows(self, item: Item) -> bool:
        """Whether enough of an item, and of its object's colour, is in sight to ask for it and to name it."""
        enough = LEAST_PIXELS * self.scene.owner.size
        return item.seen >= max(enough, LEAST_SHARE * item.full) and colour_shows(self.scene, item)

    def someone(self) -> int | None:
        """An object to speak of; hidden ones come twice as often. None where none shows enough."""
        shown = [place for place in self.objects if self.shows(self.scene.items[place])]
        weights = [2.0 if self.scene.items[place].hidden > 0.05 else 1.0 for place in shown]
        return self.chance.weighted(shown, weights) if shown else None

    def anyone(self) -> Item:
        """Any object, however hidden."""
        return self.scene.items[self.chance.pick(self.objects)]

    def simple(self, place: int | None) -> Described | None:
        """The shortest description that picks out an object alone: by category, or by colour too."""
        if place is None:
            return None
        item = self.scene.items[place]
        for colour in (None, item.colour):
            tests = (Is(item.category),) if colour is None else (Is(item.category), Coloured(colour))
            if self._alone(Objects(tests), place):
                return Objects(tests), f"the {noun_phrase(item.category, colour)}"
        return None

    def describe(self, place: int | None) -> Described | None:
        """A description of an object in words of some variety, which may fit others too."""
        if place is None:
            return None
        item, chance = self.scene.items[place], self.chance
        tests: list[Test] = [Is(item.category)]
        colour = item.colour if chance.often(0.55) else None
        material = (
            item.material if MATERIALS[item.material].told and not colour and chance.often(0.5) else None
        )
        tests += [Coloured(colour)] if colour else []
        tests += [Made(material)] if material else []
        noun = chance.pick((item.category, item.category, *CATEGORIES[item.category].also))
        phrase = noun_phrase(item.category, colour, noun=f"{material} {noun}" if material else noun)
        manner = chance.below(5)
        if manner <= 1:
            return Objects(tuple(tests)), f"the {phrase}"
        if manner == 2:
            return self._superlative(tests, phrase)
        return self.relate(tests, phrase, self._neighbour(place) if manner == 3 else self.other(place))

    def relate(self, tests: list[Test], phrase: str, relative: Relative | None) -> Described | None:
        """An object as left of, behind, ... another; whether it is so is not asked."""
        named = self.simple(relative[1]) if relative else None
        if relative is None or named is None:
            return None
        relation, words = relative[0]
        return Objects((*tests, relation(named[0]))), f"the {phrase} {self.chance.pick(words)} {named[1]}"

    def other(self, place: int) -> Relative | None:
        """Any other object and any relation to it."""
        others = [other for other in self.objects if other != place and self.shows(self.scene.items[other])]
        return (self.chance.pick(RELATIONS), self.chance.pick(others)) if others else None

    def _neighbour(self, place: int) -> Relative | None:
        """An object that hides this one or is hidden by it."""
        order, covers = self.scene.items[place].order - 1, self.scene.covers
        found: list[Relative] = []
        for other in self.objects:
            there = self.scene.items[other].order - 1
            found += [(BEHIND, other)] if covers[there, order] else []
            found += [(BEFORE, other)] if covers[order, there] else []
        return self.chance.pick(found) if found else None

    def _alone(self, form: Objects, place: int) -> bool:
        """Whether a form picks out this object and clearly no other."""
        try:
            return form.find(self.scene) == (place,)
        except Unclear:
            return False

    def _superlative(self, tests: list[Test], phrase: str) -> Described:
        best, words = self.chance.pick(BEST)
        if len(Objects(tuple(tests)).find(self.scene)) < 2:
            raise Unclear
        return Objects(tuple(tests), best), self.chance.pick(words).format(noun=phrase)


def noun_phrase(category: str, colour: str | None = None, *, noun: str | None = None) -> str:
    """The words for a category (or another noun for it) with its colour, without article."""
    noun = noun or category
    return CATEGORIES[category].coloured.format(colour=colour, noun=noun) if colour else noun
