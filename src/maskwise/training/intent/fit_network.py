"""Train the network of the intent classifier: mask type of the question, and kind of cue of each word.

Called by `fit`. One thread, so that equal data and seed give equal weights.
"""

import copy
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from maskwise.arrays import Float32Array
from maskwise.language.intent.lexicon import Lexicon, load_lexicon
from maskwise.language.intent.network_file import NetworkTables, WordEncoder
from maskwise.language.intent.words import QuestionWord
from maskwise.training.intent.sentences import LabeledSentence
from maskwise.training.intent.torch_network import TorchCueNetwork
from maskwise.training.intent.word_vectors import WordVectors

logger = logging.getLogger(__name__)

BATCH = 48
CHUNK = 16 * BATCH
"""Sentences sorted by length before they are cut into batches, so that batches need little padding."""

MIN_COUNT = 3
"""Words of the training data that occur as often have a trained row beside their vector."""

SMOOTHING = 0.03
"""Labels are this far from 0 and 1, because some sentences can be read in two ways."""

KIND_WEIGHT = 0.3
WORD_WEIGHT = 0.5
"""Weights of the losses of the kind of cue and of the words, beside the loss of the mask type."""

SWAP_RATE = 0.3
"""Share of the words without a concept that are replaced by one of similar meaning."""

NEIGHBORS = 12
"""Words among which the replacement is chosen."""

MIN_SWAPPED_LETTERS = 4
"""Shorter words are function words for the most part, and stay."""

FORGET_RATE = 0.15
"""Share of words whose trained row is hidden, so that the vector has to be enough."""

UNKNOWN_RATE = 0.03
"""Share of words of which nothing is known."""

DROP_MARK_RATE = 0.15
"""Share of sentences that lose their final mark."""

AVERAGE_RATE = 0.01
"""Step of the moving average of the weights, which is what is kept."""

IGNORED = -100
"""Label that the loss leaves out."""


class NetworkConfig(NamedTuple):
    """templates, world, visible: sentences of each origin per epoch, drawn from all, beside all hand-written ones.

    template_pool: sentences that are generated. world_scenes: scenes whose questions are used.
    """

    epochs: int = 12
    template_pool: int = 30_000
    world_scenes: int = 60
    templates: int = 2600
    world: int = 100
    visible: int = 800
    learning_rate: float = 1.8e-3
    weight_decay: float = 0.02
    seed: int = 1


class TrainingData(NamedTuple):
    """Labeled sentences by origin."""

    hand_written: list[LabeledSentence]
    templates: list[LabeledSentence]
    world: list[LabeledSentence]
    visible: list[LabeledSentence]

    def draw(self, config: NetworkConfig, rng: Random) -> list[LabeledSentence]:
        """The sentences of one epoch."""
        sentences = list(self.hand_written)
        sources = (
            (self.templates, config.templates),
            (self.world, config.world),
            (self.visible, config.visible),
        )
        for source, count in sources:
            sentences += rng.sample(source, min(count, len(source)))
        return sentences


class TrainedNetwork(NamedTuple):
    """Tables and weights as `write_network` expects them."""

    tables: NetworkTables
    weights: dict[str, Float32Array]


