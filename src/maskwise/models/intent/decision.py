"""From a question to a mask type: the weights of its features are added up."""

import functools
import hashlib
import math
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maskwise.models.intent.features import number_features
from maskwise.models.intent.reading import Reader, Reading, Wanted

STEP = 1 / 512
"""Weights are kept as whole multiples of this."""


class Intent(NamedTuple):
    """The mask type a question wants, and how probable it is: between 0.5 and 1."""

    mask_type: Wanted
    probability: float


class Trained(NamedTuple):
    """What training finds.

    weights: float64 (2 ** BITS), for amodal where positive. bias: log odds where nothing speaks for either.
    known: words that are spelt as they should be. digest: of the corpus and lexicon trained on.
    """

    weights: NDArray[np.float64]
    bias: float
    known: list[str]
    digest: str


class Decider(NamedTuple):
    """What training found, ready to use. steps: int16 (2 ** BITS), the weights in STEPs."""

    reader: Reader
    steps: NDArray[np.int16]
    bias: float
    digest: str

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


@functools.cache
def hash_decider() -> str:
    """SHA-256 of the weights that ship with the package."""
    return hashlib.sha256(load_decider().steps.tobytes()).hexdigest()


def read_decider(file: Path | IO[bytes]) -> Decider:
    """A decider as `write_decider` wrote it."""
    with np.load(file, allow_pickle=False) as arrays:
        reader = Reader(str(arrays["known"]).split())
        return Decider(reader, arrays["steps"], float(arrays["bias"]), str(arrays["digest"]))


def write_decider(path: Path, trained: Trained) -> None:
    """Keep what training found as a small file; the same bytes for the same weights."""
    steps = np.clip(np.round(trained.weights / STEP), -32768, 32767).astype(np.int16)
    known = np.array(" ".join(trained.known))
    np.savez_compressed(
        path, steps=steps, bias=np.float64(trained.bias), known=known, digest=np.array(trained.digest)
    )
