"""What a question asks for, as far as its words tell: categories, attributes, a relation to another object, how many.

    "the red cup to the left of the laptops"    target: cup, red; relation: left_of; anchor: laptop

This is a small grammar over fixed tables, not a language model. Words that it does not know are ignored.
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal

from maskwise.models.photo.clause import (
    PERSONAL,
    Interrogative,
    asking_sentence,
    find_interrogative,
    split_sentences,
)
from maskwise.models.photo.vocabulary import VOCABULARY
from maskwise.models.photo.words import FoundPhrase, Token, find_phrases, phrase_key

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

RELATIONS: dict[Relation, tuple[str, ...]] = {
    "left_of": ("to the left of", "on the left of", "on the left side of", "left of"),
    "right_of": (
        "to the right of",
        "on the right of",
        "on the right side of",
        "right of",
    ),
    "above": ("above", "over", "higher than"),
    "below": ("below", "under", "underneath", "beneath", "lower than"),
    "on": (
        "on top of",
        "on",
        "upon",
        "sitting on",
        "standing on",
        "lying on",
        "resting on",
    ),
    "in": ("in", "inside", "inside of", "within"),
    "behind": ("behind", "in back of"),
    "in_front_of": ("in front of",),
    "near": (
        "next to",
        "beside",
        "near",
        "close to",
        "by",
        "nearest to",
        "closest to",
        "near to",
        "adjacent to",
    ),
    "touching": (
        "holding",
        "carrying",
        "riding",
        "wearing",
        "using",
        "touching",
        "held by",
        "worn by",
        "used by",
        "utilized by",
        "with",
    ),
}
ORDERS: dict[Order, tuple[str, ...]] = {
    "left": (
        "leftmost",
        "left-most",
        "furthest left",
        "far left",
        "farthest to the left",
        "furthest to the left",
        "left",
        "left-hand",
    ),
    "right": (
        "rightmost",
        "right-most",
        "furthest right",
        "far right",
        "farthest to the right",
        "furthest to the right",
        "right",
        "right-hand",
    ),
    "top": ("topmost", "top-most", "highest", "upper", "top"),
    "bottom": ("bottommost", "bottom-most", "lowest", "lower", "bottom"),
    "middle": ("middle", "center", "centre", "central"),
    "largest": (
        "largest",
        "biggest",
        "large",
        "big",
        "huge",
        "larger",
        "bigger",
        "tallest",
    ),
    "smallest": ("smallest", "small", "tiny", "little", "smaller"),
    "nearest": ("nearest", "closest", "foreground", "front"),
    "farthest": ("farthest", "furthest", "background", "back", "most distant"),
}
COLORS = {
    word: color
    for color, words in {
        "red": ("red", "crimson", "scarlet"),
        "orange": ("orange",),
        "yellow": ("yellow", "golden", "gold"),
        "green": ("green",),
        "blue": ("blue", "navy", "turquoise"),
        "purple": ("purple", "violet"),
        "pink": ("pink", "magenta"),
        "brown": ("brown", "tan", "beige"),
        "black": ("black", "dark"),
        "white": ("white",),
        "grey": ("grey", "gray", "silver"),
    }.items()
    for word in words
}
NUMBERS = {
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
}
ORDINALS = {"first": 0, "second": 1, "third": 2, "fourth": 3, "fifth": 4}
EVERY = {"all", "every", "each", "both", "any"}
ANYTHING = {
    *(
        "object",
        "item",
        "thing",
        "something",
        "anything",
        "tool",
        "element",
        "part",
        "place",
        "area",
        "piece",
    ),
    *(
        "article",
        "aspect",
        "component",
        "feature",
        "gear",
        "instrument",
        "portion",
        "region",
        "section",
        "structure",
    ),
}
"""Nouns that leave the category open."""

BEFORE_A_VERB = {
    "i",
    "you",
    "we",
    "they",
    "he",
    "she",
    "could",
    "can",
    "would",
    "should",
    "might",
    "may",
    "must",
    "will",
}
"""After these words, "drink" or "watch" is a verb."""

OF = Token("of", "of")
MAX_GAP = 5
"""Words between a relation and the objects that it relates."""

MAX_ADJECTIVES = 2
"""Words between an owner and what it owns."""

Noun = FoundPhrase[frozenset[str]]


@dataclass(frozen=True)
class NounPhrase:
    """An object that a question mentions. categories: any of these; empty: any at all. text: the words for it. count:
    how many are meant, None for all of them.
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
    """Find what the tables of this module and the vocabulary know in a question."""
    sentences = split_sentences(text)
    tokens = asking_sentence(sentences)
    nouns = _find_nouns(tokens)
    asking = find_interrogative(tokens, nouns)
    relation = _find_relation(tokens, nouns, asking)
    anchor = None if relation is None else _anchor_of(relation, nouns)
    heads = [
        noun
        for noun in _heads(tokens, nouns, asking)
        if anchor is None or noun.start < anchor.start
    ]
    blocked = [span for span in (relation,) if span is not None]
    return ParsedQuestion(
        tuple(
            _noun_phrase(tokens, noun, nouns, blocked)
            for noun in _coordinated(tokens, heads)
        ),
        None if relation is None else relation.value,
        None if anchor is None else _noun_phrase(tokens, anchor, nouns, blocked),
        frozenset(token.singular for tokens in sentences for token in tokens),
        frozenset(
            name
            for tokens in sentences
            for noun in _find_nouns(tokens)
            for name in noun.value
        ),
    )


