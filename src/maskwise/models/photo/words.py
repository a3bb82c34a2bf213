"""Words of a question: tokens, singular forms, and phrases found among them."""

import re
from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

TOKEN = re.compile(r"[a-z0-9]+(?:['-][a-z0-9]+)*")

IRREGULAR = {
    "men": "man",
    "women": "woman",
    "children": "child",
    "people": "person",
    "mice": "mouse",
    "geese": "goose",
    "knives": "knife",
    "calves": "calf",
    "oxen": "ox",
    "buses": "bus",
    "feet": "foot",
    "teeth": "tooth",
    "ties": "tie",
}
UNCHANGED = {
    "skis",
    "scissors",
    "tennis",
    "glass",
    "bus",
    "grass",
    "this",
    "his",
    "is",
    "was",
    "has",
    "does",
}
PLURAL_ONLY = {"skis", "scissors"}
"""Names of a single object that take a plural verb."""

SAME_PLURAL = {"sheep", "broccoli"}


class Token(NamedTuple):
    """word: as written, lower case, without 's; singular: the form that phrases are looked up by. possessive: whether
    the word had an 's.
    """

    word: str
    singular: str
    possessive: bool = False

    @property
    def plural(self) -> bool:
        """Whether the word is a plural form."""
        return self.word != self.singular


class FoundPhrase(NamedTuple, Generic[T]):
    """A phrase of a table in a question: the tokens [start, stop) and what the table has for it."""

    start: int
    stop: int
    value: T


def tokenize(text: str) -> list[Token]:
    """The words of a text, lower case, without punctuation."""
    return [_to_token(word) for word in TOKEN.findall(text.lower().replace("’", "'"))]


def _to_token(word: str) -> Token:
    stem = word.removesuffix("'s")
    return Token(stem, to_singular(stem), stem != word)


def to_singular(word: str) -> str:
    """The singular of an English noun, by its ending; other words may lose an s, which does no harm."""
    if word in IRREGULAR:
        return IRREGULAR[word]
    if (
        word in UNCHANGED
        or len(word) < 3
        or word.endswith(("ss", "us", "is"))
        or not word.endswith("s")
    ):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "ches", "shes", "xes", "zes")):
        return word[:-2]
    return word[:-1]


def to_plural(noun: str) -> str:
    """The plural of a category's name, by its last word: "wine glasses"."""
    start, space, word = noun.rpartition(" ")
    irregular = {singular: plural for plural, singular in IRREGULAR.items()}
    if word in PLURAL_ONLY | SAME_PLURAL:
        plural = word
    elif word in irregular:
        plural = irregular[word]
    else:
        plural = word + ("es" if word.endswith(("s", "x", "ch", "sh")) else "s")
    return start + space + plural


def is_plural(phrase: str) -> bool:
    """Whether a noun phrase takes a plural verb: "the cups", "the scissors", "the cup and the dog"."""
    *_, last = tokens = tokenize(phrase)
    return (
        last.plural
        or last.word in PLURAL_ONLY
        or any(token.word == "and" for token in tokens)
    )


def phrase_key(phrase: str) -> tuple[str, ...]:
    """How a table of phrases refers to one: its words in the singular."""
    return tuple(token.singular for token in tokenize(phrase))


def find_phrases(
    tokens: Sequence[Token],
    table: Mapping[tuple[str, ...], T],
    *,
    taken: Sequence[bool] | None = None,
) -> list[FoundPhrase[T]]:
    """The phrases of a table, from left to right; the longest one wins and they do not overlap.

    taken: tokens that belong to something else.
    """
    longest = max(map(len, table), default=0)
    used = list(taken) if taken is not None else [False] * len(tokens)
    found = []
    start = 0
    while start < len(tokens):
        for length in range(min(longest, len(tokens) - start), 0, -1):
            key = tuple(token.singular for token in tokens[start : start + length])
            if key in table and not any(used[start : start + length]):
                found.append(FoundPhrase(start, start + length, table[key]))
                start += length
                break
        else:
            start += 1
    return found
