"""From a question to a mask type: the weights of its features are added up."""

import functools
import math
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskwise.models.intent.features import BITS, number_features
from maskwise.models.intent.reading import Reader, Reading, Wanted

STEP = 1 / 512
"""Weights are kept as whole multiples of this."""


class Intent(NamedTuple):
    """The mask type a question wants, and how probable it is: between 0.5 and 1."""

    mask_type: Wanted
    probability: float


class Decider(NamedTuple):
    """steps: int16 (2 ** BITS), the weight of each feature in STEPs, for amodal where positive; bias: log odds."""

    reader: Reader
    steps: NDArray[np.int16]
    bias: float

    def weigh(self, reading: Reading) -> float:
        """The log odds of amodal."""
        return float(self.steps[number_features(reading)].sum(dtype=np.int64)) * STEP + self.bias

    def decide(self, question: str) -> Intent:
        """What the question wants; one without words wants the visible mask, as everything neutral does."""
        reading = self.reader.read(question)
        if not reading.words:
            return Intent("visible", 1.0)
        weight = self.weigh(reading)
        return Intent("amodal" if weight > 0 else "visible", 1 / (1 + math.exp(-min(abs(weight), 30))))


def decide(questions: Sequence[str]) -> list[Intent]:
    """What each question wants, in order. Never fails, whatever the text."""
    decider = load_decider()
    return [decider.decide(question) for question in questions]


@functools.cache
def load_decider() -> Decider:
    """The decider that ships with the package, read once."""
    with resources.files("maskwise.models.intent").joinpath("weights.npz").open("rb") as file:
        return read_decider(file)


def read_decider(file: Path | IO[bytes]) -> Decider:
    """A decider as `write_decider` wrote it."""
    with np.load(file, allow_pickle=False) as arrays:
        return Decider(Reader(str(arrays["known"]).split()), arrays["steps"], float(arrays["bias"]))


def write_decider(path: Path, weights: NDArray[np.float64], bias: float, *, known: Sequence[str]) -> None:
    """Keep float64 (2 ** BITS) weights as a small file. `known`: words that are no misspellings of others."""
    steps = np.clip(np.round(weights / STEP), -32768, 32767).astype(np.int16)
    if steps.shape != (1 << BITS,):
        raise ValueError(f"expected {1 << BITS} weights, got {steps.shape}")
    np.savez_compressed(path, steps=steps, bias=np.float64(bias), known=np.array(" ".join(known)))
