"""Unsafe wording in the texts of a dataset: offensive words, and what is said or asked about people."""

import functools
from typing import NamedTuple

from maskwise.builder.filters.question_checks import find_toxic
from maskwise.language.lexicons import read_sections
from maskwise.language.phrases import PhraseKey, find_phrases, phrase_table
from maskwise.language.tokens import tokenize

OFFENSIVE = "offensive word"
PEOPLE = "people"
DEMEANING = "demeaning"
HARM = "harm"

KIND_TITLES = {DEMEANING: "demeaning words about people", HARM: "harm to people"}
"""Sections of the lexicon that are no attributes; all others are sensitive attributes."""


class WordingFlag(NamedTuple):
    """What is unsafe about a text, and its words."""

    kind: str
    words: str


def find_unsafe_wording(text: str) -> list[WordingFlag]:
    """Everything in a text that someone should look at before it is published."""
    flags = []
    offensive = find_toxic(text)
    if offensive is not None:
        flags.append(WordingFlag(OFFENSIVE, offensive))
    tokens = tokenize(text)
    matches = find_phrases(tokens, _person_table())
    sections = {match.value for match in matches}
    if PEOPLE not in sections:
        return flags
    for match in matches:
        if match.value != PEOPLE:
            kind = KIND_TITLES.get(match.value, f"sensitive attribute: {match.value}")
            words = [token.word for token in tokens[match.start : match.stop]]
            flags.append(WordingFlag(kind, " ".join(words)))
    return list(dict.fromkeys(flags))


def names_person(name: str) -> bool:
    """Whether the name of a region is that of a person."""
    matches = find_phrases(tokenize(name), _person_table())
    return any(match.value == PEOPLE for match in matches)


@functools.cache
def _person_table() -> dict[PhraseKey, str]:
    return phrase_table(read_sections("people_words"))
