"""Facets, guesses, duplicates and coverage of datasets, on cases that can be worked out by hand."""

from pathlib import Path

import numpy as np
import pytest

from bench.probe_faults import write_squares
from maskwise.datasets import load_dataset
from maskwise.probes.duplicates import find_between, find_inside, question_ngrams
from maskwise.probes.facets import describe_samples, head_noun, question_form
from maskwise.probes.priors import guess_priors
from maskwise.probes.unrepresentative_data import compare_coverage
from maskwise.store import Dataset


@pytest.fixture(scope="module")
def squares(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return write_squares(tmp_path_factory.mktemp("squares") / "squares", images=30)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("What is left of the cup?", "question"),
        ("Is there a cup?", "yes or no"),
        ("Segment the cup.", "command"),
        ("the cup on the left", "phrase"),
        ("The cup, where is it?", "question"),
        ("", "phrase"),
    ],
)
def test_form_of_a_question(text: str, form: str) -> None:
    assert question_form(text) == form


@pytest.mark.parametrize(
    ("name", "noun"),
    [
        ("green bowl", "bowl"),
        ("foot of the black bowl", "foot"),
        ("plant in the brown pot", "plant"),
        ("Dogs", "dog"),
        ("", ""),
    ],
)
def test_head_noun(name: str, noun: str) -> None:
    assert head_noun(name) == noun


def test_facets_of_a_square(tmp_path: Path) -> None:
    data = write_squares(tmp_path / "centered", images=3, centered=True)
    facets = describe_samples(data)
    values = {
        name: {codes.names[code] for code in codes.codes}
        for name, codes in facets.items()
    }
    # A square of 32 x 32 in the middle of 64 x 64 pixels is a quarter of the image.
    assert values["area"] == {"over 20 %"}
    assert values["position"] == {"center"}
    assert values["border"] == {"no"}
    assert values["targets"] == {"1"}
    assert values["form"] == {"command"}


def test_facets_cover_every_sample_of_the_world() -> None:
    world = load_dataset("world")
    for codes in describe_samples(world).values():
        assert len(codes.codes) == len(world)
        assert codes.codes.min() >= 0
        assert codes.codes.max() < len(codes.names)


def test_a_guess_gets_what_always_is_at_one_place(tmp_path: Path) -> None:
    centered = write_squares(tmp_path / "centered", images=12, centered=True)
    guesses = guess_priors(centered)
    assert guesses["place"].value() == 1
    assert guesses["words"].value() == 1


def test_copies_are_found(tmp_path: Path) -> None:
    data = write_squares(tmp_path / "copied", images=20, copies=2)
    inside = find_inside(data)
    assert inside.images == [("0-0", "0-1"), ("1-0", "1-1")]
    assert inside.shared_images == 4 / 22


def test_overlap_with_another_dataset(tmp_path: Path, squares: Dataset) -> None:
    same = write_squares(tmp_path / "same", images=30)
    other = write_squares(tmp_path / "other", images=30, seed=1)
    assert find_between(squares, same).shared_images == 1
    assert find_between(squares, same).questions == 1
    assert find_between(squares, other).shared_images == 0


def test_ngrams_of_short_questions() -> None:
    assert question_ngrams("the dog") == set()
    assert question_ngrams("Where is the dog?") == {("where", "is", "the", "dog")}
    words = [f"w{number}" for number in range(10)]
    assert len(question_ngrams(" ".join(words))) == 3


def test_coverage_counts_what_would_have_to_change() -> None:
    # Half of the reference is "b", which the dataset lacks.
    own = {"kind": (("a",), np.ones((40, 1)))}
    halves = np.repeat(np.eye(2), 20, axis=0)
    (kind,) = compare_coverage(own, {"kind": (("a", "b"), halves)}, seed=0)
    assert kind.distance == 0.5
    assert kind.missing == 0.5
    assert kind.p == 0.001


def test_a_dataset_is_like_itself() -> None:
    halves = {"kind": (("a", "b"), np.repeat(np.eye(2), 20, axis=0))}
    (kind,) = compare_coverage(halves, halves, seed=0)
    assert kind.distance == 0
    assert kind.p == 1
