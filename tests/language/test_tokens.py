"""Words of a text with their offsets, and phrases among them."""

from hypothesis import given
from hypothesis import strategies as st

from maskwise.language.phrases import (
    PhraseMatch,
    find_phrases,
    phrase_key,
    phrase_table,
)
from maskwise.language.tokens import split_words, tokenize


def test_tokens_have_their_words_and_singulars() -> None:
    tokens = tokenize("The left-most Cups, please!")
    assert [token.word for token in tokens] == ["the", "left-most", "cups", "please"]
    assert [token.plural for token in tokens] == [False, False, True, False]
    assert tokens[2].singular == "cup"


def test_possessives_lose_their_ending() -> None:
    for text in ("the dog's bowl", "the dog’s bowl"):
        _, dog, bowl = tokenize(text)
        assert (dog.word, dog.possessive) == ("dog", True)
        assert not bowl.possessive


def test_words_of_other_scripts_stay_whole() -> None:
    assert [token.word for token in tokenize("crème brûlée")] == ["crème", "brûlée"]


@given(st.text())
def test_offsets_point_to_the_word_in_the_text(text: str) -> None:
    end = 0
    for token in tokenize(text):
        assert end <= token.start < token.stop
        end = token.stop
        written = text[token.start : token.stop].lower().replace("’", "'")
        assert written.removesuffix("'s") == token.word


def test_a_text_without_words_has_no_tokens() -> None:
    assert tokenize(" ?! ") == []
    assert split_words("") == ()


def test_split_words_separates_hyphens_and_drops_contractions() -> None:
    assert split_words("What's the T-shirt's price? I don't know 4x4s") == (
        "what",
        "the",
        "t",
        "shirt",
        "price",
        "i",
        "don",
        "know",
        "4x4s",
    )


def test_the_longest_phrase_wins_and_phrases_do_not_overlap() -> None:
    table = phrase_table({"dog": ["dog"], "food": ["hot dog"], "place": ["on top of"]})
    tokens = tokenize("hot dogs on top of a dog")
    assert find_phrases(tokens, table) == [
        PhraseMatch(0, 2, "food"),
        PhraseMatch(2, 5, "place"),
        PhraseMatch(6, 7, "dog"),
    ]


def test_a_taken_token_is_in_no_phrase() -> None:
    table = phrase_table({"dog": ["dog"], "food": ["hot dog"]})
    matches = find_phrases(tokenize("hot dog"), table, taken=[True, False])
    assert matches == [PhraseMatch(1, 2, "dog")]


def test_an_empty_table_matches_nothing() -> None:
    assert find_phrases(tokenize("a dog"), {}) == []
    assert phrase_key("...") == ()
