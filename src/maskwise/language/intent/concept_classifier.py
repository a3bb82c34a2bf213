"""Linear classifier over hashed features of concepts: the first of the two readers of a question."""

from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskwise.arrays import Float64Array
from maskwise.language.intent.features import hash_features
from maskwise.language.intent.tokenizer import QuestionTokenizer

QUANTUM = 1 / 512
"""Stored weights are integer multiples of this: int16 reaches to 64, and the largest weight is below 5."""


class TrainedWeights(NamedTuple):
    """The result of training.

    weights: float64 [2 ** HASH_BITS], positive for amodal. bias: log odds of amodal without any feature.
    vocabulary: correctly spelt words. digest: of the sentences, templates and lexicon used for training.
    """

    weights: Float64Array
    bias: float
    vocabulary: list[str]
    digest: str


class ConceptClassifier:
    """A classifier ready to use. quantized: int16 [2 ** HASH_BITS], weights in units of QUANTUM; otherwise as in
    TrainedWeights.
    """

    def __init__(
        self,
        vocabulary: Sequence[str],
        quantized: NDArray[np.int16],
        *,
        bias: float,
        digest: str,
    ) -> None:
        self.tokenizer = QuestionTokenizer(vocabulary)
        self.quantized = quantized
        self.bias = bias
        self.digest = digest

    def log_odds(self, question: str) -> float:
        """The log odds of amodal."""
        indices = hash_features(self.tokenizer.tokenize(question))
        weights = self.quantized[indices]
        return float(weights.sum(dtype=np.int64)) * QUANTUM + self.bias


def read_classifier(file: Path | IO[bytes]) -> ConceptClassifier:
    """A classifier written by `write_classifier`."""
    with np.load(file, allow_pickle=False) as arrays:
        return ConceptClassifier(
            str(arrays["known"]).split(),
            arrays["steps"],
            bias=float(arrays["bias"]),
            digest=str(arrays["digest"]),
        )


def write_classifier(path: Path, trained: TrainedWeights) -> None:
    """Write quantized weights to an npz file; equal weights give equal bytes."""
    limits = np.iinfo(np.int16)
    steps = np.round(trained.weights / QUANTUM).clip(limits.min, limits.max)
    np.savez_compressed(
        path,
        steps=steps.astype(np.int16),
        bias=np.float64(trained.bias),
        known=np.array(" ".join(trained.vocabulary)),
        digest=np.array(trained.digest),
    )
