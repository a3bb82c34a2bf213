"""Grounder batches: questions about the objects of images, with augmented texts and missing attributes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from maskwise.arrays import Float32Array, Int64Array
from maskwise.models.tiny.spec import (
    ATTRIBUTE_SIZES,
    MAX_PARTS,
    MAX_TOKENS,
    MAX_TRIGRAMS,
    PAIRWISE_FEATURES,
    TRIGRAM_BUCKETS,
    UNARY_FEATURES,
    WORD_BUCKETS,
)
from maskwise.training.tiny.grounding_dataset import (
    GroundingExample,
    GroundingQuestion,
)
from maskwise.training.tiny.sentence_templates import TokenTemplate

TEMPLATE_PROBABILITY = 0.4
"""How often the noun phrase of a question is put into another sentence."""

NOISE_PROBABILITY = 0.2
"""How often random tokens are inserted into a question, so that the grounder learns to ignore unknown words."""

ATTRIBUTE_DROPOUT = 0.02
"""How often the category, color or material of an object is removed, as in datasets without these labels."""


class GroundingBatch(NamedTuple):
    """Inputs as in Grounder.forward. targets: [q, n, 1 + MAX_PARTS], 0 or 1."""

    tokens: Tensor
    unary: Tensor
    pairwise: Tensor
    padding_mask: Tensor
    targets: Tensor


def make_grounding_batch(
    examples: Sequence[GroundingExample],
    templates: Sequence[TokenTemplate],
    count: int,
    random: np.random.Generator,
) -> GroundingBatch:
    """`count` questions, each about a random example."""
    chosen = []
    for number in random.integers(len(examples), size=count):
        features, questions = examples[number]
        question = questions[random.integers(len(questions))]
        chosen.append(
            (features, _augment_text(question, templates, random), question.targets)
        )
    objects = max(len(features.unary) for features, _, _ in chosen)
    length = max(len(tokens) for _, tokens, _ in chosen)
    batch = GroundingBatch(
        tokens=torch.zeros(count, length, 1 + MAX_TRIGRAMS, dtype=torch.long),
        unary=torch.zeros(count, objects, UNARY_FEATURES),
        pairwise=torch.zeros(count, objects, objects, PAIRWISE_FEATURES),
        padding_mask=torch.ones(count, objects),
        targets=torch.zeros(count, objects, 1 + MAX_PARTS),
    )
    for row, (features, tokens, targets) in enumerate(chosen):
        n = len(features.unary)
        batch.tokens[row, : len(tokens)] = torch.from_numpy(tokens)
        batch.unary[row, :n] = torch.from_numpy(
            _drop_attributes(features.unary, random)
        )
        batch.pairwise[row, :n, :n] = torch.from_numpy(features.pairwise)
        batch.padding_mask[row, :n] = 0
        batch.targets[row, :n] = torch.from_numpy(targets)
    return batch


def _augment_text(
    question: GroundingQuestion,
    templates: Sequence[TokenTemplate],
    random: np.random.Generator,
) -> Int64Array:
    """The tokens of a question, or of its noun phrase in another sentence; sometimes with random tokens inserted."""
    tokens = question.tokens
    if question.phrase is not None and random.random() < TEMPLATE_PROBABILITY:
        before, after = templates[int(random.integers(len(templates)))]
        tokens = np.concatenate([before, question.phrase, after])[:MAX_TOKENS]
    return (
        _insert_noise(tokens, random) if random.random() < NOISE_PROBABILITY else tokens
    )


def _insert_noise(tokens: Int64Array, random: np.random.Generator) -> Int64Array:
    """One to five random tokens, inserted together at one place or at different places."""
    count = int(random.integers(1, 6))
    noise = random.integers(1, TRIGRAM_BUCKETS, (count, 1 + MAX_TRIGRAMS))
    noise[:, 0] = random.integers(1, WORD_BUCKETS, count)
    noise *= np.arange(1 + MAX_TRIGRAMS) < random.integers(
        3, 2 + MAX_TRIGRAMS, (count, 1)
    )
    places = (
        random.integers(0, len(tokens) + 1, count)
        if random.random() < 0.5
        else random.integers(len(tokens) + 1)
    )
    return np.insert(tokens, places, noise, 0)[:MAX_TOKENS]


def _drop_attributes(unary: Float32Array, random: np.random.Generator) -> Float32Array:
    dropped = unary.copy()
    first = 0
    for size in ATTRIBUTE_SIZES:
        dropped[random.random(len(unary)) < ATTRIBUTE_DROPOUT, first : first + size] = 0
        first += size
    return dropped
