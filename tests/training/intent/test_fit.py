"""The training data is well-formed, and training is reproducible."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch

from maskwise.errors import RecordError
from maskwise.language.intent.classifier import IntentClassifier, load_classifier
from maskwise.language.intent.concept_classifier import read_classifier
from maskwise.language.intent.cues import KINDS, POLARITIES
from maskwise.language.intent.network_file import read_network
from maskwise.language.intent.words import locate_words
from maskwise.training.intent.evaluate import evaluate
from maskwise.training.intent.fit import train_classifier
from maskwise.training.intent.fit_concepts import (
    ConceptTrainingConfig,
    generate_sentences,
)
from maskwise.training.intent.fit_network import NetworkConfig
from maskwise.training.intent.sentences import (
    CHOOSING_SETS,
    TRAINING_SETS,
    HandWrittenSentence,
    is_held_out,
    label_sentence,
    read_choosing_sentences,
    read_hand_written,
    read_training_sentences,
    read_visible_texts,
)
from maskwise.training.intent.templates import load_corpus, parse_template, tidy
from maskwise.training.intent.torch_network import TorchCueNetwork
from maskwise.training.intent.word_vectors import bundled_vectors

SMALL_CONCEPTS = ConceptTrainingConfig(sentences=600, scenes=2, steps=20)


def test_bundled_weights_were_trained_on_the_bundled_data() -> None:
    classifier = load_classifier()
    digest = load_corpus().digest()
    hint = "run python -m maskwise.training.intent.fit"
    assert classifier.concepts.digest == digest, hint
    assert classifier.stored.digest == digest, hint


def test_training_is_reproducible(tmp_path: Path) -> None:
    small_network = NetworkConfig(
        epochs=2, template_pool=150, world_scenes=1, templates=60, world=5, visible=2
    )
    hand_written = read_hand_written("train_a")[:60]
    contents = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        train_classifier(
            load_corpus(),
            hand_written,
            ["A dog sleeps.", "Two cups on a table."],
            vectors=bundled_vectors(),
            concept_config=SMALL_CONCEPTS,
            network_config=small_network,
            out=folder,
        )
        files = sorted(folder.iterdir())
        contents.append([file.read_bytes() for file in files])
    assert [file.name for file in files] == ["network.npz", "weights.npz"]
    assert contents[0] == contents[1]
    classifier = IntentClassifier(
        read_classifier(folder / "weights.npz"), read_network(folder / "network.npz")
    )
    assert classifier.concepts.log_odds("amodal mask of the dog") > 0
    assert 0.5 <= classifier.classify("amodal mask of the dog").probability <= 1


def test_numpy_and_torch_give_the_same_reading() -> None:
    stored = load_classifier().stored
    weights = {
        name: torch.tensor(values) for name, values in stored.network.weights.items()
    }
    network = TorchCueNetwork(
        weights["vectors.weight"],
        learnt_rows=len(weights["learnt.weight"]),
        concept_rows=len(weights["concepts.weight"]),
    )
    missing = network.load_state_dict(weights, strict=False)
    assert all(name.startswith("kind.") for name in missing.missing_keys)
    assert missing.unexpected_keys == []
    network.eval()
    words = stored.encoder.encode(locate_words("Draw them as if she weren't there."))
    reading = stored.network.read(words)
    rows = torch.tensor(np.stack(words))[:, None]
    with torch.no_grad():
        log_odds, _, cues = network(rows, torch.ones(rows.shape[1:]))
    assert float(log_odds[0]) == pytest.approx(reading.log_odds, abs=1e-3)
    assert cues[0].softmax(-1).numpy() == pytest.approx(reading.cues, abs=1e-3)


@pytest.mark.parametrize("name", [*TRAINING_SETS, *CHOOSING_SETS])
def test_hand_written_sentences_are_consistent(name: str) -> None:
    sentences = read_hand_written(name)
    repeated = len(sentences) - len({sentence.text for sentence in sentences})
    # train_dev unites two sets that share a sentence.
    assert repeated <= (name == "train_dev")
    assert len(sentences) >= 140
    for sentence in sentences:
        if sentence.cue is None or sentence.kind is None:
            assert name == "train_dev"
            continue
        assert sentence.cue in sentence.text
        assert sentence.kind in (*KINDS, "none")
        polarity = "none" if sentence.kind == "none" else POLARITIES[sentence.kind]
        asks_for_hidden = polarity == "amodal"
        assert asks_for_hidden == (sentence.type == "amodal"), sentence


def test_training_and_choosing_sentences_differ() -> None:
    training = {sentence.text for sentence in read_training_sentences()}
    choosing = {sentence.text for sentence in read_choosing_sentences()}
    # A plain question that two authors wrote.
    assert training & choosing <= {"Where can I charge my phone?"}


def test_the_choosing_set_is_read_with_sure_answers_right_and_cues_found() -> None:
    accuracy = evaluate(read_hand_written("choose_c"))
    assert accuracy.right >= 0.95 * accuracy.sentences
    assert accuracy.sure_and_right >= 0.95 * accuracy.sure
    assert accuracy.overlapping >= 0.85 * accuracy.cues
    assert accuracy.by_kind["none"][1] == 80


def test_most_rare_wordings_of_the_later_choosing_set_are_classified() -> None:
    # Written to be difficult: half of the requests for amodal masks have no usual word.
    accuracy = evaluate(read_hand_written("choose_h"))
    assert accuracy.right >= 0.85 * accuracy.sentences
    assert accuracy.sure_and_right >= 0.93 * accuracy.sure


def test_words_of_a_cue_are_labeled_with_its_kind() -> None:
    sentence = HandWrittenSentence(
        "The bus, as if the van were gone.",
        "amodal",
        "as if the van were gone",
        "removal",
    )
    labeled = label_sentence(sentence)
    removal = 1 + KINDS.index("removal")
    assert labeled.word_kinds == [0, 0, 0, *[removal] * 6, 0]
    plain = label_sentence(HandWrittenSentence("the bus", "visible", "", "none"))
    assert plain.word_kinds == [0, 0]


def test_published_texts_are_read_where_they_are(tmp_path: Path) -> None:
    assert read_visible_texts(tmp_path) == []
    (tmp_path / "gseval").mkdir()
    captions = [f"caption {number}" for number in range(40)]
    lines = [f'{{"caption": "{caption}"}}\n' for caption in captions]
    (tmp_path / "gseval" / "a.jsonl").write_text("".join(lines))
    (tmp_path / "reasonseg_train_questions.txt").write_text("What flies?\n\n")
    coco = '{"annotations": [{"caption": " A dog. "}]}'
    (tmp_path / "captions_val2017.json").write_text(coco)
    kept = [caption for caption in captions if not is_held_out(caption)]
    assert 0 < len(kept) < 40
    assert read_visible_texts(tmp_path) == ["What flies?", *kept, "A dog."]


def test_generated_sentences_have_both_types_and_no_notation() -> None:
    found = generate_sentences(load_corpus(), 2000, 3)
    assert sum(wanted == "amodal" for _, wanted in found) == 800
    assert not [text for text, _ in found if set(text) & set("<>[]|*#")]


@pytest.mark.parametrize(
    ("verb", "form"),
    [("chop", "chopping"), ("dig", "digging"), ("split", "splitting")],
)
def test_last_letters_double_before_ing(verb: str, form: str) -> None:
    corpus = load_corpus()
    template = corpus.templates[0]._replace(content=parse_template("<v.ing>"))
    phrases = {"v": parse_template(f"*{verb} it")}
    text = corpus._replace(phrases=phrases).expand(template, Random(0))
    assert text == f"{form} it".capitalize()


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
