"""Sentences that carry a noun phrase: they name nothing else, and none is a held-out wording of the world."""

import re

import numpy as np
import pytest

from maskwise.models.carriers import GAP, KNOWN, held_out_threes, make_carriers, threes, write_carriers
from maskwise.models.words import split_words, words_to_numbers


@pytest.fixture(scope="module")
def carriers() -> list[str]:
    return write_carriers(3000, 1)


def test_one_gap_each_and_no_word_for_a_thing_of_the_world(carriers: list[str]) -> None:
    assert len(set(carriers)) == 3000
    for text in carriers:
        assert text.count(GAP) == 1
        assert not KNOWN & set(split_words(text))


def test_held_out_wordings_stay_held_out(carriers: list[str]) -> None:
    held_out = held_out_threes()
    assert {("never", "mind", "how"), ("put", "your", "finger"), ("x", "ray", "eyes")} <= held_out
    assert not any(held_out & threes(split_words(text)) for text in carriers)


def test_what_the_phrase_means_is_what_is_asked_for(carriers: list[str]) -> None:
    """Not what hides it, nor a piece of it, nor all but it."""
    other = re.compile("(overlaps|blocks|hides|reach|them but) GAP|(part|half) of GAP (is|helps)")
    assert not [text for text in carriers if other.search(text)]


def test_as_numbers_they_join_to_the_whole_sentence(carriers: list[str]) -> None:
    for text, (before, after) in zip(carriers[:50], make_carriers(50, 1), strict=True):
        phrase = words_to_numbers(["the red mug"])[0]
        whole = words_to_numbers([text.replace(GAP, " the red mug ")])[0]
        np.testing.assert_array_equal(np.concatenate([before, phrase, after]), whole)
