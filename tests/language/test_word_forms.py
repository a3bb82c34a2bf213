"""Plurals, singulars, articles, verb forms and enumerations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwise.language.word_forms import (
    IRREGULAR_PLURALS,
    base_forms,
    capitalize_first,
    is_form_among,
    is_plural,
    join_words,
    singular_forms,
    to_plural,
    to_singular,
    verb_forms,
    with_article,
)
from maskwise.models.photo.vocabulary import COCO_CATEGORIES
from maskwise.world.catalogue import CATEGORIES, SUPERCATEGORIES


@pytest.mark.parametrize(
    ("singular", "plural"),
    [
        ("dog", "dogs"),
        ("bench", "benches"),
        ("box", "boxes"),
        ("pony", "ponies"),
        ("toy", "toys"),
        ("lens", "lenses"),
        ("wine glass", "wine glasses"),
    ],
)
def test_a_plural_and_its_singular_are_formed_from_each_other(
    singular: str, plural: str
) -> None:
    assert to_plural(singular) == plural
    assert to_singular(plural) == singular


@pytest.mark.parametrize(("singular", "plural"), sorted(IRREGULAR_PLURALS.items()))
def test_irregular_plurals_have_their_singulars(singular: str, plural: str) -> None:
    assert to_plural(singular) == plural
    assert to_singular(plural) == singular
    assert singular in singular_forms(plural)


def test_the_head_of_a_phrase_takes_the_plural() -> None:
    assert to_plural("wine glass") == "wine glasses"
    assert to_plural("piece of furniture") == "pieces of furniture"


@pytest.mark.parametrize("noun", ["scissors", "jeans", "headphones", "people", "sheep"])
def test_a_noun_that_is_a_plural_or_has_none_stays(noun: str) -> None:
    assert to_plural(noun) == noun


@pytest.mark.parametrize("word", ["bus", "glass", "tennis", "lens", "was", "is", "s"])
def test_words_in_s_that_are_no_plurals_stay(word: str) -> None:
    assert to_singular(word) == word


@pytest.mark.parametrize(
    "phrase", ["cups", "the scissors", "the cup and the dog", "people", "two feet"]
)
def test_plural_phrases_take_a_plural_verb(phrase: str) -> None:
    assert is_plural(phrase)


@pytest.mark.parametrize(
    "phrase", ["cup", "the bus", "chest of drawers", "the sandwich", "grass", ""]
)
def test_other_phrases_take_a_singular_verb(phrase: str) -> None:
    assert not is_plural(phrase)


def test_plurals_of_the_world_follow_the_rules() -> None:
    for name, category in CATEGORIES.items():
        assert to_plural(name) == category.plural
    for name, supercategory in SUPERCATEGORIES.items():
        assert to_plural(name) == supercategory.plural


@pytest.mark.parametrize("name", COCO_CATEGORIES)
def test_plurals_of_categories_are_found_by_their_singular(name: str) -> None:
    last = name.rsplit(maxsplit=1)[-1]
    assert to_singular(to_plural(last)) == last


@pytest.mark.parametrize(
    ("noun", "phrase"),
    [
        ("cup", "a cup"),
        ("apple", "an apple"),
        ("umbrella", "an umbrella"),
        ("unicycle", "a unicycle"),
        ("hourglass", "an hourglass"),
        ("horse", "a horse"),
        ("one-way sign", "a one-way sign"),
        ("scissors", "scissors"),
    ],
)
def test_the_article_follows_the_sound(noun: str, phrase: str) -> None:
    assert with_article(noun) == phrase


def test_only_the_first_letter_becomes_a_capital() -> None:
    assert capitalize_first("the TV's screen") == "The TV's screen"
    assert capitalize_first("") == ""


def test_words_are_joined_with_commas_and_a_conjunction() -> None:
    assert join_words([]) == ""
    assert join_words(["a cup"]) == "a cup"
    assert join_words(["a cup", "a dog"]) == "a cup and a dog"
    assert join_words(["a", "b", "c"], "or") == "a, b or c"


@pytest.mark.parametrize(
    "forms",
    [
        "cover covers covered covering",
        "trace traces traced tracing",
        "finish finishes finished finishing",
        "omit omits omitted omitting",
    ],
)
def test_verbs_have_regular_forms(forms: str) -> None:
    verb = forms.split(maxsplit=1)[0]
    assert verb_forms(verb) == forms.split()


def test_a_form_of_a_verb_is_not_any_similar_word() -> None:
    assert is_form_among("slice", frozenset({"slicing"}))
    assert is_form_among("cut", frozenset({"cutting"}))
    assert is_form_among("cut", frozenset({"cut"}))
    assert not is_form_among("sit", frozenset({"site"}))
    assert not is_form_among("sit", frozenset())


@pytest.mark.parametrize(
    ("word", "base"),
    [
        ("skiing", "ski"),
        ("biking", "bike"),
        ("skier", "ski"),
        ("skateboarders", "skateboard"),
        ("parked", "park"),
        ("policemen", "policeman"),
    ],
)
def test_inflections_have_their_base(word: str, base: str) -> None:
    assert base in base_forms(word)


@pytest.mark.parametrize(
    ("word", "other"), [("rating", "rat"), ("paper", "pap"), ("mates", "mat")]
)
def test_similar_words_are_no_base(word: str, other: str) -> None:
    assert other not in base_forms(word)


@given(st.from_regex(r"[a-z]{3,8}", fullmatch=True))
def test_plurals_come_from_their_singulars(word: str) -> None:
    plural = word + ("es" if word.endswith(("s", "x", "z", "ch", "sh")) else "s")
    assert word in singular_forms(plural) <= base_forms(plural)


@given(st.text(max_size=12))
def test_any_word_has_forms(word: str) -> None:
    assert word in base_forms(word)
    assert isinstance(to_plural(word), str)
    assert isinstance(is_plural(word), bool)
