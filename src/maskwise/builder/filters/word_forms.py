"""Word forms of English: a text as words, and the words of which a word may be a plural or another inflection."""

import functools
import re

WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
CONTRACTION = re.compile(r"'(s|d|ll|re|ve|m|t)?$")

IRREGULAR = {
    "calves": "calf",
    "children": "child",
    "dice": "die",
    "feet": "foot",
    "geese": "goose",
    "halves": "half",
    "hooves": "hoof",
    "knives": "knife",
    "leaves": "leaf",
    "lives": "life",
    "loaves": "loaf",
    "mice": "mouse",
    "oxen": "ox",
    "people": "person",
    "scarves": "scarf",
    "shelves": "shelf",
    "skier": "ski",
    "skiers": "ski",
    "teeth": "tooth",
    "wives": "wife",
    "wolves": "wolf",
}

PLURALS = (
    (re.compile(r"men$"), "man"),
    (re.compile(r"(.[^aeiou])ies$"), r"\1y"),
    (re.compile(r"(.[sxzo]|[cs]h)es$"), r"\1"),
    (re.compile(r"(.[^s])s$"), r"\1"),
)
"""Endings of plurals and of their singulars."""

DOUBLED = re.compile(r"([^aeiouy])\1$")
DOUBLES = re.compile(r"(?:^|[^aeiou])[aeiouy][^aeiouwxy]$")
"""Words of one short syllable double their last letter before -ing and -ed: "rating" comes from rate, not rat."""


def word_set(words: str) -> frozenset[str]:
    """The set of words separated by spaces."""
    return frozenset(words.split())


@functools.lru_cache(2**10)
def split_words(text: str) -> tuple[str, ...]:
    """The words of a text in lower case, in order, without possessive endings; hyphens separate words."""
    found = WORD.findall(text.casefold().replace("’", "'"))
    return tuple(CONTRACTION.sub("", word) if "'" in word else word for word in found)


@functools.lru_cache(2**14)
def singular_forms(word: str) -> frozenset[str]:
    """The word, and the words of which it may be the plural. Expects lower case."""
    found = {ending.sub(singular, word) for ending, singular in PLURALS}
    return frozenset(found | {word, IRREGULAR.get(word, word)})


@functools.lru_cache(2**14)
def base_forms(word: str) -> frozenset[str]:
    """Its singular forms, and the words of which it may be another inflection: "skiing" of ski, "biking" of bike."""
    forms = set(singular_forms(word))
    for ending in ("ing", "ed"):
        forms |= _without_suffix(word, ending)
    for ending in ("er", "ers"):
        if word.endswith(ending) and len(word) - len(ending) > 4:
            forms.add(word[: -len(ending)])
    return frozenset(forms)


def _without_suffix(word: str, ending: str) -> set[str]:
    stem = word.removesuffix(ending)
    if stem == word or len(stem) < 2 or not re.search(r"[aeiouy]", stem):
        return set()
    if DOUBLED.search(stem):
        return {stem, stem[:-1]}
    return (
        {stem + "e"} if DOUBLES.search(stem) and len(stem) < 5 else {stem, stem + "e"}
    )
