"""Templates for noun phrases: they name no object, and no held-out wording of the world occurs in them."""

import re

import numpy as np
import pytest

from maskwise.models.tiny.tokenizer import split_words, tokenize
from maskwise.training.intent.templates import load_corpus
from maskwise.training.tiny.sentence_templates import (
    EXCLUDED_FAMILIES,
    GAP,
    WORLD_WORDS,
    held_out_word_trigrams,
    make_templates,
    word_trigrams,
    write_templates,
)


@pytest.fixture(scope="module")
def templates() -> list[str]:
    return write_templates(3000, 1)


def test_a_template_has_one_gap_and_no_word_for_an_object_of_the_world(
    templates: list[str],
) -> None:
    assert len(set(templates)) == 3000
    for text in templates:
        assert text.count(GAP) == 1
        assert not WORLD_WORDS & set(split_words(text))


def test_excluded_families_exist_in_the_corpus() -> None:
    assert {
        template.family for template in load_corpus().templates
    } >= EXCLUDED_FAMILIES


def test_held_out_wordings_do_not_occur(templates: list[str]) -> None:
    held_out = held_out_word_trigrams()
    assert {
        ("never", "mind", "how"),
        ("put", "your", "finger"),
        ("x", "ray", "eyes"),
    } <= held_out
    assert not any(held_out & word_trigrams(split_words(text)) for text in templates)


def test_the_noun_phrase_is_what_is_asked_for(templates: list[str]) -> None:
    """Not what occludes it, nor a piece of it, nor everything else."""
    other = re.compile(
        "(overlaps|blocks|hides|reach|them but) GAP|(part|half) of GAP (is|helps)"
    )
    assert not [text for text in templates if other.search(text)]


def test_tokens_of_a_template_and_a_phrase_are_those_of_the_whole_sentence(
    templates: list[str],
) -> None:
    for text, (before, after) in zip(
        templates[:50], make_templates(50, 1), strict=True
    ):
        phrase = tokenize(["the red mug"])[0]
        whole = tokenize([text.replace(GAP, " the red mug ")])[0]
        np.testing.assert_array_equal(np.concatenate([before, phrase, after]), whole)
