"""The nouns of a question: words for categories, for anything at all, and "one", which stands for a noun before it.

Where proposals are labelled with any words, unknown words between a determiner and the end of a phrase are nouns too:
"the wooden mailbox on the left".
"""

import re
from collections.abc import Sequence
from functools import cache

from maskwise.language.lexicons import word_set
from maskwise.language.phrases import PhraseKey, PhraseMatch, find_phrases, phrase_key
from maskwise.language.tokens import Token
from maskwise.language.word_forms import NUMBERS, ORDINALS
from maskwise.models.photo.clause import (
    DETERMINERS,
    INTERROGATIVES,
    REQUESTS,
    STOPS,
    Noun,
)
from maskwise.models.photo.modifiers import (
    COLOR_OF_WORD,
    EVERY,
    NEGATIONS,
    is_modifier,
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

BETWEEN_PHRASES = word_set(
    "and or plus but except excluding besides of is are was were be been being that which who while so please me only "
    "also just not there here then than with without including during after before until because "
    "how why when us him them"
)
"""Words that are no part of a noun phrase, besides prepositions, auxiliary verbs, pronouns and determiners."""

WHICH = word_set("which whichever")
"""After these a noun follows; after "what" or "who" it may be a verb: "What holds the flowers?"."""

MAX_OPEN_WORDS = 3
"""Words of a noun that is in no table: "garden hose reel"."""

BREAK = re.compile(r"[,;:()–—]")
"""What separates two words that stand beside each other."""


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


def find_open_nouns(
    text: str, tokens: Sequence[Token], nouns: Sequence[Noun]
) -> list[Noun]:
    """Nouns that are in no table: unknown words that a determiner, a request or "which" introduces, up to the first
    word that is no part of a noun phrase. Each is a category of its own: its words, the last one in the singular.

    text: the one with the tokens. nouns: those of the tables.
    """
    known = {place for noun in nouns for place in range(noun.start, noun.stop)}
    open_nouns = []
    start: int | None = None
    introduced = True  # a phrase may begin the sentence
    for place in range(len(tokens) + 1):
        is_open = (
            place < len(tokens)
            and place not in known
            and _may_be_open(tokens[place])
            and (start is None or not _is_separated(text, tokens, place))
        )
        if is_open and introduced and start is None:
            start = place
        if not is_open and start is not None:
            is_before_noun = place in known
            # "Circle the lamp" and "Circle every lamp" begin with a verb.
            is_verb = (
                start == 0
                and place < len(tokens)
                and _begins_noun_phrase(tokens[place].word)
            )
            if not is_before_noun and not is_verb:
                open_nouns.append(_open_noun(tokens, start, place))
            start = None
        if place < len(tokens):
            word = tokens[place].word
            introduced = (
                _begins_noun_phrase(word)
                or word in REQUESTS
                or word in WHICH
                or (introduced and (is_modifier(tokens[place]) or word == "and"))
            )
    return open_nouns


def _begins_noun_phrase(word: str) -> bool:
    return word in DETERMINERS or word in EVERY or word in NUMBERS


def _may_be_open(token: Token) -> bool:
    """Whether a word may belong to a noun that is in no table."""
    word = token.word
    is_function_word = (
        word in DETERMINERS
        or word in EVERY
        or word in REQUESTS
        or word in INTERROGATIVES
        or word in STOPS
        or word in NEGATIONS
        or word in BETWEEN_PHRASES
        or word in BEFORE_A_VERB
        or word in ONE
        or word in NUMBERS
    )
    return word.isalpha() and not is_function_word and not is_modifier(token)


def _is_separated(text: str, tokens: Sequence[Token], place: int) -> bool:
    """Whether a comma or the like stands before a token."""
    return bool(BREAK.search(text[tokens[place - 1].stop : tokens[place].start]))


def _open_noun(tokens: Sequence[Token], start: int, stop: int) -> Noun:
    """The noun of the tokens [start, stop), of which the last ones count."""
    start = max(start, stop - MAX_OPEN_WORDS)
    words = [token.word for token in tokens[start : stop - 1]]
    name = " ".join([*words, tokens[stop - 1].singular])
    return PhraseMatch(start, stop, frozenset({name}))


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
