"""What a question asks for, as a typed predicate over the regions of an image.

    form = Without(OfKind("animal"), HasFact("does: bark at the mailman"))
    form.extension(facts)          the numbers of the regions that fulfil it, and of those that may

Truth has three values. A region is in `yes` if it fulfils the form, in `unsure` if people would disagree or if the
annotations do not tell; number 0 stands for crowds and for the whole image, where nothing can be said about single
regions. A question is asked only if nobody is unsure and exactly its targets are in `yes`. Forms are stored with the
samples, as JSON.
"""

from functools import lru_cache
from typing import Literal, NamedTuple

import msgspec

from maskwise.builder.facts import ImageFacts, RegionFacts
from maskwise.builder.knowledge import Fact, PartFact, load_knowledge
from maskwise.builder.noun_phrases import (
    MIN_GAP,
    MIN_RATIO,
    nearest,
    outermost,
)

Measure = Literal["left", "right", "large", "small", "near", "hidden", "high", "low"]

FORM_TAG = "logical_form"
"""The tag of a sample with its form."""

UNKNOWN = 0
"""The number of no region: something in the image that nobody can point at."""


class Extension(NamedTuple):
    """Numbers of regions that fulfil a form, and of those that may."""

    yes: frozenset[int]
    unsure: frozenset[int] = frozenset()

    @property
    def is_settled(self) -> bool:
        """Whether nobody would disagree."""
        return not self.unsure


NOTHING = Extension(frozenset())
UNSETTLED = Extension(frozenset(), frozenset((UNKNOWN,)))


class HasFact(msgspec.Struct, frozen=True, tag="fact"):
    """Objects of which a fact is true, by its key."""

    fact: str

    def extension(self, facts: ImageFacts) -> Extension:
        fact = load_knowledge().facts_by_key[self.fact]
        assert isinstance(fact, Fact), "facts of parts are in HasPartFact"
        return members(facts, fact.yes, fact.maybe)


class OfKind(msgspec.Struct, frozen=True, tag="kind"):
    """Objects of a kind: "animal"."""

    kind: str

    def extension(self, facts: ImageFacts) -> Extension:
        kind = load_knowledge().kinds[self.kind]
        return members(facts, kind.objects, kind.maybe)


class TheRegion(msgspec.Struct, frozen=True, tag="region"):
    """One region that a question names or describes, by its number."""

    number: int

    def extension(self, facts: ImageFacts) -> Extension:
        return Extension(frozenset((self.number,)))


class HasPartFact(msgspec.Struct, frozen=True, tag="part"):
    """Parts of which a fact is true, of the objects that fulfil a form."""

    fact: str
    of: "Form"

    def extension(self, facts: ImageFacts) -> Extension:
        fact = load_knowledge().facts_by_key[self.fact]
        assert isinstance(fact, PartFact), "facts of objects are in HasFact"
        wholes = self.of.extension(facts)
        yes = set()
        unsure = set(wholes.unsure & {UNKNOWN})
        for number in (wholes.yes | wholes.unsure) - {UNKNOWN}:
            whole = facts.regions[number - 1]
            for part in facts.parts_of.get(whole.id, ()):
                name = part.noun.text
                fulfils = name in fact.parts and whole.noun.known in fact.wholes
                if fulfils and number in wholes.yes:
                    yes.add(part.number)
                elif fulfils or name in fact.maybe:
                    unsure.add(part.number)
        return Extension(frozenset(yes), frozenset(unsure))


class Hides(msgspec.Struct, frozen=True, tag="hides"):
    """Objects in front of a part of the object that a form singles out."""

    hidden: "Form"

    def extension(self, facts: ImageFacts) -> Extension:
        anchor = single(self.hidden, facts)
        if anchor is None:
            return UNSETTLED
        front = facts.hidden_by.get(anchor.id, ())
        return Extension(frozenset(region.number for region in front))


