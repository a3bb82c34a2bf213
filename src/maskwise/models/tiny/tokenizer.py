"""The tokenizer: a question as hashed tokens. There is no vocabulary to ship, and no word is out of vocabulary.

A token is the bucket of the word and the buckets of its letter trigrams. Unseen forms ("mugs", "greenish") share
trigrams with known ones.

These are not the words of `language/tokens.py`: the trained embeddings of the grounder are indexed by the hashes of
exactly these words, punctuation included (docs/decisions/0025-language.md).
"""

import re
import zlib
from collections.abc import Sequence

import numpy as np

from maskwise.arrays import Int64Array
from maskwise.models.tiny.spec import (
    MAX_TOKENS,
    MAX_TRIGRAMS,
    TRIGRAM_BUCKETS,
    WORD_BUCKETS,
)

_WORD = re.compile(r"[a-z0-9]+|[?!.,;:]")


def split_words(question: str) -> list[str]:
    """Lower-case words and punctuation marks, at most MAX_TOKENS; "box's" gives "box", "s"."""
    return _WORD.findall(question.lower())[:MAX_TOKENS]


def tokenize(questions: Sequence[str]) -> Int64Array:
    """int64 [q, length, 1 + MAX_TRIGRAMS]: the bucket of each word, then those of its trigrams; 0 is padding.

    length is that of the longest question, at least 1.
    """
    words_of_questions = [split_words(question) for question in questions]
    longest = max((len(words) for words in words_of_questions), default=1)
    tokens = np.zeros((len(questions), max(1, longest), 1 + MAX_TRIGRAMS), np.int64)
    for row, words in enumerate(words_of_questions):
        for column, word in enumerate(words):
            buckets = _word_buckets(word)
            tokens[row, column, : len(buckets)] = buckets
    return tokens


def _word_buckets(word: str) -> list[int]:
    """The bucket of a word, then those of at most MAX_TRIGRAMS trigrams of its letters."""
    marked = f"<{word}>"  # so that trigrams at the ends differ from those inside
    trigrams = [marked[start : start + 3] for start in range(len(marked) - 2)]
    buckets = [_bucket(word, WORD_BUCKETS)]
    for trigram in trigrams[:MAX_TRIGRAMS]:
        buckets.append(_bucket(trigram, TRIGRAM_BUCKETS))
    return buckets


def _bucket(text: str, buckets: int) -> int:
    """A number in [1, buckets): 0 is padding."""
    return 1 + zlib.crc32(text.encode()) % (buckets - 1)
