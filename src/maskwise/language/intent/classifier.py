"""Linear classifier over hashed features: question to mask type and probability."""

import functools
import hashlib
import math
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskwise.arrays import Float64Array
from maskwise.language.intent.english import english_share, is_english
from maskwise.language.intent.features import hash_features
from maskwise.language.intent.spelling import MAX_CHARACTERS
from maskwise.language.intent.tokenizer import (
    QuestionTokenizer,
    RequestedMask,
    TokenizedQuestion,
)

QUANTUM = 1 / 512
"""Stored weights are integer multiples of this: int16 reaches to 64, and the largest weight is 3.5."""

MAX_LOG_ODDS = 30
"""Log odds are limited to this: exp of much larger ones would overflow, and the probability is 1 anyway."""


class IntentPrediction(NamedTuple):
    """The mask type that a question requests, and its probability in [0.5, 1].

    language_supported: False where the question is not in English. Its words then say little, so the probability is
    lowered by the share of words that are not English, to 0.5 where none is.
    """

    mask_type: RequestedMask
    probability: float
    language_supported: bool = True


class TrainedWeights(NamedTuple):
    """The result of training.

    weights: float64 [2 ** HASH_BITS], positive for amodal. bias: log odds of amodal without any feature.
    vocabulary: correctly spelt words. digest: of the templates and lexicon used for training.
    """

    weights: Float64Array
    bias: float
    vocabulary: list[str]
    digest: str


class IntentClassifier:
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

    def log_odds(self, tokens: TokenizedQuestion) -> float:
        """The log odds of amodal."""
        weights = self.quantized[hash_features(tokens)]
        return float(weights.sum(dtype=np.int64)) * QUANTUM + self.bias

    def classify(self, question: str) -> IntentPrediction:
        """The prediction for one question; a question without words is visible, like every neutral question."""
        text = question[:MAX_CHARACTERS]
        vocabulary = self.tokenizer.vocabulary
        supported = is_english(text, vocabulary)
        log_odds = self.log_odds(self.tokenizer.tokenize(text))
        if not supported:
            log_odds *= english_share(text, vocabulary)
        probability = 1 / (1 + math.exp(-min(abs(log_odds), MAX_LOG_ODDS)))
        mask_type: RequestedMask = "amodal" if log_odds > 0 else "visible"
        return IntentPrediction(mask_type, probability, supported)


def classify_intent(questions: Sequence[str]) -> list[IntentPrediction]:
    """One prediction per question, in order. Accepts any text."""
    classifier = load_classifier()
    return [classifier.classify(question) for question in questions]


@functools.cache
def load_classifier() -> IntentClassifier:
    """The bundled classifier, loaded once."""
    weights = resources.files("maskwise.language.intent").joinpath("weights.npz")
    with weights.open("rb") as file:
        return read_classifier(file)


@functools.cache
def hash_classifier() -> str:
    """SHA-256 of the bundled weights."""
    return hashlib.sha256(load_classifier().quantized.tobytes()).hexdigest()


def read_classifier(file: Path | IO[bytes]) -> IntentClassifier:
    """A classifier written by `write_classifier`."""
    with np.load(file, allow_pickle=False) as arrays:
        return IntentClassifier(
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
