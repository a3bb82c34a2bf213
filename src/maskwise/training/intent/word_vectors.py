"""Distill word vectors from MiniLM: its embedding of each word alone, reduced to the main directions.

    python -m maskwise.training.intent.word_vectors MINILM_FOLDER OUT.npz [--texts FOLDER]

MINILM_FOLDER has `minilm_int8.onnx` and `minilm_tokenizer.json` (`maskwise get minilm`). The vectors let the network
take words it has never been trained on for words of similar meaning. `fit_network` uses those of the bundled network
where no other are given.
"""

import argparse
import re
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime
from scipy.optimize import minimize
from tokenizers import Tokenizer

from maskwise.arrays import Float32Array, Float64Array
from maskwise.language.intent.network_file import read_network
from maskwise.language.lexicons import read_words
from maskwise.training.intent.sentences import (
    read_training_sentences,
    read_visible_texts,
    vocabulary_of,
)
from maskwise.training.intent.templates import load_corpus

DIMENSIONS = 64
"""They keep 53 % of the variance; the file would grow with more of them."""

MAX_VECTORS = 16_000
"""Words with a vector: 70 bytes each in a file that has to stay small."""

NAME_WEIGHT_DECAY = 0.05
"""Penalty of the squared weights that tell names from words; there are about as many examples as dimensions."""

SCALE = 8
"""Makes the deviation of each direction about one."""

BATCH = 256


class WordVectors(NamedTuple):
    """Words, sorted, and their vectors: float32 [words, DIMENSIONS]."""

    words: list[str]
    vectors: Float32Array


def distill(words: list[str], needed: set[str], folder: Path) -> WordVectors:
    """The vectors of the needed words and of further ones, those least like names, up to MAX_VECTORS in all."""
    embeddings = embed(words, folder)
    likeness = name_likeness(words, embeddings)
    order = sorted(
        range(len(words)), key=lambda row: (words[row] not in needed, likeness[row])
    )
    rows = sorted(order[:MAX_VECTORS])
    kept = embeddings[rows]
    centered = kept - kept.mean(axis=0)
    _, _, directions = np.linalg.svd(centered, full_matrices=False)
    vectors = SCALE * centered @ directions[:DIMENSIONS].T
    return WordVectors([words[row] for row in rows], vectors.astype(np.float32))


def embed(words: list[str], folder: Path) -> Float32Array:
    """MiniLM's embedding of each word alone: float32 [words, 384], of length one."""
    tokenizer = Tokenizer.from_file(str(folder / "minilm_tokenizer.json"))
    tokenizer.no_padding()
    options = onnxruntime.SessionOptions()
    # One thread, so that equal words give equal vectors.
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(folder / "minilm_int8.onnx"), options)
    by_length: dict[int, list[int]] = {}
    tokens = [tokenizer.encode(word).ids for word in words]
    for index, ids in enumerate(tokens):
        by_length.setdefault(len(ids), []).append(index)
    embeddings = np.zeros((len(words), 384), np.float32)
    # Words of equally many tokens need no padding.
    for indices in by_length.values():
        for start in range(0, len(indices), BATCH):
            batch = indices[start : start + BATCH]
            token_ids = np.array([tokens[index] for index in batch], np.int64)
            inputs = {
                "input_ids": token_ids,
                "attention_mask": np.ones_like(token_ids),
                "token_type_ids": np.zeros_like(token_ids),
            }
            states = np.asarray(session.run(None, inputs)[0])
            embeddings[batch] = states.mean(axis=1) if states.ndim == 3 else states
    lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
    normalized: Float32Array = embeddings / lengths
    return normalized


def name_likeness(words: list[str], embeddings: Float32Array) -> Float64Array:
    """How much each word is like a name of a person or place: log odds, float64 [words].

    Logistic regression on the examples of `corpus/names.txt`.
    """
    rows = {word: row for row, word in enumerate(words)}
    examples = []
    signs = []
    for section, sign in (("names", 1.0), ("words", -1.0)):
        for word in _read_name_examples(section):
            if word in rows:
                examples.append(rows[word])
                signs.append(sign)
    centered = (embeddings - embeddings.mean(axis=0)).astype(np.float64)
    inputs = centered[examples]
    sign_of_example = np.array(signs)

    def loss(point: Float64Array) -> tuple[float, Float64Array]:
        weights = point[:-1]
        margin = sign_of_example * (inputs @ weights + point[-1])
        residual = -sign_of_example * np.exp(-np.logaddexp(0, margin))
        penalty = NAME_WEIGHT_DECAY * weights @ weights
        value = np.logaddexp(0, -margin).sum() + penalty
        gradient = inputs.T @ residual + 2 * NAME_WEIGHT_DECAY * weights
        return float(value), np.append(gradient, residual.sum())

    start = np.zeros(centered.shape[1] + 1)
    solution = minimize(loss, start, jac=True, method="L-BFGS-B")
    log_odds: Float64Array = centered @ solution.x[:-1] + solution.x[-1]
    return log_odds


def _read_name_examples(section: str) -> list[str]:
    file = resources.files("maskwise.training.intent").joinpath("corpus", "names.txt")
    words: list[str] = []
    for line in file.read_text("utf-8").splitlines():
        name, _, examples = line.partition(":")
        if name == section:
            words += examples.split()
    return words


def choose_words(folder: Path, texts: list[str]) -> tuple[list[str], set[str]]:
    """All words that may get a vector, sorted, and those that must.

    The words of the training data and the lexicons must; the other whole words among MiniLM's tokens may.
    """
    needed = vocabulary_of(texts) | load_corpus().vocabulary()
    needed |= vocabulary_of(sentence.text for sentence in read_training_sentences())
    for lexicon in ("shared_words", "category_names", "object_parts"):
        needed |= vocabulary_of(read_words(lexicon))
    tokenizer = Tokenizer.from_file(str(folder / "minilm_tokenizer.json"))
    tokens = {t for t in tokenizer.get_vocab() if re.fullmatch("[a-z]+", t)}
    return sorted(needed | tokens), needed


def bundled_vectors() -> WordVectors:
    """The vectors of the bundled network."""
    file = resources.files("maskwise.language.intent").joinpath("network.npz")
    with file.open("rb") as opened:
        stored = read_network(opened)
    table = stored.network.weights["vectors.weight"]
    return WordVectors(list(stored.encoder.vectors), table[1:])


def read_vectors(path: Path) -> WordVectors:
    """Vectors written by this module."""
    with np.load(path, allow_pickle=False) as arrays:
        return WordVectors(str(arrays["words"]).split(), arrays["vectors"])


def main() -> None:
    """Write the vectors."""
    parser = argparse.ArgumentParser(description="Distill word vectors from MiniLM.")
    parser.add_argument("minilm", type=Path, help="folder of MiniLM")
    parser.add_argument("out", type=Path, help="output file")
    parser.add_argument("--texts", type=Path, help="folder of published texts")
    arguments = parser.parse_args()
    texts = read_visible_texts(arguments.texts) if arguments.texts else []
    words, needed = choose_words(arguments.minilm, texts)
    distilled = distill(words, needed, arguments.minilm)
    joined = np.array(" ".join(distilled.words))
    np.savez_compressed(arguments.out, words=joined, vectors=distilled.vectors)
    print(f"wrote {arguments.out}: {len(distilled.words)} words")


if __name__ == "__main__":
    main()
