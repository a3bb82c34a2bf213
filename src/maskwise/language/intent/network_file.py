"""The file of the network: its words, its concepts and its quantized weights."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from maskwise.arrays import Float32Array
from maskwise.language.intent.lexicon import load_lexicon
from maskwise.language.intent.network import CueNetwork, EncodedWords
from maskwise.language.intent.spelling import SpellingCorrector
from maskwise.language.intent.tokenizer import cue_words
from maskwise.language.intent.words import QuestionWord

EIGHT_BIT = ("vectors.weight", "learnt.weight")
"""The large tables: stored with 8 bits per number and one scale per column. All other weights have 16 bits."""

_ENDINGS = (
    ("s", ""),
    ("es", ""),
    ("ed", ""),
    ("ed", "e"),
    ("ing", ""),
    ("ing", "e"),
    ("ly", ""),
    ("d", ""),
    ("er", ""),
    ("er", "e"),
    ("est", ""),
)
"""Endings, and what replaces them, to find a known form of an unknown word."""

MIN_STEM = 3
"""Letters that a word keeps without its ending."""


class NetworkTables(NamedTuple):
    """Words in the order of the rows of each table; row 0 has no word, so that the first word has row 1."""

    words: Sequence[str]
    learnt_words: Sequence[str]
    concepts: Sequence[str]


class WordEncoder:
    """Rows of the network's tables for the words of a question."""

    def __init__(self, tables: NetworkTables) -> None:
        self.lexicon = load_lexicon()
        self.vectors = _number(tables.words)
        self.learnt = _number(tables.learnt_words)
        self.concepts = _number(tables.concepts)
        self._spelling = SpellingCorrector(cue_words(self.lexicon), self.vectors)

    def encode(self, words: Sequence[QuestionWord]) -> EncodedWords:
        """The rows, one per word."""
        rows = [self.rows_of(word.word) for word in words]
        table = np.array(rows, np.int64).reshape(-1, 3)
        return EncodedWords(table[:, 0], table[:, 1], table[:, 2])

    def rows_of(self, word: str) -> tuple[int, int, int]:
        """The rows of one word in the three tables."""
        corrected = word
        if word not in self.vectors:
            corrected = self._spelling.correct(word)
        concept = self.lexicon.concepts.get(corrected, "")
        learnt = self.learnt.get(corrected, self.learnt.get(word, 0))
        return self._vector_row(corrected), learnt, self.concepts.get(concept, 0)

    def _vector_row(self, word: str) -> int:
        """The row of a word, or of the form of it that is known; 0 where none is."""
        if word in self.vectors:
            return self.vectors[word]
        for ending, replacement in _ENDINGS:
            stem = word.removesuffix(ending)
            if len(stem) < len(word) and len(stem) >= MIN_STEM:
                row = self.vectors.get(stem + replacement)
                if row is not None:
                    return row
        return 0


class StoredNetwork(NamedTuple):
    """A network with what is needed to use it.

    scale, concept_weight: the calibrated log odds are scale * (network + concept_weight * concept classifier).
    """

    encoder: WordEncoder
    network: CueNetwork
    scale: float
    concept_weight: float
    digest: str


def read_network(file: Path | IO[bytes]) -> StoredNetwork:
    """A network written by `write_network`."""
    weights = {}
    with np.load(file, allow_pickle=False) as arrays:
        tables = NetworkTables(
            str(arrays["words"]).split(),
            str(arrays["learnt_words"]).split(),
            str(arrays["concepts"]).split(),
        )
        for name in arrays.files:
            if name.startswith("weights/"):
                weights[name.removeprefix("weights/")] = arrays[name].astype(np.float32)
        for name in EIGHT_BIT:
            weights[name] *= arrays[f"scales/{name}"]
        return StoredNetwork(
            WordEncoder(tables),
            CueNetwork(weights),
            scale=float(arrays["scale"]),
            concept_weight=float(arrays["concept_weight"]),
            digest=str(arrays["digest"]),
        )


def write_network(
    path: Path,
    tables: NetworkTables,
    weights: Mapping[str, Float32Array],
    *,
    scale: float,
    concept_weight: float,
    digest: str,
) -> None:
    """Write a network to an npz file; equal weights give equal bytes."""
    arrays: dict[str, np.ndarray] = {
        "words": np.array(" ".join(tables.words)),
        "learnt_words": np.array(" ".join(tables.learnt_words)),
        "concepts": np.array(" ".join(tables.concepts)),
        "scale": np.array(scale),
        "concept_weight": np.array(concept_weight),
        "digest": np.array(digest),
    }
    for name, values in weights.items():
        if name in EIGHT_BIT:
            # A column of zeros keeps a scale of one.
            largest = np.abs(values).max(axis=0)
            column_scale = np.where(largest > 0, largest / 127, 1).astype(np.float32)
            arrays[f"scales/{name}"] = column_scale
            arrays[f"weights/{name}"] = np.round(values / column_scale).astype(np.int8)
        else:
            arrays[f"weights/{name}"] = values.astype(np.float16)
    np.savez_compressed(path, allow_pickle=False, **arrays)


def _number(names: Sequence[str]) -> dict[str, int]:
    """Name to row; the first has row 1."""
    return {name: row for row, name in enumerate(names, start=1)}