def _heads(
    tokens: list[Token], nouns: list[Noun], asking: Interrogative | None
) -> list[Noun]:
    """The nouns that may be asked for, in order. "part of the dog" asks for the dog, "the dog's bowl" for the bowl."""
    if asking is not None and asking.noun is None:
        return []
    found = nouns
    if asking is not None and asking.noun is not None:
        found = [
            asking.noun,
            *(noun for noun in nouns if noun.start > asking.noun.start),
        ]
    return [
        noun
        for noun in found
        if (noun.value or tokens[noun.stop : noun.stop + 1] != [OF])
        and not _is_modifier(tokens, noun, nouns)
    ]


def _is_modifier(tokens: list[Token], noun: Noun, nouns: list[Noun]) -> bool:
    """Whether a noun only describes the next one: "chicken sandwich", "the dog's bowl"."""
    reach = MAX_ADJECTIVES if tokens[noun.stop - 1].possessive else 0
    return any(
        other.value and noun.stop <= other.start <= noun.stop + reach for other in nouns
    )


def _find_relation(
    tokens: list[Token], nouns: list[Noun], asking: Interrogative | None
) -> FoundPhrase[Relation] | None:
    """The first relation to a noun. After an interrogative it has to follow what is asked for closely."""
    taken = [
        any(noun.start <= place < noun.stop for noun in nouns)
        for place in range(len(tokens))
    ]
    found = find_phrases(tokens, _relation_table(), taken=taken)
    if asking is not None:
        start = asking.place + 1 if asking.noun is None else asking.noun.stop
        found = [one for one in found if start <= one.start <= start + MAX_GAP]
    return next((one for one in found if _anchor_of(one, nouns)), None)


def _find_nouns(tokens: list[Token]) -> list[Noun]:
    """Mentions of categories, kinds of them, or of anything; a color before a noun is no fruit."""
    found = [
        noun
        for noun in find_phrases(tokens, noun_table())
        if noun.start == 0 or tokens[noun.start - 1].word not in BEFORE_A_VERB
    ]
    starts = {noun.start for noun in found}
    return [
        noun
        for noun in found
        if not (
            tokens[noun.start].word in COLORS
            and noun.stop in starts
            and noun.stop - noun.start == 1
        )
    ]


def _anchor_of(relation: FoundPhrase[Relation], nouns: list[Noun]) -> Noun | None:
    after = [
        noun
        for noun in nouns
        if relation.stop <= noun.start <= relation.stop + MAX_GAP and noun.value
    ]
    return after[0] if after else None


def _coordinated(tokens: list[Token], nouns: list[Noun]) -> list[Noun]:
    """The first noun and those joined to it by "and" or "or"."""
    joined = nouns[:1]
    for noun in nouns[1:]:
        between = {token.word for token in tokens[joined[-1].stop : noun.start]}
        if not between & {"and", "or"} or len(between) > 4:
            break
        joined.append(noun)
    return joined


def _noun_phrase(
    tokens: list[Token],
    noun: Noun,
    nouns: list[Noun],
    blocked: list[FoundPhrase[Relation]],
) -> NounPhrase:
    places = _modifier_places(len(tokens), noun, nouns, blocked)
    words = [tokens[place].word for place in places]
    modifiers = [tokens[place] for place in places]
    orders = find_phrases(modifiers, _order_table())
    head = tokens[noun.stop - 1]
    counts = [NUMBERS[word] for word in words if word in NUMBERS]
    everything = head.plural or bool(EVERY & set(words))
    text = " ".join(token.word for token in tokens[noun.start : noun.stop])
    return NounPhrase(
        noun.value,
        "person" if text in PERSONAL else text,
        next((COLORS[word] for word in words if word in COLORS), None),
        orders[0].value if orders else None,
        next((ORDINALS[word] for word in words if word in ORDINALS), 0),
        counts[0] if counts else None if everything else 1,
    )


def _modifier_places(
    length: int,
    noun: Noun,
    nouns: list[Noun],
    blocked: list[FoundPhrase[Relation]],
) -> list[int]:
    """The tokens around a noun up to the next noun or relation; what lies between two nouns belongs to the later one,
    unless the noun is the last before a relation or the end.
    """
    walls = [(one.start, one.stop) for one in nouns if one.start != noun.start]
    walls += [(one.start, one.stop) for one in blocked]
    first = max((stop for _, stop in walls if stop <= noun.start), default=0)
    last = min((start for start, _ in walls if start >= noun.stop), default=length)
    follows_noun = any(one.start == last for one in nouns)
    after = [] if follows_noun else list(range(noun.stop, last))
    return [*range(first, noun.start), *after]


@cache
def noun_table() -> dict[tuple[str, ...], frozenset[str]]:
    """The categories of every word of the vocabulary; those of "object" and the like are none, which means any."""
    table: dict[tuple[str, ...], set[str]] = {(word,): set() for word in ANYTHING}
    for words in VOCABULARY:
        for phrase in (words.category, *words.names, *words.kinds):
            table.setdefault(phrase_key(phrase), set()).add(words.category)
    # A category's own name means that category only, even where it is also a word for others.
    table |= {phrase_key(words.category): {words.category} for words in VOCABULARY}
    return {key: frozenset(categories) for key, categories in table.items()}


@cache
def _relation_table() -> dict[tuple[str, ...], Relation]:
    return {
        phrase_key(phrase): relation
        for relation, phrases in RELATIONS.items()
        for phrase in phrases
    }


@cache
def _order_table() -> dict[tuple[str, ...], Order]:
    return {
        phrase_key(phrase): order
        for order, phrases in ORDERS.items()
        for phrase in phrases
    }
