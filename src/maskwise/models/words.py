"""A question as numbers: one row a word, by hashing, so that there is no vocabulary to ship and none to miss.

A word is its own bucket and the buckets of its letter triples, which lets unseen forms ("mugs", "greenish") lean on
known ones.
"""

import re
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

WORD_BUCKETS, TRIPLE_BUCKETS = 4096, 4096
MOST_WORDS, MOST_TRIPLES = 40, 8

_WORD = re.compile(r"[a-z0-9]+|[?!.,;:]")


def split_words(question: str) -> list[str]:
    """Lower-case words and marks, at most MOST_WORDS; "box's" gives "box", "s"."""
    return _WORD.findall(question.lower())[:MOST_WORDS]


def words_to_numbers(questions: Sequence[str]) -> NDArray[np.int64]:
    """int64 [n, length, 1 + MOST_TRIPLES]: the bucket of each word, then those of its triples; 0 is padding.

    length is that of the longest question, at least 1.
    """
    split = [split_words(question) for question in questions]
    length = max(1, max(map(len, split), default=1))
    numbers = np.zeros((len(split), length, 1 + MOST_TRIPLES), np.int64)
    for row, words in enumerate(split):
        for place, word in enumerate(words):
            numbers[row, place] = _word_numbers(word)
    return numbers


def _word_numbers(word: str) -> list[int]:
    marked = f"<{word}>"
    triples = [marked[i : i + 3] for i in range(len(marked) - 2)][:MOST_TRIPLES]
    numbers = [1 + zlib.crc32(word.encode()) % (WORD_BUCKETS - 1)]
    numbers += [1 + zlib.crc32(triple.encode()) % (TRIPLE_BUCKETS - 1) for triple in triples]
    return numbers + [0] * (1 + MOST_TRIPLES - len(numbers))
