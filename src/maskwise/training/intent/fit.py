"""Train the intent classifier: the concept classifier, the network, and the calibration of both together.

    python -m maskwise.training.intent.fit [--texts FOLDER] [--vectors FILE] [--out FOLDER]

Needs the `train` extra. --texts: a folder of published questions and captions (`sentences.py` names the files), which
teach what is visible; the bundled weights were trained with them.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import minimize_scalar

from maskwise.arrays import BoolArray, Float64Array
from maskwise.language.intent.concept_classifier import (
    ConceptClassifier,
    read_classifier,
    write_classifier,
)
from maskwise.language.intent.network import CueNetwork
from maskwise.language.intent.network_file import (
    WordEncoder,
    read_network,
    write_network,
)
from maskwise.language.intent.words import locate_words
from maskwise.training.intent.fit_concepts import (
    ConceptTrainingConfig,
    generate_sentences,
    train_concepts,
    world_questions,
)
from maskwise.training.intent.fit_network import (
    NetworkConfig,
    TrainingData,
    train_network,
)
from maskwise.training.intent.sentences import (
    HandWrittenSentence,
    label_sentence,
    label_type,
    label_visible,
    read_choosing_sentences,
    read_training_sentences,
    read_visible_texts,
)
from maskwise.training.intent.templates import TemplateCorpus, load_corpus
from maskwise.training.intent.word_vectors import (
    WordVectors,
    bundled_vectors,
    read_vectors,
)

OUT = Path(__file__).parents[2] / "language" / "intent"

NETWORK_SEED = 7
"""Seed of the template sentences of the network: others than those of the concept classifier."""

CONCEPT_WEIGHT = 0.5
"""Weight of the concept classifier's log odds beside the network's. Among those from 0 to 1, 0.25 and 0.5 make the
choosing sets most likely, equally so; with 0.5 more of them are right."""

TARGET_SCALES = (0.1, 10.0)
"""Limits of the calibrating factor."""


def train_classifier(
    corpus: TemplateCorpus,
    hand_written: Sequence[HandWrittenSentence],
    visible_texts: Sequence[str],
    *,
    vectors: WordVectors,
    concept_config: ConceptTrainingConfig,
    network_config: NetworkConfig,
    out: Path,
) -> None:
    """Write `weights.npz` (concepts) and `network.npz` to a folder."""
    concepts_path = out / "weights.npz"
    trained_concepts = train_concepts(
        corpus, hand_written, visible_texts, concept_config
    )
    write_classifier(concepts_path, trained_concepts)
    concepts = read_classifier(concepts_path)
    template_sentences = generate_sentences(
        corpus, network_config.template_pool, NETWORK_SEED
    )
    world_sentences = world_questions(network_config.world_scenes, NETWORK_SEED)
    data = TrainingData(
        hand_written=[label_sentence(sentence) for sentence in hand_written],
        templates=[label_type(text, kind) for text, kind in template_sentences],
        world=[label_type(text, kind) for text, kind in world_sentences],
        visible=[label_visible(text) for text in visible_texts],
    )
    trained = train_network(data, vectors, network_config)
    network_path = out / "network.npz"
    write_network(
        network_path,
        trained.tables,
        trained.weights,
        scale=1.0,
        concept_weight=CONCEPT_WEIGHT,
        digest=corpus.digest(),
    )
    # Calibrated as it will be used: with the weights as they are stored.
    stored = read_network(network_path)
    scale = calibrate(concepts, stored.encoder, stored.network)
    write_network(
        network_path,
        trained.tables,
        trained.weights,
        scale=scale,
        concept_weight=CONCEPT_WEIGHT,
        digest=corpus.digest(),
    )


def calibrate(
    concepts: ConceptClassifier, encoder: WordEncoder, network: CueNetwork
) -> float:
    """The factor of the log odds that makes the choosing sets most likely (temperature scaling, arXiv 1706.04599)."""
    sentences = read_choosing_sentences()
    log_odds = []
    for sentence in sentences:
        words = encoder.encode(locate_words(sentence.text))
        network_log_odds = network.read(words).log_odds
        concept_log_odds = concepts.log_odds(sentence.text)
        log_odds.append(network_log_odds + CONCEPT_WEIGHT * concept_log_odds)
    amodal = np.array([sentence.type == "amodal" for sentence in sentences])
    return _best_scale(np.array(log_odds), amodal)


def _best_scale(log_odds: Float64Array, amodal: BoolArray) -> float:
    margin = np.where(amodal, log_odds, -log_odds)

    def loss(scale: float) -> float:
        return float(np.logaddexp(0, -scale * margin).mean())

    solution = minimize_scalar(loss, bounds=TARGET_SCALES, method="bounded")
    return float(solution.x)


def main() -> None:
    """Train and write the weights."""
    parser = argparse.ArgumentParser(
        description="Train the intent classifier (visible or amodal)."
    )
    parser.add_argument("--texts", type=Path, help="folder of published texts")
    parser.add_argument("--vectors", type=Path, help="file of word vectors")
    parser.add_argument("--out", type=Path, default=OUT, help="output folder")
    arguments = parser.parse_args()
    texts = read_visible_texts(arguments.texts) if arguments.texts else []
    vectors = (
        read_vectors(arguments.vectors) if arguments.vectors else bundled_vectors()
    )
    train_classifier(
        load_corpus(),
        read_training_sentences(),
        texts,
        vectors=vectors,
        concept_config=ConceptTrainingConfig(),
        network_config=NetworkConfig(),
        out=arguments.out,
    )
    for name in ("weights.npz", "network.npz"):
        path = arguments.out / name
        print(f"wrote {path}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
