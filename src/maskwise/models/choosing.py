"""How the choice is taught: batches of questions about described objects, and the loss."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from maskwise.models.carriers import Carrier
from maskwise.models.descriptions import PAIR
from maskwise.models.exercises import Asked, Exercise
from maskwise.models.tiny import KINDS, MOST_PARTS
from maskwise.models.words import MOST_TRIPLES, MOST_WORDS, TRIPLE_BUCKETS, WORD_BUCKETS

PART_WEIGHT = 0.5
CARRIED = 0.4
"""How often the noun phrase of a question is put into another sentence."""

BABBLE = 0.2
"""How often nonsense is put among the words of a question, so that unknown words are learnt to be passed over."""

UNKNOWN = 0.02
"""How often a kind of an object is left untold."""


class Drill(NamedTuple):
    """A batch of questions; see Chooser.forward. meant: [q, n, 1 + parts]."""

    words: Tensor
    single: Tensor
    pair: Tensor
    present: Tensor
    meant: Tensor


def make_drill(
    exercises: Sequence[Exercise], carriers: Sequence[Carrier], count: int, random: np.random.Generator
) -> Drill:
    """`count` questions of random exercises, some put otherwise, some kinds left untold."""
    chosen = []
    for number in random.integers(len(exercises), size=count):
        description, asked = exercises[number]
        question = asked[random.integers(len(asked))]
        chosen.append((description, _put(question, carriers, random), question.meant))
    most = max(len(description.single) for description, _, _ in chosen)
    length = max(len(words) for _, words, _ in chosen)
    drill = Drill(
        words=torch.zeros(count, length, 1 + MOST_TRIPLES, dtype=torch.long),
        single=torch.zeros(count, most, chosen[0][0].single.shape[1]),
        pair=torch.zeros(count, most, most, PAIR),
        present=torch.zeros(count, most),
        meant=torch.zeros(count, most, 1 + MOST_PARTS),
    )
    for row, (description, words, meant) in enumerate(chosen):
        n = len(description.single)
        drill.words[row, : len(words)] = torch.from_numpy(words)
        drill.single[row, :n] = torch.from_numpy(_forget(description.single, random))
        drill.pair[row, :n, :n] = torch.from_numpy(description.pair)
        drill.present[row, :n] = 1
        drill.meant[row, :n] = torch.from_numpy(meant)
    return drill


def _put(question: Asked, carriers: Sequence[Carrier], random: np.random.Generator) -> NDArray[np.int64]:
    """A question's own words, or its noun phrase in another sentence; now and then with nonsense among them."""
    words = question.words
    if question.phrase is not None and random.random() < CARRIED:
        before, after = carriers[int(random.integers(len(carriers)))]
        words = np.concatenate([before, question.phrase, after])[:MOST_WORDS]
    return _babble(words, random) if random.random() < BABBLE else words


def _babble(words: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
    """The words with some that mean nothing put in, so that unknown ones are learnt to be passed over."""
    count = int(random.integers(1, 6))
    nonsense = random.integers(1, TRIPLE_BUCKETS, (count, 1 + MOST_TRIPLES))
    nonsense[:, 0] = random.integers(1, WORD_BUCKETS, count)
    nonsense *= np.arange(1 + MOST_TRIPLES) < random.integers(3, 2 + MOST_TRIPLES, (count, 1))
    places = (
        random.integers(0, len(words) + 1, count)
        if random.random() < 0.5
        else random.integers(len(words) + 1)
    )
    return np.insert(words, places, nonsense, 0)[:MOST_WORDS]


def _forget(single: NDArray[np.float32], random: np.random.Generator) -> NDArray[np.float32]:
    """Kinds that are now and then not known, as in datasets that do not tell them."""
    told, first = single.copy(), 0
    for size in KINDS:
        told[random.random(len(single)) < UNKNOWN, first : first + size] = 0
        first += size
    return told


def choosing_loss(chooser: nn.Module, drill: Drill) -> dict[str, Tensor]:
    """Cross entropy of what is meant, parts weighing less."""
    meant = chooser(drill.words, drill.single, drill.pair, drill.present)
    each = (
        F.binary_cross_entropy_with_logits(meant, drill.meant, reduction="none") * drill.present[:, :, None]
    )
    return {"whole": each[:, :, 0].sum(1).mean(), "parts": PART_WEIGHT * each[:, :, 1:].sum((1, 2)).mean()}
