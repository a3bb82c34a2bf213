"""What objects and parts are for: the table behind the grammar's questions, and how names of datasets find it."""

import re
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

import msgspec

from maskwise.language.word_forms import is_plural, singular_forms

TOYS = frozenset(("toy", "stuffed", "model", "fake", "inflatable", "hot"))
"""Words after which the last word of a name says little: a toy train is no train."""


class NounClass(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of objects: its plural, the objects that belong to it, and those about which people would disagree."""

    plural: str
    objects: frozenset[str]
    maybe: frozenset[str] = frozenset()


class Trait(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that objects are good for: questions, and verb phrases after "would" and "wants to"."""

    ask: tuple[str, ...]
    does: str
    objects: frozenset[str]
    maybe: frozenset[str] = frozenset()
    want: str | None = None


class PartTrait(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that parts of objects are good for. of: the objects; empty means any."""

    ask: tuple[str, ...]
    does: str
    parts: frozenset[str]
    maybe: frozenset[str] = frozenset()
    of: frozenset[str] = frozenset()


class Knowledge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table of `knowledge.yaml`, whose comments describe its fields."""

    spelling: dict[str, str]
    synonyms: dict[str, tuple[str, ...]]
    classes: dict[str, NounClass]
    traits: dict[str, Trait]
    themes: dict[str, frozenset[str]]
    part_traits: dict[str, PartTrait]
    background: frozenset[str]
    vague: frozenset[str]
    surfaces: frozenset[str]


class Noun(NamedTuple):
    """The name of a region. text: as it is written in sentences; known: its name in the table, None if unknown."""

    text: str
    known: str | None

    @property
    def is_plural(self) -> bool:
        """Whether a verb after it is in the plural: "the scissors are"."""
        return is_plural(self.text)


@lru_cache(maxsize=1)
def load_knowledge() -> Knowledge:
    """The table that ships with the package."""
    data = resources.files("maskwise.builder").joinpath("knowledge.yaml").read_bytes()
    return msgspec.yaml.decode(data, type=Knowledge)


@lru_cache(maxsize=4096)
def to_noun(name: str) -> Noun:
    """The noun of an annotated name.

    Of synonyms ("car, auto") the first is written and all are looked up. "cup:handle" and "handle of the cup" are
    handles. Other names are found by their last words ("espresso cup", "pink clock").
    """
    knowledge = load_knowledge()
    names = [_clean(part) for part in name.split(",")]
    names = [knowledge.spelling.get(part, part) for part in names if part]
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


@lru_cache(maxsize=1)
def _canonical() -> dict[str, str]:
    """Every name in the table with the name it stands for."""
    knowledge = load_knowledge()
    groups: list[NounClass | Trait] = [
        *knowledge.classes.values(),
        *knowledge.traits.values(),
    ]
    names = {word for group in groups for word in (*group.objects, *group.maybe)}
    parts = {word for trait in knowledge.part_traits.values() for word in trait.parts}
    lists = knowledge.background | knowledge.surfaces | knowledge.vague
    other = {
        also: name for name, synonyms in knowledge.synonyms.items() for also in synonyms
    }
    return (
        {word: word for word in (*parts, *lists, *names)}
        | other
        | {word: word for word in knowledge.synonyms}
    )


def _find(name: str) -> str | None:
    """The name in the table of which these words, or the last of them, are a form; None if there is none."""
    words = name.split()
    canonical = _canonical()
    for first in range(len(words)):
        if first and words[first - 1] in TOYS:
            return None
        before = words[first:-1]
        last = words[-1]
        # The name as it is written comes before its possible singulars: "glasses" are not a glass.
        for form in (last, *sorted(singular_forms(last))):
            phrase = " ".join([*before, form])
            if phrase in canonical:
                return canonical[phrase]
    return None
