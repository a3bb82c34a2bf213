from hypothesis import given
from hypothesis import strategies as st

from maskwise.models.words import MOST_TRIPLES, MOST_WORDS, split_words, words_to_numbers


def test_a_word_is_its_bucket_and_its_triples() -> None:
    (mug, mugs), (cup, _) = words_to_numbers(["mug mugs", "cup"])
    assert mug[0] != mugs[0]
    assert set(mug[1:]) & set(mugs[1:]) - {0}, "a plural shares triples with its singular"
    assert not set(mug) & set(cup) - {0}


def test_shorter_questions_are_padded_with_nothing() -> None:
    long, short = words_to_numbers(["the red mug", "mug"])
    assert (short[1:] == 0).all()
    assert (short[0] == long[2]).all()


def test_marks_count_and_case_does_not() -> None:
    assert split_words("The box's LID?") == ["the", "box", "s", "lid", "?"]


@given(st.lists(st.text(max_size=400), max_size=4))
def test_any_text_gives_bounded_numbers(questions: list[str]) -> None:
    numbers = words_to_numbers(questions)
    assert numbers.shape[0] == len(questions)
    assert 1 <= numbers.shape[1] <= MOST_WORDS
    assert numbers.shape[2] == 1 + MOST_TRIPLES
    assert (numbers >= 0).all()
