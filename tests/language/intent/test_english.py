"""Questions in other languages are recognised by their words, rare English words are not taken for foreign."""

import pytest

from maskwise.language.intent.english import SHARED_WORDS, english_share, is_english
from maskwise.language.lexicons import read_sections, word_set

VOCABULARY = word_set("the dog behind fence show whole and part")


@pytest.mark.parametrize(
    "text",
    [
        "the dog behind the fence",
        "dog",
        "xylophone",
        "blue xylophone",
        "the piñata",  # one foreign word beside an English one
        "42",
        "",
    ],
)
def test_plausible_texts_are_english(text: str) -> None:
    assert is_english(text, VOCABULARY)


@pytest.mark.parametrize(
    "text",
    [
        "der ganze Hund",
        "toute la tasse",
        "犬",
        "собака за забором",
        "zyx wvu tsr",  # three unknown words and none that is known
    ],
)
def test_other_texts_are_not(text: str) -> None:
    assert not is_english(text, VOCABULARY)


def test_the_share_counts_known_words() -> None:
    assert english_share("the dog", VOCABULARY) == 1
    assert english_share("the hund", VOCABULARY) == 0.5
    assert english_share("der hund", VOCABULARY) == 0
    assert english_share("42 ?", VOCABULARY) == 1


def test_each_character_of_an_unspaced_script_is_a_word() -> None:
    assert english_share("dog犬犬犬", VOCABULARY) == 0.25


def test_every_language_has_words_that_english_lacks() -> None:
    for language, (words,) in read_sections("other_languages").items():
        own = set(words.split()) - SHARED_WORDS
        assert len(own) >= 8, language
