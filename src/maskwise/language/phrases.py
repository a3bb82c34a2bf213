"""Phrases of a table, found among the tokens of a text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from maskwise.language.tokens import Token, tokenize

Value = TypeVar("Value")

PhraseKey = tuple[str, ...]
"""How a table refers to a phrase: its words in the singular, so that "wine glasses" finds "wine glass"."""


@dataclass(frozen=True)
class PhraseMatch(Generic[Value]):
    """A phrase of a table among tokens: the tokens [start, stop) and the table's value for it."""

    start: int
    stop: int
    value: Value


def phrase_key(phrase: str) -> PhraseKey:
    """The key of a phrase; empty for a text without words."""
    return tuple(token.singular for token in tokenize(phrase))


def phrase_table(
    phrases_by_value: Mapping[Value, Sequence[str]],
) -> dict[PhraseKey, Value]:
    """Values by phrase, from phrases by value."""
    table = {}
    for value, phrases in phrases_by_value.items():
        for phrase in phrases:
            table[phrase_key(phrase)] = value
    return table


def find_phrases(
    tokens: Sequence[Token],
    table: Mapping[PhraseKey, Value],
    *,
    taken: Sequence[bool] | None = None,
) -> list[PhraseMatch[Value]]:
    """The phrases of a table, from left to right; the longest one wins and they do not overlap.

    taken: for each token whether it belongs to something else; no phrase contains such a token.
    """
    longest = max(map(len, table), default=0)
    if taken is None:
        taken = [False] * len(tokens)
    matches = []
    start = 0
    while start < len(tokens):
        match = _longest_phrase_at(start, tokens, table, longest, taken)
        if match is None:
            start += 1
        else:
            matches.append(match)
            start = match.stop
    return matches


def _longest_phrase_at(
    start: int,
    tokens: Sequence[Token],
    table: Mapping[PhraseKey, Value],
    longest: int,
    taken: Sequence[bool],
) -> PhraseMatch[Value] | None:
    last_stop = min(start + longest, len(tokens))
    for stop in range(last_stop, start, -1):
        key = tuple(token.singular for token in tokens[start:stop])
        if key in table and not any(taken[start:stop]):
            return PhraseMatch(start, stop, table[key])
    return None
