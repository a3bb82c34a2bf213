"""Sentences that carry what is asked for: the plain English of the intent's corpus with a gap for the noun phrase.

The world's own wordings are few, and a choice that has met no others takes every unknown word for a hint. In a
carrier nothing is named that the world knows, so what is meant stays what the noun phrase means. Wordings that the
world's test split holds out stay unknown: no carrier has three words in a row that only they have.
"""

import re
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskwise.models.intent.templates import Alternatives, TemplateCorpus, load_corpus
from maskwise.models.tiny import CATEGORY_NAMES, COLOUR_NAMES, MATERIAL_NAMES
from maskwise.models.words import split_words, words_to_numbers
from maskwise.world.catalogue import CATEGORIES
from maskwise.world.wording import FAMILIES, PRONOUNS

GAP = "GAP"
NOUN_PHRASES = ("np", "np0", "npm", "nps")
"""Phrases of the corpus that stand for what is asked for."""

ABOUT_OTHERS = frozenset(
    (
        "hiding says where",
        "other meanings of the words",
        "talk around it",
        "things people know",
        "by other ways",
        "with what is in sight",
        "pictures described",
    )
)
"""Families of visible sentences whose noun phrase often says where, and not what."""

_NOT_IT = re.compile(
    r"\b(part|side|end|piece|half|bit) of GAP (is|keeps|makes|gives|helps|lets|the)"
    r"|(covers|hides|blocks|in front of)( part of)? GAP\?|everything .*GAP|them but|to reach GAP",
    re.IGNORECASE,
)
"""Asks for a piece of it, for all else, or for what is in its way."""

KNOWN = frozenset(
    word
    for name in (
        *CATEGORY_NAMES,
        *COLOUR_NAMES,
        *MATERIAL_NAMES,
        *(part for category in CATEGORIES.values() for part in category.parts),
    )
    for one in split_words(name)
    for word in (one, f"{one}s", f"{one}es")
)
"""Words for things of the world, one or several."""


class Carrier(NamedTuple):
    """The words before and after the gap, as numbers (l, k)."""

    before: NDArray[np.int64]
    after: NDArray[np.int64]


def write_carriers(count: int, seed: int) -> list[str]:
    """Different sentences with one GAP, every pattern of the corpus as likely."""
    corpus = load_corpus()
    gap = Alternatives(((GAP,),))
    templates = [t for t in corpus.templates if t.mask_type == "amodal" or t.family not in ABOUT_OTHERS]
    gapped = TemplateCorpus(corpus.phrases | dict.fromkeys(NOUN_PHRASES, gap), templates)
    held_out = held_out_threes()
    chance = Random(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        text = gapped.expand(chance.choice(templates), chance)
        words = split_words(text)
        unfit = KNOWN & set(words) or held_out & threes(words) or _NOT_IT.search(text)
        if text.count(GAP) == 1 and not unfit:
            found[text] = None
    return list(found)


def held_out_threes() -> set[tuple[str, ...]]:
    """Three words in a row of the world's held-out wordings that no other wording has: a carrier with these would give
    away what the test split holds out.
    """
    found: dict[bool, set[tuple[str, ...]]] = {True: set(), False: set()}
    for family in FAMILIES:
        for template in family.templates:
            for agreeing in PRONOUNS.values():
                filled = template.format(**agreeing, np=GAP, front=GAP, ask=GAP, Ask=GAP)
                found[family.novel] |= threes(split_words(filled))
    return found[True] - found[False]


def threes(words: list[str]) -> set[tuple[str, ...]]:
    """Every three words in a row, those of sentence marks left out."""
    plain = [word for word in words if word.isalnum()]
    return set(zip(plain, plain[1:], plain[2:]))


def make_carriers(count: int, seed: int) -> list[Carrier]:
    """As write_carriers, as numbers."""
    return [Carrier(*map(_to_numbers, text.split(GAP))) for text in write_carriers(count, seed)]


def _to_numbers(text: str) -> NDArray[np.int64]:
    return words_to_numbers([text])[0, : len(split_words(text))]
