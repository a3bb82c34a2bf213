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
    split = [split_words(question) for question in questions]
    length = max(1, max(map(len, split), default=1))
    tokens = np.zeros((len(split), length, 1 + MAX_TRIGRAMS), np.int64)
    for row, words in enumerate(split):
        for column, word in enumerate(words):
            tokens[row, column] = _token(word)
    return tokens


def _token(word: str) -> list[int]:
    marked = f"<{word}>"
    trigrams = [marked[i : i + 3] for i in range(len(marked) - 2)][:MAX_TRIGRAMS]
    buckets = [1 + zlib.crc32(word.encode()) % (WORD_BUCKETS - 1)]
    buckets += [
        1 + zlib.crc32(trigram.encode()) % (TRIGRAM_BUCKETS - 1) for trigram in trigrams
    ]
    return buckets + [0] * (1 + MAX_TRIGRAMS - len(buckets))
