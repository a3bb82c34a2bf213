"""A text as words with their offsets, so that whatever is read from the words can be shown in the text."""

import functools
import re
from dataclasses import dataclass

from maskwise.language.word_forms import to_singular

WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
"""Letters and digits of any script; apostrophes and hyphens only between them."""

CONTRACTION = re.compile(r"['’](?:s|d|ll|re|ve|m|t)$")
"""What "the dog's" and "what's" have after the word itself."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a text.

    word: lower case, without 's. singular: the form by which tables of phrases are searched. start, stop: offsets in
    the text, with the 's. possessive: whether the word had an 's.
    """

    word: str
    singular: str
    start: int
    stop: int
    possessive: bool = False

    @property
    def plural(self) -> bool:
        """Whether the word is a plural form."""
        return self.word != self.singular


def tokenize(text: str) -> list[Token]:
    """The words of a text in order; punctuation separates words and has no token. Empty for a text without words.

    A hyphenated word is one token: "left-most".
    """
    tokens = []
    for match in WORD.finditer(text):
        # Each word is lowered by itself: lowering the whole text would shift offsets ("İ" becomes two characters).
        written = match.group().lower().replace("’", "'")
        word = written.removesuffix("'s")
        token = Token(
            word=word,
            singular=to_singular(word),
            start=match.start(),
            stop=match.end(),
            possessive=word != written,
        )
        tokens.append(token)
    return tokens


@functools.lru_cache(2**10)  # several filters ask for the words of the same question
def split_words(text: str) -> tuple[str, ...]:
    """The words of a text in lower case, in order, without contracted endings; hyphens separate words."""
    words: list[str] = []
    for written in WORD.findall(text.casefold()):
        words += CONTRACTION.sub("", written).split("-")
    return tuple(words)
