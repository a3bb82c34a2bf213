"""What can be guessed without a model: where targets are on average, and where such words point.

Both guesses are learned on half of the images and scored on the other half, on a coarse grid.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.language.tokens import split_words
from maskwise.probes.facets import union_of_targets
from maskwise.protocols import GroundTruth, MetricTerms
from maskwise.store import Dataset

SIDE = 32
"""Cells of the grid in each direction: fine enough for the place of an object, not for its shape."""

NEIGHBORS = 10
"""Questions with the most similar words whose targets are averaged."""

MAX_QUESTIONS = 2000
"""Questions that are compared with each other: 2,000 x 2,000 similarities take a second."""


def guess_priors(dataset: Dataset, seed: int = 0) -> dict[str, MetricTerms]:
    """IoU of two guesses with the targets, for every question: `place` is where targets are most
    often, `words` where those of the questions with the most similar words are. Questions without
    targets, and those beyond MAX_QUESTIONS, do not count.
    """
    truth = GroundTruth.from_dataset(dataset)
    random = np.random.default_rng(seed)
    rows = np.flatnonzero(truth.counts > 0)
    if len(rows) > MAX_QUESTIONS:
        rows = np.sort(random.choice(rows, MAX_QUESTIONS, replace=False))
    size = np.full((len(rows), 2), SIDE)
    grid = union_of_targets(truth)[rows].resize(size).to_dense()
    planes = grid.reshape(len(rows), SIDE * SIDE)
    half_of_image = random.permutation(truth.cluster_count) % 2
    half = half_of_image[truth.cluster[rows]]
    similarity = _similarity([dataset.samples.question[row] for row in rows])
    place = np.zeros(len(rows))
    words = np.zeros(len(rows))
    for asked_half in (0, 1):
        asked = np.flatnonzero(half == asked_half)
        known = np.flatnonzero(half != asked_half)
        if len(asked) and len(known):
            place[asked] = _score_guess(planes, known[None], asked)
            order = np.argsort(-similarity[np.ix_(asked, known)], 1, kind="stable")
            words[asked] = _score_guess(planes, known[order[:, :NEIGHBORS]], asked)
    return {
        "place": _spread(place, rows, len(truth)),
        "words": _spread(words, rows, len(truth)),
    }


def _score_guess(
    planes: BoolArray, voters: Int64Array, asked: Int64Array
) -> Float64Array:
    """IoU of a guess with each target that is asked for.

    planes: bool [questions, cells]; voters: int64 [asked or 1, k], the questions whose targets are
    averaged. The guess has as many cells as their median target, those that most of them cover.
    """
    iou = np.zeros(len(asked))
    for number, row in enumerate(asked.tolist()):
        votes = planes[voters[number % len(voters)]]
        count = max(1, int(np.median(votes.sum(1))))
        mean = votes.mean(0)
        # Ties beyond the wanted number of cells are left out, in the order of the cells.
        guess = np.zeros(len(mean), bool)
        guess[np.argsort(-mean, kind="stable")[:count]] = True
        shared = (guess & planes[row]).sum()
        iou[number] = shared / max(1, (guess | planes[row]).sum())
    return iou


def _similarity(questions: Sequence[str]) -> Float64Array:
    """Cosine of the words of all questions with each other; rare words count more."""
    texts = [set(split_words(text)) for text in questions]
    frequency = Counter(word for words in texts for word in words)
    place = {word: number for number, word in enumerate(frequency)}
    table = np.zeros((len(texts), len(place)))
    for number, words in enumerate(texts):
        for word in words:
            table[number, place[word]] = np.log(1 + len(texts) / frequency[word])
    length = np.linalg.norm(table, axis=1, keepdims=True)
    table /= np.maximum(length, 1e-9)  # a question without words is like none
    return np.asarray(table @ table.T)


def _spread(iou: Float64Array, rows: Int64Array, count: int) -> MetricTerms:
    """The terms of all samples from those of some rows."""
    numerator = np.zeros(count)
    numerator[rows] = iou
    denominator = np.zeros(count, np.int64)
    denominator[rows] = 1
    return MetricTerms(numerator, denominator)
