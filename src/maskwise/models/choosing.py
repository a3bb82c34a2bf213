"""What the choice is taught: questions about described objects, from the truth or from what the eye made of it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from maskwise.models.descriptions import PAIR, Description, Objects, describe
from maskwise.models.lessons import Lesson
from maskwise.models.sight import softmax
from maskwise.models.tiny import KINDS, MOST_PARTS
from maskwise.models.words import words_to_numbers

PART_WEIGHT = 0.5
UNKNOWN = 0.02
"""How often a kind of an object is left untold."""


class Asked(NamedTuple):
    """A question to be learnt: its words as numbers (l, k) and what it means (n, 1 + parts)."""

    words: NDArray[np.int64]
    meant: NDArray[np.float32]


class Exercise(NamedTuple):
    """A described picture and its questions."""

    description: Description
    asked: list[Asked]


class Drill(NamedTuple):
    """A batch of questions; see Chooser.forward. meant: [q, n, 1 + parts]."""

    words: Tensor
    single: Tensor
    pair: Tensor
    present: Tensor
    meant: Tensor


def make_exercise(lesson: Lesson, objects: Objects, matches: Sequence[int]) -> Exercise:
    """matches[i]: the object of the lesson that objects[i] is, or -1."""
    place = {truth: i for i, truth in enumerate(matches) if truth >= 0}
    asked = []
    for question in lesson.questions:
        meant = np.zeros((len(objects.kinds), 1 + MOST_PARTS), np.float32)
        for truth, part in question["targets"]:
            if truth in place:
                meant[place[truth], part] = 1
        asked.append(Asked(words_to_numbers([question["text"]])[0], meant))
    return Exercise(describe(objects, MOST_PARTS), asked)


def make_drill(exercises: Sequence[Exercise], count: int, doubt: float, random: np.random.Generator) -> Drill:
    """`count` questions of random exercises. doubt > 0 blurs what the objects are, as an eye that errs would."""
    chosen = []
    for number in random.integers(len(exercises), size=count):
        description, asked = exercises[number]
        chosen.append((description, asked[random.integers(len(asked))]))
    most = max(len(description.single) for description, _ in chosen)
    length = max(len(asked.words) for _, asked in chosen)
    words = np.zeros((count, length, chosen[0][1].words.shape[1]), np.int64)
    single = np.zeros((count, most, chosen[0][0].single.shape[1]), np.float32)
    pair = np.zeros((count, most, most, PAIR), np.float32)
    present, meant = np.zeros((count, most), np.bool_), np.zeros((count, most, 1 + MOST_PARTS), np.float32)
    for row, (description, asked) in enumerate(chosen):
        n = len(description.single)
        words[row, : len(asked.words)] = asked.words
        single[row, :n] = _doubted(description.single, doubt, random)
        pair[row, :n, :n] = description.pair + random.normal(0, 0.01, (n, n, PAIR)) * (doubt > 0)
        present[row, :n] = True
        meant[row, :n] = asked.meant
    return Drill(*map(torch.from_numpy, (words, single, pair, present, meant)))


def _doubted(single: NDArray[np.float32], doubt: float, random: np.random.Generator) -> NDArray[np.float32]:
    """Kinds blurred; now and then not known at all, as in datasets that do not tell them."""
    blurred, first = single.copy(), 0
    for size in KINDS:
        probability = blurred[:, first : first + size]
        if doubt:
            logits = 4 * probability + random.normal(0, doubt, probability.shape)
            probability[:] = 0.5 * probability + 0.5 * softmax(logits.astype(np.float32))
        probability[random.random(len(single)) < UNKNOWN] = 0
        first += size
    if doubt:
        blurred[:, first:] += random.normal(0, 0.01, single[:, first:].shape)
    return blurred


def choosing_loss(chooser: nn.Module, drill: Drill) -> dict[str, Tensor]:
    """Cross entropy of what is meant, parts weighing less."""
    meant = chooser(drill.words, drill.single, drill.pair, drill.present)
    each = (
        F.binary_cross_entropy_with_logits(meant, drill.meant, reduction="none") * drill.present[:, :, None]
    )
    return {"whole": each[:, :, 0].sum(1).mean(), "parts": PART_WEIGHT * each[:, :, 1:].sum((1, 2)).mean()}
