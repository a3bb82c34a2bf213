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
from tokenizers import Tokenizer

from maskwise.arrays import Float32Array
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

FREQUENT_TOKENS = 20_000
"""MiniLM's tokens are numbered by frequency; rarer ones are names for the most part."""

SCALE = 8
"""Makes the deviation of each direction about one."""

BATCH = 256


class WordVectors(NamedTuple):
    """Words, sorted, and their vectors: float32 [words, DIMENSIONS]."""

    words: list[str]
    vectors: Float32Array


def distill(words: list[str], folder: Path) -> WordVectors:
    """The vectors of words."""
    tokenizer = Tokenizer.from_file(str(folder / "minilm_tokenizer.json"))
    tokenizer.no_padding()
    session = onnxruntime.InferenceSession(str(folder / "minilm_int8.onnx"))
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
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    centered = embeddings - embeddings.mean(axis=0)
    _, _, directions = np.linalg.svd(centered, full_matrices=False)
    vectors = SCALE * centered @ directions[:DIMENSIONS].T
    return WordVectors(words, vectors.astype(np.float32))


def choose_words(folder: Path, texts: list[str]) -> list[str]:
    """The words of the training data and the lexicon, and frequent English words, sorted."""
    tokenizer = Tokenizer.from_file(str(folder / "minilm_tokenizer.json"))
    words = vocabulary_of(texts) | load_corpus().vocabulary()
    words |= vocabulary_of(sentence.text for sentence in read_training_sentences())
    words |= vocabulary_of(read_words("shared_words"))
    for token, number in tokenizer.get_vocab().items():
        if number < FREQUENT_TOKENS and re.fullmatch("[a-z]+", token):
            words.add(token)
    return sorted(words)


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
    distilled = distill(choose_words(arguments.minilm, texts), arguments.minilm)
    joined = np.array(" ".join(distilled.words))
    np.savez_compressed(arguments.out, words=joined, vectors=distilled.vectors)
    print(f"wrote {arguments.out}: {len(distilled.words)} words")


if __name__ == "__main__":
    main()