class HiddenBy(msgspec.Struct, frozen=True, tag="hidden by"):
    """Objects of which the object that a form singles out hides a part."""

    front: "Form"

    def extension(self, facts: ImageFacts) -> Extension:
        anchor = single(self.front, facts)
        if anchor is None:
            return UNSETTLED
        return Extension(
            frozenset(
                region.number
                for region in facts.objects
                if anchor in facts.hidden_by.get(region.id, ())
            )
        )


class StandsOn(msgspec.Struct, frozen=True, tag="on"):
    """Objects that stand or lie on the surface that a form singles out."""

    surface: "Form"

    def extension(self, facts: ImageFacts) -> Extension:
        anchor = single(self.surface, facts)
        if anchor is None:
            return UNSETTLED
        upon = facts.standing_on.get(anchor.id, ())
        return Extension(frozenset(region.number for region in upon))


class ToTheSide(msgspec.Struct, frozen=True, tag="to the side"):
    """Objects clearly to the left or right of the object that a form singles out; the others are unsettled if they
    overlap it.
    """

    side: Literal["left", "right"]
    anchor: "Form"

    def extension(self, facts: ImageFacts) -> Extension:
        anchor = single(self.anchor, facts)
        if anchor is None:
            return UNSETTLED
        yes = set()
        unsure = set()
        for region in facts.objects:
            if region is anchor:
                continue
            pair = (region, anchor) if self.side == "left" else (anchor, region)
            first, second = pair
            if first.right_edge <= second.box[0] + MIN_GAP / 2:
                yes.add(region.number)
            elif first.center[0] < second.center[0] + MIN_GAP:
                unsure.add(region.number)
        return Extension(frozenset(yes), frozenset(unsure))


class Both(msgspec.Struct, frozen=True, tag="both"):
    """Regions that fulfil all of several forms."""

    forms: tuple["Form", ...]

    def extension(self, facts: ImageFacts) -> Extension:
        extensions = [form.extension(facts) for form in self.forms]
        yes = frozenset.intersection(*(item.yes for item in extensions))
        possible = frozenset.intersection(
            *(item.yes | item.unsure for item in extensions)
        )
        return Extension(yes, possible - yes)


class Either(msgspec.Struct, frozen=True, tag="either"):
    """Regions that fulfil any of several forms."""

    forms: tuple["Form", ...]

    def extension(self, facts: ImageFacts) -> Extension:
        extensions = [form.extension(facts) for form in self.forms]
        yes = frozenset.union(*(item.yes for item in extensions))
        possible = frozenset.union(*(item.unsure for item in extensions))
        return Extension(yes, possible - yes)


class Without(msgspec.Struct, frozen=True, tag="without"):
    """Regions that fulfil a form but not another one."""

    form: "Form"
    but: "Form"

    def extension(self, facts: ImageFacts) -> Extension:
        whole = self.form.extension(facts)
        left_out = self.but.extension(facts)
        yes = whole.yes - left_out.yes - left_out.unsure
        possible = (whole.yes | whole.unsure) - left_out.yes
        return Extension(yes, possible - yes)


class Most(msgspec.Struct, frozen=True, tag="most"):
    """The one of at least two regions that is clearly the most of something; unsettled if none is."""

    measure: Measure
    among: "Form"

    def extension(self, facts: ImageFacts) -> Extension:
        group = self.among.extension(facts)
        if not group.is_settled or len(group.yes) < 2:
            return UNSETTLED
        regions = [facts.regions[number - 1] for number in sorted(group.yes)]
        region = choose(self.measure, regions)
        if region is None:
            return UNSETTLED
        return Extension(frozenset((region.number,)))


class Counted(msgspec.Struct, frozen=True, tag="counted"):
    """Regions that fulfil a form, if there are exactly so many; otherwise unsettled."""

    count: int
    form: "Form"

    def extension(self, facts: ImageFacts) -> Extension:
        group = self.form.extension(facts)
        return group if len(group.yes) == self.count else UNSETTLED


