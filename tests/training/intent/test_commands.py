"""The programs that train and measure the intent classifier, run as a user runs them, on little data."""

from pathlib import Path

import pytest

from maskwise.training.intent import evaluate, fit, word_vectors
from maskwise.training.intent.fit_concepts import ConceptTrainingConfig
from maskwise.training.intent.fit_network import NetworkConfig
from maskwise.training.intent.sentences import read_hand_written
from tests.shared import shared

SENTENCES = Path(__file__).parents[2] / "language" / "intent" / "test_d.jsonl"


def test_evaluate_prints_the_accuracy_on_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["evaluate", str(SENTENCES)])
    evaluate.main()
    assert str(len(SENTENCES.read_text().splitlines())) in capsys.readouterr().out


def test_fit_writes_both_weight_files(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    few_sentences = read_hand_written("train_a")[:40]
    small_concepts = ConceptTrainingConfig(sentences=200, scenes=1, steps=5)
    small_network = NetworkConfig(
        epochs=1, template_pool=60, world_scenes=1, templates=20, world=2, visible=1
    )
    monkeypatch.setattr(fit, "read_training_sentences", lambda: few_sentences)
    monkeypatch.setattr(fit, "ConceptTrainingConfig", lambda: small_concepts)
    monkeypatch.setattr(fit, "NetworkConfig", lambda: small_network)
    monkeypatch.setattr("sys.argv", ["fit", "--out", str(tmp_path)])
    fit.main()
    printed = capsys.readouterr().out
    for name in ("weights.npz", "network.npz"):
        assert (tmp_path / name).stat().st_size > 0
        assert name in printed


def test_word_vectors_are_written_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = shared("weights", "minilm_int8.onnx").parent
    texts = " ".join(sentence.text for sentence in read_hand_written("train_a")[:60])
    words = sorted({word for word in texts.lower().split() if word.isalpha()})
    monkeypatch.setattr(
        word_vectors, "choose_words", lambda folder, texts: (words, set())
    )
    out = tmp_path / "vectors.npz"
    monkeypatch.setattr("sys.argv", ["word_vectors", str(weights), str(out)])
    word_vectors.main()
    assert word_vectors.read_vectors(out).words == words


def test_names_get_no_vector_before_other_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weights = shared("weights", "minilm_int8.onnx").parent
    names = ["vladimir", "barcelona", "gonzalez", "helsinki"]
    others = ["shovel", "peel", "crunchy", "goat"]
    examples = ["john", "maria", "paris", "ladder", "boil", "octopus"]
    monkeypatch.setattr(word_vectors, "MAX_VECTORS", len(others) + 1)
    words = sorted([*names, *others, *examples])
    distilled = word_vectors.distill(words, {"gonzalez", *others}, weights)
    assert distilled.words == sorted(["gonzalez", *others])
    likeness = dict(
        zip(
            words, word_vectors.name_likeness(words, word_vectors.embed(words, weights))
        )
    )
    assert min(likeness[name] for name in names) > max(likeness[x] for x in others)
