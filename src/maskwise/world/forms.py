"""Questions as logical forms, and what they pick out of a scene.

A form is executed on an inventory and gives the positions of its targets, from left to right. Wherever people could
disagree (a mug a hair to the left, a bottle one might drink from), the truth is unknown and execution raises
`Unclear`: such a question is not asked.

    Objects(tests, best)     objects for which every test holds; `best` keeps the leftmost, largest, ... of them
    Parts(part, of)          that part of each such object
    PartsFor(use)            parts that serve a purpose
    PartsNamed(part)         every part of that name in the image
    Both(forms)              what either picks out
"""

from dataclasses import dataclass
from typing import Literal

from maskwise.world.catalogue import CATEGORIES, KINDS, MISTAKABLE, PART_USES, PLAIN_COLOURS, USES, Kind, Use
from maskwise.world.items import SAME_PLACE, Inventory, Item

Truth = bool | None

LEAST_SHARE = 0.1
"""What is asked for shows at least this share of itself..."""

LEAST_PIXELS = 0.001
"""... and this share of the frame."""

LEAST_PROOF = 0.0006
"""A colour is told from at least this share of the frame."""

HIDES = 0.08
"""One object hides another when it covers at least this share of it..."""

TOUCHES = 0.01
"""... and does not when it covers less than this; in between it is unclear."""

LARGER = 1.4
"""How many times larger an object must be to be called the larger one."""


class Unclear(Exception):
    """People could disagree about what is meant."""


@dataclass(frozen=True)
class Is:
    """Of this category. `wary`: unclear about things that have a part of that name."""

    category: str
    wary: bool = False

    def holds(self, scene: Inventory, place: int) -> Truth:
        category = scene.items[place].category
        if category == self.category:
            return True
        if self.category == scene.setting:
            return None
        return None if self.wary and category in MISTAKABLE.get(self.category, ()) else False


@dataclass(frozen=True)
class IsKind:
    """A piece of furniture, a toy, ..."""

    kind: str

    def holds(self, scene: Inventory, place: int) -> Truth:
        return _member(scene, place, KINDS[self.kind])


@dataclass(frozen=True)
class Serves:
    """Good for a use."""

    use: str

    def holds(self, scene: Inventory, place: int) -> Truth:
        return _member(scene, place, USES[self.use])


@dataclass(frozen=True)
class Coloured:
    """Of this main colour; unclear where that is hidden. `wary`: also unclear about things that show the colour
    elsewhere on them.
    """

    colour: str
    wary: bool = False

    def holds(self, scene: Inventory, place: int) -> Truth:
        item = scene.items[place]
        category = CATEGORIES[item.category]
        if not colour_shows(scene, item):
            return None
        partial = category.coloured != "{colour} {noun}"
        if item.colour == self.colour:
            return None if self.wary and partial else True
        return (
            None if self.wary and (self.colour in category.tints or self.colour in PLAIN_COLOURS) else False
        )


@dataclass(frozen=True)
class Made:
    """Of this material."""

    material: str

    def holds(self, scene: Inventory, place: int) -> Truth:
        return scene.items[place].material == self.material


@dataclass(frozen=True)
class Beside:
    """To the left or right of another object."""

    side: Literal["left", "right"]
    other: "Objects"

    def holds(self, scene: Inventory, place: int) -> Truth:
        other = self.other.only(scene)
        if place == other:
            return False
        steps = _steps(scene.items[other], scene.items[place])
        if self.side == "left":
            steps = -steps[0], -steps[1]
        return True if min(steps) > SAME_PLACE else False if max(steps) < -SAME_PLACE else None


@dataclass(frozen=True)
class Behind:
    """Partly hidden by another object; without one, by anything."""

    other: "Objects | None" = None

    def holds(self, scene: Inventory, place: int) -> Truth:
        item = scene.items[place]
        if self.other is None:
            return _enough(item.full - item.seen, item.full)
        other = self.other.only(scene)
        return False if place == other else _covers(scene, other, place)


@dataclass(frozen=True)
class Before:
    """Partly hiding another object; without one, any."""

    other: "Objects | None" = None

    def holds(self, scene: Inventory, place: int) -> Truth:
        if self.other is None:
            truths = [_covers(scene, place, other) for other in scene.objects() if other != place]
            return True if True in truths else None if None in truths else False
        other = self.other.only(scene)
        return False if place == other else _covers(scene, place, other)


@dataclass(frozen=True)
class Clear:
    """Not hidden by anything."""

    def holds(self, scene: Inventory, place: int) -> Truth:
        hidden = Behind().holds(scene, place)
        return None if hidden is None else not hidden


Test = Is | IsKind | Serves | Coloured | Made | Beside | Behind | Before | Clear
Best = Literal["leftmost", "rightmost", "largest", "smallest"]