Form = (
    HasFact
    | OfKind
    | TheRegion
    | HasPartFact
    | Hides
    | HiddenBy
    | StandsOn
    | ToTheSide
    | Both
    | Either
    | Without
    | Most
    | Counted
)

_decoder: msgspec.json.Decoder[Form] = msgspec.json.Decoder(Form)


def encode_form(form: Form) -> str:
    """A form as JSON, for the tags of a sample."""
    return msgspec.json.encode(form).decode()


@lru_cache(maxsize=256)
def decode_form(text: str) -> Form:
    """The form of a JSON text; msgspec.DecodeError if it is none."""
    return _decoder.decode(text)


def members(facts: ImageFacts, yes: frozenset[str], maybe: frozenset[str]) -> Extension:
    """The objects of some categories, and those of categories that are unsettled.

    A crowd of either is unsettled, and so is an object whose label may well be wrong.
    """
    true_of: set[int] = set()
    unsettled: set[int] = set()
    for category, numbers in facts.by_category.items():
        if category in yes:
            true_of |= numbers - facts.doubtful
            unsettled |= numbers & facts.doubtful
        elif category in maybe:
            unsettled |= numbers
    if facts.crowds & yes or facts.crowds & maybe:
        unsettled.add(UNKNOWN)
    return Extension(frozenset(true_of), frozenset(unsettled))


def single(form: Form, facts: ImageFacts) -> RegionFacts | None:
    """The one region that fulfils a form; None if there are several, none, or if it is unsettled."""
    extension = form.extension(facts)
    if not extension.is_settled or len(extension.yes) != 1:
        return None
    (number,) = extension.yes
    return facts.regions[number - 1]


def choose(measure: Measure, group: list[RegionFacts]) -> RegionFacts | None:
    """The region of a group of two or more that is clearly the most of something."""
    if measure in ("left", "right"):
        return outermost(group).get(measure)
    if measure == "near":
        return nearest(group)
    if measure in ("large", "small"):
        return _clear_size(measure, group)
    if measure in ("high", "low"):
        return _clear_height(measure, group)
    hidden = sorted(group, key=lambda region: -(region.occlusion or 0.0))
    rate = hidden[0].occlusion or 0.0
    second = hidden[1].occlusion or 0.0
    clear = hidden[0].is_occluded and rate >= MIN_RATIO * second
    return hidden[0] if clear else None


def _clear_size(measure: Measure, group: list[RegionFacts]) -> RegionFacts | None:
    by_size = sorted(group, key=lambda region: region.share)
    if measure == "small":
        return by_size[0] if by_size[0].share * MIN_RATIO <= by_size[1].share else None
    return by_size[-1] if by_size[-1].share >= MIN_RATIO * by_size[-2].share else None


def _clear_height(measure: Measure, group: list[RegionFacts]) -> RegionFacts | None:
    """The region whose box is above or below the boxes of all others."""
    by_height = sorted(group, key=lambda region: region.center[1])
    if measure == "high":
        return by_height[0] if by_height[0].bottom <= by_height[1].box[1] else None
    second = max(region.bottom for region in by_height[:-1])
    return by_height[-1] if by_height[-1].box[1] >= second else None


def find_wrong_targets(
    form: Form, targets: frozenset[int], facts: ImageFacts
) -> str | None:
    """Why the targets of a question are not exactly the regions that fulfil its form; None if they are."""
    extension = form.extension(facts)
    if not extension.is_settled:
        return "people would disagree about " + _names(extension.unsure, facts)
    if extension.yes == targets:
        return None
    missing = extension.yes - targets
    if missing:
        return f"{_names(missing, facts)} fulfils the question too"
    return f"{_names(targets - extension.yes, facts)} does not fulfil the question"


def _names(numbers: frozenset[int], facts: ImageFacts) -> str:
    names = [
        repr(facts.regions[number - 1].id)
        for number in sorted(numbers)
        if number != UNKNOWN
    ]
    return ", ".join(names) or "something in the image"
