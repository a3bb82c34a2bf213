"""Check that a question is in English, the only language the classifier is trained for."""

import re
from collections.abc import Container

from maskwise.language.lexicons import read_sections, read_words

SHARED_WORDS = frozenset(read_words("shared_words"))

_FOREIGN_WORDS = frozenset(
    " ".join(words for (words,) in read_sections("other_languages").values()).split()
).difference(SHARED_WORDS)

_LETTERS = re.compile(r"[^\W\d_]+")
"""Runs of letters: a number belongs to no language."""

_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]"
)
"""Scripts written without spaces between words; each character counts as a word."""

MAX_UNKNOWN_WORDS = 2
"""A question without any known English word and with more words than this is not taken for English. A name of a rare
object has at most two words."""


def english_share(text: str, vocabulary: Container[str]) -> float:
    """The share of a text's words that are known English words, in [0, 1]; 1 for text without letters."""
    english, _, total = _count_words(text, vocabulary)
    return english / total if total else 1.0


def is_english(text: str, vocabulary: Container[str]) -> bool:
    """Whether a text is plausibly English: more known English words than words of other languages.

    Unknown words count for neither, so that names of rare objects are accepted.
    """
    english, foreign, total = _count_words(text, vocabulary)
    if english == 0:
        return foreign == 0 and total <= MAX_UNKNOWN_WORDS
    return foreign <= english


def _count_words(text: str, vocabulary: Container[str]) -> tuple[int, int, int]:
    """How many words are known English ones, how many of other languages, and all; some may be neither."""
    spaced = _UNSPACED.sub(lambda character: f" {character[0]} ", text.lower())
    words = _LETTERS.findall(spaced)
    english = 0
    foreign = 0
    for word in words:
        if word in vocabulary:
            english += word not in SHARED_WORDS
        else:
            foreign += word in _FOREIGN_WORDS or not word.isascii()
    return english, foreign, len(words)
