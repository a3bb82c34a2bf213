"""The nouns of a question: words for categories, for anything at all, and "one", which stands for a noun before it."""

from collections.abc import Sequence
from functools import cache

from maskwise.language.lexicons import word_set
from maskwise.language.phrases import PhraseKey, PhraseMatch, find_phrases, phrase_key
from maskwise.language.tokens import Token
from maskwise.language.word_forms import NUMBERS, ORDINALS
from maskwise.models.photo.clause import DETERMINERS, Noun
from maskwise.models.photo.modifiers import (
    COLOR_OF_WORD,
    EVERY,
    order_table,
)
from maskwise.models.photo.vocabulary import VOCABULARY

ANYTHING = word_set(
    "object item thing something anything everything tool element part place area piece "
    "article aspect component feature gear instrument portion region section "
    "structure"
)
"""Nouns that leave the category open."""

PIECES = word_set(
    "part piece portion region section component area feature aspect element structure"
)
"""Those of them that may mean a part: "which part of the car"."""

ONE = word_set("one ones")

BEFORE_A_VERB = word_set(
    "i you we they he she could can would should might may must will to"
)
"""After these words, "drink" or "watch" is a verb."""


def find_nouns(tokens: Sequence[Token]) -> list[Noun]:
    """Mentions of categories, kinds of them, or of anything; a color before a noun is no fruit."""
    nouns = []
    for noun in find_phrases(tokens, noun_table()):
        is_verb = noun.start > 0 and tokens[noun.start - 1].word in BEFORE_A_VERB
        if not is_verb:
            nouns.append(noun)
    starts = {noun.start for noun in nouns}
    nouns = [
        noun
        for noun in nouns
        if not (_is_color(tokens[noun.start : noun.stop]) and noun.stop in starts)
    ]
    nouns += _find_ones(tokens, starts)
    return sorted(nouns, key=lambda noun: noun.start)


def _find_ones(tokens: Sequence[Token], noun_starts: set[int]) -> list[Noun]:
    """Mentions of "one" after a word that describes it: "the white one", but not the number of "one cup"."""
    ones = []
    for place, token in enumerate(tokens):
        if place == 0 or token.word not in ONE or place + 1 in noun_starts:
            continue
        before = tokens[place - 1]
        describes = (
            before.word in DETERMINERS
            or before.word in EVERY
            or before.word in COLOR_OF_WORD
            or before.word in ORDINALS
            or before.word in NUMBERS
            or (before.singular,) in order_table()
        )
        if describes:
            ones.append(PhraseMatch(place, place + 1, frozenset[str]()))
    return ones


def _is_color(tokens: Sequence[Token]) -> bool:
    return len(tokens) == 1 and tokens[0].word in COLOR_OF_WORD


@cache
def noun_table() -> dict[PhraseKey, frozenset[str]]:
    """The categories of every word of the vocabulary; those of "object" and the like are none, which means any."""
    table: dict[PhraseKey, set[str]] = {(word,): set() for word in ANYTHING}
    for words in VOCABULARY:
        for phrase in (words.category, *words.names, *words.kinds):
            table.setdefault(phrase_key(phrase), set()).add(words.category)
    # A category's own name means that category only, even where it is also a word for others.
    for words in VOCABULARY:
        table[phrase_key(words.category)] = {words.category}
    return {key: frozenset(categories) for key, categories in table.items()}
