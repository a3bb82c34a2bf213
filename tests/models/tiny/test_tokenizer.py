from hypothesis import given
from hypothesis import strategies as st

from maskwise.models.tiny.spec import MAX_TOKENS, MAX_TRIGRAMS
from maskwise.models.tiny.tokenizer import split_words, tokenize


def test_a_token_is_the_bucket_of_the_word_and_of_its_trigrams() -> None:
    (mug, mugs), (cup, _) = tokenize(["mug mugs", "cup"])
    assert mug[0] != mugs[0]
    assert set(mug[1:]) & set(mugs[1:]) - {0}, (
        "a plural shares trigrams with its singular"
    )
    assert not set(mug) & set(cup) - {0}


def test_shorter_questions_are_padded_with_zeros() -> None:
    long, short = tokenize(["the red mug", "mug"])
    assert (short[1:] == 0).all()
    assert (short[0] == long[2]).all()


def test_punctuation_is_kept_and_case_is_not() -> None:
    assert split_words("The box's LID?") == ["the", "box", "s", "lid", "?"]


@given(st.lists(st.text(max_size=400), max_size=4))
def test_any_text_gives_tokens_within_bounds(questions: list[str]) -> None:
    tokens = tokenize(questions)
    assert tokens.shape[0] == len(questions)
    assert 1 <= tokens.shape[1] <= MAX_TOKENS
    assert tokens.shape[2] == 1 + MAX_TRIGRAMS
    assert (tokens >= 0).all()
