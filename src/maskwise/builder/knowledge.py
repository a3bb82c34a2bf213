"""What objects and parts are for: the facts behind the grammar's questions, and how names of datasets find them.

The facts are in the files of `common_knowledge` and in `knowledge.yaml`; their comments describe the format and name
the vocabularies. A fact is true of the categories it is stated for and of all narrower ones. It is unsettled for
broader ones (a car may be a taxi), for those that are easily confused and for those listed; it is false of the others.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import resources
from typing import NamedTuple

import msgspec

from maskwise.builder.knowledge_file import Entry, FactKind, read_entries
from maskwise.language.word_forms import is_plural, singular_forms

OBJECT_FILES = (
    "streets.txt",
    "nature_and_sports.txt",
    "food_and_tableware.txt",
    "home.txt",
    "clothes_and_tools.txt",
)
PART_FILE = "parts.txt"

PREPOSITION = re.compile(r" (?:in|on|with|of|for|from|at|near|behind|under) ")

TOYS = frozenset(("toy", "stuffed", "model", "fake", "inflatable", "hot"))
"""Words after which the last word of a name says little: a toy train is no train."""


class NounClass(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of objects: its plural, the objects that belong to it, and those about which people would disagree.

    closed: whether annotators usually mark all objects of the kind, so that they can be counted.
    """

    plural: str
    objects: frozenset[str]
    maybe: frozenset[str] = frozenset()
    closed: bool = False


