"""Train the concept classifier on hand-written sentences, the template corpus and the world's training questions.

Called by `fit`. Logistic regression over hashed features. Equal data, lexicon and config give equal weights.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array

from maskwise.arrays import BoolArray, Float64Array, Int64Array
from maskwise.language.intent.concept_classifier import TrainedWeights
from maskwise.language.intent.features import HASH_BITS, hash_features
from maskwise.language.intent.tokenizer import QuestionTokenizer, RequestedMask
from maskwise.training.intent.sentences import HandWrittenSentence, vocabulary_of
from maskwise.training.intent.templates import TemplateCorpus
from maskwise.world import make_scene

CONTEXT_FAMILIES = frozenset(
    (
        "plain",
        "hiding says where",
        "talk around it",
        "things people know",
        "pictures described",
        "reasoning questions",
    )
)
"""Families whose sentences can precede another sentence without changing the requested mask type."""

CONTEXT_RATE = 0.2
"""Share of sentences with such a context sentence before them."""

AMODAL_IN_FIVE = 2
"""Amodal sentences among five: fewer than half, because visible is the default where the words leave it open."""

PUNCTUATION_DROPOUT = 0.2
"""Share of sentences without the final mark, and share without commas."""


HAND_WRITTEN_COPIES = 8
"""How often a hand-written sentence counts: they are few, and closer to what people ask than the templates."""

VISIBLE_COPIES = 2
"""How often a published question or caption counts."""


class ConceptTrainingConfig(NamedTuple):
    """sentences: generated from the corpus. scenes: of the world, whose questions are added.

    weight_decay: factor of the squared weights in the loss. steps: maximum number of optimizer steps.
    """

    sentences: int = 132_000
    scenes: int = 160
    seed: int = 1
    weight_decay: float = 1e-5
    steps: int = 120


def generate_sentences(
    corpus: TemplateCorpus, count: int, seed: int
) -> list[tuple[str, RequestedMask]]:
    """Sentences with their mask type; every template of a type is equally likely."""
    rng = Random(seed)
    visible, amodal = (
        [t for t in corpus.templates if t.mask_type == name]
        for name in ("visible", "amodal")
    )
    contexts = [t for t in visible if t.family in CONTEXT_FAMILIES]
    examples = []
    for number in range(count):
        template = rng.choice(amodal if number % 5 < AMODAL_IN_FIVE else visible)
        text = corpus.expand(template, rng)
        if rng.random() < PUNCTUATION_DROPOUT:
            text = text.rstrip(".!?")
        if rng.random() < PUNCTUATION_DROPOUT:
            text = text.replace(",", "")
        if rng.random() < CONTEXT_RATE:
            context = corpus.expand(rng.choice(contexts), rng)
            text = f"{context}{'' if context.endswith(('.', '?', '!')) else '.'} {text}"
        examples.append((text, template.mask_type))
    return examples


def world_questions(scenes: int, seed: int) -> list[tuple[str, RequestedMask]]:
    """The questions of the world's first training scenes."""
    questions = (
        question
        for index in range(scenes)
        for question in make_scene(seed, index, "train").questions
    )
    return [(question.text, question.mask_type) for question in questions]


def train_concepts(
    corpus: TemplateCorpus,
    hand_written: Sequence[HandWrittenSentence],
    visible_texts: Sequence[str],
    config: ConceptTrainingConfig,
) -> TrainedWeights:
    """Weights for the corpus, the hand-written sentences and texts that are all visible."""
    vocabulary = corpus.vocabulary()
    vocabulary |= vocabulary_of(sentence.text for sentence in hand_written)
    tokenizer = QuestionTokenizer(vocabulary)
    sentences = generate_sentences(corpus, config.sentences, config.seed)
    sentences += world_questions(config.scenes, config.seed)
    copies = [1] * len(sentences)
    for sentence in hand_written:
        sentences.append((sentence.text, sentence.type))
        copies.append(HAND_WRITTEN_COPIES)
    for text in visible_texts:
        sentences.append((text, "visible"))
        copies.append(VISIBLE_COPIES)
    rows = []
    amodal = []
    for (text, mask_type), count in zip(sentences, copies):
        rows += count * [hash_features(tokenizer.tokenize(text))]
        amodal += count * [mask_type == "amodal"]
    weights, bias = fit(feature_matrix(rows), np.array(amodal), config)
    return TrainedWeights(weights, bias, sorted(vocabulary), corpus.digest())


def feature_matrix(rows: list[Int64Array]) -> csr_array:
    """Feature indices per sentence as a sparse matrix of ones, [sentences, 2 ** HASH_BITS]."""
    ends = np.cumsum([0, *(len(row) for row in rows)])
    columns = np.concatenate([np.zeros(0, np.int64), *rows])
    return csr_array(
        (np.ones(len(columns)), columns, ends), shape=(len(rows), 1 << HASH_BITS)
    )


def fit(
    matrix: csr_array, amodal: BoolArray, config: ConceptTrainingConfig
) -> tuple[Float64Array, float]:
    """Logistic regression with L2 penalty: weights, zero for features that no sentence has, and bias."""
    used = np.unique(matrix.indices)
    rows = matrix[:, used]
    columns = rows.T.tocsr()
    sign = np.where(amodal, 1.0, -1.0)

    def loss(point: Float64Array) -> tuple[float, Float64Array]:
        weights = point[:-1]
        margin = sign * (rows @ weights + point[-1])
        residual = -sign * np.exp(-np.logaddexp(0, margin)) / len(sign)
        gradient = np.append(
            columns @ residual + config.weight_decay * weights, residual.sum()
        )
        value = (
            np.logaddexp(0, -margin).mean()
            + config.weight_decay / 2 * weights @ weights
        )
        return float(value), gradient

    start = np.zeros(len(used) + 1)
    solution = minimize(
        loss, start, jac=True, method="L-BFGS-B", options={"maxiter": config.steps}
    )
    weights = np.zeros(matrix.shape[1])
    weights[used] = solution.x[:-1]
    return weights, float(solution.x[-1])
