"""Words of a question with their places in the text, as the network reads them."""

import re
from typing import NamedTuple

MAX_WORDS = 120
"""Words that are read; the network has learnt no place beyond."""

_APOSTROPHES = str.maketrans("’‘`´", "''''")
"""Apostrophes of other keyboards."""

_WORD = re.compile(
    # "doesn't" is two words, "does" and "n't".
    r"[a-z]+(?=n't\b)|n't\b|'(?:s|d|ll|ve|re|m)\b"
    r"|[a-z]+|[0-9]+|[^\w\s]"
)

_CONTRACTIONS = {
    "n't": "not",
    "'d": "would",
    "'ll": "will",
    "'ve": "have",
    "'re": "are",
    "'m": "am",
}
"""What the second part of a contraction stands for. "'s" may be a genitive, so that it stays."""


class QuestionWord(NamedTuple):
    """A word or punctuation mark in lower case, contractions expanded; it stands at [start, end) of the question."""

    word: str
    start: int
    end: int


def locate_words(question: str) -> list[QuestionWord]:
    """The first MAX_WORDS words and marks of a question, in order."""
    # Each character is lowered by itself, because a few of them would become two and move all places behind them.
    lowered = [character.lower()[:1] for character in question]
    text = "".join(lowered).translate(_APOSTROPHES)
    words: list[QuestionWord] = []
    for match in _WORD.finditer(text):
        if len(words) == MAX_WORDS:
            break
        word = _CONTRACTIONS.get(match[0], match[0])
        words.append(QuestionWord(word, match.start(), match.end()))
    return words
