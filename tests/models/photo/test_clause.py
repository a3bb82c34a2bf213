"""Sentences of a question, and what its interrogative asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwise.models.photo.clause import (
    asking_sentence,
    find_interrogative,
    split_sentences,
)
from maskwise.models.photo.nouns import find_nouns


def words_of(text: str) -> list[str]:
    return [
        " ".join(token.word for token in tokens) for tokens in split_sentences(text)
    ]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("A dog. A cat?", ["a dog", "a cat"]),
        ("Wait... What is it?!", ["wait", "what is it"]),
        ("A dog.What is it?", ["a dog", "what is it"]),
        ("It is 2.5 m long.", ["it is 2 5 m long"]),
        ("the cup shown in the given picture", ["the cup"]),
        ("The cup, in this image. Where?", ["the cup", "where"]),
        ("in the picture", [""]),
        ("", [""]),
    ],
)
def test_texts_are_split_into_sentences(text: str, sentences: list[str]) -> None:
    assert words_of(text) == sentences


@given(st.text())
def test_offsets_are_those_of_the_whole_text(text: str) -> None:
    for tokens in split_sentences(text):
        for token in tokens:
            written = text[token.start : token.stop].lower().replace("’", "'")
            assert written.startswith(token.word)


@pytest.mark.parametrize(
    ("text", "asking"),
    [
        ("Dogs bark. What is it? Thanks.", "what is it"),
        ("Dogs bark. Segment the cat. Thanks.", "segment the cat"),
        ("What is it? Where is the cat?", "where is the cat"),
        ("the dog. the cat", "the dog"),
    ],
)
def test_the_last_sentence_that_asks_counts(text: str, asking: str) -> None:
    tokens = asking_sentence(split_sentences(text))
    assert " ".join(token.word for token in tokens) == asking


def asked_word(text: str) -> str | None:
    """The noun that the interrogative of a text asks for."""
    (tokens,) = split_sentences(text)
    interrogative = find_interrogative(tokens, find_nouns(tokens))
    assert interrogative is not None
    _, noun = interrogative
    if noun is None:
        return None
    return tokens[noun.start].word


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Which dog barks?", "dog"),
        ("What big old red car is it?", "car"),
        ("Who is it?", "who"),
        ("What could the dog eat?", None),
        ("What is the girl wearing?", None),
        ("What is the girl?", "girl"),
        ("Where in the world is Carmen?", None),
    ],
)
def test_the_noun_after_an_interrogative_is_asked_for(
    text: str, word: str | None
) -> None:
    assert asked_word(text) == word


def test_a_relative_pronoun_asks_for_nothing() -> None:
    (tokens,) = split_sentences("the people who skate")
    assert find_interrogative(tokens, find_nouns(tokens)) is None


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("When eating a cake, which utensils are used?", "utensils"),
        ("When eating a sandwich, what utensil is used?", "utensil"),
        ("If we play football or baseball, what object should we wear?", "object"),
        ("When enjoying a sandwich, what could add flavor?", None),
    ],
)
def test_an_interrogative_may_follow_a_noun(question: str, asked: str | None) -> None:
    (tokens,) = split_sentences(question)
    interrogative = find_interrogative(tokens, find_nouns(tokens))
    assert interrogative is not None
    place, noun = interrogative
    assert tokens[place].word in ("what", "which")
    assert (noun and tokens[noun.start].word) == asked


def test_a_pronoun_after_a_noun_describes_it() -> None:
    (tokens,) = split_sentences("the bus, which is red")
    assert find_interrogative(tokens, find_nouns(tokens)) is None
