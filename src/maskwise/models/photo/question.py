"""What a question asks for, as far as its words tell: categories, attributes, a relation to another object, how many.

    "the red cup to the left of the laptops"    target: cup, red; relation: left_of; anchor: laptop

This is a small grammar over fixed tables, not a language model. Words that it does not know are ignored. It works in
steps, each of which only adds to what the steps before it know: tokens with offsets (language/tokens.py), sentences and
the interrogative (clause.py), nouns, the relation and its anchor, the targets, and the modifiers of each noun.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import msgspec

from maskwise.language.lexicons import read_sections, word_set
from maskwise.language.phrases import (
    PhraseKey,
    PhraseMatch,
    find_phrases,
    phrase_key,
    phrase_table,
)
from maskwise.language.tokens import Token
from maskwise.language.word_forms import NUMBERS, ORDINALS
from maskwise.models.photo.clause import (
    PERSONAL,
    Interrogative,
    Noun,
    asking_sentence,
    find_interrogative,
    split_sentences,
)
from maskwise.models.photo.vocabulary import VOCABULARY

Relation = Literal[
    "left_of",
    "right_of",
    "above",
    "below",
    "on",
    "in",
    "behind",
    "in_front_of",
    "near",
    "touching",
]
Order = Literal[
    "left",
    "right",
    "top",
    "bottom",
    "middle",
    "largest",
    "smallest",
    "nearest",
    "farthest",
]

RELATIONS = msgspec.convert(read_sections("relations"), dict[Relation, list[str]])
ORDERS = msgspec.convert(read_sections("orders"), dict[Order, list[str]])
COLOR_OF_WORD = {
    word: color for color, words in read_sections("colors").items() for word in words
}
NUMBER_OF_WORD = {word: number for number, word in enumerate(NUMBERS) if number > 0}
RANK_OF_WORD = {word: rank for rank, word in enumerate(ORDINALS)}

EVERY = word_set("all every each both any")
ANYTHING = word_set(
    "object item thing something anything tool element part place area piece "
    "article aspect component feature gear instrument portion region section "
    "structure"
)
"""Nouns that leave the category open."""

BEFORE_A_VERB = word_set(
    "i you we they he she could can would should might may must will"
)
"""After these words, "drink" or "watch" is a verb."""

MAX_GAP = 5
"""Words between a relation and the objects that it relates."""

MAX_ADJECTIVES = 2
"""Words between an owner and what it owns: "the dog's big red bowl"."""

MAX_WORDS_BETWEEN_COORDINATED = 4
"""Different words between two nouns that are joined by "and" or "or"."""


@dataclass(frozen=True)
class NounPhrase:
    """An object that a question mentions.

    categories: any of these; empty: any at all. text: the words for it. color: a key of `colors.HUES`. order: by which
    the objects are sorted, and rank: the position of the first one meant in that order, from 0. count: how many are
    meant, None for all of them.
    """

    categories: frozenset[str]
    text: str
    color: str | None = None
    order: Order | None = None
    rank: int = 0
    count: int | None = 1


@dataclass(frozen=True)
class ParsedQuestion:
    """targets: what is asked for, any of them; empty if no known word says it. relation: of the targets to the anchor.
    words: singular forms of all words. mentioned: all categories that the question names.
    """

    targets: tuple[NounPhrase, ...]
    relation: Relation | None
    anchor: NounPhrase | None
    words: frozenset[str]
    mentioned: frozenset[str]


def parse_question(text: str) -> ParsedQuestion:
    """Find what the tables of this module and the vocabulary know in a question; nothing in an empty one."""
    sentences = split_sentences(text)
    words: set[str] = set()
    mentioned: set[str] = set()
    for sentence in sentences:
        words.update(token.singular for token in sentence)
        for noun in _find_nouns(sentence):
            mentioned |= noun.value

    # Other sentences tell a story: only their words count, for what the thing is used for.
    tokens = asking_sentence(sentences)
    nouns = _find_nouns(tokens)
    interrogative = find_interrogative(tokens, nouns)
    relation = _find_relation(tokens, nouns, interrogative)
    anchor = None if relation is None else _find_anchor(relation, nouns)
    heads = _find_heads(tokens, nouns, interrogative)
    # What follows the relation describes the anchor.
    if anchor is not None:
        heads = [noun for noun in heads if noun.start < anchor.start]

    targets = [
        _describe(tokens, noun, nouns, relation) for noun in _coordinated(tokens, heads)
    ]
    return ParsedQuestion(
        targets=tuple(targets),
        relation=None if relation is None else relation.value,
        anchor=None if anchor is None else _describe(tokens, anchor, nouns, relation),
        words=frozenset(words),
        mentioned=frozenset(mentioned),
    )


def _find_nouns(tokens: Sequence[Token]) -> list[Noun]:
    """Mentions of categories, kinds of them, or of anything; a color before a noun is no fruit."""
    nouns = []
    for noun in find_phrases(tokens, noun_table()):
        is_verb = noun.start > 0 and tokens[noun.start - 1].word in BEFORE_A_VERB
        if not is_verb:
            nouns.append(noun)
    starts = {noun.start for noun in nouns}
    return [
        noun
        for noun in nouns
        if not (_is_color(tokens[noun.start : noun.stop]) and noun.stop in starts)
    ]


def _is_color(tokens: Sequence[Token]) -> bool:
    return len(tokens) == 1 and tokens[0].word in COLOR_OF_WORD


def _find_relation(
    tokens: Sequence[Token], nouns: Sequence[Noun], interrogative: Interrogative | None
) -> PhraseMatch[Relation] | None:
    """The first relation to a noun. After an interrogative it has to follow what is asked for closely."""
    # Words of a noun's name are no relation.
    taken = [False] * len(tokens)
    for noun in nouns:
        for place in range(noun.start, noun.stop):
            taken[place] = True
    earliest = 0
    latest = len(tokens)
    if interrogative is not None:
        place, asked = interrogative
        earliest = place + 1 if asked is None else asked.stop
        latest = earliest + MAX_GAP
    for relation in find_phrases(tokens, _relation_table(), taken=taken):
        is_close = earliest <= relation.start <= latest
        if is_close and _find_anchor(relation, nouns) is not None:
            return relation
    return None


def _find_anchor(relation: PhraseMatch[Relation], nouns: Sequence[Noun]) -> Noun | None:
    """The first noun of a known category after a relation."""
    for noun in nouns:
        is_close = relation.stop <= noun.start <= relation.stop + MAX_GAP
        if is_close and noun.value:
            return noun
    return None


def _find_heads(
    tokens: Sequence[Token], nouns: Sequence[Noun], interrogative: Interrogative | None
) -> list[Noun]:
    """The nouns that may be asked for, in order. "part of the dog" asks for the dog, "the dog's bowl" for the bowl."""
    candidates = list(nouns)
    if interrogative is not None:
        _, asked = interrogative
        if asked is None:
            return []
        candidates = [asked, *(noun for noun in nouns if noun.start > asked.start)]
    heads = []
    for noun in candidates:
        before_of = noun.stop < len(tokens) and tokens[noun.stop].word == "of"
        is_part_of_next = before_of and not noun.value
        if not is_part_of_next and not _is_modifier(tokens, noun, nouns):
            heads.append(noun)
    return heads


def _is_modifier(tokens: Sequence[Token], noun: Noun, nouns: Sequence[Noun]) -> bool:
    """Whether a noun only describes the next one: "chicken sandwich", "the dog's bowl"."""
    reach = MAX_ADJECTIVES if tokens[noun.stop - 1].possessive else 0
    return any(
        other.value and noun.stop <= other.start <= noun.stop + reach for other in nouns
    )


def _coordinated(tokens: Sequence[Token], nouns: list[Noun]) -> list[Noun]:
    """The first noun and those joined to it by "and" or "or"."""
    joined = nouns[:1]
    for noun in nouns[1:]:
        between = {token.word for token in tokens[joined[-1].stop : noun.start]}
        has_conjunction = "and" in between or "or" in between
        if not has_conjunction or len(between) > MAX_WORDS_BETWEEN_COORDINATED:
            break
        joined.append(noun)
    return joined


def _describe(
    tokens: Sequence[Token],
    noun: Noun,
    nouns: Sequence[Noun],
    relation: PhraseMatch[Relation] | None,
) -> NounPhrase:
    """A noun with its modifiers: color, order, rank and count."""
    places = _modifier_places(len(tokens), noun, nouns, relation)
    modifiers = [tokens[place] for place in places]
    words = [token.word for token in modifiers]
    text = " ".join(token.word for token in tokens[noun.start : noun.stop])
    orders = find_phrases(modifiers, _order_table())
    colors = [COLOR_OF_WORD[word] for word in words if word in COLOR_OF_WORD]
    ranks = [RANK_OF_WORD[word] for word in words if word in RANK_OF_WORD]
    counts = [NUMBER_OF_WORD[word] for word in words if word in NUMBER_OF_WORD]
    # "the dogs" and "every dog" mean all; "the two dogs" two.
    means_all = tokens[noun.stop - 1].plural or not EVERY.isdisjoint(words)
    count: int | None = 1
    if counts:
        count = counts[0]
    elif means_all:
        count = None
    return NounPhrase(
        categories=noun.value,
        text="person" if text in PERSONAL else text,
        color=colors[0] if colors else None,
        order=orders[0].value if orders else None,
        rank=ranks[0] if ranks else 0,
        count=count,
    )


def _modifier_places(
    length: int,
    noun: Noun,
    nouns: Sequence[Noun],
    relation: PhraseMatch[Relation] | None,
) -> list[int]:
    """The tokens around a noun up to the next noun or relation; what lies between two nouns belongs to the later one,
    unless the noun is the last before a relation or the end.
    """
    borders: list[PhraseMatch[frozenset[str]] | PhraseMatch[Relation]] = [
        other for other in nouns if other.start != noun.start
    ]
    if relation is not None:
        borders.append(relation)
    first = max((span.stop for span in borders if span.stop <= noun.start), default=0)
    last = min(
        (span.start for span in borders if span.start >= noun.stop), default=length
    )
    places = list(range(first, noun.start))
    next_is_noun = any(other.start == last for other in nouns)
    if not next_is_noun:
        places += range(noun.stop, last)
    return places


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


@cache
def _relation_table() -> dict[PhraseKey, Relation]:
    return phrase_table(RELATIONS)


@cache
def _order_table() -> dict[PhraseKey, Order]:
    return phrase_table(ORDERS)
