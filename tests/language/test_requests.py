"""Requests are reduced to the noun phrase that they ask for."""

import pytest

from maskwise.language.requests import to_noun_phrase


@pytest.mark.parametrize(
    ("question", "phrase"),
    [
        ("Segment the red cup.", "red cup"),
        ("Where are all the dogs?", "dogs"),
        ("the dog on the left", "the dog on the left"),
        ("Please mark a dog", "dog"),
        ("show me all of the cups!", "cups"),
        ("What could I drink from?", "What could I drink from"),
        ("", ""),
    ],
)
def test_questions_become_noun_phrases(question: str, phrase: str) -> None:
    assert to_noun_phrase(question) == phrase
