"""The corpus is well made, words are read as they are meant, and training gives the same weights again."""

from pathlib import Path
from random import Random

import numpy as np
import pytest

from maskwise.errors import RecordError
from maskwise.models.intent.corpus import load_corpus, parse, tidy
from maskwise.models.intent.decision import load_decider, read_decider, write_decider
from maskwise.models.intent.reading import Reader
from maskwise.models.intent.training import Settings, train, write_sentences

SMALL = Settings(sentences=600, scenes=2, steps=20)


def test_the_weights_that_ship_belong_to_the_corpus_and_lexicon_that_ship() -> None:
    assert load_decider().digest == load_corpus().digest(), "run python -m maskwise.models.intent.training"


def test_training_again_gives_the_same_weights(tmp_path: Path) -> None:
    one, other = (train(load_corpus(), SMALL) for _ in range(2))
    assert np.array_equal(one.weights, other.weights)
    write_decider(tmp_path / "a.npz", one)
    write_decider(tmp_path / "b.npz", other)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    assert read_decider(tmp_path / "a.npz").decide("amodal mask of the dog").mask_type == "amodal"


def test_sentences_come_in_both_types_and_leave_no_notation_behind() -> None:
    found = write_sentences(load_corpus(), 2000, 3)
    assert sum(wanted == "amodal" for _, wanted in found) == 1000
    assert not [text for text, _ in found if set(text) & set("<>[]|*#")]


def test_a_choice_is_expanded() -> None:
    corpus = load_corpus()
    pattern = next(p for p in corpus.patterns if p.family == "plain")
    assert len({corpus.sentence(pattern, Random(seed)) for seed in range(50)}) > 40


@pytest.mark.parametrize("line", ["a (b", "a [b)", "a b)", "a (b]"])
def test_brackets_must_match(line: str) -> None:
    with pytest.raises(RecordError, match=r"corpus: .*never closed|corpus: stray"):
        parse(line)


def test_sentences_are_tidied() -> None:
    assert tidy("mark  the dog , please . it is red ,.") == "Mark the dog, please. It is red."


@pytest.fixture(scope="module")
def reader() -> Reader:
    return Reader(["chair", "whale", "code"])


def test_slips_of_the_pen_are_mended_where_the_word_is_not_known(reader: Reader) -> None:
    assert reader.read("the entrie chiar").ideas == ["WHOLE", "THING"]
    assert reader.read("the hiden part").ideas == ["HIDDEN", "PART"]
    assert reader.read("the whale").ideas == ["THING"]


def test_short_forms_are_written_out(reader: Reader) -> None:
    assert (
        reader.read("you can't see it") == reader.read("you cannot see it") == reader.read("you cant see it")
    )
    assert reader.read("don’t") == reader.read("do not")


def test_words_in_a_row_are_read_as_one(reader: Reader) -> None:
    assert reader.read("out of sight").ideas == ["HIDDEN"]
    assert reader.read("in front of").ideas == ["FRONT"]


def test_acts_are_told_from_things_by_what_follows(reader: Reader) -> None:
    assert reader.read("peering through").ideas == ["DOING", "THROUGH"]
    assert reader.read("a parked car").ideas == ["THING"]