def train_network(
    data: TrainingData,
    vectors: WordVectors,
    config: NetworkConfig,
    *,
    report: Callable[[str], object] = logger.info,
) -> TrainedNetwork:
    """Train on data; `report` gets one line per epoch."""
    torch.set_num_threads(1)
    torch.manual_seed(config.seed)
    rng = Random(config.seed)
    tables = _make_tables(data, vectors)
    encoder = WordEncoder(tables)
    unknown = np.zeros((1, vectors.vectors.shape[1]), np.float32)
    network = TorchCueNetwork(
        torch.tensor(np.concatenate([unknown, vectors.vectors])),
        learnt_rows=1 + len(tables.learnt_words),
        concept_rows=1 + len(tables.concepts),
    )
    average = copy.deepcopy(network)
    neighbors = WordNeighbors(vectors, tables.learnt_words, encoder.lexicon)
    trained = [p for p in network.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(
        trained, lr=config.learning_rate, weight_decay=config.weight_decay
    )
    steps = config.epochs * (1 + len(data.draw(config, rng)) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer,
        config.learning_rate,
        total_steps=steps + config.epochs,
        pct_start=0.1,
    )
    network.train()
    for epoch in range(config.epochs):
        sentences = [
            augment(sentence, neighbors, rng) for sentence in data.draw(config, rng)
        ]
        losses = []
        for batch in _batches(sentences, rng):
            loss = _loss(network, encode_batch(batch, encoder, rng), batch)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
            optimizer.step()
            schedule.step()
            _move_average(average, network)
            losses.append(loss.item())
        report(f"epoch {epoch + 1} of {config.epochs}: loss {np.mean(losses):.4f}")
    weights = {}
    for name, tensor in average.state_dict().items():
        # The head for the kind of the whole question only helps training.
        if not name.startswith("kind."):
            weights[name] = tensor.numpy().astype(np.float32)
    return TrainedNetwork(tables, weights)


class WordNeighbors:
    """Words of similar meaning among those without a concept."""

    def __init__(
        self, vectors: WordVectors, words: Sequence[str], lexicon: Lexicon
    ) -> None:
        self._rows = {word: row for row, word in enumerate(vectors.words)}
        self._lexicon = lexicon
        norms = np.linalg.norm(vectors.vectors, axis=1, keepdims=True)
        self._directions = vectors.vectors / np.maximum(norms, 1e-6)
        self._candidates = [word for word in words if self.may_swap(word)]
        candidate_rows = [self._rows[word] for word in self._candidates]
        self._candidate_directions = self._directions[candidate_rows]
        self._found: dict[str, list[str]] = {}

    def may_swap(self, word: str) -> bool:
        """Whether a word can be replaced without changing the mask type: a known one without a concept."""
        if len(word) < MIN_SWAPPED_LETTERS or word not in self._rows:
            return False
        return word not in self._lexicon.concepts and word not in self._lexicon.skipped

    def of(self, word: str) -> list[str]:
        """The most similar words, or the word itself where there is no other."""
        if word not in self._found:
            direction = self._directions[self._rows[word]]
            similarity = self._candidate_directions @ direction
            order = np.argsort(-similarity, kind="stable")
            nearest = [self._candidates[index] for index in order[1 : NEIGHBORS + 1]]
            self._found[word] = nearest or [word]
        return self._found[word]


def augment(
    sentence: LabeledSentence, neighbors: WordNeighbors, rng: Random
) -> LabeledSentence:
    """The sentence with some of its objects replaced, and sometimes without its final mark."""
    words = []
    for word in sentence.words:
        text = word.word
        if neighbors.may_swap(text) and rng.random() < SWAP_RATE:
            text = rng.choice(neighbors.of(text))
        words.append(word._replace(word=text))
    word_kinds = sentence.word_kinds
    ends_with_mark = len(words) > 1 and words[-1].word in (".", "?", "!")
    if ends_with_mark and rng.random() < DROP_MARK_RATE:
        words = words[:-1]
        word_kinds = word_kinds[:-1] if word_kinds is not None else None
    return sentence._replace(words=words, word_kinds=word_kinds)


def encode_batch(
    batch: Sequence[LabeledSentence], encoder: WordEncoder, rng: Random
) -> tuple[Tensor, Tensor]:
    """Rows of the tables int64 [3, batch, words], some forgotten, and presence float32 [batch, words]."""
    longest = max(len(sentence.words) for sentence in batch)
    rows = np.zeros((3, len(batch), longest), np.int64)
    present = np.zeros((len(batch), longest), np.float32)
    for index, sentence in enumerate(batch):
        present[index, : len(sentence.words)] = 1
        for place, word in enumerate(sentence.words):
            vector, learnt, concept = encoder.rows_of(word.word)
            chance = rng.random()
            if chance < UNKNOWN_RATE:
                vector, learnt, concept = 0, 0, 0
            elif chance < UNKNOWN_RATE + FORGET_RATE:
                learnt = 0
            rows[:, index, place] = vector, learnt, concept
    return torch.tensor(rows), torch.tensor(present)


def _loss(
    network: TorchCueNetwork,
    encoded: tuple[Tensor, Tensor],
    batch: Sequence[LabeledSentence],
) -> Tensor:
    log_odds, kind_logits, word_logits = network(*encoded)
    amodal = torch.tensor([float(sentence.amodal) for sentence in batch])
    smoothed = amodal * (1 - 2 * SMOOTHING) + SMOOTHING
    loss = functional.binary_cross_entropy_with_logits(log_odds, smoothed)
    kinds = [IGNORED if s.kind is None else s.kind for s in batch]
    word_kinds = torch.full(word_logits.shape[:2], IGNORED)
    for index, sentence in enumerate(batch):
        if sentence.word_kinds is not None:
            count = len(sentence.word_kinds)
            word_kinds[index, :count] = torch.tensor(sentence.word_kinds)
    if all(kind == IGNORED for kind in kinds):
        return loss
    kind_loss = functional.cross_entropy(
        kind_logits, torch.tensor(kinds), ignore_index=IGNORED
    )
    word_loss = functional.cross_entropy(
        word_logits.flatten(0, 1), word_kinds.flatten(), ignore_index=IGNORED
    )
    return loss + KIND_WEIGHT * kind_loss + WORD_WEIGHT * word_loss


def _batches(
    sentences: list[LabeledSentence], rng: Random
) -> Iterator[list[LabeledSentence]]:
    """Batches of sentences of similar length, in random order."""
    with_words = [sentence for sentence in sentences if sentence.words]
    rng.shuffle(with_words)
    batches = []
    for start in range(0, len(with_words), CHUNK):
        chunk = with_words[start : start + CHUNK]
        chunk.sort(key=lambda sentence: len(sentence.words))
        for first in range(0, len(chunk), BATCH):
            batches.append(chunk[first : first + BATCH])
    rng.shuffle(batches)
    yield from batches


@torch.no_grad()
def _move_average(average: TorchCueNetwork, network: TorchCueNetwork) -> None:
    for kept, current in zip(average.parameters(), network.parameters()):
        if current.requires_grad:
            kept.lerp_(current, AVERAGE_RATE)


def _make_tables(data: TrainingData, vectors: WordVectors) -> NetworkTables:
    """The words of each table. A word that is spelt wrong has no row."""
    counts: Counter[str] = Counter()
    for source in data:
        counts.update(_words_of(source))
    learnt = sorted(word for word, count in counts.items() if count >= MIN_COUNT)
    concepts = sorted(set(load_lexicon().concepts.values()))
    return NetworkTables(vectors.words, learnt, concepts)


def _words_of(sentences: Sequence[LabeledSentence]) -> Iterator[str]:
    for sentence in sentences:
        words: Sequence[QuestionWord] = sentence.words
        for word in words:
            yield word.word
