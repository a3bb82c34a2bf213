"""Which of some things an answer names, and what it says beside: by name, synonym, kind or plural, denials apart."""

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from maskwise.language.category_names import (
    ARTICLES,
    POINTERS,
    PREPOSITIONS,
    find_category_name,
    load_lexicon,
)
from maskwise.language.lexicons import read_sections
from maskwise.language.tokens import split_words
from maskwise.language.word_forms import base_forms, is_plural, singular_forms

SILENT_WORDS = frozenset(
    word for words in read_sections("answer_words").values() for word in words
)
"""Words that name nothing."""

COLORS = {
    word: color
    for color, words in read_sections("colors").items()
    for word in [color, *words]
}
"""The color of each word for one."""

_DENIAL = re.compile(
    r"\b(?:no|not|never|neither|nor|without|none)\b[^.,;:!?]*|n['’]t\b[^.,;:!?]*",
    re.IGNORECASE,
)
"""From a negation to the end of its clause: what an answer says that it is not."""

_ABSENCE = re.compile(
    r"\b(?:nothing|none|no such|not any|absent|there(?: is|'s|’s| are) no"
    r"|(?:is|are)(?: not|n['’]t) (?:in|present|visible|shown|here|there|any)"
    r"|(?:can(?:no|['’])t|do(?: no|n['’])t|could(?: no|n['’])t) (?:see|find))\b",
    re.IGNORECASE,
)
"""How an answer says that nothing is there."""

_CLAUSE_END = re.compile(r"[.,;:!?]|\b(?:and|or|but)\b", re.IGNORECASE)
_NUMBER = re.compile(r"_\d+(?=\W|_|$)")
_REMARK = re.compile(r"\([^)]*\)")
_OWNER = re.compile(r"['’]s\s|:")

Naming = Literal["full", "short"]


@dataclass(frozen=True)
class NameParts:
    """A dataset's name of a region: the noun, and the words that tell it from others ("red", "of the left cup")."""

    noun: str
    details: tuple[str, ...]


def affirmed(text: str) -> str:
    """A text without the clauses that deny something: "the cup, not the bowl" names the cup."""
    return _DENIAL.sub(" ", text)


def says_absent(text: str) -> bool:
    """Whether a text says that nothing is there."""
    return _ABSENCE.search(text) is not None


def find_naming(text: str, name: str, count: int = 1) -> Naming | None:
    """Whether a text names a thing: with all words of its name, with less (its noun, a broader kind), or not at all.

    name: as datasets write it; of several names, "car, auto", one is enough. count: how many things have this name; the
    text has to say it in the plural, or as often.
    """
    namings = [
        _naming(text, _split_name(alternative), count)
        for alternative in name.split(",")
        if split_words(alternative)
    ]
    if "full" in namings:
        return "full"
    return "short" if "short" in namings else None


def _naming(text: str, parts: NameParts, count: int) -> Naming | None:
    words = find_category_name(text, parts.noun)
    if words is None:
        return "short" if _names_broader_kind(text, parts.noun) else None
    times = " ".join(split_words(text)).count(words)
    if times < count and not is_plural(words):
        return "short"
    for clause in _CLAUSE_END.split(text):
        # The details belong to the noun: "a red cup and a box" names no red box.
        forms = word_forms_of(clause)
        if find_category_name(clause, parts.noun) and all(
            _is_said(detail, forms) for detail in parts.details
        ):
            return "full"
    return "short"


def _names_broader_kind(text: str, noun: str) -> bool:
    """Whether a text names what the noun is a kind of: "person" for a man."""
    forms = [(form,) for form in singular_forms(noun)]
    return any(
        not kinds.isdisjoint(forms) and find_category_name(text, " ".join(whole))
        for whole, kinds in load_lexicon().kinds.items()
    )


def _is_said(word: str, forms: frozenset[str]) -> bool:
    """Whether a word, a form of it, or another word for the same color is among the forms."""
    if word in COLORS:
        return any(COLORS.get(form) == COLORS[word] for form in forms)
    return not base_forms(word).isdisjoint(forms)


@functools.lru_cache(2**12)  # a dataset repeats its names
def _split_name(name: str) -> NameParts:
    text = _REMARK.sub(" ", _NUMBER.sub("", name)).replace("_", " ")
    # "knife:blade" and "knife's blade" are blades.
    owner, _, part = _OWNER.sub("\n", text).rpartition("\n")
    words = split_words(part)
    after = next(
        (place for place, word in enumerate(words) if place and word in PREPOSITIONS),
        len(words),
    )
    before = [word for word in words[:after] if word not in ARTICLES | POINTERS]
    noun = _known_end(before)
    details = (*split_words(owner), *before[: len(before) - len(noun)], *words[after:])
    told = [word for word in details if word not in SILENT_WORDS | PREPOSITIONS]
    return NameParts(" ".join(noun), tuple(told))


def _known_end(words: list[str]) -> list[str]:
    """The last words that are a name of the lexicon, the longest such name; else the last word."""
    lexicon = load_lexicon()
    for first in range(len(words) - 1):
        for form in singular_forms(words[-1]):
            end = (*words[first:-1], form)
            if end in lexicon.equal or end in lexicon.kinds:
                return words[first:]
    return words[-1:]


@functools.lru_cache(2**10)  # the same texts are searched for every name of an image
def word_forms_of(text: str) -> frozenset[str]:
    """All words of a text with their base forms."""
    forms = set[str]()
    for word in split_words(text):
        forms |= {word, *base_forms(word)}
    return frozenset(forms)


def words_for(text: str, name: str) -> str:
    """The words by which a text calls a thing, such as a synonym of its noun; empty if it does not name it."""
    calls = [
        find_category_name(text, _split_name(alternative).noun)
        for alternative in name.split(",")
        if split_words(alternative)
    ]
    return " ".join(filter(None, calls))


def noun_of(name: str) -> str:
    """The noun of a dataset's name: "cup" of "red cup_1 (ceramic)"."""
    return _split_name(name.partition(",")[0]).noun


def unexplained_words(text: str, known: Iterable[str]) -> list[str]:
    """The words of a text that are neither silent nor in any of the known texts, in order."""
    forms = frozenset[str]().union(*(word_forms_of(other) for other in known))
    unexplained = []
    for word in dict.fromkeys(split_words(text)):
        is_color = word in COLORS and _is_said(word, forms)
        is_known = word in SILENT_WORDS or not base_forms(word).isdisjoint(forms)
        if not is_known and not is_color:
            unexplained.append(word)
    return unexplained


def other_colors(text: str, known: Iterable[str]) -> list[str]:
    """The colors that a text names and none of the known texts does."""
    said = {COLORS[word] for word in split_words(text) if word in COLORS}
    allowed = {
        COLORS[word] for other in known for word in split_words(other) if word in COLORS
    }
    return sorted(said - allowed)
