"""CLIP's tokenizer: byte pair encoding of lower-case text with the vocabulary of its authors.

Radford et al. 2021. It follows the authors' code, except that text in a wrong encoding is not repaired.
"""

import gzip
import re
import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from maskwise.arrays import Int64Array
from maskwise.errors import MaskwiseError

START = "<|startoftext|>"
END = "<|endoftext|>"

CONTEXT = 77
"""Most tokens of a text that CLIP was trained with, START and END included."""

MAX_MERGES = 49152 - 256 - 2
"""Merges that the authors' vocabulary takes; their file has more. With 256 bytes, each also as the end of a word, START
and END it has 49,408 tokens, as many as the network's table."""

WORD_END = "</w>"

# Letters, one digit, or other signs, as in the authors' code, where they are classes of Unicode.
PIECE = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d|[^\W\d_]+|\d|(?:[^\s\w]|_)+")


class ClipTokenizer:
    """The tokenizer of a vocabulary file, `bpe_simple_vocab_16e6.txt.gz`."""

    def __init__(self, path: Path) -> None:
        merges = _read_merges(path)
        letters = list(_letter_of_byte().values())
        tokens = letters + [letter + WORD_END for letter in letters]
        tokens += ["".join(pair) for pair in merges] + [START, END]
        self.ids = {token: number for number, token in enumerate(tokens)}
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}

    def encode(self, texts: Sequence[str]) -> Int64Array:
        """int64 [n, longest]: token ids with START and END, filled up with zeros; longer texts than CONTEXT are cut."""
        rows = [self._encode_text(text) for text in texts]
        ids = np.zeros((len(rows), max(map(len, rows), default=0)), np.int64)
        for place, row in enumerate(rows):
            ids[place, : len(row)] = row
        return ids

    def _encode_text(self, text: str) -> list[int]:
        letter_of_byte = _letter_of_byte()
        tokens = []
        for piece in PIECE.findall(text.lower()):
            word = "".join(letter_of_byte[byte] for byte in piece.encode())
            tokens += self._merge(word)
        kept = tokens[: CONTEXT - 2]
        return [self.ids[token] for token in (START, *kept, END)]

    def _merge(self, word: str) -> list[str]:
        """The tokens of a word: of all neighbouring pairs the one that stands first in the vocabulary is merged, until
        none is left.
        """
        parts = [*word[:-1], word[-1] + WORD_END]
        while len(parts) > 1:
            pairs = list(pairwise(parts))
            first = min(pairs, key=lambda pair: self.ranks.get(pair, MAX_MERGES))
            if first not in self.ranks:
                break
            parts = _join(parts, first)
        return parts


def _join(parts: Sequence[str], pair: tuple[str, str]) -> list[str]:
    """The parts with every occurrence of a pair as one."""
    joined = []
    place = 0
    while place < len(parts):
        if tuple(parts[place : place + 2]) == pair:
            joined.append("".join(pair))
            place += 2
        else:
            joined.append(parts[place])
            place += 1
    return joined


def _read_merges(path: Path) -> list[tuple[str, str]]:
    try:
        text = gzip.decompress(path.read_bytes()).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise MaskwiseError(f"{path} is no vocabulary of CLIP: {error}") from error
    # The first line is a comment.
    merges = []
    for line in text.splitlines()[1 : 1 + MAX_MERGES]:
        first, separator, second = line.partition(" ")
        if not separator:
            raise MaskwiseError(
                f"{path}: expected two tokens in a line, found {line!r}"
            )
        merges.append((first, second))
    return merges


def _letter_of_byte() -> dict[int, str]:
    """A printable character for every byte, in the order of the authors' vocabulary: what is printable in Latin-1 comes
    first and stands for itself.
    """
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1)]
    printable += range(ord("®"), ord("ÿ") + 1)
    letters = {byte: chr(byte) for byte in printable}
    others = [byte for byte in range(256) if byte not in letters]
    for place, byte in enumerate(others):
        letters[byte] = chr(256 + place)
    return letters
