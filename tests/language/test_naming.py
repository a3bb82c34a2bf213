"""Which things an answer names, and what it says beside."""

import pytest

from maskwise.language.naming import (
    affirmed,
    find_naming,
    noun_of,
    other_colors,
    says_absent,
    unexplained_words,
)


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("It is the green bowl.", "green bowl", "full"),
        ("It is the bowl.", "green bowl", "short"),
        ("It is the gray box.", "grey box", "full"),
        ("It is the sofa.", "couch", "full"),
        ("A kitten is sleeping.", "cat", "full"),
        ("A person.", "man", "short"),
        ("the knife's blade", "knife:blade", "full"),
        ("the blade", "knife:blade", "short"),
        ("the knife", "knife:blade", None),
        ("the auto", "car, auto", "full"),
        ("both cups", "cup_1", "full"),
        ("the red cup and the box", "red box", "short"),
        ("ears of the black bear", "ears of the black teddy bear", "short"),
        ("the laptop", "cup", None),
        ("", "cup", None),
        ("the cup", "", None),
    ],
)
def test_names(text: str, name: str, expected: str | None) -> None:
    assert find_naming(text, name) == expected


def test_several_things_of_one_name_are_named_in_the_plural_or_as_often() -> None:
    assert find_naming("the cups", "cup", 2) == "full"
    assert find_naming("a cup and another cup", "cup", 2) == "full"
    assert find_naming("the cup", "cup", 2) == "short"


def test_what_is_denied_is_not_said() -> None:
    assert find_naming(affirmed("The cup, not the bowl."), "bowl") is None
    assert find_naming(affirmed("It isn't the bowl, it is the cup."), "cup") == "full"


@pytest.mark.parametrize(
    "text",
    [
        "There is nothing like that here.",
        "There's no cup.",
        "I can't see any cup.",
        "A cup is not visible.",
        "No such object is there",
    ],
)
def test_absence(text: str) -> None:
    assert says_absent(text)


def test_presence() -> None:
    assert not says_absent("It is the cup that is not on the table.")


def test_unexplained_words_are_those_that_no_known_text_has() -> None:
    words = unexplained_words("It is the golden mug on fire", ["yellow cup", "mugs"])
    assert words == ["fire"]
    assert other_colors("a red and a gray box", ["grey box"]) == ["red"]


def test_the_noun_of_a_name() -> None:
    assert noun_of("red cup_1 (ceramic)") == "cup"
    assert noun_of("ears of the bear") == "ears"
    assert noun_of("my cell phone") == "cell phone"