@dataclass(frozen=True)
class Objects:
    """Objects for which every test holds."""

    tests: tuple[Test, ...]
    best: Best | None = None

    def find(self, scene: Inventory) -> tuple[int, ...]:
        """Positions of the objects meant, left to right."""
        found = []
        for place in scene.objects():
            truths = [test.holds(scene, place) for test in self.tests]
            if False in truths:
                continue
            if None in truths:
                raise Unclear
            found.append(place)
        return _ordered(scene, found if self.best is None else [_extreme(scene, found, self.best)])

    def only(self, scene: Inventory) -> int:
        """The one object meant."""
        found = self.find(scene)
        if len(found) != 1:
            raise Unclear
        return found[0]


@dataclass(frozen=True)
class Parts:
    """The part of this name of each object meant; objects without it give nothing."""

    part: str
    of: Objects

    def find(self, scene: Inventory) -> tuple[int, ...]:
        """Positions of the parts meant, left to right."""
        found: list[int] = []
        for whole in self.of.find(scene):
            found += (
                _part(scene, whole, self.part)
                if self.part in CATEGORIES[scene.items[whole].category].parts
                else []
            )
        return _ordered(scene, found)


@dataclass(frozen=True)
class PartsFor:
    """Parts that serve a purpose, of whatever objects."""

    use: str

    def find(self, scene: Inventory) -> tuple[int, ...]:
        """Positions of the parts meant, left to right."""
        use, found = PART_USES[self.use], []
        if any(category == scene.setting for category, _ in use.yes + use.unsure):
            raise Unclear
        for whole in scene.objects():
            category = scene.items[whole].category
            if any(category == other for other, _ in use.unsure):
                raise Unclear
            for owner, part in use.yes:
                found += _part(scene, whole, part) if owner == category else []
        return _ordered(scene, found)


@dataclass(frozen=True)
class PartsNamed:
    """Every part of this name."""

    part: str

    def find(self, scene: Inventory) -> tuple[int, ...]:
        """Positions of the parts meant, left to right."""
        found: list[int] = []
        for whole in scene.objects():
            names = CATEGORIES[scene.items[whole].category].parts
            if any(name != self.part and name.rstrip("s") == self.part.rstrip("s") for name in names):
                raise Unclear
            found += _part(scene, whole, self.part) if self.part in names else []
        return _ordered(scene, found)


@dataclass(frozen=True)
class Both:
    """What any of the forms picks out."""

    forms: tuple[Objects, ...]

    def find(self, scene: Inventory) -> tuple[int, ...]:
        """Positions of all, left to right."""
        return _ordered(scene, sorted({place for form in self.forms for place in form.find(scene)}))


Form = Objects | Parts | PartsFor | PartsNamed | Both


def colour_shows(scene: Inventory, item: Item) -> bool:
    """Whether enough of the parts that carry an object's colour is in sight to tell it."""
    return item.proof >= LEAST_PROOF * scene.owner.size


def _member(scene: Inventory, place: int, group: Kind | Use) -> Truth:
    """Whether an object belongs; unclear throughout where the setting itself (a table) might be meant."""
    if scene.setting in group.yes + group.unsure:
        return None
    category = scene.items[place].category
    return True if category in group.yes else None if category in group.unsure else False


def _covers(scene: Inventory, front: int, back: int) -> Truth:
    first, second = scene.items[front], scene.items[back]
    return _enough(int(scene.covers[first.order - 1, second.order - 1]), second.full)


def _enough(pixels: int, whole: int) -> Truth:
    share = pixels / whole
    return True if share >= HIDES else None if share >= TOUCHES else False


def _steps(a: Item, b: Item) -> tuple[float, float]:
    """How far b is to the right of a, by what is seen and by the full shapes."""
    return b.x - a.x, b.full_x - a.full_x


def _part(scene: Inventory, whole: int, part: str) -> list[int]:
    """The position of an object's part; unclear where the frame or the object itself leaves none of it."""
    found = [place for place in scene.parts(whole) if scene.items[place].part == part]
    if not found:
        raise Unclear
    return found


def _ordered(scene: Inventory, places: list[int]) -> tuple[int, ...]:
    return tuple(sorted(places, key=lambda place: (scene.items[place].full_x, place)))


def _extreme(scene: Inventory, places: list[int], best: Best) -> int:
    """The leftmost, ... of at least two, clear to the eye."""
    if len(places) < 2:
        raise Unclear
    items = scene.items
    if best in ("leftmost", "rightmost"):
        sign = 1 if best == "leftmost" else -1
        one, next_one = sorted(places, key=lambda place: sign * items[place].full_x)[:2]
        if min(sign * step for step in _steps(items[one], items[next_one])) <= SAME_PLACE:
            raise Unclear
        return _agreed(one, min(places, key=lambda place: sign * items[place].x))
    order = sorted(places, key=lambda place: items[place].full, reverse=best == "largest")
    first, second = items[order[0]], items[order[1]]
    ratio = first.full / second.full if best == "largest" else second.full / first.full
    if ratio < LARGER:
        raise Unclear
    pick = max if best == "largest" else min
    return _agreed(order[0], pick(places, key=lambda place: items[place].seen))


def _agreed(one: int, other: int) -> int:
    if one != other:
        raise Unclear
    return one
