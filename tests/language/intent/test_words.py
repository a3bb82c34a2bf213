"""Words keep their places in the question."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwise.language.intent.words import MAX_WORDS, locate_words


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("It doesn't show.", "it does not show ."),
        ("They’d be whole, I'm sure", "they would be whole , i am sure"),
        ("the dog's tail", "the dog 's tail"),
        ("half-hidden: 3 cups?", "half - hidden : 3 cups ?"),
        ("", ""),
        ("犬", ""),
    ],
)
def test_contractions_are_expanded(question: str, words: str) -> None:
    assert [word.word for word in locate_words(question)] == words.split()


@given(st.text())
def test_places_are_in_order_and_inside_the_question(question: str) -> None:
    end = 0
    for word in locate_words(question):
        assert end <= word.start < word.end <= len(question)
        end = word.end


def test_places_count_characters_of_the_question() -> None:
    question = "İ 😀 The BUS"
    places = [question[word.start : word.end] for word in locate_words(question)]
    assert places[-2:] == ["The", "BUS"]


def test_only_the_first_words_are_read() -> None:
    assert len(locate_words("dog " * 500)) == MAX_WORDS
