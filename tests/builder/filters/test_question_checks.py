"""Coordinates and offensive words are found, ordinary questions pass."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwise.builder.filters.question_checks import (
    find_coordinate,
    find_toxic,
    load_toxic_words,
)
from tests.shared import shared


@pytest.mark.parametrize(
    "question",
    [
        "What is at [12, 30, 55, 80]?",
        "What is at (120, 45)?",
        "What is inside [0.12,0.3,0.55,0.8]?",
        "What lies within 12, 30, 55, 80?",
        "What is 20 pixels wide?",
        "What is 20px high?",
        "What is in this 640x480 image?",
        "What is at x=12, y: 30?",
        "What is region 3 used for?",
        "What is the object #2?",
        "Which mask number 4 is it?",
        "What is #3 used for?",
        "What is the thing marked 5?",
        "What would knife_1 cut?",
        "What is <region2> for?",
        "What is [SEG] for?",
        "What is in the bounding box?",
        "Whose coordinates are these?",
    ],
)
def test_coordinates_are_found(question: str) -> None:
    assert find_coordinate(question) is not None


@pytest.mark.parametrize(
    "question",
    [
        "Which 2 of the 3 cups are full?",
        "Which player wears jersey #23?",
        "Who plays with number 10?",
        "What could 2, 3 or 4 people sit on?",
        "What is from the 1980s (or 1990s)?",
        "What shows that it is 10:30?",
        "Which vehicle is a 4x4?",
        "Which bus is the number 42?",
        "What costs $1,234,567?",
        "What would you put in the box?",
        "Which object is closest?",
    ],
)
def test_ordinary_numbers_pass(question: str) -> None:
    assert find_coordinate(question) is None


@given(
    st.lists(st.integers(0, 2000), min_size=4, max_size=4),
    st.sampled_from(["[{}]", "({})", "<{}>", "{}"]),
)
def test_every_box_is_found(numbers: list[int], form: str) -> None:
    assert find_coordinate(f"What is at {form.format(', '.join(map(str, numbers)))}?")


def test_toxic_words_are_whole_words() -> None:
    assert find_toxic("What is in the cockpit of the peacock's cocktail?") is None
    assert (
        find_toxic(
            "Scunthorpe, Dickens, grape, therapist, analysis, class, Japan, shitake"
        )
        is None
    )
    assert find_toxic("a great tit and a cocked hat") is None
    assert find_toxic("You are all Bastards!") == "bastard"
    assert find_toxic("White Power") == "white power"
    assert find_toxic("white powers") == "white power"
    assert find_toxic("white, no power") is None
    assert find_toxic("white") is None


@given(
    st.sampled_from(
        [" ".join(words) for found in load_toxic_words().values() for words in found]
    )
)
def test_every_listed_word_is_found(word: str) -> None:
    assert find_toxic(f"What a {word.upper()}!") is not None


@given(st.text(max_size=80))
def test_any_text_is_accepted(text: str) -> None:
    assert find_toxic(text) is None or find_toxic(text) in text.casefold().replace(
        "-", " "
    )


def test_real_questions_have_no_false_hits() -> None:
    questions = (
        shared("data", "reasonseg_train_questions.txt").read_text("utf-8").splitlines()
    )
    assert len(questions) == 1326
    assert not [
        question
        for question in questions
        if find_coordinate(question) or find_toxic(question)
    ]
