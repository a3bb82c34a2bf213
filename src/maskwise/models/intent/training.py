"""Train the weights that ship with the package, or others like them.

    python -m maskwise.models.intent.training [--out FILE]

Sentences are made from the corpus and taken from the world's training scenes, read, and their features weighed by
logistic regression. The same corpus, lexicon and settings give the same weights.
"""

import argparse
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array

from maskwise.models.intent.corpus import Corpus, load_corpus
from maskwise.models.intent.decision import Trained, write_decider
from maskwise.models.intent.features import BITS, number_features
from maskwise.models.intent.reading import Reader, Wanted
from maskwise.world import scene

OUT = Path(__file__).with_name("weights.npz")

LEADS = frozenset(
    ("plain", "hiding says where", "talk around it", "things people know", "pictures described")
)
"""Families whose sentences may come before another one without changing what is wanted."""

LEADING = 0.2
"""How often one does."""

UNMARKED = 0.2
"""How often the mark at the end is dropped; as often, the commas."""


class Settings(NamedTuple):
    """sentences: how many are made, half of each type. scenes: of the world, whose questions are added.

    decay: weight of the squared weights in the loss. steps: of the optimiser, at most.
    """

    sentences: int = 48_000
    scenes: int = 80
    seed: int = 1
    decay: float = 2e-5
    steps: int = 120


def write_sentences(corpus: Corpus, count: int, seed: int) -> list[tuple[str, Wanted]]:
    """Sentences with the type they want, the two in turns; every pattern of a type is as likely."""
    chance = Random(seed)
    patterns = [[p for p in corpus.patterns if p.mask_type == wanted] for wanted in ("visible", "amodal")]
    leads = [p for p in patterns[0] if p.family in LEADS]
    found = []
    for number in range(count):
        pattern = chance.choice(patterns[number % 2])
        text = corpus.sentence(pattern, chance)
        if chance.random() < UNMARKED:
            text = text.rstrip(".!?")
        if chance.random() < UNMARKED:
            text = text.replace(",", "")
        if chance.random() < LEADING:
            lead = corpus.sentence(chance.choice(leads), chance)
            text = f"{lead}{'' if lead.endswith(('.', '?', '!')) else '.'} {text}"
        found.append((text, pattern.mask_type))
    return found


def read_world(scenes: int, seed: int) -> list[tuple[str, Wanted]]:
    """The questions of the world's first training scenes."""
    asked = (question for index in range(scenes) for question in scene(seed, index, "train").questions)
    return [(question.text, question.mask_type) for question in asked]


def train(corpus: Corpus, settings: Settings) -> Trained:
    """Weights for the corpus."""
    reader = Reader(corpus.vocabulary())
    sentences = write_sentences(corpus, settings.sentences, settings.seed)
    sentences += read_world(settings.scenes, settings.seed)
    rows = [number_features(reader.read(text)) for text, _ in sentences]
    amodal = np.array([wanted == "amodal" for _, wanted in sentences])
    weights, bias = fit(stack(rows), amodal, settings)
    return Trained(weights, bias, sorted(corpus.vocabulary()), corpus.digest())


def stack(rows: list[NDArray[np.int64]]) -> csr_array:
    """Rows of feature numbers as a sparse matrix of ones, (rows, 2 ** BITS)."""
    ends = np.cumsum([0, *(len(row) for row in rows)])
    columns = np.concatenate([np.zeros(0, np.int64), *rows])
    return csr_array((np.ones(len(columns)), columns, ends), shape=(len(rows), 1 << BITS))


def fit(
    matrix: csr_array, amodal: NDArray[np.bool_], settings: Settings
) -> tuple[NDArray[np.float64], float]:
    """Logistic regression with squared weights as penalty; weights, zero where no row has the feature, and bias."""
    used = np.unique(matrix.indices)
    rows = matrix[:, used]
    columns = rows.T.tocsr()
    sign = np.where(amodal, 1.0, -1.0)

    def loss(point: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        weights = point[:-1]
        margin = sign * (rows @ weights + point[-1])
        pull = -sign * np.exp(-np.logaddexp(0, margin)) / len(sign)
        slope = np.append(columns @ pull + settings.decay * weights, pull.sum())
        return float(np.logaddexp(0, -margin).mean() + settings.decay / 2 * weights @ weights), slope

    start = np.zeros(len(used) + 1)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": settings.steps})
    weights = np.zeros(matrix.shape[1])
    weights[used] = found.x[:-1]
    return weights, float(found.x[-1])


def main() -> None:
    """Train and write."""
    parser = argparse.ArgumentParser(description="Train the decision between visible and amodal.")
    parser.add_argument("--out", type=Path, default=OUT, help="where the weights go")
    out = parser.parse_args().out
    trained = train(load_corpus(), Settings())
    write_decider(out, trained)
    print(f"wrote {out}: {out.stat().st_size} bytes, {np.count_nonzero(trained.weights)} weights")


if __name__ == "__main__":
    main()
