"""What the words around a noun say about it: color, order, rank and how many."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import msgspec

from maskwise.language.lexicons import read_sections, word_set
from maskwise.language.phrases import PhraseKey, find_phrases, phrase_table
from maskwise.language.tokens import Token
from maskwise.language.word_forms import NUMBERS, ORDINALS

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

ORDERS = msgspec.convert(read_sections("orders"), dict[Order, list[str]])
COLOR_OF_WORD = {
    word: color for color, words in read_sections("colors").items() for word in words
}
NUMBER_OF_WORD = {word: number for number, word in enumerate(NUMBERS) if number > 0} | {
    str(number): number for number in range(1, 11)
}
RANK_OF_WORD = {word: rank for rank, word in enumerate(ORDINALS)}

EVERY = word_set("all every each both any everything everyone everybody")
NEGATIONS = word_set(
    "not no never neither nor without none isn't aren't wasn't weren't doesn't don't "
    "didn't cannot can't non"
)

MAX_NEGATION_GAP = 2
"""Words between "not" and the color or relation that it denies: "that is not the red one"."""


@dataclass(frozen=True)
class Modifiers:
    """color: a key of `colors.HUES`. other_than: a color that the object does not have. order: by which the objects
    are sorted, and rank: the position of the first one meant in that order, from 0. count: how many are meant, None
    for all of them. numbered: whether a number says so.
    """

    color: str | None = None
    other_than: str | None = None
    order: Order | None = None
    rank: int = 0
    count: int | None = 1
    numbered: bool = False


def read_modifiers(tokens: Sequence[Token], *, plural: bool) -> Modifiers:
    """The modifiers among the tokens before and after a noun. plural: whether the noun is one."""
    words = [token.word for token in tokens]
    orders = find_phrases(tokens, order_table())
    colors: list[str] = []
    denied: list[str] = []
    for place, word in enumerate(words):
        color = COLOR_OF_WORD.get(word.removeprefix("non-"))
        if color is None:
            continue
        before = words[max(0, place - 1 - MAX_NEGATION_GAP) : place]
        is_denied = word.startswith("non-") or not NEGATIONS.isdisjoint(before)
        (denied if is_denied else colors).append(color)
    ranks = [RANK_OF_WORD[word] for word in words if word in RANK_OF_WORD]
    counts = [NUMBER_OF_WORD[word] for word in words if word in NUMBER_OF_WORD]
    # "the dogs" and "every dog" mean all; "the two dogs" two.
    count: int | None = 1
    if counts:
        count = counts[0]
    elif plural or not EVERY.isdisjoint(words):
        count = None
    return Modifiers(
        color=colors[0] if colors else None,
        other_than=denied[0] if denied else None,
        order=orders[0].value if orders else None,
        rank=ranks[0] if ranks else 0,
        count=count,
        numbered=bool(counts),
    )


def is_modifier(token: Token) -> bool:
    """Whether a word alone tells objects of one category apart: a color, an order or a rank."""
    word = token.word
    return (
        word in COLOR_OF_WORD
        or word in RANK_OF_WORD
        or (token.singular,) in order_table()
    )


@cache
def order_table() -> dict[PhraseKey, Order]:
    """Orders by the words for them."""
    return phrase_table(ORDERS)
