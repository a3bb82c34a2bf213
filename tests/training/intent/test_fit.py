"""The template corpus is well-formed, and training is reproducible."""

from pathlib import Path
from random import Random

import numpy as np
import pytest

from maskwise.errors import RecordError
from maskwise.language.intent.classifier import (
    load_classifier,
    read_classifier,
    write_classifier,
)
from maskwise.training.intent.fit import (
    IntentTrainingConfig,
    generate_sentences,
    train,
)
from maskwise.training.intent.templates import load_corpus, parse_template, tidy

SMALL = IntentTrainingConfig(sentences=600, scenes=2, steps=20)


def test_bundled_weights_were_trained_on_the_bundled_corpus_and_lexicon() -> None:
    assert load_classifier().digest == load_corpus().digest(), (
        "run python -m maskwise.training.intent.fit"
    )


def test_training_is_reproducible(tmp_path: Path) -> None:
    one, other = (train(load_corpus(), SMALL) for _ in range(2))
    assert np.array_equal(one.weights, other.weights)
    write_classifier(tmp_path / "a.npz", one)
    write_classifier(tmp_path / "b.npz", other)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert (
        read_classifier(tmp_path / "a.npz").classify("amodal mask of the dog").mask_type
        == "amodal"
    )


def test_generated_sentences_have_both_types_and_no_notation() -> None:
    found = generate_sentences(load_corpus(), 2000, 3)
    assert sum(wanted == "amodal" for _, wanted in found) == 800
    assert not [text for text, _ in found if set(text) & set("<>[]|*#")]


def test_templates_are_expanded_at_random() -> None:
    corpus = load_corpus()
    template = next(t for t in corpus.templates if t.family == "plain")
    assert len({corpus.expand(template, Random(seed)) for seed in range(50)}) > 40


@pytest.mark.parametrize("line", ["a (b", "a [b)", "a b)", "a (b]"])
def test_brackets_must_match(line: str) -> None:
    with pytest.raises(RecordError, match=r"corpus: .*never closed|corpus: unmatched"):
        parse_template(line)


def test_sentences_are_tidied() -> None:
    assert (
        tidy("mark  the dog , please . it is red ,.")
        == "Mark the dog, please. It is red."
    )