class Trait(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that objects are good for: questions, and verb phrases after "would" and "wants to"."""

    ask: tuple[str, ...]
    does: str
    objects: frozenset[str]
    maybe: frozenset[str] = frozenset()
    want: str | None = None


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The contents of `knowledge.yaml`, whose comments describe its fields."""

    spelling: dict[str, str]
    synonyms: dict[str, tuple[str, ...]]
    classes: dict[str, NounClass]
    traits: dict[str, Trait]
    background: frozenset[str]
    vague: frozenset[str]
    surfaces: frozenset[str]
    doubtful: frozenset[str]
    overlooked: frozenset[str]
    bunched: frozenset[str]
    uncountable: frozenset[str]


@dataclass(frozen=True, eq=False)
class Fact:
    """Something true of the objects `yes` and unsettled for `maybe`; both sets contain no further categories.

    text: a verb phrase in the base form, with "*" after further verbs to inflect; for the kind "ask" a question.
    opening: a sentence before it. place: where such objects are found, for questions about two things at once.
    always: whether it is true of every one of them, not only usually.
    """

    kind: FactKind
    text: str
    yes: frozenset[str]
    maybe: frozenset[str]
    opening: str = ""
    place: str = ""
    always: bool = False

    @cached_property
    def key(self) -> str:
        """The name of the fact in logical forms."""
        words = (f"{self.kind}:", self.opening, self.text.replace("*", ""))
        return " ".join(filter(None, words))


@dataclass(frozen=True, eq=False)
class PartFact:
    """Something true of parts with the names `parts`, of objects of the categories `wholes`."""

    kind: FactKind
    text: str
    parts: frozenset[str]
    maybe: frozenset[str]
    wholes: frozenset[str]

    @cached_property
    def key(self) -> str:
        """The name of the fact in logical forms: texts occur for several parts."""
        return f"{min(self.parts)} of {min(self.wholes)}: {self.text}"


@dataclass(frozen=True)
class Knowledge:
    """All facts, with indices. categories: those with an entry of their own, with their places."""

    table: Table
    categories: Mapping[str, Entry]
    kinds: Mapping[str, NounClass]
    facts: tuple[Fact, ...]
    part_facts: tuple[PartFact, ...]
    part_entries: tuple[Entry, ...]
    names: Mapping[str, str]
    """Every known name with the category or part that it stands for."""
    facts_of: Mapping[str, tuple[Fact, ...]] = field(repr=False)
    part_facts_of: Mapping[str, tuple[PartFact, ...]] = field(repr=False)
    """By the category of the whole."""

    @cached_property
    def facts_by_key(self) -> dict[str, Fact | PartFact]:
        """Facts of objects and parts by their names in logical forms."""
        by_key: dict[str, Fact | PartFact] = {fact.key: fact for fact in self.facts}
        return by_key | {fact.key: fact for fact in self.part_facts}

    @cached_property
    def kind_of(self) -> dict[str, str]:
        """The kind of each category that has one; of several the first."""
        kind_of: dict[str, str] = {}
        for name, kind in self.kinds.items():
            for category in kind.objects:
                kind_of.setdefault(category, name)
        return kind_of


class Noun(NamedTuple):
    """The name of a region. text: as it is written in sentences; known: its category, None if unknown."""

    text: str
    known: str | None

    @property
    def is_plural(self) -> bool:
        """Whether a verb after it is in the plural: "the scissors are"."""
        return is_plural(self.text)


class Taxonomy:
    """Broader, narrower and confusable categories."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self.broader: dict[str, str] = {}
        self.alike: defaultdict[str, set[str]] = defaultdict(set)
        self.narrower: defaultdict[str, set[str]] = defaultdict(set)
        for entry in entries:
            if entry.broader is not None:
                self.broader[entry.name] = entry.broader
            for other in entry.alike:
                self.alike[entry.name].add(other)
                self.alike[other].add(entry.name)
        for name in self.broader:
            for above in self.above(name):
                self.narrower[above].add(name)

    def above(self, name: str) -> list[str]:
        """All broader categories, the nearest first."""
        names: list[str] = []
        while name in self.broader and self.broader[name] not in names:
            name = self.broader[name]
            names.append(name)
        return names

    def with_narrower(self, names: Iterable[str]) -> set[str]:
        """Categories with all that are narrower; "<name" gives only those that are narrower than the name."""
        expanded: set[str] = set()
        for name in names:
            expanded |= self.narrower[name.removeprefix("<")]
            if not name.startswith("<"):
                expanded.add(name)
        return expanded

    def extend(
        self, yes: Iterable[str], maybe: Iterable[str]
    ) -> tuple[frozenset[str], frozenset[str]]:
        """All categories of which a fact is true, and all for which it is unsettled.

        What is listed as unsettled is so, also where it is narrower than a category that fulfils the fact.
        """
        stated = set(yes)
        listed = self.with_narrower(maybe) - stated
        true_of = self.with_narrower(stated) - listed
        unsettled = listed
        for name in stated:
            unsettled |= set(self.above(name))
            unsettled |= self.with_narrower(self.alike[name])
        return frozenset(true_of), frozenset(unsettled - true_of)


@lru_cache(maxsize=1)
def load_knowledge() -> Knowledge:
    """The facts that ship with the package."""
    data = resources.files("maskwise.builder").joinpath("knowledge.yaml").read_bytes()
    table = msgspec.yaml.decode(data, type=Table)
    entries = [entry for file in OBJECT_FILES for entry in read_entries(file)]
    part_entries = tuple(read_entries(PART_FILE))
    taxonomy = Taxonomy(entries)
    names = _names(table, entries, part_entries)
    facts = tuple(_stated_facts(entries, taxonomy, names)) + tuple(
        _trait_facts(table, taxonomy, entries, names=names)
    )
    part_facts = tuple(_part_facts(part_entries, taxonomy, names))
    facts_of: defaultdict[str, list[Fact]] = defaultdict(list)
    for fact in facts:
        for category in fact.yes:
            facts_of[category].append(fact)
    part_facts_of: defaultdict[str, list[PartFact]] = defaultdict(list)
    for part_fact in part_facts:
        for category in part_fact.wholes:
            part_facts_of[category].append(part_fact)
    return Knowledge(
        table=table,
        categories={entry.name: entry for entry in entries},
        kinds=_kinds(table, entries, taxonomy),
        facts=facts,
        part_facts=part_facts,
        part_entries=part_entries,
        names=names,
        facts_of={name: tuple(items) for name, items in facts_of.items()},
        part_facts_of={name: tuple(items) for name, items in part_facts_of.items()},
    )


def _stated_facts(
    entries: Iterable[Entry], taxonomy: Taxonomy, names: Mapping[str, str]
) -> Iterable[Fact]:
    """The facts of entries; one that is stated for several entries is true of all of them."""
    yes: defaultdict[tuple[FactKind, str, str], set[str]] = defaultdict(set)
    maybe: defaultdict[tuple[FactKind, str, str], set[str]] = defaultdict(set)
    places: dict[tuple[FactKind, str, str], str] = {}
    always: set[tuple[FactKind, str, str]] = set()
    for entry in entries:
        for fact in entry.facts:
            key = (fact.kind, fact.opening, fact.text)
            yes[key] |= {entry.name, *_canonical(fact.also, names)}
            maybe[key] |= set(_canonical(fact.maybe, names))
            places[key] = entry.place
            if fact.always:
                always.add(key)
    for key, stated in yes.items():
        true_of, unsettled = taxonomy.extend(stated, maybe[key])
        kind, opening, text = key
        yield Fact(kind, text, true_of, unsettled, opening, places[key], key in always)


def _canonical(names: Iterable[str], known: Mapping[str, str]) -> list[str]:
    """Names as the entries have them; "<name" keeps its mark, unknown names stay."""
    return [name if name.startswith("<") else known.get(name, name) for name in names]


def _trait_facts(
    table: Table,
    taxonomy: Taxonomy,
    entries: Iterable[Entry],
    *,
    names: Mapping[str, str],
) -> Iterable[Fact]:
    places = {entry.name: entry.place for entry in entries}
    for trait in table.traits.values():
        objects = _canonical(_expand(trait.objects, table), names)
        maybe = _canonical(_expand(trait.maybe, table), names)
        true_of, unsettled = taxonomy.extend(objects, maybe)
        place = next((places[name] for name in sorted(objects) if name in places), "")
        yield Fact("does", trait.does, true_of, unsettled, place=place)
        if trait.want is not None:
            yield Fact("need", trait.want, true_of, unsettled, place=place)
        for question in trait.ask:
            yield Fact("ask", question, true_of, unsettled, place=place)


def _expand(names: Iterable[str], table: Table) -> set[str]:
    """Names of objects; "@vehicle" stands for all members of a class."""
    expanded: set[str] = set()
    for name in names:
        members = table.classes[name[1:]].objects if name.startswith("@") else {name}
        expanded |= members
    return expanded


def _part_facts(
    entries: Iterable[Entry], taxonomy: Taxonomy, names: Mapping[str, str]
) -> Iterable[PartFact]:
    for entry in entries:
        wholes = taxonomy.with_narrower(_canonical(entry.wholes, names))
        parts = frozenset((entry.name, *entry.other_names))
        for fact in entry.facts:
            maybe = frozenset(fact.maybe) - parts
            yield PartFact(fact.kind, fact.text, parts, maybe, frozenset(wholes))


def _kinds(
    table: Table, entries: Iterable[Entry], taxonomy: Taxonomy
) -> dict[str, NounClass]:
    """The classes of the table with the entries that name them as their kind."""
    members: defaultdict[str, set[str]] = defaultdict(set)
    for entry in entries:
        if entry.kind is not None:
            members[entry.kind].add(entry.name)
    kinds = {}
    for name, kind in table.classes.items():
        maybe = taxonomy.with_narrower(kind.maybe)
        objects = taxonomy.with_narrower(kind.objects | members[name]) - maybe
        kinds[name] = msgspec.structs.replace(
            kind, objects=frozenset(objects), maybe=frozenset(maybe)
        )
    return kinds


def _names(
    table: Table, entries: Sequence[Entry], part_entries: Iterable[Entry]
) -> dict[str, str]:
    """Every name with the one it stands for. An entry of its own wins over being another's other name."""
    names: dict[str, str] = {}
    for part in part_entries:
        names |= {name: name for name in (part.name, *part.other_names)}
    groups: list[NounClass | Trait] = [*table.classes.values(), *table.traits.values()]
    for group in groups:
        names |= {name: name for name in (*group.objects, *group.maybe)}
    names |= {name: name for name in table.background | table.surfaces | table.vague}
    for name, synonyms in table.synonyms.items():
        names |= dict.fromkeys(synonyms, name)
    names |= {name: name for name in table.synonyms}
    for entry in entries:
        # Names that facts only mention are known too: "~ snake".
        mentioned = [
            other for fact in entry.facts for other in (*fact.also, *fact.maybe)
        ]
        for other in (*entry.alike, *mentioned):
            names.setdefault(other.removeprefix("<"), other.removeprefix("<"))
    for entry in entries:
        names |= dict.fromkeys(entry.other_names, entry.name)
    return names | {entry.name: entry.name for entry in entries}


@lru_cache(maxsize=4096)
def to_noun(name: str) -> Noun:
    """The noun of an annotated name.

    Of synonyms ("car, auto") the first is written and all are looked up. "cup:handle" and "handle of the cup" are
    handles. Other names are found by their last words ("espresso cup", "pink clock").
    """
    spelling = load_knowledge().table.spelling
    names = [_clean(part) for part in name.split(",")]
    names = [spelling.get(part, part) for part in names if part]
    if not names:
        names = ["object"]
    for synonym in names:
        known = _find(synonym)
        if known is not None:
            return Noun(names[0], known)
    return Noun(names[0], None)


def _clean(name: str) -> str:
    text = name.rpartition(":")[2].replace("_", " ")
    text = re.sub(r"\(.*?\)", " ", text).partition(" of the ")[0]
    return re.sub(r"\s+", " ", text).strip().lower()


def _find(name: str) -> str | None:
    """The category of which these words, or the last of them, are a form; None if there is none.

    What follows a preposition says nothing about the category: "plant in the pot".
    """
    names = load_knowledge().names
    words = name.split() if name in names else PREPOSITION.split(name)[0].split()
    for first in range(len(words)):
        if first and words[first - 1] in TOYS:
            return None
        before = words[first:-1]
        last = words[-1]
        # The name as it is written comes before its possible singulars: "glasses" are not a glass.
        for form in (last, *sorted(singular_forms(last))):
            phrase = " ".join([*before, form])
            if phrase in names:
                return names[phrase]
    return None
