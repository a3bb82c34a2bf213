"""Noun phrases for the objects of a scene, each with the logical form it stands for."""

from collections.abc import Callable

from maskwise.world.catalogue import CATEGORIES, MATERIALS
from maskwise.world.chance import Chance
from maskwise.world.forms import Before, Behind, Beside, Best, Coloured, Is, Made, Objects, Test, Unclear
from maskwise.world.items import Inventory, Item

LEAST_SHARE = 0.1
"""What is asked for shows at least this share of itself..."""

LEAST_PIXELS = 0.001
"""... and this share of the frame."""

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

RELATIONS: tuple[tuple[Callable[[Objects], Test], tuple[str, ...]], ...] = (
    (lambda other: Beside("left", other), ("to the left of", "left of", "on the left side of")),
    (lambda other: Beside("right", other), ("to the right of", "right of", "on the right side of")),
    (Behind, ("behind", "partly hidden behind", "half covered by", "tucked behind")),
    (Before, ("in front of", "standing in front of", "partly covering", "that blocks the view of")),
)


class Speaker:
    """Speaks of one scene. Descriptions may raise `Unclear`."""

    def __init__(self, scene: Inventory, chance: Chance) -> None:
        self.scene, self.chance = scene, chance
        self.objects = scene.objects()
        self.categories = {scene.items[place].category for place in self.objects}

    def shows(self, item: Item) -> bool:
        """Whether enough of an item is in sight to ask for it."""
        return item.seen >= LEAST_PIXELS * self.scene.owner.size and item.seen >= LEAST_SHARE * item.full

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
            if Objects(tests).find(self.scene) == (place,):
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
        return self._superlative(tests, phrase) if manner == 2 else self.relate(tests, phrase, place)

    def relate(self, tests: list[Test], phrase: str, place: int) -> Described | None:
        """The object as left of, behind, ... another; whether it is so is not asked."""
        others = [other for other in self.objects if other != place and self.shows(self.scene.items[other])]
        named = self.simple(self.chance.pick(others)) if others else None
        if named is None:
            return None
        relation, words = self.chance.pick(RELATIONS)
        return Objects((*tests, relation(named[0]))), f"the {phrase} {self.chance.pick(words)} {named[1]}"

    def _superlative(self, tests: list[Test], phrase: str) -> Described:
        best, words = self.chance.pick(BEST)
        if len(Objects(tuple(tests)).find(self.scene)) < 2:
            raise Unclear
        return Objects(tuple(tests), best), self.chance.pick(words).format(noun=phrase)


def noun_phrase(category: str, colour: str | None = None, *, noun: str | None = None) -> str:
    """The words for a category (or another noun for it) with its colour, without article."""
    noun = noun or category
    return CATEGORIES[category].coloured.format(colour=colour, noun=noun) if colour else noun
